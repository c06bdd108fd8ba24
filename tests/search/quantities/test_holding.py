"""Where a constraint holds, by its values."""

from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.search.quantities.holding import at_known, known_points, measured_exactly, violation

X = np.arange(20) / 20


def told(values: Any, **options: Any) -> tuple[bo.Optimizer, Any]:
    """Twenty points on a line, with the values of a constraint at them, and the constraint's model."""
    opt = bo.Optimizer({"x": (0.0, 1.0)}, constraints=["c"], seed=0, **options)
    opt.tell([{"x": float(x)} for x in X], X.tolist(), constraints={"c": values})
    return opt, opt._core.update().models.constraints["c"]


def encoded(opt: bo.Optimizer, points: Any) -> torch.Tensor:
    return opt.encode([{"x": float(x)} for x in points])


def test_exact_values_decide_at_their_points_only() -> None:
    opt, limit = told(X - 0.5, deterministic=True)
    exact, holds = measured_exactly(limit, encoded(opt, [0.5, 0.25, 0.55, 0.51]))
    assert exact.tolist() == [True, True, True, False]
    assert holds.tolist() == [True, True, False, False]
    assert opt.feasibility([{"x": x} for x in (0.5, 0.55)]).tolist() == [1.0, 0.0]
    assert 0.0 < opt.feasibility({"x": 0.5 + 1e-6})[0] < 1.0


def test_of_values_with_noise_none_decides() -> None:
    opt, limit = told(X - 0.5 + 0.1 * np.random.default_rng(0).standard_normal(20))
    exact, holds = measured_exactly(limit, encoded(opt, X))
    assert not exact.any()
    assert not holds.any()


def test_a_violation_is_the_distance_from_the_limit_by_the_exact_values() -> None:
    opt, limit = told(X - 0.5, deterministic=True)
    found = violation(limit, encoded(opt, X))
    expected = np.maximum(X - 0.5, 0.0) / (limit.scaler.unit * limit.scaler.scale)
    assert found.numpy() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_known_points_have_the_number_of_each_objective_or_else_its_mean() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize"] * 2, seed=0, deterministic=True)
    points = [{"x": float(x)} for x in X]
    opt.tell(points, [[x, None] if i % 2 else [None if i % 4 else x, x * x] for i, x in enumerate(X.tolist())])
    first, second = opt._core.update().models.objectives
    known = known_points([first, second])
    assert known[: len(first.surrogate.observations)].tolist() == first.surrogate.observations.X.tolist()
    assert sorted(known.tolist()) == sorted(opt.encode(points).tolist())
    for quantity in (first, second):
        own, found = quantity.fitted, at_known(quantity, known, quantity.fitted)
        rows = [quantity.surrogate.observations.find(x) for x in known]
        assert [found[i] for i, row in enumerate(rows) if row is not None] == [
            own[row] for row in rows if row is not None
        ]
        others = [i for i, row in enumerate(rows) if row is None]
        assert others
        assert torch.equal(found[others], quantity.surrogate.posterior(known[others]).mean)
