"""What every acquisition function keeps to, and every rule. A named one joins by itself, others by a line in `MORE`."""

from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.posterior.model import Model
from bkbopt.search.criteria import acquisition as acquisitions
from bkbopt.search.criteria.acquisition import UCB, Acquisition, ClosedFormAcquisition, LogFeasibility, LogGain
from bkbopt.search.criteria.criterion import ACQUISITIONS, AcquisitionRule, Criterion
from bkbopt.search.maximizers.pool import PoolMaximizer
from tests.conformance.suites import check_complete, classes


def model(n: int = 2) -> Model:
    """A posterior of `n` values."""
    gp = bo.ExactGP(bo.kernels.rbf(1, 0.3), noise=0.1)
    X = np.linspace(0.0, 1.0, n)[:, None]
    gp.observe(X, 0.4 * X[:, 0])
    return gp.model


def named() -> dict[str, Acquisition]:
    """The named acquisition functions of mean and variance, by the names of their rules."""
    built: dict[str, Any] = {
        name: rule.build(model(), 1.5, 0.3, np.random.default_rng(0)) for name, rule in ACQUISITIONS.items()
    }
    return {name: one.acquisition for name, one in built.items() if hasattr(one, "acquisition")}


#: Rules without an acquisition function; the tests of rules below take all of them.
NO_FUNCTION = {"thompson": "a score is a value of a sample path, which does not follow from mean and variance"}
MORE: dict[str, Acquisition] = {"feasibility": LogFeasibility(0.3), "gain": LogGain(UCB(1.5), 0.3)}
EVERY = named() | MORE
EXEMPT = {"CheckedAcquisition": "its scores are those of the user's function, which need not rise or have slopes"}


def test_every_rule_has_an_acquisition_function_or_a_reason_to_have_none() -> None:
    check_complete(ACQUISITIONS, named(), NO_FUNCTION)


def test_every_public_acquisition_function_is_a_subject_or_exempt() -> None:
    public = {cls.__name__ for cls in classes() if cls.__module__ == acquisitions.__name__}
    check_complete(public & {*acquisitions.__all__}, {type(one).__name__ for one in EVERY.values()}, EXEMPT)


@pytest.fixture(params=EVERY)
def acquisition(request: pytest.FixtureRequest) -> Acquisition:
    return EVERY[request.param]


def candidates() -> tuple[torch.Tensor, torch.Tensor]:
    mean = torch.linspace(-60.0, 3.0, 40, dtype=torch.float64)
    return mean, torch.logspace(-3.0, 1.0, 40, dtype=torch.float64).flip(0)


def test_a_score_is_that_of_its_candidate_alone(acquisition: Acquisition) -> None:
    mean, variance = candidates()
    scores = acquisition(mean, variance)
    assert scores.shape == (40,)
    assert scores.dtype == torch.float64
    # Pools are scored in blocks, and boxes from several starts at once; vectorised loops round by a few units more.
    alone = torch.cat([acquisition(mean[i : i + 1], variance[i : i + 1]) for i in range(40)])
    torch.testing.assert_close(alone, scores, rtol=1e-13, atol=0.0)


def test_a_score_rises_with_the_mean(acquisition: Acquisition) -> None:
    mean = torch.linspace(-3.0, 3.0, 50, dtype=torch.float64)
    assert bool((acquisition(mean, torch.full_like(mean, 0.5)).diff() > 0.0).all())


def test_scores_and_gradients_are_finite_where_the_variance_is_zero(acquisition: Acquisition) -> None:
    for m in (-1.0, 0.0, 1.0):
        mean = torch.tensor([m], dtype=torch.float64, requires_grad=True)
        variance = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        value = acquisition(mean, variance)
        gradients = torch.autograd.grad(value.sum(), (mean, variance))
        assert bool(torch.isfinite(value).all())
        assert all(bool(torch.isfinite(g).all()) for g in gradients)


def test_gradients_are_those_of_finite_differences(acquisition: Acquisition) -> None:
    mean = torch.tensor([-3.0, -0.5, 0.4, 2.0], dtype=torch.float64, requires_grad=True)
    variance = torch.tensor([0.5, 1.0, 2.0, 0.1], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(acquisition, (mean, variance))


def test_slopes_in_closed_form_are_those_of_automatic_differentiation(acquisition: Acquisition) -> None:
    if not isinstance(acquisition, ClosedFormAcquisition):
        pytest.skip("no slopes in closed form: the search differentiates automatically")
    mean, variance = (v.requires_grad_() for v in candidates())
    expected = torch.autograd.grad(acquisition(mean, variance).sum(), (mean, variance))
    scores, *slopes = acquisition.with_slopes(mean.detach(), variance.detach())
    assert torch.equal(scores, acquisition(mean, variance).detach())
    # Below e = -1 autograd differentiates a formula with a few digits less.
    torch.testing.assert_close(slopes, [*expected], rtol=1e-7, atol=1e-12)
    for part in acquisition.with_slopes(torch.tensor([0.0, 1.0]).double(), torch.zeros(2).double()):
        assert bool(torch.isfinite(part).all())


def test_an_optimizer_takes_the_arm_with_the_largest_score(acquisition: Acquisition) -> None:
    X = np.random.default_rng(0).random((60, 2))
    gp = bo.ExactGP(bo.kernels.matern52(2, 0.4), noise=0.05)
    options = {"surrogate": gp, "fit": False, "n_startup_trials": 3, "seed": 0, "direction": "maximize"}
    opt = bo.Optimizer(X, acquisition=acquisition, **options)  # type: ignore[arg-type]
    for _ in range(6):
        trial = opt.ask()
        assert trial.index is not None
        opt.tell(trial, float(np.sin(5.0 * X[trial.index, 0])))
    told = [trial.index for trial in opt.trials]
    gp.observe(X[told], [float(np.sin(5.0 * X[i, 0])) for i in told])
    posterior = gp.posterior(X)
    assert opt.ask().index == int(acquisition(posterior.mean, posterior.variance).argmax())


# -- rules -----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=ACQUISITIONS)
def rule(request: pytest.FixtureRequest) -> AcquisitionRule:
    return ACQUISITIONS[request.param]


POINTS = torch.as_tensor(np.random.default_rng(5).random((30, 1)))


def built(rule: AcquisitionRule, seed: int = 0) -> Criterion:
    return rule.build(model(12), 1.5, 0.3, np.random.default_rng(seed))


def test_a_criterion_is_one_function_wherever_it_is_asked(rule: AcquisitionRule) -> None:
    criterion = built(rule)
    whole = criterion(POINTS)
    # Products of other shapes round differently.
    torch.testing.assert_close(torch.cat([criterion(POINTS[:3]), criterion(POINTS[3:])]), whole, rtol=0.0, atol=1e-9)


def test_criteria_differ_by_their_random_numbers_where_the_rule_says_so(rule: AcquisitionRule) -> None:
    scores = built(rule)(POINTS)
    assert torch.equal(built(rule)(POINTS), scores)
    assert torch.equal(built(rule, seed=1)(POINTS), scores) is not rule.is_random


def test_rows_that_are_not_closed_come_once_each_in_the_same_order(rule: AcquisitionRule) -> None:
    closed = torch.arange(len(POINTS)) % 4 == 1
    rows = list(built(rule).ranked(PoolMaximizer(POINTS), closed.clone()))
    assert sorted(rows) == (~closed).nonzero()[:, 0].tolist()
    assert rows == list(built(rule).ranked(PoolMaximizer(POINTS), closed.clone()))
    if not rule.is_random:
        assert bool((built(rule)(POINTS)[rows].diff() < 1e-9).all())
