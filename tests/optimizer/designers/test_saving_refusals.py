"""Damaged, changed, foreign and newer files are no copies of a log, and a refused save leaves the old file."""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt._support import files
from bkbopt.errors import ArgumentError, ArgumentTypeError, StateFileError
from bkbopt.optimizer.log.log_schema import VERSION, WITH_ATTRS, checksum
from tests.optimizer.logs_to_save import MIXED, advance, optimizer


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    opt = optimizer("mixed")
    advance(opt, 9)
    opt.save(tmp_path / "s")
    return tmp_path / "s"


def test_truncated_files_are_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    for size in (0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:size])
        with pytest.raises(StateFileError):
            bo.Optimizer.load(saved)


def test_flipped_bytes_are_refused_or_change_nothing(saved: Path) -> None:
    whole, trials = saved.read_bytes(), bo.Optimizer.load(saved).trials
    # Rows are covered by checksums and pages by SQLite; what is left are fields and free bytes that nobody reads.
    for at in np.random.default_rng(0).integers(len(whole), size=60):
        saved.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            again = bo.Optimizer.load(saved)
        except StateFileError:
            continue
        assert again.trials == trials


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04", json.dumps({"format": "bkbopt"}).encode()])
def test_foreign_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(StateFileError, match="expected a log"):
        bo.Optimizer.load(tmp_path / "s")


def test_state_files_in_the_form_before_logs_are_refused_with_the_version_that_wrote_them(tmp_path: Path) -> None:
    files.save(tmp_path / "s", {"x": 1}, kind="log of an optimizer")
    with pytest.raises(StateFileError, match=rf"kind 'log of an optimizer' that bkbopt {bo.__version__} wrote"):
        bo.Optimizer.load(tmp_path / "s")
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    with pytest.raises(StateFileError, match="a damaged file or another format"):
        bo.Optimizer.load(tmp_path / "a.npz")


def test_another_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "s") as db:
        db.execute("CREATE TABLE log (id)")
    db.close()
    before = (tmp_path / "s").read_bytes()
    for call in (bo.Optimizer.load, bo.Optimizer.open, lambda path: bo.Optimizer(MIXED, storage=path)):
        with pytest.raises(StateFileError, match="another SQLite database"):
            call(tmp_path / "s")
    assert (tmp_path / "s").read_bytes() == before


def changed(path: Path, *statements: str) -> None:
    db = sqlite3.connect(path)
    with db:
        for statement in statements:
            db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON log BEGIN DELETE FROM log; END",
        "CREATE VIEW more AS SELECT * FROM log",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON log (state)",
        "DROP VIEW trials",
        "DROP TABLE spaces",
        "ALTER TABLE log ADD COLUMN more",
    ],
)
def test_a_schema_that_is_not_ours_is_refused(statement: str, saved: Path) -> None:
    changed(saved, statement)
    with pytest.raises(StateFileError, match="parts are consistent"):
        bo.Optimizer.load(saved)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET params = '{}' WHERE id = 3",
        "UPDATE log SET state = 'RUNNING' WHERE id = 0",
        "UPDATE options SET value = '7' WHERE name = 'entropy'",
        "UPDATE spaces SET space = '{}'",
    ],
)
def test_a_row_that_was_changed_is_refused(statement: str, saved: Path) -> None:
    changed(saved, statement)
    with pytest.raises(StateFileError, match="checksum"):
        bo.Optimizer.load(saved)


def test_rows_that_are_missing_are_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    for table, words in (("options WHERE name = 'fit'", "fit"), ("spaces", "spaces"), ("log WHERE id = 2", "trials")):
        saved.write_bytes(whole)
        changed(saved, f"DELETE FROM {table}")
        with pytest.raises(StateFileError, match=words):
            bo.Optimizer.load(saved)


def test_an_option_that_is_none_is_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    for name in ("directions", "constraints", "entropy", "surrogate", "beta", "fit", "n_startup_trials"):
        for value in ('"nonsense"', "[1.0]", "{}", "-1"):
            saved.write_bytes(whole)
            text = value.replace("'", "''")
            changed(saved, f"UPDATE options SET value = '{text}', checksum = {checksum((name, value))} "
                           f"WHERE name = '{name}'")  # fmt: skip
            with pytest.raises((StateFileError, ArgumentError, ArgumentTypeError)):
                bo.Optimizer.load(saved)


def test_a_space_that_no_log_can_hold_is_refused(saved: Path) -> None:
    text = '{"parameters":[{"name":"x","type":"categorical","choices":["a","\\ud800"]}]}'  # no Unicode
    changed(saved, "DELETE FROM log", f"UPDATE spaces SET space = '{text}', checksum = {checksum((0, text, None))}")
    db = sqlite3.connect(saved)
    view = db.execute("SELECT sql FROM sqlite_master WHERE name = 'trials'").fetchone()[0]
    db.close()
    names = [name for name in MIXED if name != "x"]
    for name in names:
        view = re.sub(rf", json_extract\(params, '\$\.\"{name}\"'\) AS \"params_{name}\"", "", view)
    changed(saved, "DROP VIEW trials", view)
    with pytest.raises(StateFileError, match="valid Unicode"):
        bo.Optimizer.load(saved)


@pytest.mark.parametrize("attrs", [{}, {"a": 1}])
def test_a_version_that_is_not_that_of_the_tables_is_refused(attrs: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "log"
    bo.Optimizer({"x": (0.0, 1.0)}, storage=path, seed=0).enqueue({"x": 0.5}, user_attrs=attrs)
    changed(path, f"PRAGMA user_version = {VERSION if attrs else WITH_ATTRS}")
    with pytest.raises(StateFileError, match="tables that are not those of a log"):
        bo.Optimizer.load(path)


def test_newer_file_is_refused_with_advice(saved: Path) -> None:
    changed(saved, f"PRAGMA user_version = {WITH_ATTRS + 1}")
    with pytest.raises(
        StateFileError, match=rf"version {WITH_ATTRS + 1}; open it with the version of bkbopt that wrote it"
    ):
        bo.Optimizer.load(saved)


def test_missing_file_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        bo.Optimizer.load(tmp_path / "nowhere")


def test_a_refused_save_leaves_the_old_file(saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(ArgumentError, match="choices"):
        bo.Optimizer({"x": [object(), object()]}, seed=0).save(saved)
    assert saved.read_bytes() == before


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (b"run.db", ArgumentTypeError),
        (1, ArgumentTypeError),
        ("a\0b", ArgumentError),
        ("sqlite:///run.db", ArgumentError),
    ],
)
def test_a_copy_is_not_saved_where_it_could_not_be_opened(path: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^path: expected the path of a file"):
        bo.Optimizer(MIXED, seed=0).save(path)


def test_a_copy_is_not_saved_under_the_name_of_a_database_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=r"^path: .* got ':memory:'; `open` refuses it"):
        bo.Optimizer(MIXED, seed=0).save(":memory:")
    assert list(tmp_path.iterdir()) == []
