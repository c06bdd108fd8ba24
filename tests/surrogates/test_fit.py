"""Hyper-parameters: likelihoods and gradients against scikit-learn's, and recovery."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from torch import Tensor

from bkbopt.kernels import ARDKernel, CallableKernel, matern52, rbf
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.fit import (
    GIVEN_UP_AFTER,
    FitSettings,
    constant_mean,
    fit_from,
    fit_hyperparameters,
    gain_over_constant,
    log_marginal_likelihood,
)
from bkbopt.surrogates.fit_data import FitData

LENGTHSCALES, OUTPUTSCALE, NOISE = [0.3, 0.8], 2.0, 0.05
KERNEL = matern52(2, LENGTHSCALES, OUTPUTSCALE)


def data_with_repeats(n: int = 60, unique: int = 25, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((unique, 2))[np.append(np.arange(unique), rng.integers(0, unique, n - unique))]
    return X, np.sin(5.0 * X[:, 0]) + X[:, 1] + NOISE**0.5 * rng.standard_normal(n)


def observed(X: np.ndarray, y: np.ndarray) -> Observations:
    obs = Observations(X.shape[1])
    obs.add(torch.as_tensor(X), torch.as_tensor(y))
    return obs


def likelihood(obs: Observations, kernel: ARDKernel, lam: Tensor) -> Tensor:
    return log_marginal_likelihood(FitData.of(obs), kernel, lam)


@pytest.mark.parametrize("unique", [60, 25, 1])
def test_log_marginal_likelihood_and_its_gradient_are_scikit_learns(unique: int) -> None:
    X, y = data_with_repeats(60, unique)
    # scikit-learn has a row for every repeat; ours has counts.
    oracle = GaussianProcessRegressor(
        ConstantKernel(OUTPUTSCALE) * Matern(LENGTHSCALES, nu=2.5) + WhiteKernel(NOISE), alpha=0.0, optimizer=None
    ).fit(X, y)
    expected, gradient = oracle.log_marginal_likelihood(oracle.kernel_.theta, eval_gradient=True)
    t = torch.cat([KERNEL.theta, torch.tensor([math.log(NOISE)], dtype=torch.float64)]).requires_grad_()
    value = likelihood(observed(X, y), KERNEL.with_theta(t[:3]), t[3].exp())
    assert value.item() == pytest.approx(float(expected), rel=1e-11)
    (ours,) = torch.autograd.grad(value, t)
    # Theirs is ordered: outputscale, lengthscales, noise.
    np.testing.assert_allclose(ours[[2, 0, 1, 3]], gradient, rtol=1e-9, atol=1e-9)


def test_weighted_values_have_the_likelihood_of_their_noise() -> None:
    X, y = data_with_repeats(20, 12)
    weight = np.random.default_rng(3).uniform(0.2, 5.0, 20)
    obs = Observations(2)
    obs.add(torch.as_tensor(X), torch.as_tensor(y), torch.as_tensor(weight))
    C = KERNEL(torch.as_tensor(X), torch.as_tensor(X)).numpy() + NOISE * np.diag(1.0 / weight)
    expected = -0.5 * (y @ np.linalg.solve(C, y) + np.linalg.slogdet(C)[1] + 20 * math.log(2.0 * math.pi))
    expected -= 0.5 * np.log(weight).sum()  # a constant that no hyper-parameter changes
    assert float(likelihood(obs, KERNEL, torch.tensor(NOISE))) == pytest.approx(float(expected), rel=1e-6)


def test_gain_over_a_constant_is_the_difference_of_two_normal_densities() -> None:
    X, y = data_with_repeats(30, 20)
    C = KERNEL(torch.as_tensor(X), torch.as_tensor(X)).numpy() + NOISE * np.eye(30)
    # The best constant mean under its standard normal prior, whose log density at zero is left out.
    c = np.linspace(-3, 3, 6001)
    explained = (multivariate_normal.logpdf(y - c[:, None], np.zeros(30), C) - 0.5 * c * c).max()
    constant = norm.logpdf(y, y.mean(), y.std()).sum()
    # The grid of means is 1e-3 wide, which costs less than 1e-6 / 2 times the precision of the mean, here below 10.
    assert gain_over_constant(observed(X, y), KERNEL, NOISE) == pytest.approx(explained - constant, abs=5e-6)


def test_gradients_are_those_of_finite_differences() -> None:
    X, y = data_with_repeats(20, 12)
    obs = observed(X, y)
    t = torch.cat([KERNEL.theta, torch.tensor([math.log(NOISE)], dtype=torch.float64)]).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: likelihood(obs, KERNEL.with_theta(v[:3]), v[3].exp()), (t,))


def drawn_from_a_gp(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """n values of a GP with the lengthscales 0.2 and 1.5, outputscale 1, noise 0.02."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    T = torch.as_tensor(X)
    K = matern52(2, [0.2, 1.5])(T, T).numpy() + 0.02 * np.eye(n)
    return X, np.linalg.cholesky(K) @ rng.standard_normal(n)


def test_fit_recovers_the_hyperparameters_of_a_known_gp() -> None:
    for seed in range(2):
        X, y = drawn_from_a_gp(250, seed)
        kernel, noise = fit_hyperparameters(observed(X, y), matern52(2), 1e-2)
        assert isinstance(kernel, ARDKernel)
        # 250 noisy values of one function pin these down to a few tens of per cent.
        ratio = kernel.lengthscale / torch.tensor([0.2, 1.5], dtype=torch.float64)
        assert 0.6 < float(ratio[0]) < 1.7
        assert 0.5 < float(ratio[1]) < 2.0
        assert 0.75 * 0.02 < noise < 1.35 * 0.02


def test_fit_raises_the_log_posterior_and_ends_at_a_stationary_point() -> None:
    X, y = drawn_from_a_gp(80, 1)
    obs = observed(X, y)
    settings = FitSettings(max_iterations=200)

    def log_posterior(t: Tensor) -> Tensor:
        at = matern52(2).with_theta(t[:3])
        prior = (t[3] - settings.noise_loc) ** 2 / (2.0 * settings.noise_scale**2)
        return likelihood(obs, at, t[3].exp()) + at.log_prior() - prior

    kernel, noise = fit_hyperparameters(obs, matern52(2), 1e-2, settings=settings)
    assert isinstance(kernel, ARDKernel)
    t = torch.cat([kernel.theta, torch.tensor([math.log(noise)], dtype=torch.float64)]).requires_grad_()
    value = log_posterior(t)
    (gradient,) = torch.autograd.grad(value, t)
    assert float(gradient.abs().max()) < 0.05  # L-BFGS-B stops at a relative gain of 2e-9
    start = torch.cat([matern52(2).theta, torch.tensor([math.log(1e-2)], dtype=torch.float64)])
    assert value.item() > log_posterior(start).item() + 1.0


def test_fit_below_the_required_log_posterior_is_given_up_after_some_iterations() -> None:
    X = np.random.default_rng(0).random((80, 6))
    data = FitData.of(observed(X, np.sin(5.0 * X @ np.arange(6.0))))

    def value(settings: FitSettings) -> float:
        return fit_from(data, matern52(6, 0.05), 1.0, settings=settings).value

    whole, short = value(FitSettings()), value(FitSettings(max_iterations=GIVEN_UP_AFTER))
    assert short < whole
    assert value(FitSettings(least=short + 1e-9)) == short
    assert value(FitSettings(least=short)) == whole


def test_fixed_noise_stays() -> None:
    X, y = drawn_from_a_gp(60, 0)
    kernel, noise = fit_hyperparameters(observed(X, y), matern52(2), 0.123, fit_noise=False)
    assert noise == 0.123
    assert isinstance(kernel, ARDKernel)
    assert not torch.equal(kernel.theta, matern52(2).theta)


def test_noise_alone_is_fitted_where_the_kernel_has_no_hyperparameters() -> None:
    X, y = drawn_from_a_gp(200, 0)
    fixed = CallableKernel(matern52(2, [0.2, 1.5]))
    kernel, noise = fit_hyperparameters(observed(X, y), fixed, 1.0)
    assert kernel is fixed
    assert 0.75 * 0.02 < noise < 1.35 * 0.02
    assert fit_hyperparameters(observed(X, y), fixed, 1.0, fit_noise=False) == (fixed, 1.0)


def test_nothing_is_fitted_without_data() -> None:
    kernel = matern52(2)
    assert fit_hyperparameters(Observations(2), kernel, 0.5) == (kernel, 0.5)


def test_repeats_inform_the_noise() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((4, 2)), 200, axis=0)
    y = np.repeat([1.0, -1.0, 0.3, 0.0], 200) + 0.3 * rng.standard_normal(800)
    _, noise = fit_hyperparameters(observed(X, y), matern52(2), 1e-3)
    assert noise == pytest.approx(0.09, rel=0.15)  # 796 degrees of freedom: 5 % is one standard deviation


def test_large_data_are_subsampled_by_the_given_generator_alone() -> None:
    X, y = data_with_repeats(400, 300)
    small = FitSettings(max_points=100, max_iterations=5)
    fits = [
        fit_hyperparameters(observed(X, y), rbf(2), 0.1, rng=np.random.default_rng(seed), settings=small)
        for seed in (1, 1, 2)
    ]
    thetas = [kernel.theta for kernel, _ in fits]  # type: ignore[attr-defined]
    assert torch.equal(thetas[0], thetas[1])
    assert fits[0][1] == fits[1][1]
    assert not torch.equal(thetas[0], thetas[2])


def test_repeats_in_a_subset_inform_the_noise_as_those_of_all() -> None:
    X = np.random.default_rng(0).random((300, 2))
    spread = (NOISE / 2.0) ** 0.5  # two values a point, with a sample variance of NOISE
    y = np.sin(5.0 * X[:, 0]) + X[:, 1]
    obs = observed(np.concatenate([X, X]), np.concatenate([y - spread, y + spread]))
    fixed = CallableKernel(KERNEL)
    few, every = (fit_hyperparameters(obs, fixed, 1.0, settings=FitSettings(max_points=most))[1] for most in (60, 300))
    assert few == pytest.approx(every, rel=0.3)  # the prior weighs more on few


def test_constant_mean_is_that_of_a_normal_prior() -> None:
    X, y = data_with_repeats(20, 12)
    C = KERNEL(torch.as_tensor(X), torch.as_tensor(X)).numpy() + NOISE * np.eye(20)
    one = np.linalg.solve(C, np.ones(20))
    for precision in (1.0, 25.0):
        mean = constant_mean(observed(X, y + 2.0), KERNEL, NOISE, settings=FitSettings(mean_precision=precision))
        assert mean == pytest.approx(float(one @ (y + 2.0) / (one.sum() + precision)), rel=1e-9)


@pytest.mark.parametrize("y", [np.zeros(12), np.full(12, 3.0)])
def test_constant_values_fit_to_something_finite(y: np.ndarray) -> None:
    X = np.random.default_rng(0).random((12, 2))
    kernel, noise = fit_hyperparameters(observed(X, y), matern52(2), 1e-2)
    assert isinstance(kernel, ARDKernel)
    assert bool(torch.isfinite(kernel.theta).all())
    assert 1e-8 <= noise <= 10.0


def test_no_gradients_are_left_behind_and_the_grad_mode_is_restored() -> None:
    X, y = data_with_repeats()
    with torch.no_grad():
        kernel, _ = fit_hyperparameters(observed(X, y), matern52(2), 1e-2)
        assert not torch.is_grad_enabled()
    assert not kernel.theta.requires_grad  # type: ignore[attr-defined]
