"""The posterior mean where constraints hold: its scores, its slopes, and which points are feasible enough."""

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import norm

import bkbopt as bo
from bkbopt.posterior.model import Model
from bkbopt.search.criteria.crashes import Crashes
from bkbopt.search.criteria.criterion import Constraint
from bkbopt.search.criteria.expected import PENALTY, Expected
from bkbopt.search.maximizers.ascent import SlopedScore, differentiated
from bkbopt.search.maximizers.pool import PoolMaximizer

KERNEL = bo.kernels.rbf(2, 0.3)
X = torch.as_tensor(np.random.default_rng(9).random((40, 2)))


def model(seed: int) -> Model:
    rng = np.random.default_rng(seed)
    gp = bo.ExactGP(KERNEL, noise=1e-2)
    gp.observe(torch.as_tensor(rng.random((12, 2))), rng.standard_normal(12))
    return gp.model


LIMITS = (Constraint(model(1), -0.2), Constraint(model(2), -0.5))


@pytest.mark.parametrize("sure", [0.9, 0.5])
def test_a_constraint_costs_nothing_exactly_where_its_probability_suffices(sure: float) -> None:
    criterion = Expected.of(model(0), LIMITS, None, 2.0, sure)
    least = sure**0.5 if sure > 0.5 else 0.5  # of each of two constraints
    hold = torch.ones(len(X), dtype=torch.bool)
    for limit in LIMITS:
        mean, variance = limit.model(X)
        hold &= torch.as_tensor(norm.cdf((mean - limit.bound) / variance.sqrt()) >= least)
    assert 0 < int(hold.sum()) < len(X)
    assert torch.equal((criterion.excess(X) == 0.0).all(1), hold)
    mean = model(0)(X)[0]
    torch.testing.assert_close(criterion(X)[hold], mean[hold], rtol=1e-6, atol=1e-9)
    loss = 2.0 * PENALTY * criterion.excess(X).square().sum(1)
    torch.testing.assert_close(criterion(X), mean - loss, rtol=1e-6, atol=1e-6)


def test_slopes_are_those_of_automatic_differentiation() -> None:
    crashes = Crashes(KERNEL, X[:2] + 0.01, X[5:9])
    criterion = Expected.of(model(0), LIMITS, crashes, 1.0, 0.9)
    assert isinstance(criterion, SlopedScore)
    for mine, other in zip(criterion.with_slopes(X), differentiated(criterion, X), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-6)


def test_points_near_failures_do_not_hold() -> None:
    criterion = Expected.of(model(0), (), Crashes(KERNEL, X[:1], X[5:9]), 0.0, 0.5)
    assert not criterion.holds(X[0])
    assert criterion.holds(X[5])
    assert int(criterion(X).argmin()) == 0 or criterion(X)[0] < -1e6


@pytest.mark.parametrize("limits", [(), LIMITS])
def test_the_best_row_is_that_of_all_scores(limits: tuple[Constraint, ...]) -> None:
    criterion = Expected.of(model(0), limits, None, 1.0, 0.9)
    excluded = torch.zeros(len(X), dtype=torch.bool)
    order = criterion(X).argsort(descending=True).tolist()
    excluded[order[2]] = True
    rows = list(itertools.islice(criterion.ranked(PoolMaximizer(X), excluded), 5))
    assert rows == [order[i] for i in (0, 1, 3, 4, 5)]
