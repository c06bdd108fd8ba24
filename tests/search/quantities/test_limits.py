"""The limits of constraints on the standardised scale."""

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.search.quantities.fitting import Fitter, ModelOptions
from bkbopt.search.quantities.limits import Limit
from bkbopt.search.quantities.quantity import Quantity
from tests.search.quantities.made import data, fitted, learnt, rows


@pytest.mark.parametrize(
    ("y", "limit"),
    [
        ([0.0, 0.0, 0.0, 2.0, 3.0, -1.0], Limit(above_zero=2.0)),
        ([0.0, 0.0, 2.0, -1.0], Limit()),
        ([0.0, 0.0, 0.0, -1.0], Limit()),
        ([0.0, 0.0, 0.0], Limit(only_zeros=True)),
        ([0.0, 0.0], Limit()),
    ],
)
def test_the_limit_is_beyond_zero_where_several_values_are_zero(y: list[float], limit: Limit) -> None:
    assert Limit.of(torch.tensor(y, dtype=torch.float64)) == limit


def test_zero_is_where_a_constraint_has_its_limit() -> None:
    X, y = data(40)
    limit = fitted(X, y - 0.7, winsorised=False)
    mean, _ = limit.surrogate.model(X)
    assert torch.equal(mean < limit.zero, limit.predict(X)[0] > 0.0)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_zero_is_not_among_the_values_of_a_limit_that_all_keep_or_miss(side: float) -> None:
    X, y = data(40)
    values = side * (1e6 + y)
    values[3] = side  # far from the others, and nearer to zero
    fitter = Fitter(ModelOptions(bo.ExactGP()), -1.0, winsorised=False, is_limit=True)
    limit = Quantity(fitter, seed=0, stream=0)
    limit.follow(rows(X, values))
    v = learnt(limit)
    # Brought near the others, the far value is still feasible, or still not, and so are all.
    assert limit.zero < float(v.min()) - 1e3 if side < 0.0 else limit.zero > float(v.max()) + 1e3


def test_a_later_value_beyond_the_bounds_of_a_fit_is_on_its_side_of_a_limit_among_zeros() -> None:
    X, _ = data(12)
    values = torch.tensor([0.0, -1e-3] * 5 + [0.0, 1.0], dtype=torch.float64)
    limit = Quantity(Fitter(ModelOptions(bo.ExactGP()), -1.0, winsorised=False, is_limit=True), seed=0, stream=0)
    limit.follow(rows(X, values, first=11))  # the last value is after the fit
    v = learnt(limit)
    assert (v > limit.zero).tolist() == [True] * 11 + [False]


@pytest.mark.parametrize("far", [10.0, 1e3, 1e9])
def test_a_far_value_after_a_fit_leaves_the_other_points_on_their_side_of_a_constraint(far: float) -> None:
    """The constraint holds up to x = 0.5; at x = 1 it is violated by far more than anywhere else."""
    x = np.linspace(0.0, 0.975, 40)
    opt = bo.Optimizer({"x": (0.0, 1.0)}, constraints=["c"], seed=0)
    opt.tell([{"x": each} for each in x.tolist()], (x - 0.3) ** 2, constraints={"c": x - 0.5})
    opt.ask()
    opt.tell({"x": 1.0}, 0.5, constraints={"c": far})
    grid = np.linspace(0.01, 0.99, 99)
    holds = opt.feasibility([{"x": each} for each in grid.tolist()]) > 0.5
    # Without a bound of later values a third of the points change sides.
    assert int((holds != (grid <= 0.5)).sum()) <= 1
