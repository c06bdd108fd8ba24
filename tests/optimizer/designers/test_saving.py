"""Copies of a log: the same asks follow as without the break, bit for bit, in a new process."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import bkbopt as bo
from bkbopt.kernels import rbf
from tests.optimizer.logs_to_save import CASES, POOL, advance, optimizer
from tests.sweeps import slow_but

ROOT = Path(__file__).resolve().parents[3]

#: Cases that the fast suite plays; the others change an option that the file holds as these.
FAST = ("pool", "conditional", "several objectives", "constraints", "box by PKAWV", "fixed")
#: Asks before and after the break: past the start-up, with fits before and after it.
HALF, AFTER = 12, 3


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
        "import json, sys, pathlib\n"
        "import torch, bkbopt as bo\n"
        "from tests.optimizer.logs_to_save import advance\n"
        "torch.set_num_threads(1)\n"
        "paths = sorted(pathlib.Path(sys.argv[1]).glob('*.db'))\n"
        "print(json.dumps({p.stem: advance(bo.Optimizer.load(p), int(sys.argv[2])) for p in paths}))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path), str(AFTER)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout) == expected


@pytest.mark.parametrize("name", slow_but(["mixed", "grid"], CASES))  # the others go through a new process
def test_break_in_the_same_process_changes_no_bit(name: str, tmp_path: Path) -> None:
    opt = optimizer(name)
    advance(opt, HALF)
    opt.save(tmp_path / "s")
    assert advance(bo.Optimizer.load(tmp_path / "s"), AFTER) == advance(opt, AFTER)


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
@pytest.mark.usefixtures("few_draws")
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
    assert asked + advance(opt, AFTER) == advance(optimizer("mixed"), 10 + AFTER)


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


def test_trials_with_nan_as_a_choice_equal_those_that_are_loaded(tmp_path: Path) -> None:
    nans = [float("nan"), np.float32("nan"), np.float64("nan")]
    space = {"k": ["a", nans[0]], "o": bo.Ordinal([1, nans[1]]), "x": bo.Float(0.0, 1.0, when={"k": nans[2]})}
    opt = bo.Optimizer(space, seed=0, storage=tmp_path / "a.db")
    opt.tell({"k": float("nan"), "o": nans[2], "x": 0.5}, 1.0)
    opt.enqueue({"k": float("nan")})
    opt.ask(fixed={"k": nans[2]})
    opt.enqueue({"o": nans[0]})
    opt.save(tmp_path / "b.db")
    for again in (bo.Optimizer.load(tmp_path / "b.db"), bo.Optimizer.open(tmp_path / "a.db")):
        assert again.trials == opt.trials
        assert again.space == opt.space
