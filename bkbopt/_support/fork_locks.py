"""Locks that stay usable in the child process after a fork."""

import os
import threading
import weakref
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["lock"]

#: Longest time, in seconds, that a fork waits for other threads (for a fit, say). Then it proceeds, and the child may
#: hang.
PATIENCE = 60.0

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_held: list[Any] = []


def lock() -> AbstractContextManager[Any]:
    """A reentrant lock that `os.fork` acquires before the fork and releases after it, in both processes.

    A child process has only the thread that forked. Locks held by other threads would stay locked in it, and data that
    they were writing, such as SQLite's records of its own locks, would stay incomplete. So a fork waits for them.
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
