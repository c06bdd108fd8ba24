"""Posteriors of all quantities with pending points: starting points of searches, and bounds on the regret."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.posterior.model import Model
from bkbopt.search.criteria.criterion import ACQUISITIONS, Combined
from bkbopt.search.criteria.pareto import SMALLEST
from bkbopt.search.models import N_INCUMBENTS, Known, Posteriors

RNG = np.random.default_rng(0)
X, ELSEWHERE = torch.as_tensor(RNG.random((12, 2))), torch.as_tensor(RNG.random((40, 2)))


def model(seed: int) -> Model:
    gp = bo.ExactGP(bo.kernels.rbf(2, 0.3), noise=1e-2)
    gp.observe(X, np.random.default_rng(seed).standard_normal(len(X)))
    return gp.model


def posteriors(means: Tensor, violation: Tensor, pending: Tensor = X[:0], models: tuple[Model, ...] = ()) -> Posteriors:
    return Posteriors(models, (), (2.0,) * len(models), (), pending, Known(X, means, violation, None))


def test_searches_start_from_the_best_points_that_are_expected_to_be_feasible() -> None:
    means, violation = torch.arange(12.0, dtype=torch.float64)[:, None], torch.zeros(12, dtype=torch.float64)
    assert torch.equal(posteriors(means, violation).incumbents(), X[[11, 10, 9, 8, 7]])
    violation[[11, 9]] = 0.1
    assert torch.equal(posteriors(means, violation).incumbents(), X[[10, 8, 7, 6, 5]])
    assert torch.equal(posteriors(means, violation).incumbents(torch.tensor([9, 0, 3])), X[[3, 0, 9]])
    assert len(posteriors(means, violation).incumbents(torch.arange(N_INCUMBENTS + 1))) == N_INCUMBENTS


def test_a_pending_point_of_several_objectives_leaves_nothing_to_gain_at_its_mean() -> None:
    models = (model(1), model(2))
    means, there = (torch.stack([m(points)[0] for m in models], 1) for points in (X, ELSEWHERE))

    def gain(pending: Tensor) -> Tensor:
        criterion = posteriors(means, torch.zeros(12), pending, models).criterion(
            ACQUISITIONS["ucb"], np.random.default_rng(0)
        )
        assert isinstance(criterion, Combined)
        assert criterion.improvement is not None
        return criterion.improvement(there)

    before = gain(X[:0])
    best = int(before.argmax())
    assert float(before[best]) > math.log(1e-3)
    assert float(gain(ELSEWHERE[[best]])[best]) == math.log(SMALLEST)


@pytest.mark.parametrize("at_random", [True, False])
def test_failing_limits_the_search_unless_a_constant_explains_it_better(at_random: bool) -> None:
    rng = np.random.default_rng(3)
    X = rng.random((300, 2))
    failed = rng.random(300) < 0.2 if at_random else X[:, 0] > 0.8
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    values = [None if f else float(x[0]) for x, f in zip(X, failed, strict=True)]
    opt.tell([{"x": float(x), "y": float(y)} for x, y in X], values, invalid="fail")
    opt.ask()
    designer = opt._core.designer
    posteriors = designer.models.posteriors(torch.zeros(0, 2), None)
    assert posteriors.is_plain == at_random
    failing = designer.models.failing
    assert failing is not None
    assert failing.mark < 300
    # Where it is not used, rows since the last fit are not learnt.
    assert failing.surrogate.observations.total == (failing.mark if at_random else 300)


@pytest.mark.parametrize(
    ("number", "error"), [(-1.0, ArgumentError), (math.nan, ArgumentError), ("2", ArgumentTypeError)]
)
def test_what_a_schedule_of_the_users_own_returns_is_checked_and_a_refused_ask_asks_nothing(
    number: object, error: type[Exception]
) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=2, beta=lambda context: number)
    opt.tell([{"x": 0.2}, {"x": 0.7}], [1.0, 2.0])
    with pytest.raises(error, match=r"^beta: expected a finite number >= 0 from the schedule of beta"):
        opt.ask()
    assert len(opt.trials) == 2
