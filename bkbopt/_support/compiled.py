"""Decorators that compile loops with numba. Compiled code is cached on disk, so only the first run compiles.

Importing numba takes a fraction of a second. A decorated function therefore imports it, and is compiled, at its first
call, together with the decorated functions that it calls: loops can stand beside the code that uses them.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

__all__ = ["compiled", "fast", "fused", "inlined"]

F = TypeVar("F", bound=Callable[..., object])


class _Loop:
    """A function that is compiled at its first call.

    Args:
        function: as it is written.
        fastmath: numba's flags.
        inline: whether its code takes the place of each call in another loop, which then has to have the same flags.
    """

    def __init__(self, function: Callable[..., Any], fastmath: set[str], inline: bool = False) -> None:
        functools.update_wrapper(self, function)
        self._function, self._fastmath, self._inline = function, fastmath, "always" if inline else "never"
        self._dispatcher: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        return (self._dispatcher or self.dispatcher())(*args)

    def dispatcher(self) -> Callable[..., Any]:
        """numba's form of the function."""
        if self._dispatcher is None:
            import numba

            names = self._function.__globals__
            for name in self._function.__code__.co_names:
                called = names.get(name)
                if isinstance(called, _Loop):
                    names[name] = called.dispatcher()  # numba looks global names up when it compiles
            # Always given, also if empty: otherwise a function takes the flags of the caller for which it is compiled,
            # and keeps them for all others, in the cache too, so that results depend on who came first.
            self._dispatcher = numba.njit(cache=True, nogil=True, fastmath=self._fastmath, inline=self._inline)(
                self._function
            )
        return self._dispatcher


def compiled(function: F) -> F:
    """Compile without changes of the floating-point arithmetic."""
    return cast(F, _Loop(function, set()))


def fused(function: F) -> F:
    """Compile with fused multiply-adds, and otherwise without changes of the floating-point arithmetic."""
    return cast(F, _Loop(function, {"contract"}))


def inlined(function: F) -> F:
    """As `fused`, in place of each call from another fused loop.

    A loop that is called from others is compiled by itself and once more with each of them, which takes up to a second
    at the first run. So helpers with a single caller are inlined. With several callers this makes compiling slower.
    """
    return cast(F, _Loop(function, {"contract"}, inline=True))


def fast(function: F) -> F:
    """Compile with fused multiply-adds and sums in vectorised order.

    The loop must not call `exp_of_negative`, which is inlined: reordering breaks it.
    """
    return cast(F, _Loop(function, {"reassoc", "contract", "nsz"}))
