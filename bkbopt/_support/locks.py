"""Locks on files, for processes that change the same one."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import IO

from bkbopt.errors import StorageError

__all__ = ["locked"]

#: Seconds between two tries, the first and the longest.
FIRST_PAUSE, LAST_PAUSE = 0.001, 0.02


@contextlib.contextmanager
def locked(path: str, wait: float) -> Iterator[None]:
    """Hold the lock of a file, for which it waits so many seconds; Ctrl-C ends the wait.

    The lock is one of the operating system on another file beside it; it goes with the process that holds it. That file
    stays: if it were removed, two processes could hold locks on two files of that name.

    Raises:
        StorageError: another process has held the lock all the time.
        OSError: the file beside it may not be made.
    """
    beside = os.path.realpath(path) + ".lock"
    deadline, pause = time.monotonic() + wait, FIRST_PAUSE
    with open(beside, "a+b") as file:
        while not _try_lock(file):
            if time.monotonic() >= deadline:
                raise StorageError(
                    f"storage: another process has held the lock of {path} for {wait:g} s; wait for it, or see who "
                    f"holds {beside}."
                )
            time.sleep(pause)
            pause = min(2.0 * pause, LAST_PAUSE)
        try:
            yield
        finally:
            _unlock(file)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
