"""Bars for passes over many rows, where one was asked for and the pass takes a while."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

__all__ = ["bar", "bars"]

#: Seconds after which a bar appears.
DELAY = 2.0

_ASKED_FOR: ContextVar[bool] = ContextVar("bkbopt_progress", default=False)


@contextlib.contextmanager
def bars(asked_for: bool) -> Iterator[None]:
    """Within the block passes show bars, if that is asked for here or further out."""
    token = _ASKED_FOR.set(asked_for or _ASKED_FOR.get())
    try:
        yield
    finally:
        _ASKED_FOR.reset(token)


@contextlib.contextmanager
def bar(total: int | None, what: str) -> Iterator[Callable[[int], object]]:
    """A bar of `total` rows, None if that is unknown, on standard error; what is yielded is called with rows done."""
    if not _ASKED_FOR.get():
        yield int
        return
    from tqdm.auto import tqdm

    shown = tqdm(total=total, desc=what, unit="row", unit_scale=True, leave=False, delay=DELAY)
    try:
        yield shown.update
    finally:
        shown.close()
