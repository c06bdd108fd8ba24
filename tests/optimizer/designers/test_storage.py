"""A log in a file that several optimizers share: what each writes, and what the others see of it."""

import gc
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError, StorageError, TrialStateError
from bkbopt.kernels import rbf
from bkbopt.optimizer.designers import logged_designer
from bkbopt.optimizer.log.log_file import LogFile
from tests.optimizer.stored_logs import BOX, POOL, advance, optimizer, table, value

# -- one after the other -------------------------------------------------------------------------------------------


@cache
def asked_of_one() -> list[Any]:
    """What one optimizer in memory asks."""
    return advance(optimizer(seed=3), 12)


def test_storage_changes_nothing_in_what_is_asked(path: Path) -> None:
    assert advance(optimizer(path, seed=3), 12) == asked_of_one()


@pytest.mark.parametrize("again", [optimizer, bo.Optimizer.open], ids=["same call", "open"])
def test_a_log_is_gone_on_with_bit_for_bit(again: Callable[[Path], bo.Optimizer], path: Path) -> None:
    assert advance(optimizer(path, seed=3), 8) + advance(again(path), 4) == asked_of_one()


def test_everything_that_can_be_read_comes_back(path: Path) -> None:
    opt = optimizer(path, constraints=["g"], seed=0)
    past = {"x": 0.1 + 0.2, "kind": True, "n": 3}
    opt.tell(past, np.nextafter(0.3, 1.0), constraints={"g": -5e-324}, std=1e-300)
    opt.tell(opt.ask(), None, constraints={"g": 1e300})
    opt.enqueue({"kind": None})
    opt.fail(opt.ask())
    opt.ask(2)
    again = bo.Optimizer.open(path)
    assert again.trials == opt.trials
    assert again.diagnostics == opt.diagnostics
    assert [t.state for t in again.trials] == ["COMPLETE", "COMPLETE", "FAIL", "RUNNING", "RUNNING"]
    assert again.constraints == ("g",)


def test_a_read_of_the_table_by_others_is_the_data_frame(path: Path) -> None:
    opt = optimizer(path, {**BOX, "odd \"name'": (0.0, 1.0), "größe": ["ü", '"']}, constraints=["g"], seed=0)
    for i in range(6):
        trial = opt.ask()
        opt.tell(trial, value(trial.params), constraints={"g": float(i)}) if i % 3 else opt.fail(trial)
    opt.ask()
    read, own = table(path), opt.trials_dataframe()
    assert list(read.columns) == [*(c for c in own.columns if c != "state"), "index", "state"]
    for column in ("state", "params_größe"):
        assert read[column].tolist() == own[column].tolist()
    for column in ("number", "value", "params_x", "params_n", "constraints_g", "params_odd \"name'"):
        assert read[column].tolist() == pytest.approx(own[column].tolist(), rel=1e-15, nan_ok=True)
    for column in ("datetime_start", "datetime_complete"):
        times = pd.to_datetime(read[column], format="ISO8601")  # a whole second has no fraction
        assert (times - own[column]).dropna().abs().max() < pd.Timedelta(microseconds=1)


def test_a_file_is_all_there_is_beside_locks(path: Path) -> None:
    opt = optimizer(path, seed=0)
    advance(opt, 6)
    assert {p.name for p in path.parent.iterdir()} <= {path.name, f"{path.name}.lock"}
    assert opt.storage == str(path)
    assert optimizer().storage is None


def test_load_is_a_copy_in_memory(path: Path) -> None:
    advance(optimizer(path, seed=0), 5)
    copy = bo.Optimizer.load(path)
    assert copy.storage is None
    advance(copy, 3)
    assert len(copy.trials) == 8
    assert len(bo.Optimizer.open(path).trials) == 5


def test_a_saved_copy_is_a_log_to_go_on_in(path: Path, tmp_path: Path) -> None:
    opt = optimizer(path, seed=0)
    advance(opt, 6)
    with pytest.raises(ArgumentError, match="a file other than that of the log itself"):
        opt.save(path)
    for end in (
        "-journal",
        "-wal",
        ".lock",
        ".run.lock",
    ):  # SQLite would remove some of these, and take others as its own
        with pytest.raises(ArgumentError, match="a file other than that of the log itself"):
            opt.save(f"{path}{end}")
    opt.save(tmp_path / "copy.db")
    assert advance(bo.Optimizer.open(tmp_path / "copy.db"), 4) == advance(opt, 4)


def test_theory_preset_goes_on_in_its_file(path: Path) -> None:
    preset: dict[str, Any] = {"kernel": rbf(2, [0.3, 10.0]), "noise": 0.01, "norm_bound": 2.0, "horizon": 30}
    opt = bo.theory(POOL, **preset, seed=3)
    opt.save(path)
    assert advance(bo.Optimizer.open(path), 5) == advance(opt, 5)


# -- at the same time ----------------------------------------------------------------------------------------------


def test_two_optimizers_see_each_others_trials(path: Path) -> None:
    a, b = optimizer(path, seed=0), optimizer(path)
    first, second = a.ask(), b.ask()
    assert (first.id, second.id) == (0, 1)
    assert first.params != second.params
    b.tell(first.id, 1.0)
    with pytest.raises(TrialStateError, match=r"was told the value 1.0 already"):
        a.tell(first, 2.0)
    a.enqueue({"n": 7})
    third = b.ask()
    assert third.params["n"] == 7
    assert a.trials == b.trials
    assert a.n_complete == b.n_complete == 1
    assert a.best_trial.value == 1.0


def test_optimizers_in_turn_ask_what_one_asks(path: Path) -> None:
    several = [optimizer(path, seed=3) for _ in range(3)]
    assert [asked for i in range(12) for asked in advance(several[i % 3], 1)] == asked_of_one()


def test_numbers_of_an_ask_follow_trials_that_were_told_while_it_was_computed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = optimizer(path, seed=0), optimizer(path)
    original, told = logged_designer.next_ones, []

    def slow(*args: Any) -> Any:
        entries = original(*args)
        if not told:
            told.append(b.tell({"x": 0.5, "kind": "a", "n": 1}, 1.0))
        return entries

    with monkeypatch.context() as patch:
        patch.setattr(logged_designer, "next_ones", slow)
        asked = a.ask(2)
    assert [t.id for t in told] == [0]
    assert [t.id for t in asked] == [1, 2]
    assert [t.params for t in asked] == [t.params for t in b.trials[1:]]


def test_an_ask_waits_for_another_and_a_tell_does_not(path: Path) -> None:
    a, b = optimizer(path, seed=0), optimizer(path)
    trial = a.ask()
    core = a._core
    assert core.file is not None
    with core.file.asking():
        b.tell(trial, 1.0)  # nobody waits here
        thread = threading.Thread(target=b.ask)
        thread.start()
        time.sleep(0.05)
        assert len(a.trials) == 1
    thread.join()
    assert len(a.trials) == 2


def test_a_tell_waits_for_a_transaction_of_another_process(path: Path) -> None:
    opt = optimizer(path, seed=0)
    trial = opt.ask()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    thread = threading.Thread(target=opt.tell, args=(trial, 1.0))
    thread.start()
    time.sleep(0.6)  # longer than SQLite itself waits
    other.execute("COMMIT")
    thread.join()
    other.close()
    assert opt.trials[0].value == 1.0


def test_a_refused_call_writes_nothing(path: Path) -> None:
    opt = optimizer(path, seed=0)
    trials = opt.ask(2)
    before = path.read_bytes()
    for call in (
        lambda: opt.tell(trials, [1.0, float("nan")]),
        lambda: opt.tell([trials[0].id, 7], [1.0, 1.0]),
        lambda: opt.fail([trials[0], trials[0]]),
        lambda: opt.enqueue({"x": 7.0}),
        lambda: opt.tell({"x": 7.0}, 1.0),
    ):
        with pytest.raises(bo.errors.BkbError):
            call()
    assert path.read_bytes() == before
    assert [t.state for t in opt.trials] == ["RUNNING", "RUNNING"]


def test_a_space_that_one_moves_is_moved_for_all(path: Path) -> None:
    a, b = optimizer(path, seed=0), optimizer(path)
    advance(a, 6)
    a.set_space({"x": (0.5, 2.0), "new": ["u", "v"]})
    assert set(b.ask().params) == {"x", "new"}
    again = optimizer(path)  # the first space opens the log, and the last one is in force
    assert set(again.ask().params) == {"x", "new"}
    again.set_space({"x": (0.5, 2.0), "new": ["u", "v"]})  # as it is: nothing happens
    assert advance(again, 3) == advance_copy(b, 3)
    names = [column for column in table(path).columns if column.startswith("params")]
    assert names == ["params_x", "params_kind", "params_n", "params_new"]


def test_names_that_no_column_can_have_are_only_missing_in_the_view(path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "a\0b": (0.0, 1.0)}, constraints=["c\0"], seed=0, storage=path)
    opt.tell(opt.ask(), 1.0, constraints={"c\0": -1.0})
    assert bo.Optimizer.load(path).trials == opt.trials
    assert "params_x" in table(path).columns
    assert not [column for column in table(path).columns if column.startswith(("params_a", "constraints"))]


def advance_copy(opt: bo.Optimizer, n: int) -> list[Any]:
    """The last `n` trials of a log that another one has advanced."""
    return [(t.id, t.index, dict(t.params)) for t in opt.trials[-n:]]


def test_an_array_that_one_sets_as_the_pool_is_that_of_all(path: Path) -> None:
    a, b = optimizer(path, POOL, seed=0), optimizer(path, POOL)
    advance(a, 6)
    a.set_pool(POOL[20:40] * 0.9)
    expected = bo.Optimizer.load(path)
    assert advance(b, 4) == advance(expected, 4)


# -- the file ------------------------------------------------------------------------------------------------------


def test_an_ask_without_its_lock_is_a_storage_error(path: Path) -> None:
    opt = optimizer(path)
    Path(f"{path}.lock").mkdir()  # as in a folder that may not be written; for root there is none
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"the lock beside it, .*runs\.db\.lock, may not be written"):
        opt.ask()
    assert path.read_bytes() == before
    Path(f"{path}.lock").rmdir()
    assert opt.ask().id == 0


def test_a_file_that_is_removed_or_replaced_is_noticed_before_anything_is_written(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opt = optimizer(path, seed=0)
    trial = opt.ask()
    os.rename(path, tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"removed or replaced since it was opened; nothing was written"):
        opt.tell(trial, 1.0)
    optimizer(path, seed=0)  # another log of that name
    with pytest.raises(StorageError, match="removed or replaced"):
        opt.ask()
    opt.save(tmp_path / "rescued.db")  # what memory has can be written
    assert "lacks what other processes have written" in caplog.text
    os.replace(tmp_path / "elsewhere", path)
    assert opt.tell(trial, 1.0) == bo.Optimizer.open(path).trials[0]
    assert bo.Optimizer.open(tmp_path / "rescued.db").trials[0].params == trial.params


def test_a_log_that_nobody_uses_any_more_is_closed(path: Path) -> None:
    optimizer(path, seed=0).ask()
    file = LogFile(path)
    connection = file._connection
    assert connection is not None
    del file
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


@pytest.mark.parametrize("stored", [True, False])
def test_pools_that_were_replaced_are_kept_neither_in_memory_nor_in_the_file(stored: bool, path: Path) -> None:
    pools = [np.random.default_rng(i).random((4000, 4)) for i in range(8)]
    opt = optimizer(path if stored else None, pools[0], seed=0)
    other = bo.Optimizer.open(path) if stored else opt
    asked = []
    for pool in pools[1:]:
        opt.set_pool(pool)
        asked += advance(opt, 1)
    assert len({id(pool) for pool in opt._core.spaces}) == 1
    opt.save(path.with_name("copy.db"))
    for file in [path.with_name("copy.db"), *([path] if stored else [])]:
        assert file.stat().st_size < 3 * pools[0].nbytes
        again = bo.Optimizer.load(file)
        assert advance_copy(again, 7) == asked
        assert again.trials == opt.trials
        assert advance(again, 3) == advance(bo.Optimizer.load(file), 3)
    # Another optimizer, which has not looked since the first pool, takes the last one.
    assert other.trials == opt.trials
    assert other.pool is not None
    assert other.pool.table.numpy() == pytest.approx(pools[-1], abs=0.0)
    if stored:  # the first pool, as a script has it, opens the log
        assert optimizer(path, pools[0]).trials == opt.trials
