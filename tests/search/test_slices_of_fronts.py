"""Recommended fronts with fixed values, compared with the means of all points of the slice."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError
from bkbopt.search.criteria.pareto import non_dominated

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0), "day": ["mon", "sat"]}


def losses(p: Any) -> list[float]:
    """The front of a day are the points with x in [0.2, 0.8] on the line y = 0.3 or y = 0."""
    off = (p["y"] - 0.3 * (p["day"] == "mon")) ** 2
    return [(p["x"] - 0.2) ** 2 + off, (p["x"] - 0.8) ** 2 + off]


def points(n: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [{"x": float(x), "y": float(y), "day": SPACE["day"][i % 2]} for i, (x, y) in enumerate(rng.random((n, 2)))]


def told(limit: Any = None, **options: Any) -> bo.Optimizer:
    opt = bo.Optimizer(SPACE, directions=["minimize"] * 2, constraints=["g"] if limit else [], seed=0, **options)
    X = points(40)
    opt.tell(X, [losses(p) for p in X], constraints={"g": [limit(p) for p in X]} if limit else None)
    return opt


@cache
def known() -> bo.Optimizer:
    """An optimizer that was told random points, to be read only."""
    return told()


def test_in_a_box_it_spans_the_trade_off_and_no_point_of_a_dense_sample_dominates_it() -> None:
    opt = known()
    front = opt.recommend_front(fixed={"day": "mon"})
    assert len(front) == 20
    assert {p.params["day"] for p in front} == {"mon"}
    x = [p.params["x"] for p in front]
    assert x == sorted(x)  # the best in the first objective first
    assert (x[0], x[-1]) == pytest.approx((0.2, 0.8), abs=0.02)
    assert max(np.diff(x)) < 0.1
    assert [p.params["y"] for p in front] == pytest.approx([0.3] * 20, abs=0.02)
    means, stds = opt.predict([p.params for p in front])
    assert np.allclose([p.means for p in front], means)
    assert np.allclose([p.stds for p in front], stds)
    sample, _ = opt.predict([{**p, "day": "mon"} for p in points(2_000, seed=1)])
    assert not (sample[:, None] < means[None] - 1e-4).all(2).any()


@pytest.mark.parametrize("kind", ["pool", "grid"])
def test_over_pools_and_grids_it_is_the_front_of_all_means_evaluated_or_not(kind: str) -> None:
    rng = np.random.default_rng(0)
    rows = [{"a": a, "b": b, "k": k} for a in range(9) for b in range(9) for k in ("u", "v")]
    where = pd.DataFrame(rows) if kind == "pool" else {"a": range(9), "b": range(9), "k": ["u", "v"]}
    opt = bo.Optimizer(where, directions=["minimize", "maximize"], seed=0)
    for i in rng.permutation(len(rows))[:40].tolist():
        a, b = rows[i]["a"] / 8, rows[i]["b"] / 8 + 0.2 * (rows[i]["k"] == "u")
        opt.tell(rows[i], [(a - 0.3) ** 2 + b, a - (b - 0.5) ** 2])
    mine = [row for row in rows if row["k"] == "u"]
    means = opt.predict(mine)[0]
    whole = [mine[i] for i in non_dominated(means * [-1.0, 1.0])]
    front = opt.recommend_front(fixed={"k": "u"})
    assert 3 <= len(whole) < 20
    assert [dict(p.params) for p in front] == whole
    assert not all(p.params in [t.params for t in opt.trials] for p in front)
    assert [p.index for p in front] == ([rows.index(row) for row in whole] if kind == "pool" else [None] * len(whole))


def test_a_row_of_a_product_has_its_row_number_and_the_fixed_values() -> None:
    pool = bo.Pool.product({"a": np.linspace(0, 1, 2000), "b": np.linspace(0, 1, 2000), "kind": ["w", "d"]})
    opt = bo.Optimizer(pool, directions=["minimize", "minimize"], seed=0)
    for trial in opt.ask(10):
        a, b = trial.params["a"], trial.params["b"]
        opt.tell(trial, [(a - 0.4) ** 2 + b, (a - 0.6) ** 2 + b])
    front = opt.recommend_front(fixed={"kind": "d"})
    assert {p.params["kind"] for p in front} == {"d"}
    assert opt.predict([{"index": p.index} for p in front])[0] == pytest.approx(np.array([p.means for p in front]))
    assert len({p.index for p in front}) == len(front) > 2


def test_constraints_hold_with_probability_nine_tenths() -> None:
    opt = told(limit=lambda p: p["x"] - 0.5)
    front = opt.recommend_front(fixed={"day": "sat"})
    assert len(front) > 10
    assert opt.feasibility([p.params for p in front]).min() >= 0.895
    assert max(p.params["x"] for p in front) == pytest.approx(0.5, abs=0.01)


def test_without_a_feasible_point_it_has_the_smallest_violation() -> None:
    (point,) = told(limit=lambda p: 2.0 - p["x"]).recommend_front(fixed={"day": "sat"})
    assert point.params["x"] == pytest.approx(1.0, abs=1e-3)


def test_of_a_single_objective_it_is_the_recommended_point() -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    X = points(20)
    opt.tell(X, [losses(p)[0] for p in X])
    (point,), best = opt.recommend_front(fixed={"day": "mon"}), opt.recommend(fixed={"day": "mon"})
    assert (point.params, point.means, point.stds) == (best.params, (best.mean,), (best.std,))


def test_a_fixed_label_gives_the_row_with_the_label() -> None:
    frame = pd.DataFrame({"name": ["p", "q", "r", "s"], "a": [0.0, 0.5, 0.5, 1.0]})
    opt = bo.Optimizer(bo.Pool(frame, id_column="name"), directions=["minimize", "maximize"], seed=0)
    opt.tell_rows(["p", "q", "s"], [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]])
    assert [(p.label, p.index) for p in opt.recommend_front(fixed={"name": "r"})] == [("r", 2)]


def test_without_fixed_values_they_are_evaluated_points() -> None:
    opt = known()
    assert opt.recommend_front(fixed={}) == opt.recommend_front(fixed=None) == opt.recommend_front()
    assert all(p.params in [t.params for t in opt.trials] for p in opt.recommend_front())


@pytest.mark.parametrize("fixed", [{"dy": "mon"}, {"day": "sun"}, {"x": 2.0}, [1]])
def test_refusals_are_those_of_ask(fixed: Any) -> None:
    opt, messages = told(), []
    for call in (opt.recommend_front, opt.ask):
        with pytest.raises((ArgumentError, ArgumentTypeError)) as refused:
            call(fixed=fixed)
        messages.append((type(refused.value), str(refused.value)))
    assert messages[0] == messages[1]


def test_before_the_first_value_and_without_feasible_points_there_is_none() -> None:
    with pytest.raises(NotReadyError, match="recommend_front"):
        bo.Optimizer(SPACE, directions=["minimize"] * 2, seed=0).recommend_front(fixed={"day": "mon"})
    with pytest.raises(ArgumentError, match="fixed: expected values with which some point is feasible"):
        told(feasible=lambda p: p["day"] == "mon").recommend_front(fixed={"day": "sat"})


def test_it_is_the_same_each_time_and_changes_no_later_suggestion() -> None:
    mine, other = told(), told()
    assert mine.recommend_front(fixed={"day": "sat"}) == mine.recommend_front(fixed={"day": "sat"})
    assert mine.ask().params == other.ask().params
