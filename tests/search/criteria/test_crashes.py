"""Exclusion of points near failed trials."""

import math

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.kernels import CallableKernel, Kernel, SumKernel
from bkbopt.search.criteria.acquisition import LogEI
from bkbopt.search.criteria.crashes import CRASH_PENALTY, Crashes
from bkbopt.search.criteria.criterion import Combined, UpperBound

KERNEL = bo.kernels.rbf(2, 0.3)


@pytest.mark.parametrize("gap", [0.04, 0.4])
def test_points_beyond_a_third_of_the_way_to_a_failure_lose_more_than_any_score(gap: float) -> None:
    failures = torch.tensor([[0.4 + gap, 0.5]], dtype=torch.float64)
    known = torch.tensor([[0.2, 0.5], [0.4, 0.5]], dtype=torch.float64)
    crashes = Crashes.among(KERNEL, failures, known)
    way = torch.linspace(-1.0, 2.0, 301).double()
    X = torch.stack([0.4 + gap * way, torch.full((301,), 0.5).double()], 1)
    # Of squared distances, in lengthscales, g2 (1 - 2 way) must be at least 2 log(1 + (1 - exp(-g2 / 2)) / 3).
    g2 = (gap / 0.3) ** 2
    limit = 0.5 - math.log1p(-math.expm1(-0.5 * g2) / 3.0) / g2
    assert limit == pytest.approx(1.0 / 3.0, abs=1e-3) if gap < 0.1 else 0.35 < limit < 0.5
    assert torch.equal(crashes(X), way > limit)
    gp = bo.ExactGP(KERNEL, noise=1e-2)
    gp.observe(X[::25], torch.randn(13, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    with_, without = (Combined([UpperBound.over(gp.model, 2.0)], (), None, LogEI(0.4), c)(X) for c in (crashes, None))
    torch.testing.assert_close(without - with_, CRASH_PENALTY * crashes(X).double(), rtol=1e-9, atol=1e-6)
    assert float(without.max() - without.min()) < CRASH_PENALTY


def test_a_success_opens_the_way_between_it_and_a_failure() -> None:
    failure = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    at = torch.tensor([[0.7, 0.0]], dtype=torch.float64)
    for known, closed in (([[0.0, 0.0]], True), ([[0.0, 0.0], [0.5, 0.0]], False)):
        crashes = Crashes.among(KERNEL, failure, torch.tensor(known, dtype=torch.float64))
        assert bool(crashes(at)) == closed


@pytest.mark.parametrize(
    "kernel", [bo.kernels.matern52(2, 0.3), SumKernel((bo.kernels.matern52(2, 0.5), bo.kernels.matern52(2, 0.1)))]
)
def test_compiled_kernels_exclude_the_same_points_as_others(kernel: Kernel) -> None:
    rng = np.random.default_rng(1)
    failures, known, X = (torch.as_tensor(rng.random((n, 2))) for n in (4, 60, 400))
    foreign = CallableKernel(kernel)
    excluded = Crashes.among(kernel, failures, known)(X)
    assert 10 < int(excluded.sum()) < 390
    assert torch.equal(excluded, Crashes.among(foreign, failures, known)(X))


def test_only_the_successes_nearest_to_failures_are_compared_with() -> None:
    rng = np.random.default_rng(0)
    failures, known = torch.as_tensor(rng.random((3, 2))), torch.as_tensor(rng.random((2000, 2)))
    crashes = Crashes.among(KERNEL, failures, known)
    assert len(crashes.successes) <= 3 * 32
    X = failures + 0.01 * torch.as_tensor(rng.standard_normal((3, 2)))
    assert torch.equal(crashes(X), Crashes(KERNEL, failures, known)(X))


def test_edge_is_approached_in_steps_of_a_third() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=4)
    for _ in range(20):
        trial = opt.ask()
        if trial.params["x"] > 0.6:
            opt.fail(trial)
        else:
            opt.tell(trial, -trial.params["x"])
    assert math.isclose(opt.best_trial.params["x"], 0.6, abs_tol=1e-3)
    assert sum(trial.state == "FAIL" for trial in opt.trials) < 9
