"""Writing a file in a single step: a crash leaves the old file or the new one, whole."""

import contextlib
import errno
import os
import stat
import zlib
from collections.abc import Callable
from typing import IO

from bkbopt.errors import ArgumentError

__all__ = ["replace_atomically", "sync_folder"]


def replace_atomically(path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Let `write` fill a new file beside `path` and rename it over `path` once it is safely on the disk."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "the folder to save into does not exist", folder)
    old = _existing(target)
    machine = os.uname().nodename if hasattr(os, "uname") else ""
    own = f".bkbopt-{zlib.crc32(f'{machine} {target}'.encode('utf-8', 'surrogateescape')):08x}-"
    _sweep(folder, own)
    temporary = os.path.join(folder, f"{own}{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        # "x" makes the file by the umask, which the tempfile module would not.
        with open(temporary, "xb") as file:
            if old is not None:
                with contextlib.suppress(AttributeError, PermissionError):  # only root may give files away
                    os.chown(temporary, old.st_uid, old.st_gid)
                os.chmod(temporary, stat.S_IMODE(old.st_mode))
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        if os.path.lexists(temporary):  # gone after the rename
            os.unlink(temporary)
    sync_folder(folder)


def _sweep(folder: str, own: str) -> None:
    """Remove what processes of this machine that died left beside the file."""
    if os.name != "posix":  # elsewhere a process cannot be asked for without harm
        return
    for name in os.listdir(folder):
        number = name[len(own) :].partition("-")[0]
        if name.startswith(own) and number.isdecimal() and not _is_alive(int(number)):
            with contextlib.suppress(FileNotFoundError, PermissionError):
                os.unlink(os.path.join(folder, name))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is another user's
        pass
    return True


def _existing(target: str) -> os.stat_result | None:
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ArgumentError(f"path: expected a regular file or a new name, got {target!r}; give the name of a file.")
    return found


def sync_folder(folder: str) -> None:
    """Make new, renamed and removed names in a folder durable. Only POSIX systems open folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
