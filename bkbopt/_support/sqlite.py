"""SQLite for files shared by several processes: connections, waiting for locks, and translated errors."""

import contextlib
import functools
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

from bkbopt._support.file_paths import at_home, names_folder
from bkbopt._support.locks import NO_LOCKS, check_locks
from bkbopt._support.replacing import sync_folder
from bkbopt.errors import ArgumentError, ArgumentTypeError, StateFileError, StorageError

__all__ = [
    "PATIENCE",
    "UNKNOWN",
    "at_one_time",
    "connected",
    "identity",
    "patiently",
    "place_of",
    "replacing",
    "synchronised",
    "translated",
]

#: Longest time, in seconds, that a process waits for others before it raises an error.
PATIENCE = 600.0
#: Seconds that SQLite waits in one call; signals are handled between calls.
STEP = 0.25

#: Last sentence of an error: whether the change was written.
NOTHING = "Nothing was written."
UNKNOWN = "Whether the last change was written shows when the log can be read again: see its trials then."

T = TypeVar("T")


def place_of(path: str | os.PathLike[str]) -> str:
    """Path of the file of a log, with a leading `~` as the home folder and symbolic links resolved.

    Raises:
        ArgumentTypeError, ArgumentError: not a path, or the address of a database server.
        StorageError: the path of a folder.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str):
        raise ArgumentTypeError(f"storage: expected the path of a file, got {path!r} of type {type(path).__name__}.")
    if not text or text == ":memory:" or "://" in text or "\0" in text:
        raise ArgumentError(
            f"storage: expected the path of a file, as 'runs.db', got {text!r}; without storage= the log is in memory, "
            "and for a database server there are Optuna's storages and BKBSampler."
        )
    text = at_home(text)
    if names_folder(text) or os.path.isdir(text):
        raise StorageError(f"storage: expected a file, got the folder {text!r}; name a file in it.")
    return os.path.realpath(text)


def connected(path: str, mode: Literal["rwc", "rw"]) -> sqlite3.Connection:
    """A connection that executes no code stored in the file, and syncs the disk after each transaction.

    Raises:
        sqlite3.Error: the file cannot be opened, or is no database.
    """
    with contextlib.suppress(OSError):  # SQLite says why it cannot be read
        # SQLite takes one byte for an empty file: where locks need one, it writes "S" when it makes a file.
        if os.path.getsize(path) == 1 and os.path.isfile(path) and Path(path).read_bytes() != b"S":
            raise sqlite3.DatabaseError("file is not a database")
    uri = f"{Path(path).as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=STEP, isolation_level=None, check_same_thread=False)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(connection.close)
        for setting in ("trusted_schema = OFF", "cell_size_check = ON", "synchronous = EXTRA", "journal_mode = DELETE"):
            # Each PRAGMA may read the schema, and then has to wait for other processes.
            patiently(functools.partial(connection.execute, f"PRAGMA {setting}"), path)
        on_failure.pop_all()
    return connection


@contextlib.contextmanager
def at_one_time(connection: sqlite3.Connection) -> Iterator[None]:
    """A block whose reads all see the same state of the file (a read transaction)."""
    if connection.in_transaction:
        yield
        return
    try:
        connection.execute("BEGIN")
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def identity(path: str) -> tuple[int, int]:
    """Device and inode, which distinguish a file from a later one of the same name; (-1, -1) if there is no file."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return (-1, -1)
    return (found.st_dev, found.st_ino)


@contextlib.contextmanager
def replacing(path: str) -> Iterator[None]:
    """A block that may replace the file at `path`, a database or any other file.

    Before the block an interrupted transaction is rolled back, and during the block no other process can begin one:
    SQLite would apply a journal of the old database to the new file.
    """
    with contextlib.ExitStack() as stack:
        if os.path.isfile(path) and os.path.getsize(path):
            with contextlib.suppress(StateFileError), translated(path):
                connection = stack.enter_context(contextlib.closing(connected(path, "rw")))
                patiently(lambda: connection.execute("BEGIN EXCLUSIVE"), path)
                if os.name == "nt":  # Windows cannot replace open files
                    connection.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + "-journal")  # left by a file that was removed, or that is not a database
        yield


def synchronised(folder: str) -> bool:
    """Sync the entries of a folder to disk; whether the system reports success."""
    try:
        sync_folder(folder)
    except OSError:
        return False
    return True


def patiently(call: Callable[[], T], path: str) -> T:
    """The result of `call`, which is repeated while other processes lock the database, for at most `PATIENCE`."""
    deadline, is_first = time.monotonic() + PATIENCE, True
    while True:
        try:
            return call()
        except sqlite3.OperationalError as error:
            if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            if is_first:  # SQLite reports the same error on file systems without locks
                check_locks(path)
            is_first = False
            if time.monotonic() >= deadline:
                raise StorageError(
                    f"storage: {path} has been locked by another process for {PATIENCE:g} s; nothing was written. "
                    "End that process, or wait for it, and call again."
                ) from error


#: Messages for SQLite's primary result codes.
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full; make room, and call again",
    sqlite3.SQLITE_READONLY: "no permission to write the file or its folder; check the permissions",
    sqlite3.SQLITE_BUSY: "another process uses it; wait for that process, and call again",
    sqlite3.SQLITE_PERM: "no permission to open the file; check its permissions",
    sqlite3.SQLITE_CANTOPEN: "the file, or its journal, could not be opened; check the permissions of the file and of "
    "its folder, and whether the disk has room",
    sqlite3.SQLITE_IOERR: "the disk reported an error; see the system's log",
    sqlite3.SQLITE_PROTOCOL: NO_LOCKS,
    sqlite3.SQLITE_NOLFS: "the disk does not take files of that size",
    sqlite3.SQLITE_TOOBIG: "a row is too large",
}
#: Messages for extended result codes, where those are more specific.
_EXACTLY = {
    sqlite3.SQLITE_IOERR_LOCK: NO_LOCKS,
    sqlite3.SQLITE_IOERR_RDLOCK: NO_LOCKS,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK: NO_LOCKS,
    sqlite3.SQLITE_READONLY_DBMOVED: "the file was removed or replaced since it was opened; put it back, or open the "
    "new one",
}


@contextlib.contextmanager
def translated(path: str, fate: str = NOTHING) -> Iterator[None]:
    """A block that turns SQLite's errors into `StorageError` and `StateFileError`.

    `fate`, the last sentence of a `StorageError`, says whether the change was written.
    """
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite's message quotes bytes of the file that are not UTF-8
        raise StateFileError(_what_it_is(path, error)) from error
    except sqlite3.Error as error:
        exactly = getattr(error, "sqlite_errorcode", -1)
        reason = _EXACTLY.get(exactly, _REASONS.get(_code(error)))
        if reason is not None:
            raise StorageError(f"storage: {path}: {reason} (SQLite: {error}). {fate}") from error
        raise StateFileError(_what_it_is(path, error)) from error


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; -1 for errors of the `sqlite3` module itself, such as invalid text."""
    code: int = getattr(error, "sqlite_errorcode", -1)
    return code if code < 0 else code & 0xFF


def _what_it_is(path: str, error: Exception) -> str:
    """The error message for a file that is not a valid SQLite database."""
    import zipfile  # here, since its import takes a quarter of the run time of a command

    with contextlib.suppress(OSError, zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, EOFError):
        with zipfile.ZipFile(path) as archive, archive.open("state.json") as file:
            head = file.read(1000).decode("utf-8", "replace")
        kind, version = (re.search(f'"{key}":"([^"]*)"', head) for key in ("kind", "bkbopt_version"))
        if kind and version:
            return (
                f"{path}: expected a log of bkbopt, got a state file of kind {kind[1]!r} that bkbopt {version[1]} "
                "wrote; this version keeps optimizer logs in SQLite files; load learners with their own class."
            )
    return f"{path}: expected a log of bkbopt, got a damaged file or another format ({error}); restore it from a copy."
