"""Locks that a fork does not leave closed for ever in the copy of a process."""

import os
import threading
import weakref
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["lock"]

#: Seconds that a fork waits for what another thread does, a fit say. After that it goes on, and the copy may hang.
PATIENCE = 60.0

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_held: list[Any] = []


def lock() -> AbstractContextManager[Any]:
    """A reentrant lock that a fork takes first.

    A copy of a process has the thread that forked and none of the others: what these had locked stays so, and what they
    were writing, SQLite's notes of its locks for one, stays half-way. So a fork waits until they are done.
    """
    made = threading.RLock()
    _locks.add(made)
    return made


def _before() -> None:
    _held.extend(each for each in list(_locks) if each.acquire(timeout=PATIENCE))


def _after() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
