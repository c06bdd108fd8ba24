"""Faults of log files: damage to bytes and pages, and crafted rows whose checksums are right."""

import contextlib
import hashlib
import json
import random
import sqlite3
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bkbopt.optimizer.log import log_schema as schema
from bkbopt.optimizer.log.log_rows import Described
from bkbopt.optimizer.log.objectives import columns_of
from tests.faults.crafted_json import edited, hostile_cell
from tests.faults.foreign_files import foreign_file, hot_journal, schema_edit

__all__ = ["INJECTIONS", "UNREADABLE"]

Injection = Callable[[Path, Path, random.Random], str]
PAGE = 4096

# -- bytes -------------------------------------------------------------------------------------------------------------


def flip(path: Path, other: Path, rng: random.Random) -> str:
    """One to fifty bits, anywhere."""
    return _flipped(path, rng, rng.choice([1, 1, 1, 2, 5, 50]), None)


def flip_header(path: Path, other: Path, rng: random.Random) -> str:
    """One or two bits of SQLite's header."""
    return _flipped(path, rng, rng.choice([1, 2]), 100)


def _flipped(path: Path, rng: random.Random, count: int, within: int | None) -> str:
    data = bytearray(path.read_bytes())
    places = [(rng.randrange(within or len(data)), rng.randrange(8)) for _ in range(count)]
    for place, bit in places:
        data[place] ^= 1 << bit
    path.write_bytes(data)
    return f"bits {places[:5]}"


def cut(path: Path, other: Path, rng: random.Random) -> str:
    """A part of the end is missing."""
    data = path.read_bytes()
    n = rng.choice([rng.randrange(len(data)), PAGE * rng.randrange(len(data) // PAGE), rng.randrange(120)])
    path.write_bytes(data[:n])
    return f"{n} of {len(data)} bytes"


def append(path: Path, other: Path, rng: random.Random) -> str:
    """More bytes, noise or pages of a log."""
    n = rng.choice([1, 100, PAGE, 3 * PAGE])
    more = rng.choice([rng.randbytes(n), bytes(n), path.read_bytes()[:n], other.read_bytes()])
    path.write_bytes(path.read_bytes() + more)
    return f"{len(more)} bytes more"


def splice(path: Path, other: Path, rng: random.Random) -> str:
    """Replace pages by pages of another log, of this one, of zeros or of noise."""
    data, source = bytearray(path.read_bytes()), other.read_bytes()
    at = PAGE * rng.randrange(len(data) // PAGE)
    kind = rng.randrange(4)
    page = [source[at : at + PAGE], data[PAGE * rng.randrange(len(data) // PAGE) :][:PAGE], bytes(PAGE)]
    new = rng.randbytes(PAGE) if kind == 3 else bytes(page[kind])
    data[at : at + PAGE] = new.ljust(PAGE, b"\0")
    path.write_bytes(data)
    return f"page {at // PAGE} kind {kind} of {other.stem}"


# -- rows with right checksums -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def resealed(path: Path, rng: random.Random) -> Iterator[sqlite3.Connection]:
    """A connection to edit with; afterwards every row gets a correct checksum, and mostly the view is right."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA ignore_check_constraints = ON")
        yield db
        for table in ("options", "spaces", "log"):
            for rowid, *row in db.execute(f"SELECT rowid, * FROM {table}").fetchall():
                at = schema.CHECKSUM if table == "log" else -1
                cells = (*row[:at], *(cell for cell in row[at:][1:] if cell is not None))
                db.execute(f"UPDATE {table} SET checksum = ? WHERE rowid = ?", (schema.checksum(cells), rowid))
        if rng.random() < 0.8:
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, sqlite3.Error, OverflowError):
                _new_view(db)
    finally:
        db.close()


def _new_view(db: sqlite3.Connection) -> None:
    options = {name: schema.from_json(value) for name, value in db.execute("SELECT name, value FROM options")}
    texts = [schema.from_json(text) for (text,) in db.execute("SELECT space FROM spaces ORDER BY id")]
    names = dict.fromkeys(name for text in texts for name in Described(text).names)
    values = columns_of("value", len(options["directions"]), options.get("objectives") or ())
    has_attrs = db.execute("PRAGMA user_version").fetchone()[0] == schema.WITH_ATTRS
    view = schema.view_of(values, options["constraints"], tuple(names), has_attrs=has_attrs)
    db.execute("DROP VIEW trials")
    db.execute(view)


def edit_option(path: Path, other: Path, rng: random.Random) -> str:
    """Nodes of an option's JSON."""
    with resealed(path, rng) as db:
        name, text = rng.choice(db.execute("SELECT name, value FROM options").fetchall())
        new, what = edited(text, rng)
        db.execute("UPDATE options SET value = ? WHERE name = ?", (new, name))
    return f"{name} {what}"


def edit_space(path: Path, other: Path, rng: random.Random) -> str:
    """Nodes of a space's or pool's JSON."""
    with resealed(path, rng) as db:
        number, text = rng.choice(db.execute("SELECT id, space FROM spaces").fetchall())
        new, what = edited(text, rng)
        db.execute("UPDATE spaces SET space = ? WHERE id = ?", (new, number))
    return f"space {number} {what}"


def edit_pool(path: Path, other: Path, rng: random.Random) -> str:
    """The rows of an array."""
    with resealed(path, rng) as db:
        number, blob = db.execute("SELECT id, pool FROM spaces ORDER BY random() LIMIT 1").fetchone()
        blob = blob or bytes(8 * rng.randrange(9))
        word = rng.choice(["nan", "inf", "1e308", "short", "long", "empty", "text", "whole", "odd"])
        new: Any = {"short": blob[:-8], "long": blob + bytes(16), "empty": b"", "text": "x", "whole": 7}.get(word, blob)
        if word == "odd":
            new = blob[:-3]
        if word in ("nan", "inf", "1e308"):
            at = 8 * rng.randrange(max(len(blob) // 8, 1))
            new = blob[:at] + struct.pack("<d", float(word)) + blob[at + 8 :]
        db.execute("UPDATE spaces SET pool = ? WHERE id = ?", (new, number))
        text = json.loads(db.execute("SELECT space FROM spaces WHERE id = ?", (number,)).fetchone()[0])
        if isinstance(new, bytes) and "names" in text and rng.random() < 0.8:
            text["fingerprint"] = hashlib.blake2b(new, digest_size=16).hexdigest()
            text["n_rows"] = len(new) // 8 // len(text["names"])
            db.execute("UPDATE spaces SET space = ? WHERE id = ?", (schema.to_json(text), number))
    return f"space {number} {word}"


def edit_trial(path: Path, other: Path, rng: random.Random) -> str:
    """Nodes of the JSON of a trial."""
    with resealed(path, rng) as db:
        attrs = [row[1] for row in db.execute("PRAGMA table_info(log)")][schema.CHECKSUM + 1 :]
        column = rng.choice(["params", "params", "objectives", "stds", "constraints", "diagnostics", *attrs])
        found = db.execute(f"SELECT id, {column} FROM log WHERE {column} IS NOT NULL").fetchall()
        number, text = rng.choice(found or [(0, "{}")])
        new, what = edited(text, rng)
        db.execute(f"UPDATE log SET {column} = ? WHERE id = ?", (new, number))
    return f"trial {number} {column} {what}"


def edit_cell(path: Path, other: Path, rng: random.Random) -> str:
    """A whole cell of any table."""
    with resealed(path, rng) as db:
        table = rng.choice(["log", "log", "log", "options", "spaces"])
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[1] != "checksum"]
        column, rowid = rng.choice(columns), db.execute(f"SELECT rowid FROM {table} ORDER BY random()").fetchone()[0]
        value, what = hostile_cell(rng)
        with contextlib.suppress(sqlite3.Error, OverflowError):
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, rowid))
    return f"{table} {column} {what}"


def move_rows(path: Path, other: Path, rng: random.Random) -> str:
    """Rows deleted, doubled, taken from another log, or with other numbers, spaces and states."""
    more = f"INSERT INTO log ({schema.COLUMNS})"
    statements = [
        "DELETE FROM {t} WHERE rowid = (SELECT rowid FROM {t} ORDER BY random() LIMIT 1)",
        "DELETE FROM {t}",
        "DELETE FROM log WHERE id = 0",
        "DELETE FROM spaces WHERE id = 0",
        f"{more} SELECT id + 1000, state, params, space, pool_row, objectives, stds, constraints, diagnostics, "
        "asked_at, told_at, seen_at, place + 1000, change + 1000, 0 FROM log",
        f"{more} SELECT id + n, state, params, space, pool_row, objectives, stds, constraints, diagnostics, "
        "asked_at, told_at, seen_at, place + p, change + n, 0 FROM log, (SELECT count(*) n, count(place) p FROM log)",
        f"{more} SELECT (SELECT max(id) + 1 FROM log), state, params, space, pool_row, objectives, stds, "
        "constraints, diagnostics, asked_at, told_at, seen_at, NULL, change + 100, 0 FROM log LIMIT 1",
        "INSERT INTO spaces SELECT id + 1, space, pool, 0 FROM spaces ORDER BY id DESC LIMIT 1",
        "INSERT INTO spaces SELECT id + 7, space, pool, 0 FROM spaces",
        "INSERT INTO options VALUES ('more', '1', 0)",
        "UPDATE log SET id = id + 4000000000000000000",
        "UPDATE log SET change = change + 4611686018427387904",
        "UPDATE log SET change = -change",
        "UPDATE log SET change = 100 - change",
        "UPDATE log SET place = place + 1",
        "UPDATE log SET place = 100 - place",
        "UPDATE log SET place = place + 4611686018427387904",
        "UPDATE log SET space = 1",
        "UPDATE log SET state = 'RUNNING'",
        "UPDATE log SET state = 'WAITING', place = NULL, told_at = NULL, objectives = NULL, stds = NULL, "
        "constraints = '{{}}'",
        "UPDATE log SET state = 'FAIL', objectives = NULL, stds = NULL, constraints = '{{}}', place = id, told_at = "
        "asked_at",
        "UPDATE log SET asked_at = '0001-01-01T00:00:00', told_at = '9999-12-31T23:59:59' WHERE told_at IS NOT NULL",
        "UPDATE log SET asked_at = '9999-12-31T23:59:59', seen_at = '0001-01-01'",
        "UPDATE log SET asked_at = '20260101'",
        "UPDATE log SET params = '{{}}'",
        "UPDATE log SET params = (SELECT params FROM log WHERE id = 0)",
        "UPDATE log SET pool_row = 4611686018427387904",
        "UPDATE log SET objectives = '[1e308]', stds = '[1e308]' WHERE objectives IS NOT NULL",
        "UPDATE log SET objectives = '[-1.7976931348623157e308]' WHERE id = 0 AND objectives IS NOT NULL",
        "UPDATE log SET objectives = '[5e-324]', stds = '[0.0]' WHERE objectives IS NOT NULL",
        "UPDATE log SET objectives = '[1e154]' WHERE objectives IS NOT NULL AND id % 2",
    ]
    what = rng.choice([*statements, "other"])
    with resealed(path, rng) as db, contextlib.suppress(sqlite3.Error):
        if what == "other":
            db.execute("ATTACH ? AS other", (str(other),))
            table = rng.choice(["log", "spaces", "options"])
            db.execute(f"INSERT OR REPLACE INTO {table} SELECT * FROM other.{table}")
            return f"{table} of {other.stem}"
        db.execute(what.format(t=rng.choice(["log", "spaces", "options"])))
    return what


#: What is injected: how often, and by what.
INJECTIONS: dict[str, tuple[int, Injection]] = {
    "bits flipped": (12, flip),
    "bits flipped in SQLite's header": (6, flip_header),
    "the end cut off": (3, cut),
    "bytes appended": (2, append),
    "pages of another log, zeros, noise": (8, splice),
    "rows removed, doubled, renumbered": (10, move_rows),
    "an option replaced": (22, edit_option),
    "a space or pool replaced": (18, edit_space),
    "an array's bytes replaced": (3, edit_pool),
    "a trial's parts replaced": (12, edit_trial),
    "a cell of another type": (8, edit_cell),
    "a schema that is not ours": (4, schema_edit),
    "another SQLite database": (3, foreign_file),
    "a journal of another file beside it": (2, hot_journal),
}
#: Damage that has to be refused, or to leave everything as it was.
UNREADABLE = ("bits flipped", "bits flipped in SQLite's header", "bytes appended", "the end cut off")
