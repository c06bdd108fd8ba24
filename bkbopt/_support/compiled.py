"""Decorators that compile loops with numba. Compiled code is cached on disk, so only the first run compiles.

Importing numba takes a fraction of a second. A decorated function therefore imports it, and is compiled, at its first
call, together with the decorated functions that it calls: loops can stand beside the code that uses them.
"""

import contextlib
import functools
import importlib
import logging
import pickle
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar, cast

__all__ = ["compiled", "fast", "fused", "inlined", "noticed", "watched"]

logger = logging.getLogger(__name__)

#: What users are told while the first loops are compiled.
NOTICE = "Compiling loops, which takes up to a minute, once; `bkbopt compile` does it beforehand."

#: What numba raises for a file that is empty or cut off.
BROKEN = (EOFError, pickle.UnpicklingError)

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
            dispatcher: Any = numba.njit(nogil=True, fastmath=self._fastmath, inline=self._inline)(self._function)
            if (cache := _cache_of(self._function)) is not None:
                dispatcher._cache = cache
            self._dispatcher = dispatcher
        return self._dispatcher


def _cache_of(function: Callable[..., Any]) -> Any:
    """numba's cache of a function on disk; None where there is no folder that can be written."""
    caching: Any = importlib.import_module("numba.core.caching")
    try:
        cache = caching.FunctionCache(function)
    except RuntimeError:  # its only one: neither of the two folders can be written, as in a container of another user
        _warn_once("neither the package's nor the user's cache folder can be written")
        return None
    load, save = cache.load_overload, cache.save_overload

    def load_if_intact(*args: Any) -> Any:
        try:
            return load(*args)
        except BROKEN:  # by a power cut, say; numba would stop here each time
            with contextlib.suppress(OSError):
                cache.flush()
            return None

    def save_if_possible(*args: Any) -> None:
        try:
            save(*args)
        except (OSError, *BROKEN) as error:  # the disk is full, say; the code is in memory all the same
            _warn_once(str(error))

    cache.load_overload, cache.save_overload = load_if_intact, save_if_possible
    return cache


#: Why loops were not kept.
_reasons: list[str] = []
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


def _warn_once(reason: str) -> None:
    if not _reasons:
        logger.warning("Compiled loops are not kept for other processes: %s; see NUMBA_CACHE_DIR.", reason)
    _reasons.append(reason)


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
