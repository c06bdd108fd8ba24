"""Rows of a log file: writing them, and reading what is not a trial."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bkbopt.optimizer import log_schema as schema
from bkbopt.optimizer.trials import Entry

__all__ = ["Described", "described", "fill", "put", "put_option", "put_space", "summary", "view"]


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
    def is_space(self) -> bool:
        """Whether it is a search space, and no pool."""
        return "parameters" in self.text

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters or columns."""
        if self.is_space:
            return tuple(entry["name"] for entry in self.text["parameters"])
        return tuple(self.text.get("names", ("arm",)))


def fill(
    connection: sqlite3.Connection, options: Mapping[str, Any], spaces: Sequence[Described], entries: Sequence[Entry]
) -> None:
    """Make the tables of a log, and write all that it holds."""
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {schema.VERSION}")
    for statement in schema.TABLES.values():
        connection.execute(statement)
    connection.execute(view(options, spaces))
    for name, value in options.items():
        put_option(connection, name, value)
    for number, space in enumerate(spaces):
        put_space(connection, number, space)
    put(connection, entries, 0)


def view(options: Mapping[str, Any], spaces: Sequence[Described]) -> str:
    """The view `trials` of a log with these options and spaces."""
    names = dict.fromkeys(name for space in spaces for name in space.names)
    return schema.view_of(len(options["directions"]), options["constraints"], tuple(names))


def summary(connection: sqlite3.Connection) -> tuple[Any, ...]:
    """What every change of a log changes."""
    last = connection.execute("SELECT change, checksum FROM log ORDER BY change DESC LIMIT 1").fetchone()
    n_spaces = connection.execute("SELECT count(*) FROM spaces").fetchone()
    return last, n_spaces, connection.execute("SELECT name, checksum FROM options ORDER BY name").fetchall()


def put(connection: sqlite3.Connection, entries: Sequence[Entry], last: int) -> None:
    """Write trials, new or changed, whose changes are numbered from `last` + 1 on."""
    places = ", ".join("?" * len(schema.COLUMNS.split(", ")))
    rows = (schema.encode(entry, change) for change, entry in enumerate(entries, start=last + 1))
    connection.executemany(f"INSERT OR REPLACE INTO log ({schema.COLUMNS}) VALUES ({places})", rows)


def put_option(connection: sqlite3.Connection, name: str, value: object) -> None:
    """Write an option."""
    cells = (name, schema.to_json(value))
    connection.execute("INSERT OR REPLACE INTO options VALUES (?, ?, ?)", (*cells, schema.checksum(cells)))


def put_space(connection: sqlite3.Connection, number: int, space: Described) -> None:
    """Write a space or pool."""
    cells = (number, schema.to_json(space.text), space.rows)
    connection.execute("INSERT OR REPLACE INTO spaces VALUES (?, ?, ?, ?)", (*cells, schema.checksum(cells)))


def described(rows: Sequence[schema.Row]) -> list[Described]:
    """The spaces and pools of a log, in order; `ValueError` where they are damaged."""
    out = [Described(schema.from_json(text), pool) for _, text, pool, _ in map(schema.checked, rows)]
    if not out or [row[0] for row in rows] != list(range(len(out))):
        raise ValueError("spaces without an order")
    if not all(isinstance(space.text, dict) and isinstance(space.rows, bytes | None) for space in out):
        raise ValueError("a space that is none")
    return out
