"""What every acquisition function keeps to. A named one joins by itself, other ones by a line in `MORE`."""

from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.search.criteria.acquisition import Acquisition, ClosedFormAcquisition, LogFeasibility
from bkbopt.search.criteria.criterion import ACQUISITIONS


def named() -> dict[str, Acquisition]:
    """The named acquisition functions of mean and variance; sample paths are none."""
    gp = bo.ExactGP(bo.kernels.rbf(1, 0.3), noise=0.1)
    gp.observe([[0.0], [1.0]], [0.0, 0.4])
    built: dict[str, Any] = {
        name: rule.build(gp.model, 1.5, 0.3, np.random.default_rng(0)) for name, rule in ACQUISITIONS.items()
    }
    return {name: one.acquisition for name, one in built.items() if hasattr(one, "acquisition")}


MORE: dict[str, Acquisition] = {"feasibility": LogFeasibility(0.3)}
EVERY = named() | MORE


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
        return  # the search then differentiates automatically
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
