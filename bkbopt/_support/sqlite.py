"""SQLite for files that several processes use: connections, waiting, and errors in words."""

import contextlib
import functools
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

from bkbopt._support.locks import NO_LOCKS, check_locks
from bkbopt._support.replacing import sync_folder
from bkbopt.errors import ArgumentError, ArgumentTypeError, StateFileError, StorageError

__all__ = [
    "NOTHING",
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

#: Seconds that a process waits for others before it gives up.
PATIENCE = 600.0
#: Seconds that SQLite waits by itself; a signal is heard after that time at the latest.
STEP = 0.25

#: What became of a change, as errors say it.
NOTHING = "Nothing was written."
UNKNOWN = "Whether the last change was written shows when the log can be read again: see its trials then."

T = TypeVar("T")


def place_of(path: str | os.PathLike[str]) -> str:
    """Where the file of a log is, without symbolic links.

    Raises:
        ArgumentTypeError, ArgumentError: no path, or the address of a database.
        StorageError: a folder.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str):
        raise ArgumentTypeError(f"storage: expected the path of a file, got {path!r} of type {type(path).__name__}.")
    if not text or text == ":memory:" or "://" in text:
        raise ArgumentError(
            f"storage: expected the path of a file, as 'runs.db', got {text!r}; without storage= the log is in memory, "
            "and for a database server there are Optuna's storages and BKBSampler."
        )
    if os.path.isdir(text):
        raise StorageError(f"storage: expected a file, got the folder {text!r}; name a file in it.")
    return os.path.realpath(text)


def connected(path: str, mode: Literal["rwc", "rw"]) -> sqlite3.Connection:
    """An open database that runs nothing of what it holds, and is safely on the disk after each transaction."""
    uri = f"{Path(path).as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=STEP, isolation_level=None, check_same_thread=False)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(connection.close)
        for setting in ("trusted_schema = OFF", "cell_size_check = ON", "synchronous = EXTRA", "journal_mode = DELETE"):
            # Each of them may read the schema, and has to wait then.
            patiently(functools.partial(connection.execute, f"PRAGMA {setting}"), path)
        on_failure.pop_all()
    return connection


@contextlib.contextmanager
def at_one_time(connection: sqlite3.Connection) -> Iterator[None]:
    """A block whose reads see the file as it is at one time."""
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
    """What tells a file from another one of the same name; (-1, -1) where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return (-1, -1)
    return (found.st_dev, found.st_ino)


@contextlib.contextmanager
def replacing(path: str) -> Iterator[None]:
    """A block that may put another file in the place of a database, or of what is none.

    Before, a change of the database that was cut off is undone, and in the block nobody else makes one: a journal
    would be taken for one of the new file, and be played back into it.
    """
    with contextlib.ExitStack() as stack:
        if os.path.isfile(path) and os.path.getsize(path):
            with contextlib.suppress(StateFileError), translated(path):
                connection = stack.enter_context(contextlib.closing(connected(path, "rw")))
                patiently(lambda: connection.execute("BEGIN EXCLUSIVE"), path)
                if os.name == "nt":  # it lets nobody replace a file that is open
                    connection.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + "-journal")  # of a file that is none, or is gone
        yield


def synchronised(folder: str) -> bool:
    """Whether the system says that the names in a folder are on the disk."""
    try:
        sync_folder(folder)
    except OSError:
        return False
    return True


def patiently(call: Callable[[], T], path: str) -> T:
    """The result of a call that may have to wait for other processes."""
    deadline, is_first = time.monotonic() + PATIENCE, True
    while True:
        try:
            return call()
        except sqlite3.OperationalError as error:
            if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            if is_first:  # SQLite says the same where there are no locks
                check_locks(path)
            is_first = False
            if time.monotonic() >= deadline:
                raise StorageError(
                    f"storage: {path} has been locked by another process for {PATIENCE:g} s; nothing was written. "
                    "End that process, or wait for it, and call again."
                ) from error


#: What SQLite says, in words of ours.
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full; make room, and call again",
    sqlite3.SQLITE_READONLY: "the file, or its folder, may not be written; see its permissions",
    sqlite3.SQLITE_BUSY: "another process uses it; wait for that process, and call again",
    sqlite3.SQLITE_PERM: "the file may not be opened; see its permissions",
    sqlite3.SQLITE_CANTOPEN: "the file, or one beside it, could not be opened; see the permissions of the file and of "
    "its folder, and whether the disk has room",
    sqlite3.SQLITE_IOERR: "the disk gave an error; see the system's log",
    sqlite3.SQLITE_PROTOCOL: NO_LOCKS,
    sqlite3.SQLITE_NOLFS: "the disk does not take files of that size",
    sqlite3.SQLITE_TOOBIG: "a row is too large",
}
#: The same by SQLite's extended codes, where those say more.
_EXACTLY = {
    sqlite3.SQLITE_IOERR_LOCK: NO_LOCKS,
    sqlite3.SQLITE_IOERR_RDLOCK: NO_LOCKS,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK: NO_LOCKS,
    sqlite3.SQLITE_READONLY_DBMOVED: "the file was removed or replaced since it was opened; put it back, or open the "
    "new one",
}


@contextlib.contextmanager
def translated(path: str, fate: str = NOTHING) -> Iterator[None]:
    """A block in which SQLite's errors become ours; `fate` says what has become of the change."""
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite's own message has bytes of the file in it
        raise StateFileError(_what_it_is(path, error)) from error
    except sqlite3.Error as error:
        exactly = getattr(error, "sqlite_errorcode", -1)
        reason = _EXACTLY.get(exactly, _REASONS.get(_code(error)))
        if reason is not None:
            raise StorageError(f"storage: {path}: {reason} (SQLite: {error}). {fate}") from error
        raise StateFileError(_what_it_is(path, error)) from error


def _code(error: sqlite3.Error) -> int:
    """SQLite's number of the kind of error; -1 for errors of Python's module, as of text that is none."""
    code: int = getattr(error, "sqlite_errorcode", -1)
    return code if code < 0 else code & 0xFF


def _what_it_is(path: str, error: Exception) -> str:
    """What to say of a file that is no sound SQLite database."""
    import zipfile  # it takes a quarter of the time of a command

    with contextlib.suppress(OSError, zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, EOFError):
        with zipfile.ZipFile(path) as archive, archive.open("state.json") as file:
            head = file.read(1000).decode("utf-8", "replace")
        kind, version = (re.search(f'"{key}":"([^"]*)"', head) for key in ("kind", "bkbopt_version"))
        if kind and version:
            return (
                f"{path}: expected a log of bkbopt, got a state file of kind {kind[1]!r} that bkbopt {version[1]} "
                "wrote; this version keeps the log of an optimizer in a database, and learners load with their class."
            )
    return f"{path}: expected a log of bkbopt, got a file that is none or is damaged ({error}); restore it from a copy."
