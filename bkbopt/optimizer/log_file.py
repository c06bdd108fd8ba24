"""A log of trials in one SQLite file, which any number of processes on a machine may write and read.

Every change is one transaction, on the disk when the call returns (`synchronous=EXTRA`: after a commit the folder is
synchronised too, so that a power cut cannot bring the undone journal back). The journal is SQLite's rollback journal
and not its write-ahead log: that needs memory shared between processes, which network disks do not have, and leaves two
files beside the log. On a network disk a log is as safe as that disk's locks are.

Three rules keep the file and its readers apart from harm:

- nothing in the file runs: its schema has to be ours, letter by letter, before a row is read;
- what is read is checked: pages by SQLite, rows by their checksums, and whether the rows fit together;
- waiting is patient and can be interrupted: a process waits `PATIENCE` seconds for others, in short steps.

Nothing here needs torch or NumPy.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bkbopt._support.locks import FileLock
from bkbopt._support.sqlite import PATIENCE, at_one_time, connected, identity, patiently, translated
from bkbopt.errors import BkbError, StateFileError, StorageError
from bkbopt.optimizer import log_schema as schema
from bkbopt.optimizer.trials import Entry

__all__ = ["Described", "LogFile", "Writer"]

#: Connections that a fork left to the child; closing them there would be wrong, and so would using them.
_inherited: list[sqlite3.Connection] = []


@dataclass(frozen=True)
class Described:
    """A search space or a pool as a log holds it.

    Attributes:
        text: what `Space.to_dict` says, or the pool's columns.
        rows: of an array that is a pool, float64, little-endian, row by row; None where it is given at opening.
    """

    text: Mapping[str, Any]
    rows: bytes | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters or columns."""
        parameters = self.text.get("parameters")
        if parameters is not None:
            return tuple(entry["name"] for entry in parameters)
        return tuple(self.text.get("names", ("arm",)))


class LogFile:
    """An open log; see the module's text.

    Args:
        path: of the file.

    Attributes:
        path: of the file, without symbolic links.
        options: what the optimizer was made with, by name.
        spaces: the search spaces or pools, of which the last one is that of the next trials.

    Raises:
        FileNotFoundError: there is no such file.
        StateFileError: the file is damaged, or no log of this version of bkbopt.
        StorageError: the system refuses the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(path)
        self.options: dict[str, Any] = {}
        self.spaces: list[Described] = []
        self._connection: sqlite3.Connection | None = None
        self._process, self._inode, self._is_checked = 0, (0, 0), False
        #: What stands for the transaction that is open, and the lock of the ask that is under way.
        self._transaction, self._lock = object(), FileLock(self.path)
        self._open()

    def __repr__(self) -> str:
        return f"<LogFile {self.path!r}>"

    # -- making and opening ------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: str | os.PathLike[str], options: Mapping[str, Any], space: Described) -> "LogFile":
        """Make a log, or open the one that somebody else has made meanwhile.

        Raises:
            StateFileError: there is a file that is no log.
            StorageError, FileNotFoundError: the system refuses, or there is no such folder.
        """
        target = os.path.realpath(path)
        folder = os.path.dirname(target)
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"storage: expected a folder that exists, got {folder}; make it first.")
        with translated(target):
            connection = connected(target, "rwc")
            try:
                patiently(lambda: connection.execute("BEGIN EXCLUSIVE"), target)
                if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    _fill(connection, options, [space], ())
                patiently(lambda: connection.execute("COMMIT"), target)
            finally:
                connection.close()
        return cls(path)

    def _open(self) -> None:
        if not os.path.exists(self.path):
            raise FileNotFoundError(f"storage: expected a log, but there is no file {self.path}.")
        with translated(self.path):
            connection = connected(self.path, "rw")
            try:
                self._check_identity(connection)
                self._read_header(connection)
            except BaseException:
                connection.close()
                raise
        self._connection, self._process, self._inode = connection, os.getpid(), identity(self.path)

    def _check_identity(self, connection: sqlite3.Connection) -> None:
        application = patiently(lambda: connection.execute("PRAGMA application_id").fetchone()[0], self.path)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != schema.APPLICATION_ID:
            raise StateFileError(f"{self.path}: expected a log of bkbopt, got another SQLite database; check the path.")
        if version != schema.VERSION:
            raise StateFileError(
                f"{self.path}: expected a log of version {schema.VERSION}, got version {version}; "
                "open it with the version of bkbopt that wrote it."
            )

    def _read_header(self, connection: sqlite3.Connection) -> None:
        """The options and spaces, once the schema is known to be ours."""

        def rows() -> tuple[list[Any], list[Any], list[Any]]:
            with at_one_time(connection):  # another process may set a space, which changes the view as well
                found = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
                if {name: sql for kind, name, sql in found if kind == "table"} != schema.TABLES:
                    raise ValueError("other tables than those of a log")
                options = connection.execute("SELECT name, value, checksum FROM options").fetchall()
                spaces = connection.execute("SELECT id, space, pool, checksum FROM spaces ORDER BY id").fetchall()
            return found, options, spaces

        with self.fits():
            found, options, spaces = patiently(rows, self.path)
            arguments = {name: schema.from_json(value) for name, value, _ in map(_checked, options)}
            described = _described(spaces)
            views = [sql for kind, _, sql in found if kind != "table"]
            if views != [_view(arguments, described)]:
                raise ValueError("other views, indices or triggers than those of a log")
            self.options, self.spaces = arguments, described

    @contextlib.contextmanager
    def fits(self) -> Iterator[None]:
        """A block that understands what was read.

        Raises:
            StateFileError: it cannot.
        """
        try:
            yield
        except BkbError:
            raise
        except (AttributeError, IndexError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
            raise StateFileError(
                f"{self.path}: expected a log whose parts fit together, got {error}; restore it from a copy, "
                "or start anew."
            ) from error

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        if self._connection is not None and self._process == os.getpid():
            self._connection.close()
        self._connection = None

    def _open_connection(self) -> sqlite3.Connection:
        """The connection of this process, to the file that was opened.

        Raises:
            StorageError: the file was removed or replaced.
        """
        if self._connection is not None and self._process != os.getpid():
            _inherited.append(self._connection)
            self._connection = None
        if self._connection is None:
            inode = self._inode
            self._open()
            if inode != self._inode:
                self.close()
        if self._connection is None or identity(self.path) != self._inode:
            raise StorageError(
                f"storage: {self.path} was removed or replaced since it was opened; nothing was written. Put it back, "
                "or open the new file."
            )
        return self._connection

    # -- reading -----------------------------------------------------------------------------------------------------

    def changes(self, since: int) -> tuple[list[Entry], int]:
        """Trials that changed after change number `since`, in the order of the changes, and the last number.

        Raises:
            StateFileError: what is read is damaged.
            StorageError: the system refuses.
        """
        with translated(self.path):
            connection = self._open_connection()
            if not self._is_checked:
                self._check_pages(connection)
            # All of them at first: a row that no change has made must be seen, and refused.
            rows = self._rows(connection, "change > ? ORDER BY change", since or -(2**63))
        return self._decoded(rows), rows[-1][-2] if rows else since

    def entry(self, trial_id: int) -> tuple[Entry | None, int]:
        """One trial by its number, None if there is none, and the number of trials; raises as `changes` does."""
        with translated(self.path):
            connection = self._open_connection()
            rows = self._rows(connection, "id = ?", trial_id if -(2**63) <= trial_id < 2**63 else -1)
            n = patiently(lambda: connection.execute("SELECT max(id) FROM log").fetchone()[0], self.path)
        found = self._decoded(rows)
        return (found[0] if found else None), 0 if n is None else n + 1

    def _rows(self, connection: sqlite3.Connection, condition: str, number: int) -> list[schema.Row]:
        query = f"SELECT {schema.COLUMNS} FROM log WHERE {condition}"
        rows = patiently(lambda: connection.execute(query, (number,)).fetchall(), self.path)
        # After the rows: all that these refer to are there.
        n_spaces = patiently(lambda: connection.execute("SELECT count(*) FROM spaces").fetchone()[0], self.path)
        if n_spaces != len(self.spaces):
            self._read_header(connection)
        return rows

    def _decoded(self, rows: Sequence[schema.Row]) -> list[Entry]:
        k, names = len(self.options["directions"]), self.options["constraints"]
        with self.fits():
            return [schema.decode(row, k, names, len(self.spaces)) for row in rows]

    def _check_pages(self, connection: sqlite3.Connection) -> None:
        """Let SQLite look whether its pages hold together, before a whole log is read."""
        found = patiently(lambda: connection.execute("PRAGMA integrity_check(1)").fetchone()[0], self.path)
        if found != "ok":
            raise StateFileError(
                f"{self.path}: expected an intact log, but SQLite says: {' '.join(str(found).split())}; "
                "restore it from a copy, or start anew."
            )
        self._is_checked = True

    # -- writing -----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self) -> Iterator["Writer"]:
        """A block in which nobody else writes; what it writes is on the disk at its end, or nothing of it is.

        Raises:
            StorageError: the system refuses, or others write for too long; nothing was written.
        """
        own = object()
        with translated(self.path):
            connection = self._open_connection()
            self._roll_back()
            try:
                self._transaction = own
                patiently(lambda: connection.execute("BEGIN IMMEDIATE"), self.path)
                yield Writer(self, connection)
                patiently(lambda: connection.execute("COMMIT"), self.path)
            finally:
                # A block whose end an interrupt has skipped ends when Python finds it, in the midst of another one.
                if self._transaction is own:
                    self._roll_back()

    def _roll_back(self) -> None:
        if self._connection is not None and self._process == os.getpid() and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """A block in which no other process asks, while all of them may tell."""
        self._lock = lock = FileLock(self.path)
        try:
            lock.acquire(PATIENCE)
            yield
        finally:
            lock.release()

    @property
    def is_in_use(self) -> bool:
        """Whether a call asks, or is in a transaction."""
        return self._lock.is_held or (self._connection is not None and self._connection.in_transaction)

    def release(self) -> None:
        """End what a call has left open: an interrupt can skip the end of any block, but not of two in each other."""
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
            _fill(connection, options, spaces, entries)
            return connection.serialize()
        finally:
            connection.close()


@dataclass(frozen=True)
class Writer:
    """What may be done to a log within a transaction."""

    file: LogFile
    connection: sqlite3.Connection

    def put(self, entries: Sequence[Entry]) -> int:
        """Write trials, new or changed; the number of the last change."""
        last: int = self.connection.execute("SELECT coalesce(max(change), 0) FROM log").fetchone()[0]
        if last + len(entries) > schema.MOST:
            raise StorageError(
                f"storage: {self.file.path} has no numbers left for changes; save a copy, and open that."
            )
        _put(self.connection, entries, last)
        return last + len(entries)

    def next_place(self) -> int:
        """The place of the next trial that is finished."""
        found: int = self.connection.execute("SELECT coalesce(max(place), -1) FROM log").fetchone()[0]
        return found + 1

    def add_space(self, space: Described) -> None:
        """The space or pool of the next trials."""
        _put_space(self.connection, len(self.file.spaces), space)
        self.connection.execute("DROP VIEW trials")
        self.connection.execute(_view(self.file.options, [*self.file.spaces, space]))

    def set_option(self, name: str, value: object) -> None:
        """Another value of an option."""
        _put_option(self.connection, name, value)


# -- SQLite ------------------------------------------------------------------------------------------------------------


def _fill(
    connection: sqlite3.Connection, options: Mapping[str, Any], spaces: Sequence[Described], entries: Sequence[Entry]
) -> None:
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {schema.VERSION}")
    for statement in schema.TABLES.values():
        connection.execute(statement)
    connection.execute(_view(options, spaces))
    for name, value in options.items():
        _put_option(connection, name, value)
    for number, space in enumerate(spaces):
        _put_space(connection, number, space)
    _put(connection, entries, 0)


def _view(options: Mapping[str, Any], spaces: Sequence[Described]) -> str:
    names = dict.fromkeys(name for space in spaces for name in space.names)
    return schema.view_of(len(options["directions"]), options["constraints"], tuple(names))


def _put(connection: sqlite3.Connection, entries: Sequence[Entry], last: int) -> None:
    places = ", ".join("?" * len(schema.COLUMNS.split(", ")))
    rows = (schema.encode(entry, change) for change, entry in enumerate(entries, start=last + 1))
    connection.executemany(f"INSERT OR REPLACE INTO log ({schema.COLUMNS}) VALUES ({places})", rows)


def _put_option(connection: sqlite3.Connection, name: str, value: object) -> None:
    cells = (name, schema.to_json(value))
    connection.execute("INSERT OR REPLACE INTO options VALUES (?, ?, ?)", (*cells, schema.checksum(cells)))


def _put_space(connection: sqlite3.Connection, number: int, space: Described) -> None:
    cells = (number, schema.to_json(space.text), space.rows)
    connection.execute("INSERT INTO spaces VALUES (?, ?, ?, ?)", (*cells, schema.checksum(cells)))


def _checked(row: schema.Row) -> schema.Row:
    if schema.checksum(row[:-1]) != row[-1]:
        raise ValueError("a row whose checksum is another")
    return row


def _described(rows: Sequence[schema.Row]) -> list[Described]:
    out = [Described(schema.from_json(text), pool) for _, text, pool, _ in map(_checked, rows)]
    if not out or [row[0] for row in rows] != list(range(len(out))):
        raise ValueError("spaces without an order")
    if not all(isinstance(space.text, dict) and isinstance(space.rows, bytes | None) for space in out):
        raise ValueError("a space that is none")
    return out
