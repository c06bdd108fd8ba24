"""Copies of a log: the same asks follow as without the break, bit for bit, in a new process."""

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import pytest
import torch

import bkbopt as bo
from bkbopt import confidence
from bkbopt._support import files
from bkbopt.errors import ArgumentError, ArgumentTypeError, StateFileError
from bkbopt.kernels import rbf
from bkbopt.optimizer.log_schema import VERSION, checksum
from tests.sweeps import slow_but, sweep

ROOT = Path(__file__).resolve().parents[2]
BOX = {"x": (0.0, 1.0), "rate": bo.Float(1e-4, 1.0, log=True)}
MIXED = {"x": (0.0, 1.0), "n": bo.Int(1, 50, log=True), "kind": ["a", None, True], "step": bo.Float(0.0, 1.0, step=0.1)}
GRID = {"a": bo.Int(0, 9), "b": bo.Int(0, 9), "c": ["u", "v"]}
TREE = {
    "model": ["svm", "forest"],
    "C": bo.Float(0.01, 100.0, log=True, when={"model": "svm"}),
    "trees": bo.Ordinal([10, 30, 100], when={"model": "forest"}),
    "x": (0.0, 1.0),
}
POOL = np.random.default_rng(0).random((120, 2)) * [1.0, 50.0]
WORDS = ["ant", "bee", "cat", "antelope", "beetle", "catfish", "ape", "bat", "cow", "eel", "elk", "dog"]
TABLE = pd.DataFrame({"dose": POOL[:, 0], "steps": np.arange(120) % 7, "solvent": ["water", "oil", "acid"] * 40})


def overlap(A: list[str], B: list[str]) -> list[list[float]]:
    return [[len(set(a) & set(b)) / (len(set(a)) * len(set(b))) ** 0.5 for b in B] for a in A]


def loss(params: Any) -> float:
    """Any function of the parameters, the same in every process, with noise that depends on them only."""
    total = 0.0
    for i, value in enumerate(params.values()):
        number = float(value) if isinstance(value, (int, float)) else float(len(str(value)))
        total += np.sin(3.0 * number + i) + 0.1 * np.sin(1e4 * number)
    return float(total)


def advance(opt: bo.Optimizer, n: int) -> list[str]:
    """Ask `n` times, tell most late and let some fail; what was asked, to the last bit."""
    asked = []
    for _ in range(n):
        trial = opt.ask()
        asked.append(repr((trial.id, trial.index, dict(trial.params))))
        running = [t for t in opt.trials if t.state == "RUNNING"]
        if len(running) > 2:  # the oldest of three comes in; every seventh fails
            first = running[0]
            answer(opt, first)
    return asked


def answer(opt: bo.Optimizer, trial: bo.Trial) -> None:
    """Tell the trial, or fail it, as its number and parameters say."""
    value = loss(trial.params)
    limits = {name: value - 0.2 * i for i, name in enumerate(opt.constraints)}
    several = len(opt.directions) > 1
    if trial.id % 7 == 3:
        opt.fail(trial)
    elif trial.id % 5 == 4 and limits:  # a run that gives the values of the constraints only
        opt.tell(trial, None, constraints=limits)
    else:
        std = [0.1, 0.2] if several and trial.id % 5 == 4 else None
        opt.tell(trial, [value, value**2] if several else value, constraints=limits, std=std)


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "box": (BOX, {}),
    "mixed": (MIXED, {}),
    "grid": (GRID, {"duplicates": "avoid"}),
    "pool": (POOL, {}),
    "box by exact GP": (BOX, {"surrogate": "exact"}),
    "box by Fourier features": (BOX, {"surrogate": bo.FourierGP(n_frequencies=30, seed=5)}),
    "box by PKAWV": (BOX, {"surrogate": "pkawv"}),
    "box by FORKS": (BOX, {"surrogate": bo.LearnerSurrogate(learner="forks", settings={"budget": 4})}),
    "pool by Sketched-KONS": (POOL, {"surrogate": "sketched-kons"}),
    "box every step": (BOX, {"surrogate": bo.BKB(resample="every", qbar=3.0, max_inducing=20, coins="pull")}),
    "box uniform": (BOX, {"surrogate": bo.BKB(dictionary="uniform", max_inducing=15, variance="sor")}),
    "box logei": (BOX, {"acquisition": "logei", "direction": "maximize"}),
    "box thompson": (BOX, {"acquisition": "thompson", "surrogate": "exact"}),
    "box with known noise": (BOX, {"surrogate": bo.BKB(noise=0.3)}),
    "box with own kernel": (BOX, {"surrogate": bo.BKB(rbf(2, 0.7, 3.0))}),
    "mixed logei": (MIXED, {"acquisition": "logei", "surrogate": "exact"}),
    "grid thompson": (GRID, {"acquisition": "thompson"}),
    "pool thompson": (POOL, {"acquisition": "thompson", "duplicates": "avoid"}),
    "pool exact logei": (POOL, {"acquisition": "logei", "surrogate": "exact"}),
    "fixed": (POOL, {"surrogate": bo.BKB(rbf(2, [0.3, 10.0]), noise=0.01), "fit": False, "beta": 2.0}),
    "schedule": (POOL, {"beta": confidence.Srinivas(delta=0.2)}),
    "conditional": (TREE, {}),
    "several objectives": (BOX, {"directions": ["minimize", "maximize"]}),
    "constraints": (BOX, {"constraints": ["heat", "weight"]}),
    "deterministic": (MIXED, {"deterministic": True, "perturbations": False}),
}
#: Cases that the fast suite plays; the others change an option that the file holds as these.
FAST = ("pool", "conditional", "several objectives", "constraints", "box by PKAWV", "fixed")
#: Asks before and after the break: past the start-up, with fits before and after it.
HALF, AFTER = 12, 4


def optimizer(name: str) -> bo.Optimizer:
    space, options = CASES[name]
    return bo.Optimizer(space, **{"seed": 11, "n_startup_trials": 6, **options})


def queued(opt: bo.Optimizer) -> None:
    opt.enqueue({"x": 0.125})
    opt.enqueue({})


def moved(opt: bo.Optimizer) -> None:
    opt.set_space({"x": (0.2, 2.0), "kind": ["a", None, True], "new": bo.Ordinal([1, 2, 4])})


#: What happens before the break, in the mixed space: after how many asks, and what.
MOMENTS: dict[str, tuple[int, Any]] = {
    "before the first ask": (0, lambda opt: None),
    "in the start-up": (4, lambda opt: None),
    "all pending": (7, lambda opt: opt.ask(3)),
    "all failed": (0, lambda opt: opt.fail(opt.ask(8))),
    "with a queue": (8, queued),
    "with another space": (9, moved),
    "with another space and a queue that does not fit": (9, lambda opt: (opt.enqueue({"n": 7}), moved(opt))),
    "after past data": (2, lambda opt: opt.tell({"x": 0.1 + 0.2, "n": 7, "kind": None, "step": 0.3}, 1.5)),
}


def at_moment(name: str) -> bo.Optimizer:
    n, happen = MOMENTS[name]
    opt = optimizer("mixed")
    advance(opt, n)
    happen(opt)
    return opt


#: Moments that the fast suite looks at; the others are parts of these.
FAST_MOMENTS = tuple(name for name in MOMENTS if name not in ("in the start-up", "with a queue", "with another space"))


@pytest.mark.parametrize(
    ("cases", "moments"), [(FAST, FAST_MOMENTS), pytest.param(tuple(CASES), tuple(MOMENTS), marks=pytest.mark.slow)]
)
def test_break_in_a_new_process_changes_no_bit(
    cases: tuple[str, ...], moments: tuple[str, ...], tmp_path: Path
) -> None:
    expected = {}
    for name in cases:
        opt = optimizer(name)
        advance(opt, HALF)
        assert {t.state for t in opt.trials} == {"RUNNING", "COMPLETE", "FAIL"}
        opt.save(tmp_path / f"{name}.db")
        expected[name] = advance(opt, AFTER)
    for name in moments:
        opt = at_moment(name)
        opt.save(tmp_path / f"{name}.db")
        expected[name] = advance(opt, AFTER)
    program = (
        "import importlib.util, json, sys, pathlib\n"
        "import torch, bkbopt as bo\n"
        "torch.set_num_threads(1)\n"
        "spec = importlib.util.spec_from_file_location('tests_saving', sys.argv[1])\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "paths = sorted(pathlib.Path(sys.argv[2]).glob('*.db'))\n"
        "print(json.dumps({p.stem: module.advance(bo.Optimizer.load(p), module.AFTER) for p in paths}))\n"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).resolve()), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout) == expected


@pytest.mark.parametrize("name", slow_but(["mixed", "grid"], CASES))  # the others go through a new process
def test_break_in_the_same_process_changes_no_bit(name: str, tmp_path: Path) -> None:
    opt = optimizer(name)
    advance(opt, HALF)
    opt.save(tmp_path / "s")
    assert advance(bo.Optimizer.load(tmp_path / "s"), 6) == advance(opt, 6)


@pytest.mark.parametrize("name", slow_but(["mixed", "pool"], ["mixed", "conditional", "several objectives", "pool"]))
def test_a_file_holds_options_spaces_and_trials_and_no_model(name: str, tmp_path: Path) -> None:
    opt = optimizer(name)
    advance(opt, HALF)
    opt.save(tmp_path / "s")
    with sqlite3.connect(tmp_path / "s") as db:
        tables = {table for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert tables == {"options", "spaces", "log"}
        assert db.execute("SELECT count(*) FROM log").fetchone() == (HALF,)
        options = {name for (name,) in db.execute("SELECT name FROM options")}
    db.close()
    assert options >= {"directions", "entropy", "beta", "surrogate"}
    opt.ask()  # a model more, and a trial more
    opt.save(tmp_path / "t")
    page = 4096
    assert (tmp_path / "t").stat().st_size - (tmp_path / "s").stat().st_size <= 2 * page


@pytest.mark.parametrize(
    "name", slow_but(["mixed", "constraints"], ["mixed", "pool", "fixed", "constraints", "conditional"])
)
def test_everything_that_can_be_read_comes_back(name: str, tmp_path: Path) -> None:
    opt = optimizer(name)
    advance(opt, 15)
    opt.save(tmp_path / "s")
    again = bo.Optimizer.load(tmp_path / "s")
    assert again.trials == opt.trials
    assert again.diagnostics == opt.diagnostics
    assert again.best_trial == opt.best_trial
    assert again.recommend() == opt.recommend()
    assert again.regret_certificate() == opt.regret_certificate()
    assert again.useful_workers(limit=4) == opt.useful_workers(limit=4)
    assert again.direction == opt.direction
    assert again.confidence == opt.confidence
    pd.testing.assert_frame_equal(again.trials_dataframe(), opt.trials_dataframe())


def test_saving_changes_nothing_and_a_second_file_is_the_same(tmp_path: Path) -> None:
    opt = optimizer("mixed")
    asked = advance(opt, 10)
    opt.save(tmp_path / "a")
    opt.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    bo.Optimizer.load(tmp_path / "a").save(tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()
    assert asked + advance(opt, 8) == advance(optimizer("mixed"), 18)


def test_a_space_that_moved_is_read_the_same_before_the_first_ask(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 2.0), "gone": ["a", "b"]}, seed=0, n_startup_trials=4)
    for _ in range(5):
        trial = opt.ask()
        opt.tell(trial, trial.params["x"])
    opt.set_space({"x": (0.0, 1.0)})
    opt.save(tmp_path / "state")
    assert torch.equal(bo.Optimizer.load(tmp_path / "state").observed()[0], opt.observed()[0])
    assert torch.equal(bo.Optimizer.load(tmp_path / "state").encode([{"x": 0.5}]), opt.encode([{"x": 0.5}]))
    assert bo.Optimizer.load(tmp_path / "state").predict({"x": 0.5}) == opt.predict({"x": 0.5})


def test_told_digits_survive(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (-5.0, 10.0), "k": 3}, seed=0)
    values = [1.3, 0.1 + 0.2, -4.9, np.nextafter(7.7, 8.0)]
    opt.tell([{"x": v} for v in values], [1.0] * 4)
    opt.save(tmp_path / "s")
    assert [t.params for t in bo.Optimizer.load(tmp_path / "s").trials] == [{"x": v, "k": 3} for v in values]


def test_theory_preset_survives(tmp_path: Path) -> None:
    def fresh() -> bo.Optimizer:
        return bo.theory(POOL, kernel=rbf(2, [0.3, 10.0]), noise=0.01, norm_bound=2.0, horizon=30, seed=3)

    opt = fresh()
    asked = advance(opt, 8)
    opt.save(tmp_path / "s")
    assert asked + advance(bo.Optimizer.load(tmp_path / "s"), 8) == advance(fresh(), 16)


# -- what a file cannot hold, and load takes again -----------------------------------------------------------------


def words() -> bo.Optimizer:
    return bo.Optimizer(WORDS, seed=1, n_startup_trials=4, surrogate=bo.BKB(kernel=overlap, noise=0.05))


def test_objects_and_their_kernel_are_given_again(tmp_path: Path) -> None:
    opt = words()
    asked = advance(opt, 10)
    opt.save(tmp_path / "s")
    surrogate = bo.BKB(kernel=overlap, noise=0.05)
    with pytest.raises(ArgumentError, match=r"surrogate: .* the kernel that the log was made with"):
        bo.Optimizer.load(tmp_path / "s", pool=WORDS)
    with pytest.raises(ArgumentError, match=r"pool: .* pass pool="):
        bo.Optimizer.load(tmp_path / "s", surrogate=surrogate)
    with pytest.raises(ArgumentError, match="pool: expected the 12 distinct objects"):
        bo.Optimizer.load(tmp_path / "s", pool=WORDS[:5], surrogate=surrogate)
    again = bo.Optimizer.load(tmp_path / "s", pool=WORDS, surrogate=surrogate)
    assert asked + advance(again, 10) == advance(words(), 20)


def test_objects_that_came_and_went_are_given_in_order_of_appearance(tmp_path: Path) -> None:
    a, b = words(), words()
    for opt in (a, b):
        advance(opt, 6)
        opt.set_pool([*WORDS[4:], "emu", "asp"])
        advance(opt, 2)
    a.save(tmp_path / "s")
    again = bo.Optimizer.load(tmp_path / "s", pool=[*WORDS, "emu", "asp"], surrogate=bo.BKB(kernel=overlap, noise=0.05))
    assert again.trials == a.trials
    assert advance(again, 8) == advance(b, 8)


@pytest.mark.parametrize(("fit", "resample"), sweep([True, False], ["delayed", "every"]))
def test_gpytorch_kernel_is_given_again_and_keeps_what_was_fitted(fit: bool, resample: str, tmp_path: Path) -> None:
    def surrogate() -> bo.BKB:
        kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=2))
        return bo.BKB(kernel, noise=None if fit else 0.1, resample=resample)

    def fresh() -> bo.Optimizer:
        return bo.Optimizer(BOX, seed=1, n_startup_trials=4, surrogate=surrogate(), fit=fit)

    opt = fresh()
    asked = advance(opt, 7)
    opt.save(tmp_path / "s")
    with pytest.raises(ArgumentError, match="surrogate"):
        bo.Optimizer.load(tmp_path / "s")
    with pytest.raises(ArgumentError, match="expected a BKB"):
        bo.Optimizer.load(tmp_path / "s", surrogate=bo.ExactGP(gpytorch.kernels.RBFKernel()))
    again = bo.Optimizer.load(tmp_path / "s", surrogate=surrogate())
    assert asked + advance(again, 3) == advance(fresh(), 10)


def test_callable_kernel_is_given_again(tmp_path: Path) -> None:
    def kernel(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.exp(-torch.cdist(A, B, compute_mode="donot_use_mm_for_euclid_dist") / 0.5)

    def fresh() -> bo.Optimizer:
        return bo.Optimizer(POOL, seed=1, n_startup_trials=4, surrogate=bo.ExactGP(kernel))

    opt = fresh()
    asked = advance(opt, 10)
    opt.save(tmp_path / "s")
    again = bo.Optimizer.load(tmp_path / "s", surrogate=bo.ExactGP(kernel))
    assert asked + advance(again, 6) == advance(fresh(), 16)


def test_data_frame_is_given_again(tmp_path: Path) -> None:
    def fresh() -> bo.Optimizer:
        return bo.Optimizer(TABLE, seed=1, n_startup_trials=4)

    opt = fresh()
    asked = advance(opt, 10)
    opt.save(tmp_path / "s")
    with pytest.raises(ArgumentError, match=r"pool: .* pass pool="):
        bo.Optimizer.load(tmp_path / "s")
    with pytest.raises(ArgumentError, match="columns"):
        bo.Optimizer.load(tmp_path / "s", pool=TABLE[["dose"]])
    with pytest.raises(ArgumentError, match="columns"):
        bo.Optimizer.load(tmp_path / "s", pool=POOL)
    assert asked + advance(bo.Optimizer.load(tmp_path / "s", pool=TABLE), 8) == advance(fresh(), 18)


@pytest.mark.parametrize("pool", [pytest.param(POOL, marks=pytest.mark.slow), TABLE], ids=["array", "frame"])
def test_pool_that_changed_keeps_the_encoding_of_the_first(pool: Any, tmp_path: Path) -> None:
    a, b = (bo.Optimizer(pool, seed=1, n_startup_trials=4) for _ in range(2))
    for opt in (a, b):
        advance(opt, 8)
        opt.set_pool(pool[40:80])  # of a smaller range, and with other first categories
        advance(opt, 2)
    a.save(tmp_path / "s")
    again = bo.Optimizer.load(tmp_path / "s", pool=None if isinstance(pool, np.ndarray) else pool[40:80])
    assert again.recommend() == a.recommend()
    assert advance(again, 8) == advance(b, 8)


@pytest.mark.parametrize("name", ["mixed", "grid", "pool"])
def test_constraint_is_given_again(name: str, tmp_path: Path) -> None:
    def feasible(params: Any) -> bool:
        return float(next(iter(params.values()))) * 7.3 % 1.0 > 0.4

    space, options = CASES[name]
    a, b = (bo.Optimizer(space, seed=2, n_startup_trials=4, feasible=feasible, **options) for _ in range(2))
    asked = advance(a, 8)
    a.save(tmp_path / "s")
    assert asked + advance(bo.Optimizer.load(tmp_path / "s", feasible=feasible), 4) == advance(b, 12)


# -- files that are refused ----------------------------------------------------------------------------------------


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


def test_newer_file_is_refused_with_advice(saved: Path) -> None:
    changed(saved, f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StateFileError, match=r"version 2; open it with the version of bkbopt that wrote it"):
        bo.Optimizer.load(saved)


def test_missing_file_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        bo.Optimizer.load(tmp_path / "nowhere")


def test_a_refused_save_leaves_the_old_file(saved: Path) -> None:
    before = saved.read_bytes()
    odd = bo.Optimizer({"x": [object(), object()]}, seed=0)
    custom = bo.Optimizer(BOX, seed=0, beta=lambda context: 2.0)
    for opt, word in ((odd, "choices"), (custom, "beta")):
        with pytest.raises(ArgumentError, match=word):
            opt.save(saved)
    assert saved.read_bytes() == before
