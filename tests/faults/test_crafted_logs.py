"""Damaged and crafted logs: each is refused by our error, or works; none executes code, and none hangs."""

import contextlib
import copy
import os
import pickle
import shutil
import socket
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

import bkbopt as bo
from bkbopt.adapters.shell.writing import finish
from bkbopt.confidence import Batch, Constant, Practical
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError, KernelError, StateFileError, StorageError
from bkbopt.kernels import rbf
from bkbopt.optimizer.designers import coming
from bkbopt.optimizer.log import log_file, log_schema
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.trials import Outcome
from tests.faults.crafted_injections import INJECTIONS
from tests.faults.crafted_logs import GOOD, findings, originals

#: Optimizers of the fast slice.
FAST = ("mixed", "pool", "moved")
BOX = {"x": (0.0, 1.0), "kind": ["a", "b"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def log(path: Path, n: int = 3, **options: Any) -> bo.Optimizer:
    opt = bo.Optimizer(options.pop("space", BOX), storage=path, **{"seed": 0, "n_startup_trials": 2, **options})
    for trial in opt.ask(n):
        opt.tell(trial, float(trial.id))
    return opt


#: Enough for every injection with the seed below; `make faults` and the slow test take thousands.
SLICE = 20


def test_a_slice_of_the_crafted_logs_is_refused_or_works(tmp_path: Path) -> None:
    originals(tmp_path / "originals", FAST)
    found = list(findings(SLICE, 1740, folder=tmp_path / "originals"))
    assert [one for one in found if one.outcome not in GOOD] == []
    assert len(found) == SLICE
    assert {one.injected for one in found} == INJECTIONS.keys()
    assert {one.outcome for one in found} >= {"refused", "works"}


@pytest.mark.slow
def test_all_crafted_logs_are_refused_or_work() -> None:
    found = findings(10_000, 1)
    assert [one for one in found if one.outcome not in GOOD] == []


# -- what the sweeps have found ------------------------------------------------------------------------------------


def cell(path: Path, statement: str) -> Any:
    """What a query of one cell gives."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(statement).fetchone()[0]


def resealed(path: Path, statement: str, values: tuple[Any, ...] = ()) -> None:
    """Change rows of a log, which get the checksums that belong to them."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(statement, values)
    for table in ("options", "spaces", "log"):
        for row in db.execute(f"SELECT rowid, * FROM {table}").fetchall():
            db.execute(f"UPDATE {table} SET checksum = ? WHERE rowid = ?", (log_schema.checksum(row[1:-1]), row[0]))
    db.close()


@pytest.mark.parametrize("beta", [Constant(2), Practical(low=1, high=2), Batch(Constant(2))])  # type: ignore[arg-type]
def test_a_schedule_of_whole_numbers_writes_a_log_that_can_be_read(beta: Any, path: Path) -> None:
    opt = log(path, beta=beta)
    opt.ask()
    assert bo.Optimizer.open(path).diagnostics == opt.diagnostics
    assert type(opt.diagnostics[-1].beta) is float


@pytest.mark.parametrize(
    "make",
    [Constant, lambda v: Practical(scale=v), lambda v: Batch(Constant(1.0), v)],
    ids=["Constant", "Practical", "Batch"],
)
@pytest.mark.parametrize("bad", ["2", None, True, float("nan"), 10**400], ids=lambda bad: str(bad)[:8])
def test_a_schedule_refuses_what_is_no_number(make: Any, bad: Any) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match="expected a"):
        make(bad)


@pytest.mark.parametrize("column", ["params", "state", "diagnostics"])
def test_text_that_is_no_text_is_damage(column: str, path: Path) -> None:
    log(path)
    db = sqlite3.connect(path)
    db.execute(f"UPDATE log SET {column} = CAST(x'7bff7d' AS TEXT) WHERE id = 1")
    db.commit()
    db.close()
    with pytest.raises(StateFileError, match="damaged"):
        bo.Optimizer.open(path)
    with pytest.raises(StateFileError, match="damaged"):
        LogFile(path).entry(1)


def test_a_schema_whose_text_is_no_text_is_damage(path: Path) -> None:
    log(path)
    data = path.read_bytes()
    assert data.count(b"CREATE TABLE log") == 1
    path.write_bytes(data.replace(b"CREATE TABLE log", b"CREATE \xf4ABLE log"))
    for opening in (bo.Optimizer.open, bo.Optimizer.load, LogFile):
        with pytest.raises(StateFileError, match="damaged"):
            opening(path)


@pytest.mark.parametrize("number", ["'x'", "'9999-12-31'", "0", "-1", "2.5", str(2**62), str(2**63 - 1)])
def test_a_change_that_is_no_number_of_a_change_is_refused(number: str, path: Path) -> None:
    log(path)
    resealed(path, f"UPDATE log SET change = {number} WHERE id = 2")
    with pytest.raises(StateFileError, match="parts are consistent"):
        bo.Optimizer.open(path)


@pytest.mark.parametrize("column", ["change", "place"])
@pytest.mark.parametrize("cell", ["'x'", "99.5", "x'00'"])
def test_a_single_trial_is_not_told_where_the_last_number_is_none(column: str, cell: str, path: Path) -> None:
    """Without torch a value is told by the row of its trial alone; the other rows are not read."""
    log(path).ask()
    resealed(path, f"UPDATE log SET {column} = {cell} WHERE id = 2")
    before = path.read_bytes()
    with pytest.raises(StateFileError, match=f"damaged one .*the highest {column} is no number"):
        finish(LogFile(path), 3, Outcome((1.0,)), "tell")
    assert path.read_bytes() == before


def test_numbers_of_changes_that_are_used_up_are_said(path: Path) -> None:
    opt = log(path)
    resealed(path, f"UPDATE log SET change = {log_schema.MOST} WHERE id = 2")
    opt = bo.Optimizer.open(path)
    before = path.read_bytes()
    with pytest.raises(StorageError, match="no change numbers left"):
        opt.ask()
    assert path.read_bytes() == before
    assert len(opt.trials) == 3


def test_known_noise_in_the_log_of_a_learner_is_refused(path: Path) -> None:
    log(path, surrogate="krr")
    resealed(path, "UPDATE log SET stds = '[0.0]'")
    with pytest.raises(StateFileError, match="gives all values the same weight"):
        bo.Optimizer.open(path)


@pytest.mark.parametrize(
    "settings", [{"budget": 10**9}, {"budget": {}}, {"budget": 0}, {"budget": "x"}, {"rank": 10**12}, {"step": -1.0}]
)
def test_settings_of_a_learner_are_refused_before_the_first_trial(settings: dict[str, Any]) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=next(iter(settings))):
        bo.Optimizer(BOX, surrogate=bo.LearnerSurrogate(learner="nogd", settings=settings))


def test_a_kernel_of_other_columns_than_points_have_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="expected a kernel with 2 columns, those of the encoded points"):
        bo.Optimizer(BOX, surrogate=bo.BKB(rbf(3, 0.5)))
    opt = log(path, space={"x": (0.0, 1.0)}, surrogate=bo.BKB(rbf(1, 0.5)))
    monkeypatch.setattr(coming, "check_columns", lambda *spaces: None)  # as in logs of earlier versions
    opt.set_space({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    with pytest.raises(KernelError, match="expected points with 1 columns"):
        opt.ask()


@pytest.mark.parametrize("theta", [[1e300, 0.0], [0.0, float("nan")], [0.0], [0.0, 0.0, 0.0], "x", None, [[0.0, 0.0]]])
def test_parameters_of_a_kernel_that_are_none_are_refused(theta: Any, path: Path) -> None:
    log(path, space={"x": (0.0, 1.0)}, surrogate=bo.BKB(rbf(1, 0.5)))
    text = cell(path, "SELECT value FROM options WHERE name = 'surrogate'")
    held = log_schema.from_json(text)
    text = log_schema.to_json({**held, "kernel": {**held["kernel"], "theta": theta}})
    resealed(path, "UPDATE options SET value = ? WHERE name = 'surrogate'", (text,))
    with pytest.raises(StateFileError, match="parts are consistent"):
        bo.Optimizer.open(path)


def test_more_frequencies_than_a_computer_holds_are_refused() -> None:
    with pytest.raises(ArgumentError, match="n_frequencies: expected a whole number from 1 to"):
        bo.FourierGP(n_frequencies=10**9)


@pytest.mark.parametrize(
    ("key", "instead"),
    [("width", []), ("width", [0.0, 1.0]), ("width", [float("nan"), 1.0]), ("low", [1.0]), ("kinds", ["f"]),
     ("names", ["x0", "x0"]), ("names", ["x0", 1]), ("choices", [[0, [1.0]]]), ("choices", [[7, []]]),
     ("tails", [[7, 0.0, 1.0]]), ("tails", [[0, 0.0, 0.0]]), ("tails", [[0, float("nan"), 1.0]]),
     ("tails", [[0, "x", 1.0]]), ("tails", [[0, 1.0]]), ("tails", 3), ("n_rows", 10**12), ("n_rows", -1)],
)  # fmt: skip
def test_columns_of_a_pool_that_do_not_fit_are_refused(key: str, instead: Any, path: Path) -> None:
    log(path, space=bo.Pool([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]]))
    text = cell(path, "SELECT space FROM spaces")
    text = log_schema.to_json({**log_schema.from_json(text), key: instead})
    resealed(path, "UPDATE spaces SET space = ?", (text,))
    with pytest.raises(StateFileError, match="log"):
        bo.Optimizer.open(path)


@pytest.mark.parametrize("far", [1e300, -1e308])
def test_points_of_a_pool_whose_squares_are_infinite_are_refused(far: float) -> None:
    surrogate = bo.BKB(rbf(1, 0.5), noise=0.1)
    with pytest.raises(ArgumentError, match="pool: expected columns whose numbers"):
        bo.Optimizer([[0.0], [far]], surrogate=surrogate, fit=False)
    opt = bo.Optimizer([[0.0], [1.0]], surrogate=surrogate, fit=False)
    with pytest.raises(ArgumentError, match="'x0': expected a number nearer"):
        opt.tell({"x0": far}, 1.0)


@pytest.mark.parametrize("values", [[1e308, -1e308, 1e308], [5e-324, 0.0, 5e-324], [1e-300, 1e300, 0.0]])
@pytest.mark.parametrize("std", [1e308, 5e-324, 0.0])
def test_values_and_noise_at_the_ends_of_doubles_are_learnt(values: list[float], std: float) -> None:
    opt = bo.Optimizer(BOX, seed=0, n_startup_trials=2, surrogate=bo.BKB(noise=0.1))
    opt.tell(opt.ask(3), values, std=[std] * 3)
    assert opt.ask().id == 3


# -- files that are no files ---------------------------------------------------------------------------------------


def test_pipes_and_folders_are_refused(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises((BkbError, OSError)):
        bo.Optimizer.open(path)
    path.unlink()
    path.mkdir()
    with pytest.raises((BkbError, OSError)):
        bo.Optimizer.open(path)
    path.rmdir()
    path.symlink_to(path)
    with pytest.raises((BkbError, OSError)):
        bo.Optimizer.open(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises((BkbError, OSError)):
        bo.Optimizer.open(path)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(os.path.relpath(path))
        with pytest.raises((BkbError, OSError)):
            bo.Optimizer.open(path)


# -- others at the same file ---------------------------------------------------------------------------------------


class Paused:
    """A connection that lets another one write before the spaces are read."""

    def __init__(self, connection: sqlite3.Connection, happen: Any) -> None:
        self.connection, self.happen = connection, happen

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def execute(self, statement: str, *args: Any) -> Any:
        if statement.startswith("SELECT id, space"):
            self.happen()
        return self.connection.execute(statement, *args)


def test_a_space_that_is_set_while_a_log_is_opened_is_read_whole_or_not(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt = log(path)
    threads: list[threading.Thread] = []

    def happen() -> None:
        if not threads:
            threads.append(threading.Thread(target=opt.set_space, args=({"x": (0.0, 2.0), "new": (0.0, 1.0)},)))
            threads[0].start()
            threads[0].join(0.3)

    original = log_file.connected
    with monkeypatch.context() as patch:
        patch.setattr(log_file, "connected", lambda *args: Paused(original(*args), happen))
        other = bo.Optimizer.open(path)
    threads[0].join()
    assert set(other.ask().params) == {"x", "new"}


def test_one_trial_is_read_whose_space_is_new(path: Path) -> None:
    opt = log(path)
    file = LogFile(path)
    opt.set_space({"x": (0.0, 2.0)})
    asked = opt.ask()
    entry, n = file.entry(asked.id)
    assert entry is not None
    assert (entry.space, entry.trial.params, n) == (1, asked.params, 4)
    file.close()


def test_a_log_is_opened_again_and_again_while_others_write(path: Path) -> None:
    opt = log(path)
    is_over, errors = threading.Event(), []

    def read() -> None:
        try:
            while not is_over.is_set():
                trials = bo.Optimizer.load(path).trials
                assert [t.id for t in trials] == list(range(len(trials)))
        except BaseException as error:  # noqa: BLE001  # to be shown by the main thread
            errors.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    for i in range(6):
        opt.set_space({"x": (0.0, 2.0 + i)})
        opt.tell({"x": 0.5}, float(i))
    is_over.set()
    thread.join()
    assert errors == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_goes_on_with_an_open_optimizer(path: Path) -> None:
    opt = log(path)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            opt.tell(opt.ask(), 1.0)
            status = 0
        finally:
            os._exit(status)
    opt.tell({"x": 0.5, "kind": "a"}, 2.0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sorted(t.value or 0.0 for t in opt.trials) == [0.0, 1.0, 1.0, 2.0, 2.0]
    assert opt.trials == bo.Optimizer.open(path).trials
    opt.ask()


def test_copies_and_pickles_are_refused_in_words(path: Path) -> None:
    opt = log(path)
    for call in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(ArgumentTypeError, match=r"cannot be copied or pickled.*Optimizer\.open"):
            call(opt)
    shutil.copyfile(path, path.with_name("copy"))  # of the file a copy is one
    assert bo.Optimizer.load(path.with_name("copy")).trials == opt.trials
