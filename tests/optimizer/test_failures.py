"""Failing trials: the edge of the failing region is found, failed points are not repeated, and all trials may fail."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import SpaceExhaustedError
from tests.optimizer.spaces_to_ask import BOX, POOL, bowl
from tests.sweeps import slow_but


def run(opt: bo.Optimizer, n: int, f: Callable[[Any], float], crashes: Callable[[Any], bool] = lambda p: False) -> None:
    for _ in range(n):
        trial = opt.ask()
        if crashes(trial.params):
            opt.fail(trial)
        else:
            opt.tell(trial, f(trial.params))


def failed(opt: bo.Optimizer) -> list[bo.Trial]:
    return [t for t in opt.trials if t.state == "FAIL"]


@pytest.mark.slow  # the fast suite has a shorter run in tests/search/criteria/test_crashes.py
@pytest.mark.parametrize("seed", range(3))
def test_optimum_at_the_edge_of_a_crash_is_reached(seed: int) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, direction="maximize", seed=seed)
    run(opt, 60, lambda p: p["x"], lambda p: p["x"] > 0.6)
    assert opt.best_trial.value > 0.599
    assert len(failed(opt)) < 30


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_linear_edge_in_two_dimensions_is_reached(seed: int) -> None:
    opt = bo.Optimizer([(0.0, 1.0), (0.0, 1.0)], direction="maximize", seed=seed)
    run(opt, 60, lambda p: p["x0"] + p["x1"], lambda p: p["x0"] + p["x1"] > 1.2)
    assert opt.best_trial.value > 1.19
    # Half of the box crashes, and the edge is long: trials beside it fail, but few where a crash was to be expected.
    far = [t for t in failed(opt) if t.id >= 20 and t.params["x0"] + t.params["x1"] > 1.25]
    assert len(far) <= 8


@pytest.mark.parametrize("surrogate", slow_but(["exact"], ["bkb", "exact", "fourier", "pkawv"]))
def test_most_trials_are_not_spent_where_it_is_known_to_crash(surrogate: str) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, surrogate=surrogate, seed=0, n_startup_trials=5)
    # The optimum would be at 0.3, where runs crash; the edge is the best that there is.
    run(opt, 30, lambda p: (p["x"] - 0.3) ** 2, lambda p: p["x"] < 0.5)
    assert opt.best_trial.params["x"] < 0.53
    assert len(failed(opt)) < 15
    deep = [t for t in failed(opt) if t.id >= 15 and t.params["x"] < 0.4]
    assert len(deep) <= 2


def test_next_point_after_a_failure_is_another() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=5)
    run(opt, 8, lambda p: (p["x"] - 0.3) ** 2)
    a = opt.ask()
    opt.fail(a)
    assert abs(a.params["x"] - opt.ask().params["x"]) > 1e-6


def test_failures_leave_the_model_of_the_values_and_the_results_clean() -> None:
    clean, dirty = (bo.Optimizer(BOX, surrogate="exact", seed=0, n_startup_trials=5) for _ in range(2))
    run(clean, 8, bowl)
    run(dirty, 8, bowl)
    dirty.fail(dirty.ask(3))
    point = {"x": 0.4, "y": 0.1}
    assert dirty.recommend() == clean.recommend()
    assert np.array_equal(dirty.predict([point]), clean.predict([point]))
    assert dirty.surrogate.observations.total == 8
    assert dirty.best_trial.value == clean.best_trial.value


def test_failed_arm_is_not_proposed_again() -> None:
    for space in (POOL[:6], {"n": bo.Int(0, 5)}):
        opt = bo.Optimizer(space, seed=0, n_startup_trials=2)
        gone = opt.fail(opt.ask(3))
        run(opt, 8, lambda p: float(next(iter(p.values()))))
        assert not {tuple(t.params.values()) for t in gone} & {tuple(t.params.values()) for t in opt.trials[3:]}


@pytest.mark.parametrize("id_column", [None, "id"])
def test_a_row_with_the_columns_of_a_failed_one_comes_last_where_each_row_is_asked_once(id_column: str | None) -> None:
    x = np.repeat(np.linspace(0.0, 1.0, 6), 2)
    frame = pd.DataFrame({"x": x, "id": [f"well {i}" for i in range(12)]})
    pool = bo.Pool(frame if id_column else frame[["x"]], id_column=id_column)
    for duplicates, expected in (("avoid", 1), ("allow", 0)):
        opt = bo.Optimizer(pool, duplicates=duplicates, seed=0, n_startup_trials=2)  # type: ignore[arg-type]
        run(opt, 12, lambda p: abs(p["x"] - 0.4), lambda p: p["x"] == 0.4)
        first, *twins = [i for i, trial in enumerate(opt.trials) if trial.params["x"] == 0.4]
        assert len(twins) == expected
        assert first < 6
        assert twins in ([], [11])


def test_everything_may_fail() -> None:
    opt = bo.Optimizer(BOX, seed=0, n_startup_trials=2)
    run(opt, 6, bowl, lambda p: True)
    assert len(failed(opt)) == 6
    pool = bo.Optimizer(POOL[:4], seed=0, n_startup_trials=2)
    run(pool, 4, bowl, lambda p: True)
    with pytest.raises(SpaceExhaustedError, match=r"all 4 arms .* have failed or are infeasible; .* replace=True"):
        pool.ask()


def test_failures_are_learnt_from_past_data_too() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, direction="maximize", seed=0, n_startup_trials=4)
    X = np.linspace(0.0, 1.0, 21)
    opt.tell([{"x": float(x)} for x in X], [None if x > 0.6 else float(x) for x in X], invalid="fail")
    assert all(opt.ask().params["x"] < 0.75 for _ in range(3))


def test_discrete_crashes_cost_one_trial_each_at_most() -> None:
    opt = bo.Optimizer({"n": bo.Int(0, 9), "kind": ["a", "b", "c"]}, seed=0, n_startup_trials=5)
    run(opt, 40, lambda p: float(p["n"]), lambda p: p["kind"] == "b")
    points = [tuple(t.params.values()) for t in failed(opt)]
    assert len(set(points)) == len(points) < 20
    assert opt.best_trial.value == 0.0


def test_branch_that_has_nothing_left_gives_way_to_the_others() -> None:
    opt = bo.Optimizer({"kind": ["a", "b"], "x": bo.Float(0.0, 1.0, when={"kind": "a"})}, seed=0, n_startup_trials=4)
    run(opt, 12, lambda p: p["x"], lambda p: p["kind"] == "b")
    assert sum(t.params["kind"] == "b" for t in opt.trials) == 1


def test_a_trial_that_succeeds_when_it_is_run_again_does_not_contradict_values_without_noise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    opt = bo.Optimizer(BOX, deterministic=True, seed=0)
    run(opt, 12, bowl)
    trial = opt.ask()
    opt.fail(trial)
    opt.tell(dict(trial.params), bowl(trial.params))
    run(opt, 4, bowl)
    assert not caplog.records
