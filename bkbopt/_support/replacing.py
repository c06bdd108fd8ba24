"""Atomic replacement of files: after a crash the file is the old one or the new one, complete."""

import contextlib
import errno
import os
import stat
import zlib
from collections.abc import Callable
from typing import IO

from bkbopt._support.file_paths import at_home, names_folder
from bkbopt.errors import ArgumentError, ArgumentTypeError

__all__ = ["as_path", "replace_atomically", "sync_folder"]


def as_path(path: object) -> str:
    """The path of a file as text, with a leading `~` as the home folder.

    Raises:
        ArgumentTypeError: no path: bytes, a file, or its number, which `open` would take.
        ArgumentError: a path that no file can have.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str):
        raise ArgumentTypeError(f"path: expected the path of a file, got {path!r} of type {type(path).__name__}.")
    if not text or "\0" in text:
        raise ArgumentError(f"path: expected the path of a file, got {text!r}; give the name of a file.")
    text = at_home(text)
    if names_folder(text):
        raise ArgumentError(f"path: expected a regular file or a new name, got the folder {text!r}; name a file in it.")
    return text


def replace_atomically(path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Call `write` on a temporary file in the same folder, sync it to disk, and rename it to `path`."""
    target = os.path.realpath(as_path(path))
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "the folder to save into does not exist", folder)
    old = _existing(target)
    machine = os.uname().nodename if hasattr(os, "uname") else ""
    own = f".bkbopt-{zlib.crc32(f'{machine} {target}'.encode('utf-8', 'surrogateescape')):08x}-"
    _sweep(folder, own)
    temporary = os.path.join(folder, f"{own}{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        # Mode "x" creates the file with the umask's permissions; the tempfile module would not.
        with open(temporary, "xb") as file:
            if old is not None:
                with contextlib.suppress(AttributeError, PermissionError):  # only root may change the owner
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
    """Remove temporary files left by processes of this machine that no longer exist."""
    if os.name != "posix":  # elsewhere os.kill(process, 0) would end the process
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
    except PermissionError:  # the process belongs to another user
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
    """Sync the entries of a folder (new, renamed and removed names) to disk. Only POSIX systems can open folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
