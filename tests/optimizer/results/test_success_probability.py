"""The probability that a trial does not fail."""

from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError, NotReadyError

BOX = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def points_of(X: np.ndarray) -> list[dict[str, float]]:
    return [{"x": float(x), "y": float(y)} for x, y in X]


def told(failed: np.ndarray, X: np.ndarray, **options: Any) -> bo.Optimizer:
    opt = bo.Optimizer(BOX, seed=0, **options)
    opt.tell(points_of(X), [None if f else float(x[0]) for x, f in zip(X, failed, strict=True)], invalid="fail")
    return opt


def test_without_a_failed_trial_success_is_certain() -> None:
    X = np.random.default_rng(0).random((10, 2))
    assert told(np.zeros(10, bool), X).success_probability(points_of(X)).tolist() == [1.0] * 10


def test_most_fresh_points_are_on_the_right_side_of_an_edge_and_all_far_from_it() -> None:
    rng = np.random.default_rng(1)
    X, fresh = rng.random((120, 2)), rng.random((400, 2))
    found = told(X.sum(1) > 1.2, X).success_probability(points_of(fresh))
    distance = 1.2 - fresh.sum(1)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    assert ((found > 0.5) == (distance > 0.0)).mean() > 0.95
    assert ((found > 0.5) == (distance > 0.0))[np.abs(distance) > 0.2].all()


def test_failures_at_random_have_their_share_everywhere() -> None:
    rng = np.random.default_rng(3)
    X = rng.random((300, 2))
    failed = rng.random(300) < 0.2
    found = told(failed, X).success_probability(points_of(rng.random((20, 2))))
    assert found == pytest.approx([1.0 - failed.mean()] * 20, rel=1e-12)


def test_in_a_region_that_fails_now_and_then_it_is_about_the_share_there() -> None:
    rng = np.random.default_rng(4)
    X = rng.random((400, 2))
    rate = np.where(X[:, 0] > 0.5, 0.6, 0.0)
    opt = told(rng.random(400) < rate, X)
    inside = opt.success_probability(points_of(np.column_stack([rng.uniform(0.65, 0.95, 50), rng.random(50)])))
    outside = opt.success_probability(points_of(np.column_stack([rng.uniform(0.05, 0.35, 50), rng.random(50)])))
    # 200 trials in this half: the standard error of a share is 0.035, that of a part of the region larger.
    assert inside.mean() == pytest.approx(0.4, abs=0.1)
    assert outside.mean() == pytest.approx(1.0, abs=0.05)


def test_a_penalty_is_a_failure() -> None:
    X = np.random.default_rng(5).random((40, 2))
    failed = X[:, 0] > 0.7
    values = np.where(failed, 1e10, X[:, 0])
    opt = bo.Optimizer(BOX, seed=0)
    opt.tell(points_of(X), values)
    expected = told(failed, X).success_probability(points_of(X))
    assert opt.success_probability(points_of(X)).tolist() == expected.tolist()


def test_a_lost_trial_has_not_failed() -> None:
    opt = bo.Optimizer(BOX, seed=0)
    opt.tell(points_of(np.random.default_rng(6).random((5, 2))), [0.0, 1.0, 2.0, 3.0, 4.0])
    lost = opt.ask()
    opt.recover(enqueue=True)
    assert opt.success_probability(lost.params).tolist() == [1.0]


def test_constraints_are_another_matter() -> None:
    X = np.random.default_rng(7).random((30, 2))
    opt = bo.Optimizer(BOX, constraints=["c"], seed=0)
    opt.tell(points_of(X), X[:, 0], constraints={"c": X[:, 1] - 0.2})
    assert opt.feasibility({"x": 0.5, "y": 0.9})[0] < 0.01
    assert opt.success_probability({"x": 0.5, "y": 0.9}).tolist() == [1.0]


def test_before_the_first_value_it_is_not_ready() -> None:
    opt = bo.Optimizer(BOX, seed=0)
    opt.fail(opt.ask())
    with pytest.raises(NotReadyError, match="success_probability"):
        opt.success_probability({"x": 0.5, "y": 0.5})


def test_codes_of_no_choice_are_refused() -> None:
    opt = bo.Optimizer({"kind": ["a", "b"]}, seed=0)
    opt.tell([{"kind": "a"}, {"kind": "b"}], [1.0, 2.0])
    with pytest.raises(ArgumentError, match=r"in column 0, got 2\.0 in row 0"):
        opt.success_probability_encoded(torch.tensor([[2.0]]))
