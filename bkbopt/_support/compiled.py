"""Decorators that compile loops with numba. Compiled code is cached on disk, so only the first run compiles.

Importing numba takes a fraction of a second. A decorated function therefore imports it, and is compiled, at its first
call, together with the decorated functions that it calls: loops can stand beside the code that uses them.
"""

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar, cast

__all__ = ["compiled", "fast", "fused", "inlined", "noticed", "watched"]

logger = logging.getLogger(__name__)

#: What users are told while the first loops are compiled.
NOTICE = "Compiling loops, which takes up to a minute, once; `bkbopt compile` does it beforehand."

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
        self._function, self._fastmath = function, fastmath
        self._inline: Literal["always", "never"] = "always" if inline else "never"
        self._dispatcher: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        return (self._dispatcher or self.dispatcher())(*args)

    def dispatcher(self) -> Callable[..., Any]:
        """numba's form of the function."""
        if self._dispatcher is None:
            import numba

            _listen()
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


#: What is called with the name of each loop before it is compiled; see `watched`.
_watchers: list[Callable[[str], object]] = []


@contextlib.contextmanager
def watched(call: Callable[[str], object]) -> Iterator[None]:
    """A block in which `call` gets the name of each loop that is compiled, before that: a run then stands still."""
    _watchers.append(call)
    try:
        yield
    finally:
        _watchers.remove(call)


@contextlib.contextmanager
def noticed(tell: Callable[[str], object]) -> Iterator[None]:
    """A block in which `tell` gets a notice for users when the first loop is compiled, if one is."""
    told: list[str] = []

    def once(name: str) -> None:
        if not told:
            told.append(name)
            tell(NOTICE)

    with watched(once):
        yield


@functools.cache
def _listen() -> None:
    """Have numba tell `_watchers` what it compiles, and log the first loop of the process."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, started: Any) -> None:
            function = started.data["dispatcher"].py_func
            if function.__module__.startswith("bkbopt."):
                _log_once()
                for call in [*_watchers]:
                    call(f"{function.__module__}.{function.__qualname__}")

        def on_end(self, ended: Any) -> None:
            pass

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]


@functools.cache
def _log_once() -> None:
    logger.info("%s", NOTICE)


def compiled(function: F) -> F:
    """Compile without changes of the floating-point arithmetic."""
    return cast(F, _Loop(function, set()))


def fused(function: F) -> F:
    """Compile with fused multiply-adds, and otherwise without changes of the floating-point arithmetic."""
    return cast(F, _Loop(function, {"contract"}))


def inlined(function: F) -> F:
    """As `fused`, in place of each call from another fused loop.

    A loop that is called from others is compiled by itself and once more with each of them, which takes up to a second
    at the first run. So helpers with one to three callers are inlined. Large ones make compiling slower when they are.
    """
    return cast(F, _Loop(function, {"contract"}, inline=True))


def fast(function: F) -> F:
    """Compile with fused multiply-adds and sums in vectorised order.

    The loop must not call `exp_of_negative`, which is inlined: reordering breaks it.
    """
    return cast(F, _Loop(function, {"reassoc", "contract", "nsz"}))
