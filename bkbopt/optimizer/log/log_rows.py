"""Writing of rows to a log file, and reading of spaces and pools."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bkbopt.errors import StateFileError
from bkbopt.optimizer.log import log_schema as schema
from bkbopt.optimizer.log.limits import limits_of
from bkbopt.optimizer.log.objectives import columns_of, stored_names
from bkbopt.optimizer.log.trials import Entry

__all__ = [
    "Described",
    "described",
    "fill",
    "has_attrs_in",
    "highest",
    "mark",
    "options_of",
    "put",
    "put_option",
    "put_space",
    "put_view",
    "summary",
    "view",
]


@dataclass(frozen=True)
class Described:
    """The description of a search space or a pool in a log.

    Attributes:
        text: `Space.to_dict`, with the values that earlier trials had for new parameters as "past" if they are known;
            or the columns of the pool.
        rows: rows of a pool that is an array, float64, little-endian, row by row; None if they are not stored.
    """

    text: Mapping[str, Any]
    rows: bytes | None = None

    @property
    def is_space(self) -> bool:
        """Whether it is a search space, not a pool."""
        return "parameters" in self.text

    @property
    def past(self) -> Mapping[str, Any]:
        """The values that earlier trials had for new parameters of the space, by name."""
        past = self.text.get("past", {})
        if not isinstance(past, dict):
            raise ValueError("values of past trials that are not by name")
        return past

    def with_past(self, past: Mapping[str, Any]) -> "Described":
        """The description with these values of `past`; without any it does not name them."""
        text = {key: value for key, value in self.text.items() if key != "past"}
        return replace(self, text={**text, "past": dict(past)} if past else text)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters or columns."""
        if self.is_space:
            return tuple(entry["name"] for entry in self.text["parameters"])
        return tuple(self.text.get("names", ("arm",)))


def fill(
    connection: sqlite3.Connection, options: Mapping[str, Any], spaces: Sequence[Described], entries: Sequence[Entry]
) -> None:
    """Make the tables of a log, and write its options, spaces and trials."""
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {schema.VERSION}")
    for statement in schema.TABLES.values():
        connection.execute(statement)
    for name, value in options.items():
        put_option(connection, name, value)
    for number, space in enumerate(spaces):
        put_space(connection, number, space)
    put_view(connection)
    put(connection, entries, 0)


def view(options: Mapping[str, Any], spaces: Sequence[Described], *, has_attrs: bool) -> str:
    """The view `trials` of a log with these options and spaces, and with attributes or without."""
    names = dict.fromkeys(name for space in spaces for name in space.names)
    values = columns_of("value", len(options["directions"]), stored_names(options))
    return schema.view_of(values, tuple(limits_of(options["constraints"])), tuple(names), has_attrs=has_attrs)


def summary(connection: sqlite3.Connection) -> tuple[Any, ...]:
    """A summary of a log that differs after every change."""
    last = connection.execute("SELECT change, checksum FROM log ORDER BY change DESC LIMIT 1").fetchone()
    n_spaces = connection.execute("SELECT count(*) FROM spaces").fetchone()
    return last, n_spaces, connection.execute("SELECT name, checksum FROM options ORDER BY name").fetchall()


def mark(connection: sqlite3.Connection) -> tuple[Any, ...]:
    """What differs after a change of the space, of the pool, or of constraints."""
    checksums = ", ".join(f"(SELECT checksum FROM options WHERE name = '{n}')" for n in ("feasible", "constraints"))
    query = f"SELECT (SELECT count(*) FROM spaces), {checksums}"
    found: tuple[Any, ...] = connection.execute(query).fetchone()
    return found


def highest(connection: sqlite3.Connection, path: str, column: str, none: int) -> int:
    """The highest number in a column of the trials, `none` without any; SQLite reads it from an index.

    Raises:
        StateFileError: the index has something else; changes of single trials are made without a check of all pages.
    """
    found = connection.execute(f"SELECT max({column}) FROM log").fetchone()[0]
    if found is not None and type(found) is not int:
        raise StateFileError(
            f"{path}: expected an intact log, got a damaged one (SQLite: the highest {column} is no number); restore "
            "it from a copy, or start a new log."
        )
    return none if found is None else found


def put(connection: sqlite3.Connection, entries: Sequence[Entry], last: int) -> None:
    """Write new or changed trials, with change numbers from `last` + 1 on."""
    has_attrs = has_attrs_in(connection)
    if not has_attrs and any(entry.trial.user_attrs for entry in entries):
        connection.execute(schema.ADD_ATTRS)
        connection.execute(f"PRAGMA user_version = {schema.WITH_ATTRS}")
        put_view(connection)
        has_attrs = True
    columns = f"{schema.COLUMNS}, user_attrs" if has_attrs else schema.COLUMNS
    n = len(columns.split(", "))
    rows = ((*schema.encode(entry, change), None)[:n] for change, entry in enumerate(entries, start=last + 1))
    connection.executemany(f"INSERT OR REPLACE INTO log ({columns}) VALUES ({', '.join('?' * n)})", rows)


def has_attrs_in(connection: sqlite3.Connection) -> bool:
    """Whether the log has the column of attributes."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version == schema.WITH_ATTRS


def put_option(connection: sqlite3.Connection, name: str, value: object) -> None:
    """Write an option."""
    cells = (name, schema.to_json(value))
    connection.execute("INSERT OR REPLACE INTO options VALUES (?, ?, ?)", (*cells, schema.checksum(cells)))


def put_space(connection: sqlite3.Connection, number: int, space: Described) -> None:
    """Write a space or pool."""
    cells = (number, schema.to_json(space.text), space.rows)
    connection.execute("INSERT OR REPLACE INTO spaces VALUES (?, ?, ?, ?)", (*cells, schema.checksum(cells)))


def put_view(connection: sqlite3.Connection) -> None:
    """Write the view `trials` of the options and spaces as the log has them now: other processes change them."""
    # All at once: after an interrupt between two rows, the unfinished query would keep the file locked.
    texts = connection.execute("SELECT space FROM spaces ORDER BY id").fetchall()
    spaces = [Described(schema.from_json(text)) for (text,) in texts]
    connection.execute("DROP VIEW IF EXISTS trials")
    connection.execute(view(options_of(connection), spaces, has_attrs=has_attrs_in(connection)))


def options_of(connection: sqlite3.Connection) -> dict[str, Any]:
    """The options as the log has them now."""
    rows = connection.execute("SELECT name, value FROM options").fetchall()
    return {name: schema.from_json(value) for name, value in rows}


def described(rows: Sequence[schema.Row]) -> list[Described]:
    """The spaces and pools of a log, in order; `ValueError` if they are damaged."""
    out = [Described(schema.from_json(text), pool) for _, text, pool, _ in map(schema.checked, rows)]
    if not out or [row[0] for row in rows] != list(range(len(out))):
        raise ValueError("spaces that are not numbered 0, 1, ...")
    if not all(isinstance(space.text, dict) and isinstance(space.rows, bytes | None) for space in out):
        raise ValueError("an invalid space")
    return out
