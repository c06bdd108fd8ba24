"""Recommended points with fixed values: the best posterior mean of a slice, compared with all its points."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0), "temp": (10.0, 40.0), "day": ["mon", "sat"]}
CONTEXTS: list[dict[str, Any]] = [{"temp": 25.0, "day": "sat"}, {"temp": 12.5}, {"day": "mon"}, {"x": 0.3, "y": 0.9}]
#: Hyper-parameters that are not fitted, in encoded columns.
GIVEN: dict[str, Any] = {"surrogate": bo.BKB(bo.kernels.matern52(4, 0.5), noise=0.01), "fit": False}


def gain(p: Any) -> float:
    """Where it is largest depends on the context."""
    x, y = (p["temp"] - 10.0) / 30.0, 0.3 + 0.4 * (p["day"] == "sat")
    return float(-((p["x"] - x) ** 2) - 2.0 * (p["y"] - y) ** 2)


def points(n: int, seed: int = 0, **fixed: Any) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    drawn = zip(rng.random(n), rng.random(n), rng.uniform(10.0, 40.0, n), rng.integers(2, size=n), strict=True)
    return [
        {"x": float(x), "y": float(y), "temp": float(t), "day": ["mon", "sat"][day], **fixed} for x, y, t, day in drawn
    ]


def told(n: int = 60, limit: Any = None, **options: Any) -> bo.Optimizer:
    """An optimizer that was told random points, with a constraint if there is a `limit`."""
    names = [] if limit is None else ["g"]
    opt = bo.Optimizer(SPACE, direction="maximize", constraints=names, seed=0, **options)
    rng, X = np.random.default_rng(1), points(n)
    constraints = {} if limit is None else {"g": [limit(p) + 0.05 * rng.standard_normal() for p in X]}
    opt.tell(X, [gain(p) + 0.05 * rng.standard_normal() for p in X], constraints=constraints or None)
    return opt


@cache
def known(*, given: bool = False) -> bo.Optimizer:
    """An optimizer that was told random points, to be read only, with fitted or with given hyper-parameters."""
    return told(**GIVEN) if given else told()


@pytest.mark.parametrize("fixed", CONTEXTS)
def test_in_a_box_no_point_of_a_dense_sample_has_a_better_mean(fixed: dict[str, Any]) -> None:
    opt = known(given=True)
    best = opt.recommend(fixed=fixed)
    assert {name: best.params[name] for name in fixed} == fixed
    mean, std = opt.predict(best.params)
    assert best.mean == pytest.approx(mean[0])
    assert best.std == pytest.approx(std[0])
    sample, _ = opt.predict(points(20_000, seed=2, **fixed))
    assert sample.max() <= best.mean < sample.max() + 0.05


def test_the_optimum_of_a_context_without_values_is_found() -> None:
    best = known().recommend(fixed={"temp": 25.0, "day": "sat"}).params
    assert (best["x"], best["y"]) == pytest.approx((0.5, 0.7), abs=0.1)


def test_a_value_for_every_parameter_leaves_one_point() -> None:
    opt, (point,) = known(given=True), points(1, seed=3)
    best = opt.recommend(fixed=point)
    assert best.params == point
    assert best.mean == pytest.approx(opt.predict(point)[0][0])


def test_on_a_grid_it_is_the_best_point_of_all_evaluated_or_not() -> None:
    opt = bo.Optimizer({"i": range(20), "j": range(20), "k": ["a", "b"]}, seed=0)
    rng = np.random.default_rng(0)
    for i, j, k in rng.integers([20, 20, 2], size=(40, 3)).tolist():
        opt.tell({"i": i, "j": j, "k": "ab"[k]}, (i - 7) ** 2 + (j - 3 - 8 * k) ** 2)
    for fixed in ({"k": "b"}, {"k": "a", "i": 13}, {"j": 19}):
        rows = [{"i": i, "j": j, "k": k, **fixed} for i in range(20) for j in range(20) for k in "ab"]
        best = opt.recommend(fixed=fixed)
        assert best.mean == pytest.approx(opt.predict(rows)[0].min(), rel=1e-9)
        assert best.params in rows


def test_over_a_pool_it_is_the_best_row_with_these_values_evaluated_or_not() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((300, 2)), columns=["u", "v"]).assign(kind=rng.choice(["w", "d"], 300))
    opt = bo.Optimizer(frame, direction="maximize", seed=0)
    values = frame["u"] * frame["v"] + 0.3 * (frame["kind"] == "w")
    opt.tell_rows(range(40), values[:40])
    mean, _ = opt.predict([{"index": row} for row in range(300)])
    chosen = []
    for kind in ("w", "d"):
        rows = np.flatnonzero(frame["kind"] == kind)
        best = opt.recommend(fixed={"kind": kind})
        assert best.index == rows[mean[rows].argmax()]
        assert best.mean == pytest.approx(mean[best.index])
        chosen.append(best.index)
    assert max(chosen) >= 40  # not evaluated
    assert opt.recommend(fixed={"index": 77}).index == 77


def test_of_a_large_product_it_has_the_fixed_values() -> None:
    pool = bo.Pool.product({"a": np.linspace(0, 1, 2000), "b": np.linspace(0, 1, 2000), "kind": ["w", "d"]})
    opt = bo.Optimizer(pool, seed=0)
    for trial in opt.ask(10):
        opt.tell(trial, (trial.params["a"] - 0.4) ** 2 + (trial.params["b"] - 0.6) ** 2)
    best = opt.recommend(fixed={"kind": "d"})
    assert best.params["kind"] == "d"
    others = np.random.default_rng(0).integers(len(opt.pool or ()) // 2, size=2_000) * 2 + 1  # the last part varies
    assert best.mean <= opt.predict([{"index": int(row)} for row in others])[0].min()


@pytest.mark.parametrize("fixed", [{"model": "b"}, {"depth": 3}, {"x": 0.8}])
def test_of_conditional_parameters_the_best_branch_with_the_values_is_taken(fixed: dict[str, Any]) -> None:
    space = {
        "model": ["a", "b"],
        "rate": bo.Float(0.0, 1.0, when={"model": "a"}),
        "depth": bo.Int(1, 9, when={"model": "b"}),
        "x": (0.0, 1.0),
    }
    rng = np.random.default_rng(0)
    sample: list[dict[str, Any]] = [{"model": "a", "rate": r, "x": x} for r, x in rng.random((2000, 2)).tolist()]
    sample += [{"model": "b", "depth": 1 + i % 9, "x": x} for i, x in enumerate(rng.random(2000).tolist())]
    opt = bo.Optimizer(space, seed=0)
    for p in sample[:20] + sample[-20:]:
        cost = (p["rate"] - 0.5) ** 2 if p["model"] == "a" else 0.2 + 0.02 * (p["depth"] - 6) ** 2
        opt.tell(p, cost + (p["x"] - 0.4) ** 2)
    best = opt.recommend(fixed=fixed)
    agreeing = [{**p, **fixed} for p in sample if fixed.keys() <= p.keys() and fixed.get("model") in (None, p["model"])]
    assert {name: best.params[name] for name in fixed} == fixed
    assert best.mean <= opt.predict(agreeing)[0].min() + 1e-9


@pytest.mark.slow
def test_constraints_hold_with_probability_nine_tenths_and_the_mean_is_the_best_of_such_points() -> None:
    opt = told(limit=lambda p: p["x"] + p["y"] - 0.7)
    for fixed in CONTEXTS[:3]:
        best, sample = opt.recommend(fixed=fixed), points(20_000, seed=2, **fixed)
        mean, sure = opt.predict(sample)[0], opt.feasibility(sample) >= 0.9
        assert opt.feasibility(best.params)[0] >= 0.895
        assert mean.max() > mean[sure].max()  # the constraint excludes better means
        # The search may end in another basin that is almost as good.
        assert mean[sure].max() <= best.mean + 0.1 * best.std


def test_without_a_surely_feasible_point_it_is_expected_to_be_feasible() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "day": ["mon", "sat"]}, constraints=["g"], seed=0)
    x = np.linspace(0.0, 1.0, 10).tolist()
    for limit in (-0.5, 0.4):  # a small mean in large noise
        opt.tell([{"x": v, "day": "mon"} for v in x], x, constraints={"g": [limit] * 10})
    probability = opt.feasibility([{"x": v, "day": "mon"} for v in x])
    assert 0.5 < probability.min() <= probability.max() < 0.9
    assert opt.recommend(fixed={"day": "mon"}).params["x"] == pytest.approx(0.0, abs=1e-3)


def test_without_a_feasible_point_it_has_the_smallest_violation() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "day": ["mon", "sat"]}, constraints=["g"], seed=0)
    x = np.linspace(0.0, 1.0, 11)
    opt.tell([{"x": float(v), "day": "mon"} for v in x], x, constraints={"g": 2.0 - x})
    assert opt.recommend(fixed={"day": "mon"}).params["x"] == pytest.approx(1.0, abs=1e-3)


def test_it_keeps_the_distance_from_failed_trials() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, direction="maximize", seed=0)
    for x, y in np.random.default_rng(0).random((40, 2)).tolist():
        if x > 0.6:
            opt.fail(opt.enqueue({"x": x, "y": y}) and opt.ask())
        else:
            opt.tell({"x": x, "y": y}, x)
    assert 0.4 < opt.recommend(fixed={"y": 0.5}).params["x"] < 0.65


def test_stated_constraints_hold_or_the_values_are_refused() -> None:
    opt = told(feasible=lambda p: p["x"] + p["y"] < 0.5)
    best = opt.recommend(fixed={"day": "sat"}).params
    assert best["x"] + best["y"] < 0.5
    grid = bo.Optimizer({"i": range(5), "j": range(5)}, feasible=lambda p: p["i"] + p["j"] < 3, seed=0)
    grid.tell({"i": 0, "j": 0}, 1.0)
    with pytest.raises(ArgumentError, match="fixed: expected values with which some point is feasible"):
        grid.recommend(fixed={"i": 4})


def test_without_fixed_values_it_is_the_best_evaluated_point() -> None:
    opt = known()
    assert opt.recommend(fixed={}) == opt.recommend(fixed=None) == opt.recommend()
    assert opt.recommend().params in [trial.params for trial in opt.trials]


@pytest.mark.parametrize("fixed", [{"tmp": 20.0}, {"temp": 50.0}, {"temp": "hot"}, {"day": "sun"}, [1], "x"])
def test_refusals_are_those_of_ask(fixed: Any) -> None:
    opt = told(5)
    messages = []
    for call in (opt.recommend, opt.ask):
        with pytest.raises((ArgumentError, ArgumentTypeError)) as refused:
            call(fixed=fixed)
        messages.append((type(refused.value), str(refused.value)))
    assert messages[0] == messages[1]


def test_before_the_first_value_there_is_none() -> None:
    with pytest.raises(NotReadyError):
        bo.Optimizer(SPACE, seed=0).recommend(fixed={"temp": 25.0})


@pytest.mark.parametrize("pool", [False, True])
def test_it_changes_no_later_suggestion_and_is_the_same_each_time(pool: bool) -> None:
    where = pd.DataFrame(points(200)) if pool else SPACE
    mine, other = (bo.Optimizer(where, direction="maximize", seed=0, n_startup_trials=5) for _ in range(2))
    for i in range(11):
        trials = mine.ask(), other.ask()
        assert trials[0].params == trials[1].params
        for opt, trial in zip((mine, other), trials, strict=True):
            opt.tell(trial, gain(trial.params))
        if i > 4:
            assert mine.recommend(fixed={"day": "sat"}) == mine.recommend(fixed={"day": "sat"})
    assert mine.recommend(fixed={"day": "mon"}) == other.recommend(fixed={"day": "mon"})
