"""SQLite files that are no logs, logs with a larger schema, and journals of other files."""

import contextlib
import random
import shutil
import sqlite3
from pathlib import Path

from bkbopt.optimizer.log import log_schema as schema

__all__ = ["CANARY", "foreign_file", "hot_journal", "schema_edit"]

#: A table that triggers write to, where they fire.
CANARY = "canary"
_FIRE = f"BEGIN INSERT INTO {CANARY} VALUES (1); END"
_LOG = schema.TABLES["log"]
_ENDLESS = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT i FROM r"
_COLUMNS = ", ".join(f"i AS {name}" for name in schema.COLUMNS.split(", "))


def _as_view(table: str, sql: str) -> str:
    return f"ALTER TABLE {table} RENAME TO other; CREATE VIEW {table} AS {sql}"


#: What is done to a log by SQL.
EDITS = [
    *(f"CREATE TRIGGER t {when} ON {t} {_FIRE}" for when in ("BEFORE INSERT", "AFTER UPDATE", "AFTER DELETE")
      for t in ("log", "options", "spaces")),
    *(f"CREATE TRIGGER t INSTEAD OF {what} ON trials {_FIRE}" for what in ("INSERT", "UPDATE", "DELETE")),
    f"CREATE TRIGGER log AFTER INSERT ON log {_FIRE}",
    "CREATE INDEX i ON log (space)",
    "CREATE INDEX i ON log (abs(space)) WHERE place > 3",
    "CREATE UNIQUE INDEX i ON log (space)",
    "CREATE TABLE more (a, b)",
    "CREATE TABLE more (a, b GENERATED ALWAYS AS (zeroblob(1000000000)) VIRTUAL)",
    "CREATE VIEW more AS SELECT load_extension('/tmp/evil.so')",
    "CREATE VIEW more AS SELECT randomblob(1000000000)",
    f"CREATE VIEW more AS {_ENDLESS}",
    "DROP VIEW trials",
    f"DROP VIEW trials; CREATE VIEW trials AS {_ENDLESS}",
    "DROP VIEW trials; CREATE VIEW trials AS SELECT load_extension('/tmp/evil.so')",
    "DROP VIEW trials; CREATE VIEW trials AS SELECT randomblob(1000000000) AS number FROM log",
    "DROP VIEW trials; CREATE TABLE trials (number)",
    _as_view("log", "SELECT * FROM other"),
    _as_view("log", f"WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT {_COLUMNS} FROM r"),
    _as_view("options", "SELECT * FROM other"),
    _as_view("options", "SELECT randomblob(1000000000) AS name, 1 AS value, 2 AS checksum"),
    _as_view("spaces", "SELECT * FROM other"),
    "DROP TABLE log; DROP VIEW trials",
    f"DROP TABLE log; {_LOG[:-1]}, CHECK (abs(random()) >= 0))",
    f"DROP TABLE log; {_LOG} WITHOUT ROWID",
    f"DROP TABLE log; {_LOG} STRICT",
    f"DROP TABLE log; {_LOG.replace('state TEXT', 'state TEXT COLLATE nocase')}",
    f"DROP TABLE log; {_LOG.replace('INTEGER PRIMARY KEY', 'INTEGER PRIMARY KEY AUTOINCREMENT')}",
    f"DROP TABLE log; {_LOG.replace('pool_row INTEGER', 'pool_row INTEGER DEFAULT (randomblob(1000000000))')}",
    f"DROP TABLE log; {_LOG.replace('CREATE TABLE log', 'CREATE TABLE LOG')}",
    "DROP TABLE log; CREATE VIRTUAL TABLE log USING fts5(id, state)",
    "DROP TABLE log; CREATE VIRTUAL TABLE log USING rtree(id, a, b)",
    "DROP TABLE log; CREATE VIRTUAL TABLE log USING dbstat",
    "ANALYZE",
    "VACUUM",
    "PRAGMA journal_mode = WAL",
    "PRAGMA user_version = 2",
    "PRAGMA user_version = -1",
    "PRAGMA application_id = 0",
    "PRAGMA page_size = 512; VACUUM",
    "PRAGMA page_size = 65536; VACUUM",
    "PRAGMA auto_vacuum = FULL; VACUUM",
    "PRAGMA auto_vacuum = INCREMENTAL; VACUUM",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = "
    "'options') WHERE name = 'log'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 1 WHERE name = 'log'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 1000000 WHERE name = 'spaces'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = NULL WHERE name = 'trials'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET type = 'view' WHERE name = 'log'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET tbl_name = 'x' WHERE name = 'log'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = 'x' WHERE name = 'log'",
    "PRAGMA writable_schema = ON; DELETE FROM sqlite_master WHERE type = 'index'",
    "PRAGMA writable_schema = ON; INSERT INTO sqlite_master SELECT * FROM sqlite_master",
    "PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('trigger', 't', 'log', 0, 'CREATE TRIGGER t AFTER "
    f"INSERT ON log {_FIRE}')",
    "PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v "
    "USING fts5(a)')",
    "PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('table', 'sqlite_x', 'sqlite_x', 0, NULL)",
]  # fmt: skip

FOREIGN = [
    "",
    "CREATE TABLE t (a); INSERT INTO t VALUES (1)",
    "CREATE TABLE log (id); CREATE TABLE options (name, value, checksum); "
    "CREATE TABLE spaces (id, space, pool, checksum)",
    "CREATE VIEW options AS SELECT 1; CREATE VIEW spaces AS SELECT 2; CREATE VIEW log AS SELECT 3",
    f"CREATE VIEW options AS {_ENDLESS}",
    "CREATE TABLE studies (study_id INTEGER PRIMARY KEY, name TEXT)",
    ";".join(schema.TABLES.values()),
]


def schema_edit(path: Path, other: Path, rng: random.Random) -> str:
    """A log with additions, omissions or changes in its schema; some of them harmless."""
    if rng.random() < 0.15:
        return _in_another_encoding(path, rng)
    statement = rng.choice(EDITS)
    db = sqlite3.connect(path, isolation_level=None)
    try:
        with contextlib.suppress(sqlite3.Error):
            if "TRIGGER" in statement:
                db.execute(f"CREATE TABLE {CANARY} (a)")
            db.executescript(statement)
    finally:
        db.close()
    return statement


def _in_another_encoding(path: Path, rng: random.Random) -> str:
    """The same log, letter by letter, in a file whose text is UTF-16."""
    encoding, new = rng.choice(["UTF-16le", "UTF-16be"]), path.with_suffix(".new")
    source, db = sqlite3.connect(path), sqlite3.connect(new, isolation_level=None)
    try:
        db.execute(f"PRAGMA encoding = '{encoding}'")
        db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {schema.VERSION}")
        for (sql,) in source.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"):
            db.execute(sql)
        for table in schema.TABLES:
            for row in source.execute(f"SELECT * FROM {table}"):
                db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    finally:
        source.close()
        db.close()
    new.replace(path)
    return encoding


def foreign_file(path: Path, other: Path, rng: random.Random) -> str:
    """A database of another application, which may have our application id."""
    script, fits = rng.choice(FOREIGN), rng.random() < 0.8
    path.unlink()
    db = sqlite3.connect(path, isolation_level=None)
    try:
        if fits:
            script = f"PRAGMA application_id = {schema.APPLICATION_ID}; PRAGMA user_version = 1; {script}"
        if rng.random() < 0.3:
            script = f"PRAGMA encoding = 'UTF-16'; {script}"
        db.executescript(script)
    finally:
        db.close()
    return script[:90]


def hot_journal(path: Path, other: Path, rng: random.Random) -> str:
    """A journal beside the file: of another log that was being written, of an older version, cut or noise."""
    kind = rng.choice(["other", "own", "cut", "noise", "wal", "empty"])
    beside = path.with_name(f"{path.name}-journal")
    if kind in ("noise", "empty"):
        beside.write_bytes(rng.randbytes(5000) if kind == "noise" else b"")
        return kind
    if kind == "wal":
        path.with_name(f"{path.name}-wal").write_bytes(rng.randbytes(5000))
        return kind
    work = path.with_name("work.db")
    shutil.copyfile(path if kind == "own" else other, work)
    db = sqlite3.connect(work, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE log SET params = params || '  '")
        db.execute("UPDATE options SET value = value || '  '")
        data = work.with_name("work.db-journal").read_bytes()
        db.execute("ROLLBACK")
    finally:
        db.close()
        work.unlink()
    beside.write_bytes(data[: rng.randrange(len(data))] if kind == "cut" else data)
    return f"{kind} of {other.stem}"
