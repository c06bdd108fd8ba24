"""The limits of constraints on the standardised scale."""

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
