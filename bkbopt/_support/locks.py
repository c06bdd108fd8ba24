"""Locks on files, for processes that change the same one."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import IO

from bkbopt.errors import StorageError

__all__ = ["FileLock", "locked"]

#: Seconds between two tries, the first and the longest.
FIRST_PAUSE, LAST_PAUSE = 0.001, 0.02


class FileLock:
    """The lock of a file, which one process at a time holds.

    It is one of the operating system on another file beside it; it goes with the process that holds it. That file
    stays: if it were removed, two processes could hold locks on two files of that name.

    Args:
        path: of the file.
    """

    def __init__(self, path: str) -> None:
        self.path, self.beside = path, os.path.realpath(path) + ".lock"
        self._file: IO[bytes] | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds it, or is about to."""
        return self._file is not None and not self._file.closed

    def acquire(self, wait: float) -> None:
        """Take the lock, for which it waits so many seconds; Ctrl-C ends the wait.

        Raises:
            StorageError: another process has held the lock all the time.
            OSError: the file beside it may not be made.
        """
        deadline, pause = time.monotonic() + wait, FIRST_PAUSE
        self._file = open(self.beside, "a+b")  # noqa: SIM115  # `release` closes it, also after an interrupt
        while not _try_lock(self._file):
            if time.monotonic() >= deadline:
                raise StorageError(
                    f"storage: another process has held the lock of {self.path} for {wait:g} s; wait for it, or see "
                    f"who holds {self.beside}."
                )
            time.sleep(pause)
            pause = min(2.0 * pause, LAST_PAUSE)

    def release(self) -> None:
        """Give the lock back; where it is not held, nothing happens."""
        if self._file is not None and not self._file.closed:
            try:
                _unlock(self._file)
            finally:
                self._file.close()


@contextlib.contextmanager
def locked(path: str, wait: float) -> Iterator[None]:
    """Hold the lock of a file; see `FileLock`."""
    lock = FileLock(path)
    try:
        lock.acquire(wait)
        yield
    finally:
        lock.release()


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
