"""Sample paths: their mean and covariance are the posterior's, whatever its features, and they are functions."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.kernels import (
    CallableKernel,
    ColumnsKernel,
    Kernel,
    RotatedKernel,
    ScaledKernel,
    SphericalKernel,
    SumKernel,
    matern52,
    rbf,
)
from bkbopt.posterior import paths
from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.paths import draw_paths, prior_features
from tests.sweeps import sweep

MIXED = matern52(3, [0.4, 0.8], 1.5, categorical=[1])
#: Of the first and the last column; the one in between holds categories.
TURNED = torch.tensor([[0.6, 0.0, -0.8], [0.0, 1.0, 0.0], [0.8, 0.0, 0.6]], dtype=torch.float64)
TREND = SumKernel((MIXED, SphericalKernel.start(3, [1])))
STRUCTURED = SumKernel((RotatedKernel(MIXED, TURNED), ColumnsKernel.start(3, [1])))


def points(n: int, seed: int) -> Tensor:
    rng = np.random.default_rng(seed)
    return torch.as_tensor(np.stack([rng.random(n), rng.integers(0, 3, n), rng.random(n)], 1))


def trained(surrogate: Any) -> Any:
    X = points(60, 0)
    surrogate.observe(X, torch.sin(5.0 * X[:, 0]) + X[:, 1])
    surrogate.observe(X[:20], torch.sin(5.0 * X[:20, 0]) + X[:20, 1])
    return surrogate


SURROGATES = {
    "exact": lambda: bo.ExactGP(MIXED, 0.05),
    "exact, nearly without noise": lambda: bo.ExactGP(MIXED, 1e-8),
    "bkb": lambda: bo.BKB(MIXED, 0.05),
    "bkb of few inducing points": lambda: bo.BKB(MIXED, 0.05, max_inducing=15),
    "bkb without the residual": lambda: bo.BKB(MIXED, 0.05, max_inducing=15, variance="sor"),
    "scaled": lambda: bo.ExactGP(ScaledKernel(MIXED, torch.tensor(2.0).double().log()), 0.05),
    "structured": lambda: bo.BKB(STRUCTURED, 0.05),
    "stationary, beside a trend": lambda: bo.BKB(TREND, 0.05),
    "spherical": lambda: bo.BKB(SphericalKernel.start(3, [1]), 0.05),
    "foreign kernel": lambda: bo.ExactGP(CallableKernel(MIXED), 0.05),
    "fourier": lambda: bo.FourierGP(MIXED, 0.05, n_frequencies=20),
}


@pytest.mark.parametrize(("name", "pending"), sweep(SURROGATES, [0, 3]))
def test_draws_have_mean_and_covariance_of_the_posterior(name: str, pending: int) -> None:
    surrogate, X = trained(SURROGATES[name]()), points(8, 1)
    model = surrogate.fantasy(points(pending, 2)) if pending else surrogate.model
    # Each draw has frequencies of its own, so that their error averages out as well.
    draws = torch.cat([draw_paths(model, X, np.random.default_rng(i), 2, 100)(X).T for i in range(300)])
    mean, C = model(X)[0], model.covariance(X)
    v = C.diagonal()
    # Six standard errors over the 300 pairs of draws, which share their frequencies.
    assert bool(((draws.mean(0) - mean).abs() <= 6.0 * (v / 300).sqrt() + 1e-9).all())
    assert bool(((torch.cov(draws.T) - C).abs() <= 6.0 * ((torch.outer(v, v) + C**2) / 300).sqrt() + 1e-9).all())


@pytest.mark.parametrize("form", ["matern12", "matern32", "matern52", "rbf"])
def test_prior_features_of_mixed_columns_come_near_the_kernel(form: str) -> None:
    kernel = bo.kernels.ARDKernel(
        MIXED.log_lengthscale, MIXED.log_outputscale, MIXED.log_hamming, MIXED.categorical, form
    )
    X = points(30, 3)
    Z = prior_features(kernel, X, X, np.random.default_rng(0), 40_000)(X)
    # Five standard deviations of a mean of so many cosines, each with a weight of at most 2, times k(x, x) = 1.5.
    np.testing.assert_allclose(Z @ Z.T, kernel(X, X), rtol=0.0, atol=1.5 * 5.0 / 40_000**0.5)


def test_prior_features_of_a_sum_over_columns_leave_out_inactive_ones() -> None:
    without, with_one = ColumnsKernel.start(2, [1]), ColumnsKernel.start(3, [2], inactive=[0])
    X = points(10, 3)[:, :2].round()
    longer = torch.cat([torch.ones(10, 1, dtype=torch.float64), X], 1)
    Z, longer_Z = (
        prior_features(kernel, table, table, np.random.default_rng(0), 100)(table)
        for kernel, table in ((without, X), (with_one, longer))
    )
    assert torch.equal(Z, longer_Z)


def test_paths_keep_the_variance_that_little_noise_and_many_points_leave() -> None:
    """Plain random frequencies have 0.2 of it here: see `WideFourier`."""
    X = torch.as_tensor(np.random.default_rng(0).random((300, 2)))
    gp, elsewhere = bo.ExactGP(matern52(2, 0.4), 1e-6), torch.as_tensor(np.random.default_rng(1).random((200, 2)))
    gp.observe(X, torch.sin(5.0 * X[:, 0]))
    drawn = torch.cat([draw_paths(gp.model, X, np.random.default_rng(i), 100)(elsewhere).T for i in range(6)])
    ratio = float((drawn.var(0) / gp.model(elsewhere)[1]).mean())
    # One draw of the frequencies scatters by 0.16 around 1: six by 0.07.
    assert 0.7 < ratio < 1.3


def test_a_foreign_kernel_is_drawn_in_the_span_of_some_points(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel: Kernel = CallableKernel(rbf(3, 0.5))
    monkeypatch.setattr(paths, "N_SPANNING", 10)
    X, S = points(40, 4), points(5, 8)
    features = prior_features(kernel, S, X, np.random.default_rng(0))
    assert isinstance(features, Nystrom)
    assert len(features.S) == 15
    residual = features.residual(X, features(X))
    # Rounding of a thin root of a smooth kernel.
    assert int((residual < 1e-6).sum()) >= 10
    assert float(features.residual(S, features(S)).max()) < 1e-6


def test_each_takes_one_path_a_point() -> None:
    model, X = trained(bo.BKB(MIXED, 0.05)).model, points(9, 5)
    drawn, path = draw_paths(model, X, np.random.default_rng(0), 4), torch.tensor([0, 1, 2, 3, 3, 2, 1, 0, 0])
    expected = drawn(X)[torch.arange(9), path]
    torch.testing.assert_close(drawn.each(X, path), expected, rtol=0.0, atol=1e-9)  # sums in another order


def test_paths_are_differentiable() -> None:
    drawn = draw_paths(trained(bo.BKB(MIXED, 0.05)).model, points(3, 6), np.random.default_rng(0))
    X = points(3, 6).requires_grad_()
    (gradient,) = torch.autograd.grad(drawn(X).sum(), X)
    step = torch.zeros(3, 3, dtype=torch.float64).index_fill_(1, torch.tensor([0]), 1e-6)
    with torch.no_grad():
        slope = (drawn(X + step) - drawn(X - step))[:, 0] / 2e-6
    # Central differences of values of size one are good to 1e-9 or so; weights of the correction enlarge rounding.
    torch.testing.assert_close(gradient[:, 0], slope, rtol=1e-4, atol=1e-5)
