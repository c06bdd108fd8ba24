"""The exact Gaussian process against scikit-learn's and GPyTorch's, and with the data in other orders and groups."""

import gpytorch
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from torch import Tensor

from bkbopt import ExactGP
from bkbopt.kernels import matern52, rbf
from bkbopt.surrogates import exact

LENGTHSCALES, OUTPUTSCALE, NOISE = [0.3, 0.8], 2.0, 0.05
KERNEL = matern52(2, LENGTHSCALES, OUTPUTSCALE)


def data_with_repeats(n: int = 60, unique: int = 25, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`n` evaluations of `unique` points, so that many repeat."""
    rng = np.random.default_rng(seed)
    X = rng.random((unique, 2))[np.append(np.arange(unique), rng.integers(0, unique, n - unique))]
    return X, np.sin(5.0 * X[:, 0]) + X[:, 1] + NOISE**0.5 * rng.standard_normal(n)


def queries(X: np.ndarray) -> np.ndarray:
    """Points between the observed ones, a few observed ones, and one far away."""
    return np.vstack([np.random.default_rng(9).random((30, 2)), X[:5], [[40.0, -3.0]]])


def agree(gp: ExactGP, other: ExactGP, Xs: np.ndarray, tol: float = 1e-10) -> None:
    a, b = gp.posterior(Xs), other.posterior(Xs)
    np.testing.assert_allclose(a.mean, b.mean, rtol=tol, atol=tol)
    np.testing.assert_allclose(a.variance, b.variance, rtol=tol, atol=tol)
    np.testing.assert_allclose(gp.effective_dimension(), other.effective_dimension(), rtol=tol)


@pytest.mark.parametrize("bulk", [True, False])
def test_posterior_is_scikit_learns(bulk: bool) -> None:
    X, y = data_with_repeats()
    gp = ExactGP(KERNEL, NOISE)
    for part in np.array_split(np.arange(60), 1 if bulk else 60):
        gp.observe(X[part], y[part])
    kernel = ConstantKernel(OUTPUTSCALE, "fixed") * Matern(LENGTHSCALES, "fixed", nu=2.5)
    oracle = GaussianProcessRegressor(kernel, alpha=NOISE, optimizer=None).fit(X, y)
    Xs = queries(X)
    mean, covariance = oracle.predict(Xs, return_cov=True)
    posterior = gp.posterior(Xs)
    # Both solve a system of condition 1e3; scikit-learn's has a row for every repeat.
    np.testing.assert_allclose(posterior.mean, mean, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(posterior.covariance, covariance, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(posterior.variance, covariance.diagonal(), rtol=0.0, atol=1e-12)


def test_posterior_is_gpytorchs() -> None:
    X, y = (torch.as_tensor(v) for v in data_with_repeats())

    class Theirs(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(X, y, gpytorch.likelihoods.GaussianLikelihood())
            self.mean_module = gpytorch.means.ZeroMean()
            base = gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=2)
            self.covar_module = gpytorch.kernels.ScaleKernel(base)

        def forward(self, T: Tensor) -> gpytorch.distributions.MultivariateNormal:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(T), self.covar_module(T))

    oracle = Theirs().double()
    oracle.covar_module.base_kernel.lengthscale = torch.tensor(LENGTHSCALES, dtype=torch.float64)
    # Python floats would pass through float32 on their way in.
    oracle.covar_module.outputscale = torch.tensor(OUTPUTSCALE, dtype=torch.float64)
    oracle.likelihood.noise = torch.tensor(NOISE, dtype=torch.float64)
    oracle.eval()
    gp = ExactGP(KERNEL, NOISE)
    gp.observe(X, y)
    Xs = torch.as_tensor(queries(X.numpy()))
    with (
        torch.no_grad(),
        gpytorch.settings.fast_computations(False, False, False),
        gpytorch.settings.skip_posterior_variances(False),
    ):
        expected = oracle(Xs)
    posterior = gp.posterior(Xs)
    np.testing.assert_allclose(posterior.mean, expected.mean, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(posterior.covariance, expected.covariance_matrix, rtol=0.0, atol=1e-11)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.lists(st.integers(1, 12), max_size=8))
def test_any_split_of_the_same_data_gives_the_same_posterior(seed: int, unique: int, sizes: list[int]) -> None:
    X, y = data_with_repeats(60, unique, seed)
    whole, parts = ExactGP(KERNEL, NOISE), ExactGP(KERNEL, NOISE)
    whole.observe(X, y)
    for part in np.split(np.arange(60), np.cumsum(sizes)):
        parts.observe(X[part], y[part])
    agree(parts, whole, queries(X))


def test_order_does_not_matter() -> None:
    X, y = data_with_repeats()
    one, two = ExactGP(KERNEL, NOISE), ExactGP(KERNEL, NOISE)
    one.observe(X, y)
    two.observe(X[::-1], y[::-1])
    agree(one, two, queries(X))


def test_thousand_single_steps_equal_one_factorisation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "REFACTOR_EVERY", 10**9)
    X, y = data_with_repeats(1000, 120)
    steps, whole = ExactGP(KERNEL, NOISE), ExactGP(KERNEL, NOISE)
    whole.observe(X, y)
    for x, v in zip(X, y, strict=True):
        steps.observe(x[None], v)
    agree(steps, whole, queries(X), 1e-9)  # 880 downdates by rank one


def test_steps_are_refactored_on_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "REFACTOR_EVERY", 10)
    X, y = data_with_repeats()
    steps, whole = ExactGP(KERNEL, NOISE), ExactGP(KERNEL, NOISE)
    whole.observe(X, y)
    for x, v in zip(X, y, strict=True):
        steps.observe(x[None], v)
        assert steps._steps <= 10
    agree(steps, whole, queries(X))


def test_fitted_values_are_the_posterior_mean_at_the_observed_points() -> None:
    X, y = data_with_repeats()
    gp = ExactGP(KERNEL, NOISE)
    gp.observe(X, y)
    np.testing.assert_allclose(gp.fitted(), gp.posterior(gp.observations.X).mean, rtol=0.0, atol=1e-12)
    assert torch.equal(gp.inducing, gp.observations.X)


def test_effective_dimension_is_the_trace_over_all_evaluations() -> None:
    X, y = data_with_repeats()
    gp = ExactGP(KERNEL, NOISE)
    gp.observe(X, y)
    K = KERNEL(torch.as_tensor(X), torch.as_tensor(X)).numpy()
    expected = np.trace(np.linalg.solve(K + NOISE * np.eye(60), K))
    assert gp.effective_dimension() == pytest.approx(expected, rel=1e-10)
    leverages = gp.posterior(X).leverage
    assert float(leverages.sum()) == pytest.approx(expected, rel=1e-10)


def test_tiny_noise_interpolates_and_variance_is_never_negative() -> None:
    # Condition number 1e12: single steps must not lose more than a factorisation does.
    rng = np.random.default_rng(0)
    X = rng.random((200, 2))
    y = np.sin(5.0 * X[:, 0])
    steps, whole = (ExactGP(rbf(2, 0.5), 1e-10) for _ in range(2))
    whole.observe(X, y)
    for x, v in zip(X, y, strict=True):
        steps.observe(x[None], v)
    for gp in (steps, whole):
        posterior = gp.posterior(np.vstack([X, rng.random((500, 2))]))
        assert float(posterior.variance.min()) >= 0.0
        np.testing.assert_allclose(posterior.mean[:200], y, rtol=0.0, atol=1e-4)


def test_effective_dimension_is_between_zero_and_the_number_of_values_where_noise_is_below_rounding() -> None:
    X = np.random.default_rng(0).random((80, 1))
    gp = ExactGP(rbf(1, 1.0), 1e-14)
    gp.observe(X, np.sin(X[:, 0]))
    assert 0.0 <= gp.effective_dimension() <= 80.0
