"""A log of trials in one SQLite file, which any number of processes on a machine may write and read.

Every change is one transaction, which is on the disk when the call returns. With `synchronous=EXTRA` the folder is
synced after a commit too, so that a deleted journal cannot reappear after a power cut. The journal is SQLite's rollback
journal; `docs/design/log.md` says why. On a network disk a log is as safe as the disk's locks. The module imports
neither torch nor NumPy.

Rules:

- No code in a file is executed: the schema must equal the expected one exactly before a row is read.
- All data are checked: pages by SQLite, rows by their checksums and against each other.
- Waiting can be interrupted: a process waits at most `PATIENCE` seconds for others, in short steps.
"""

import contextlib
import os
import sqlite3
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bkbopt._support.locks import FileLock
from bkbopt._support.sqlite import (
    PATIENCE,
    UNKNOWN,
    at_one_time,
    connected,
    identity,
    patiently,
    place_of,
    synchronised,
    translated,
)
from bkbopt.errors import BkbError, StateFileError, StorageError
from bkbopt.optimizer.log import log_rows
from bkbopt.optimizer.log import log_schema as schema
from bkbopt.optimizer.log.aims import Aims
from bkbopt.optimizer.log.log_rows import Described
from bkbopt.optimizer.log.trials import Entry

__all__ = ["LogFile", "Writer"]

#: Connections that a child process inherited by a fork. SQLite allows it neither to use nor to close them.
_inherited: list[sqlite3.Connection] = []


def _drop(connection: sqlite3.Connection, process: int) -> None:
    """Close the connection of a log that was garbage-collected; an inherited connection is kept open."""
    if os.getpid() == process:
        connection.close()
    else:
        _inherited.append(connection)


class _EmptyFileError(StateFileError):
    """A file without pages: an empty one, or one whose first transaction was rolled back."""


class LogFile:
    """An open log; see the module's text.

    Args:
        path: path of the file.

    Attributes:
        path: path of the file, with symbolic links resolved.
        options: arguments of the optimizer, by name.
        spaces: all search spaces or pools; the last one is that of new trials.

    Raises:
        ArgumentError, ArgumentTypeError: the path is invalid.
        FileNotFoundError: there is no such file.
        StateFileError: the file is damaged, or not a log of this version of bkbopt.
        StorageError: the system does not give access to the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = place_of(path)
        self.options: dict[str, Any] = {}
        self.spaces: list[Described] = []
        self._mark: tuple[Any, ...] = ()
        self._connection: sqlite3.Connection | None = None
        self._process, self._inode, self._is_checked = 0, (0, 0), False
        #: A token of the current transaction, and the lock of the current ask.
        self._transaction, self._lock = object(), FileLock(self.path)
        self._open()

    # -- making and opening ------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: str | os.PathLike[str], options: Mapping[str, Any], space: Described) -> "LogFile":
        """Make a log, or open the one that another process has made meanwhile.

        Raises:
            StateFileError: the path is a file that is not a log.
            StorageError: the system does not give access to the file.
            FileNotFoundError: there is no such folder.
        """
        target = place_of(path)
        folder = os.path.dirname(target)
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"storage: expected a folder that exists, got {folder}; make it first.")
        with translated(target):
            connection = connected(target, "rwc")
            try:
                patiently(lambda: connection.execute("BEGIN EXCLUSIVE"), target)
                if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    log_rows.fill(connection, options, [space], ())
                patiently(lambda: connection.execute("COMMIT"), target)
            finally:
                connection.close()
        return cls(path)

    @classmethod
    def existing(cls, path: str | os.PathLike[str]) -> "LogFile | None":
        """An open log; None if there is no file, or an empty one (left by a process that was killed while making it).

        Other errors are those of the constructor.
        """
        try:
            return cls(path)
        except (FileNotFoundError, _EmptyFileError):
            return None

    def _open(self) -> None:
        if not os.path.exists(self.path):
            raise FileNotFoundError(f"storage: expected a log, but there is no file {self.path}.")
        with translated(self.path), contextlib.ExitStack() as on_failure:
            connection = connected(self.path, "rw")
            on_failure.callback(connection.close)
            self._check_identity(connection)
            self._read_header(connection)
            on_failure.pop_all()
        self._connection, self._process, self._inode = connection, os.getpid(), identity(self.path)
        weakref.finalize(self, _drop, connection, self._process)

    def _check_identity(self, connection: sqlite3.Connection) -> None:
        def read(name: str) -> int:
            value: int = patiently(lambda: connection.execute(f"PRAGMA {name}").fetchone()[0], self.path)
            return value

        if not read("page_count"):  # checked first: another process may be making the log
            raise _EmptyFileError(
                f"{self.path}: expected a log of bkbopt, got an empty file; make a log: Optimizer(space, storage=path)."
            )
        application, version = read("application_id"), read("user_version")
        if application != schema.APPLICATION_ID:
            raise StateFileError(f"{self.path}: expected a log of bkbopt, got another SQLite database; check the path.")
        if version not in (schema.VERSION, schema.WITH_ATTRS):
            raise StateFileError(
                f"{self.path}: expected a log of version {schema.VERSION} or {schema.WITH_ATTRS}, got version "
                f"{version}; open it with the version of bkbopt that wrote it."
            )

    def _read_header(self, connection: sqlite3.Connection) -> None:
        """Check the schema, and read the options and spaces."""

        def rows() -> tuple[list[Any], list[Any], list[Any], Any]:
            with at_one_time(connection):  # another process may set a space, which changes the view as well
                found = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
                tables = {name: sql for kind, name, sql in found if kind == "table"}
                if tables != (schema.TABLES_WITH_ATTRS if log_rows.has_attrs_in(connection) else schema.TABLES):
                    raise ValueError("tables that are not those of a log")
                options = connection.execute("SELECT name, value, checksum FROM options").fetchall()
                spaces = connection.execute("SELECT id, space, pool, checksum FROM spaces ORDER BY id").fetchall()
                mark = log_rows.mark(connection)
            return found, options, spaces, mark

        with self.fits():
            found, options, spaces, mark = patiently(rows, self.path)
            arguments = {name: schema.from_json(value) for name, value, _ in map(schema.checked, options)}
            described = log_rows.described(spaces)
            views = [sql for kind, _, sql in found if kind != "table"]
            has_attrs = schema.TABLES_WITH_ATTRS["log"] in (sql for _, _, sql in found)
            if views != [log_rows.view(arguments, described, has_attrs=has_attrs)]:
                raise ValueError("views, indices or triggers that are not those of a log")
            self.options, self.spaces, self._mark = arguments, described, mark

    @contextlib.contextmanager
    def fits(self) -> Iterator[None]:
        """A block that decodes data of the file.

        Raises:
            StateFileError: the block raised a builtin error, which means invalid data.
        """
        try:
            yield
        except BkbError:
            raise
        except (AttributeError, IndexError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
            raise StateFileError(
                f"{self.path}: expected a log whose parts are consistent, got {error}; restore it from a copy, or "
                "start a new log."
            ) from error

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        if self._connection is not None and self._process == os.getpid():
            self._connection.close()
        self._connection = None

    def _open_connection(self) -> sqlite3.Connection:
        """This process's connection to the file that was opened.

        Raises:
            StorageError: the file was removed or replaced since.
        """
        if self._connection is not None and self._process != os.getpid():
            _inherited.append(self._connection)
            self._connection = None
        if self._connection is None:
            inode = self._inode
            self._open()
            if inode != self._inode:
                self.close()
        return self._in_place()

    def _in_place(self) -> sqlite3.Connection:
        if self._connection is None or identity(self.path) != self._inode:
            raise StorageError(
                f"storage: {self.path} was removed or replaced since it was opened; nothing was written. Put it back, "
                "or open the new file."
            )
        return self._connection

    # -- reading -----------------------------------------------------------------------------------------------------

    def changes(self, since: int) -> tuple[list[Entry], int]:
        """Trials that changed after change number `since`, by change number, and the last change number.

        Raises:
            StateFileError: the data are damaged.
            StorageError: the system does not give access to the file.
        """
        rows = self.rows(since)
        return self._decoded(rows), rows[-1][schema.CHANGE] if rows else since

    def rows(self, since: int) -> list[schema.Row]:
        """The rows of the trials that `changes` returns, with unchecked checksums; raises the errors of `changes`."""
        with translated(self.path):
            connection = self._open_connection()
            if not self._is_checked:
                self._check_pages(connection)
            # The first call reads all rows, so that rows with invalid change numbers are found and refused.
            return self._rows(connection, "change > ? ORDER BY change", since or -(2**63))

    def entry(self, trial_id: int) -> tuple[Entry | None, int]:
        """The trial of this number, or None, and the number of trials; the errors are those of `changes`."""
        with translated(self.path):
            connection = self._open_connection()
            rows = self._rows(connection, "id = ?", trial_id if -(2**63) <= trial_id < 2**63 else -1)
            n = patiently(lambda: connection.execute("SELECT max(id) FROM log").fetchone()[0], self.path)
        found = self._decoded(rows)
        return (found[0] if found else None), 0 if n is None else n + 1

    def _rows(self, connection: sqlite3.Connection, condition: str, number: int) -> list[schema.Row]:
        query = f"SELECT * FROM log WHERE {condition}"  # attributes may come while the file is open
        rows = patiently(lambda: connection.execute(query, (number,)).fetchall(), self.path)
        # Spaces are read after the rows, so that all spaces to which the rows refer are known.
        if patiently(lambda: log_rows.mark(connection), self.path) != self._mark:
            self._read_header(connection)
        return rows

    def _decoded(self, rows: Sequence[schema.Row]) -> list[Entry]:
        with self.fits():
            aims = Aims.of_options(self.options)
            return [schema.decode(row, aims.k, aims.limits, len(self.spaces)) for row in rows]

    def _check_pages(self, connection: sqlite3.Connection) -> None:
        """Run SQLite's integrity check, before a whole log is read."""
        found = patiently(lambda: connection.execute("PRAGMA integrity_check(1)").fetchone()[0], self.path)
        if found != "ok":
            raise StateFileError(
                f"{self.path}: expected an intact log, got a damaged one (SQLite: {' '.join(str(found).split())}); "
                "restore it from a copy, or start a new log."
            )
        self._is_checked = True

    # -- writing -----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self) -> Iterator["Writer"]:
        """A block that is one write transaction: at its end all changes are on the disk, or none is.

        Raises:
            StorageError: the system does not give access, or others write for too long; nothing was written.
        """
        own = object()
        with translated(self.path):
            connection = self._open_connection()
            self._roll_back()
            try:
                self._transaction = own
                patiently(lambda: connection.execute("BEGIN IMMEDIATE"), self.path)
                self._in_place()  # the file may have been replaced during the wait
                yield Writer(self, connection)
                self._commit(connection)
            except sqlite3.Error:  # a connection that was opened read-only stays read-only, so a new one is needed
                self._roll_back()
                self.close()
                raise
            finally:
                # If an interrupt skips the end of a block, it runs at garbage collection, maybe during the next one.
                if self._transaction is own:
                    self._roll_back()

    def _roll_back(self) -> None:
        if self._connection is not None and self._process == os.getpid() and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _commit(self, connection: sqlite3.Connection) -> None:
        """Commit; after an I/O error, find out whether the change was written."""
        meant = log_rows.summary(connection)
        try:
            patiently(lambda: connection.execute("COMMIT"), self.path)
        except sqlite3.Error:
            with translated(self.path, UNKNOWN):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                is_written = patiently(lambda: log_rows.summary(connection), self.path) == meant
            # After the last write only the sync of the folder, which makes the journal's removal durable, can fail.
            if is_written and not synchronised(os.path.dirname(self.path)):
                raise StorageError(
                    f"storage: {self.path}: the change was written, but the disk reported an error: a power cut may "
                    "undo it. Do not call again; see the system's log."
                ) from None
            if not is_written:
                raise

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """A block in which no other process asks; other processes may tell."""
        self._lock = lock = FileLock(self.path)
        try:
            lock.acquire(PATIENCE)
            yield
        finally:
            lock.release()

    @property
    def is_in_use(self) -> bool:
        """Whether a call is asking or in a transaction."""
        return self._lock.is_held or (self._connection is not None and self._connection.in_transaction)

    def release(self) -> None:
        """Roll back the transaction and release the lock that an interrupted call has left.

        An interrupt can skip the end of one `with` block, but not of two nested ones.
        """
        try:
            with translated(self.path):
                self._roll_back()
        finally:
            self._lock.release()

    @classmethod
    def written(cls, options: Mapping[str, Any], spaces: Sequence[Described], entries: Sequence[Entry]) -> bytes:
        """The bytes of a log file with these trials."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        try:
            log_rows.fill(connection, options, spaces, entries)
            return connection.serialize()
        finally:
            connection.close()


@dataclass(frozen=True)
class Writer:
    """The changes that can be made to a log within a transaction."""

    file: LogFile
    connection: sqlite3.Connection

    def put(self, entries: Sequence[Entry]) -> int:
        """Write new or changed trials; returns the number of the last change."""
        last = log_rows.highest(self.connection, self.file.path, "change", 0)
        if last + len(entries) > schema.MOST:
            raise StorageError(
                f"storage: {self.file.path} has no change numbers left; save a copy with save, and open the copy."
            )
        log_rows.put(self.connection, entries, last)
        return last + len(entries)

    def next_place(self) -> int:
        """The place, in the order of completion, of the next finished trial."""
        return log_rows.highest(self.connection, self.file.path, "place", -1) + 1

    def add_space(self, space: Described) -> None:
        """Add the space or pool of the next trials; the stored rows of earlier pools are removed."""
        for number, earlier in enumerate(self.file.spaces):
            if earlier.rows is not None:
                log_rows.put_space(self.connection, number, replace(earlier, rows=None))
        log_rows.put_space(self.connection, len(self.file.spaces), space)
        log_rows.put_view(self.connection)

    def set_option(self, name: str, value: object) -> None:
        """Change the value of an option."""
        log_rows.put_option(self.connection, name, value)
        log_rows.put_view(self.connection)  # names of objectives are names of its columns
