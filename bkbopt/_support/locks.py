"""Locks on files, for processes that change the same one."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import IO

__all__ = ["locked"]


@contextlib.contextmanager
def locked(path: str, wait: float) -> Iterator[None]:
    """Hold the lock of a file, for which it waits so many seconds.

    The lock is one of the operating system on another file beside it; it goes with the process that holds it. That file
    stays: if it were removed, two processes could hold locks on two files of that name.

    Raises:
        TimeoutError: another process has held the lock all the time.
    """
    beside = os.path.realpath(path) + ".lock"
    deadline = time.monotonic() + wait
    with open(beside, "a+b") as file:
        while not _try_lock(file):
            if time.monotonic() >= deadline:
                raise TimeoutError(
                    f"{path}: another command has held its lock for {wait:g} s; wait for it, or see who holds {beside}."
                )
            time.sleep(0.05)
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
