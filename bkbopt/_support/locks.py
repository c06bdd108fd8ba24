"""File locks for processes that change the same file."""

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO

from bkbopt.errors import StorageError

__all__ = ["NO_LOCKS", "FileLock", "check_locks", "locked"]

#: Seconds between two attempts: the first pause and the longest one.
FIRST_PAUSE, LAST_PAUSE = 0.001, 0.02
#: Error numbers of file systems that do not support locks.
WITHOUT = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
NO_LOCKS = (
    "the disk has no locks, without which processes cannot share a file; use another disk, or an Optuna storage and "
    "BKBSampler"
)


class FileLock:
    """An exclusive lock between processes on a file.

    It is a lock of the operating system on a second file, `<path>.lock`; it is released when the process that holds it
    ends. The lock file is never removed: otherwise two processes could hold locks on two files of that name.

    Args:
        path: path of the file to protect.
    """

    def __init__(self, path: str) -> None:
        self.path, self.beside = path, _beside(path)
        self._file: IO[bytes] | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock or is waiting for it."""
        return self._file is not None and not self._file.closed

    def acquire(self, wait: float) -> None:
        """Acquire the lock, waiting at most `wait` seconds; Ctrl-C ends the wait.

        Raises:
            StorageError: another process held the lock all the time, the file system has no locks, or the lock file
                cannot be created.
            FileNotFoundError: the folder does not exist.
        """
        deadline, pause = time.monotonic() + wait, FIRST_PAUSE
        try:
            self._file = _opened(self.path)  # `release` closes it, also after an interrupt
        except OSError as error:
            folder = os.path.dirname(self.beside)
            if not os.path.isdir(folder):
                text = f"storage: expected a folder that exists, got {folder}; make it first."
                raise FileNotFoundError(text) from None
            raise StorageError(
                f"storage: {self.path}: the lock beside it, {self.beside}, may not be written ({error.strerror}); see "
                "the permissions of the file and of its folder, and whether the disk has room. Nothing was written."
            ) from error
        while not _said(_try_lock, self._file, self.path):
            if time.monotonic() >= deadline:
                raise StorageError(
                    f"storage: another process has held the lock of {self.path} for {wait:g} s; wait for it, or see "
                    f"who holds {self.beside}."
                )
            time.sleep(pause)
            pause = min(2.0 * pause, LAST_PAUSE)

    def release(self) -> None:
        """Release the lock; does nothing if it is not held."""
        if self._file is not None and not self._file.closed:
            try:
                # Closing would suffice, unless a child that was forked meanwhile has the file open too.
                with contextlib.suppress(OSError):
                    _unlock(self._file)
            finally:
                self._file.close()


@contextlib.contextmanager
def locked(path: str, wait: float) -> Iterator[None]:
    """A block that holds the lock of a file; see `FileLock`."""
    lock = FileLock(path)
    try:
        lock.acquire(wait)
        yield
    finally:
        lock.release()


def check_locks(path: str) -> None:
    """Check that the file system of a file supports locks.

    Raises:
        StorageError: it does not.
    """
    try:
        file = _opened(path)
    except OSError:  # a folder without write permission, which does not concern readers
        return
    with file:
        _said(_try_range, file, path)


def _opened(path: str) -> IO[bytes]:
    """The lock file of `path`, open; it gets the owner and the write permissions of `path`."""
    beside = _beside(path)
    with contextlib.suppress(FileExistsError, FileNotFoundError):
        found = os.stat(path)
        mode = stat.S_IMODE(found.st_mode) & 0o666 | 0o600
        with open(os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            if sys.platform != "win32":
                with contextlib.suppress(PermissionError):  # only root may change the owner
                    os.fchown(file.fileno(), found.st_uid, found.st_gid)
                os.fchmod(file.fileno(), mode)  # whatever the umask is
    return open(beside, "a+b")


def _beside(path: str) -> str:
    return os.path.realpath(path) + ".lock"


def _said(lock: Callable[[IO[bytes]], bool], file: IO[bytes], path: str) -> bool:
    """Whether `lock` acquired the lock; `StorageError` if the file system has no locks."""
    try:
        return lock(file)
    except OSError as error:
        if error.errno in WITHOUT:
            raise StorageError(f"storage: {path}: {NO_LOCKS} ({error}). Nothing was written.") from error
        raise


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    _try_range = _try_lock

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

    def _try_range(file: IO[bytes]) -> bool:
        """Try a POSIX record lock, the kind that SQLite uses."""
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
