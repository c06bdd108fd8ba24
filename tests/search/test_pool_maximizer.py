"""The lazy argmax over a pool is the argmax: compared with full evaluation on the same run."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.errors import SpaceExhaustedError
from bkbopt.posterior.model import Model
from bkbopt.search.acquisition import UCB, LogEI, Thompson
from bkbopt.search.pool_maximizer import MAX_VERSIONS, PoolMaximizer, argmax_of

NONE = torch.zeros(0, 2, dtype=torch.float64)


def full_argmax(X: Tensor, model: Model, beta: float, excluded: Tensor | None = None) -> tuple[int, float]:
    mean, variance = model(X)
    scores = mean + beta * variance.sqrt()
    if excluded is not None:
        scores = scores.masked_fill(excluded, -math.inf)
    return int(scores.argmax()), float(scores.max())


def bump(X: Tensor) -> Tensor:
    return torch.sin(5.0 * X[:, 0]) + torch.cos(4.0 * X[:, 1])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("resample", ["delayed", "every"])
def test_lazy_argmax_equals_full_evaluation_at_every_step(seed: int, resample: str) -> None:
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(rng.random((1500, 2)))
    bkb = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04, resample=resample, seed=seed)
    search = PoolMaximizer(X)
    pending: list[int] = []
    bkb.observe(X[:1], bump(X[:1]))
    for step in range(150 if resample == "delayed" else 40):
        model = bkb.hallucinate(X[pending], NONE, 0.0)
        beta = 1.0 + rng.random()  # changes at every step
        choice = search.argmax(model, beta)
        index, score = full_argmax(X, model, beta)
        assert choice.index == index
        # The same formula on rows in another batch: rounding only.
        assert choice.score == pytest.approx(score, rel=1e-9)
        pending.append(choice.index)
        while len(pending) > step % 4:  # up to three stay pending, told in random order
            i = pending.pop(int(rng.integers(len(pending))))
            bkb.observe(X[[i]], bump(X[[i]]) + 0.2 * float(rng.standard_normal()))


def test_failed_points_lie_to_the_lazy_argmax_and_to_the_full_one_alike() -> None:
    rng = np.random.default_rng(5)
    X = torch.as_tensor(rng.random((500, 2)))
    bkb, search, failed = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04), PoolMaximizer(X), []
    bkb.observe(X[:1], bump(X[:1]))
    for step in range(40):
        model = bkb.hallucinate(NONE, X[failed], -1.0)
        choice = search.argmax(model, 2.0)
        assert choice.index == full_argmax(X, model, 2.0)[0]
        if step % 5 == 4:
            failed.append(choice.index)
        else:
            bkb.observe(X[[choice.index]], bump(X[[choice.index]]))


def test_few_arms_are_computed_again() -> None:
    X = torch.as_tensor(np.random.default_rng(0).random((20_000, 2)))
    bkb, search = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04), PoolMaximizer(X)
    bkb.observe(X[:1], bump(X[:1]))
    steps = 150
    for _ in range(steps):
        choice = search.argmax(bkb.model, 2.0)
        bkb.observe(X[[choice.index]], bump(X[[choice.index]]))
    # A scan a step would be 150 scans and 3,000,000 arms.
    assert search.n_scans < steps / 2
    assert search.n_refreshed / steps < 0.05 * len(X)


def test_versions_are_dropped_before_they_cost_more_than_a_scan() -> None:
    X = torch.as_tensor(np.random.default_rng(0).random((50, 2)))
    bkb, search = bo.BKB(bo.kernels.rbf(2, 5.0), noise=10.0, leverage_budget=1e9), PoolMaximizer(X)
    bkb.observe(X[:1], bump(X[:1]))
    for _ in range(MAX_VERSIONS + 20):
        index = search.argmax(bkb.model, 2.0).index
        assert index == full_argmax(X, bkb.model, 2.0)[0]
        bkb.observe(X[[index]], bump(X[[index]]))
    assert search.n_scans >= 2


def test_ties_go_to_the_lowest_index() -> None:
    X = torch.as_tensor(np.random.default_rng(1).random((30, 2))).repeat(3, 1)  # each arm three times
    gp = bo.ExactGP(bo.kernels.rbf(2, 0.3), noise=0.04)
    gp.observe(X[:5], bump(X[:5]))
    assert PoolMaximizer(X).argmax(gp.model, 2.0).index < 30
    far = torch.full((4, 2), 1e6, dtype=torch.float64)  # prior everywhere: all scores are the same
    assert PoolMaximizer(far).argmax(gp.model, 2.0).index == 0


def test_duplicate_rows_change_nothing_but_the_index() -> None:
    X = torch.as_tensor(np.random.default_rng(2).random((40, 2)))
    double = X.repeat_interleave(2, 0)
    bkb = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04)
    bkb.observe(X[:1], bump(X[:1]))
    one, two = PoolMaximizer(X), PoolMaximizer(double)
    for _ in range(30):
        a, b = one.argmax(bkb.model, 2.0), two.argmax(bkb.model, 2.0)
        assert b.index == 2 * a.index
        bkb.observe(X[[a.index]], bump(X[[a.index]]))


def test_excluded_arms_are_never_chosen() -> None:
    rng = np.random.default_rng(3)
    X = torch.as_tensor(rng.random((60, 2)))
    bkb, search = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04), PoolMaximizer(X)
    bkb.observe(X[:1], bump(X[:1]))
    excluded = torch.zeros(60, dtype=torch.bool)
    for _ in range(60):
        choice = search.argmax(bkb.model, 2.0, excluded)
        assert not excluded[choice.index]
        assert choice.index == full_argmax(X, bkb.model, 2.0, excluded)[0]
        excluded[choice.index] = True
        bkb.observe(X[[choice.index]], bump(X[[choice.index]]))
    with pytest.raises(SpaceExhaustedError, match="all 60 arms"):
        search.argmax(bkb.model, 2.0, excluded)


def test_scan_is_the_model_on_all_rows() -> None:
    X = torch.as_tensor(np.random.default_rng(4).random((3000, 2)))
    for surrogate in (bo.BKB(bo.kernels.matern52(2), noise=0.04), bo.ExactGP(bo.kernels.matern52(2), noise=0.04)):
        surrogate.observe(X[:40], bump(X[:40]))
        mean, variance = PoolMaximizer(X).scan(surrogate.model)
        exact_mean, exact_variance = surrogate.model(X)
        torch.testing.assert_close(mean, exact_mean, rtol=1e-8, atol=1e-8)
        # The collapsed form subtracts from k(x, x) = 1: rounding is relative to that.
        torch.testing.assert_close(variance, exact_variance, rtol=0.0, atol=1e-9)


def test_other_acquisitions_take_the_argmax_of_a_scan() -> None:
    rng = np.random.default_rng(6)
    X = torch.as_tensor(rng.random((200, 2)))
    gp, search = bo.ExactGP(bo.kernels.rbf(2, 0.3), noise=0.04), PoolMaximizer(X)
    gp.observe(X[:10], bump(X[:10]))
    excluded = torch.zeros(200, dtype=torch.bool)
    logei = LogEI(0.5)
    assert argmax_of(search, gp.model, logei, excluded, rng) == int(logei(*gp.model(X)).argmax())
    assert argmax_of(search, gp.model, UCB(2.0), excluded, rng) == full_argmax(X, gp.model, 2.0)[0]
    excluded[:199] = True
    assert argmax_of(search, gp.model, Thompson(), excluded, rng) == 199


def test_thompson_samples_have_the_posterior_moments() -> None:
    rng = np.random.default_rng(7)
    X = torch.as_tensor(rng.random((20, 2)))
    bkb, search = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04), PoolMaximizer(X)
    bkb.observe(X[:8], bump(X[:8]))
    samples = torch.stack([search.thompson(bkb.model, rng) for _ in range(4000)])
    mean, variance = bkb.model(X)
    # Six standard errors of a mean over 4,000 samples, and of their variance.
    assert bool(((samples.mean(0) - mean).abs() <= 6.0 * (variance / 4000).sqrt() + 1e-12).all())
    assert bool(((samples.var(0) - variance).abs() <= 6.0 * variance * (2.0 / 4000) ** 0.5 + 1e-12).all())
