"""Posteriors: samples, joint covariances and gradients against independent computations."""

import numpy as np
import pytest
import torch
from scipy.stats import chi2
from torch import Tensor

from bkbopt import BKB, ExactGP, FourierGP
from bkbopt.kernels import matern52
from bkbopt.posterior.collapsed import collapsed
from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.model import Posterior
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates import Surrogate

KERNEL, NOISE = matern52(2, 0.4, 2.0), 0.05
MAKERS = {
    "exact": lambda: ExactGP(KERNEL, NOISE),
    "bkb": lambda: BKB(KERNEL, NOISE, max_inducing=15),
    "sor": lambda: BKB(KERNEL, NOISE, max_inducing=15, variance="sor"),
    "fourier": lambda: FourierGP(KERNEL, NOISE, n_frequencies=20),
}


def random_points(n: int, seed: int) -> Tensor:
    return torch.as_tensor(np.random.default_rng(seed).random((n, 2)))


@pytest.fixture(params=MAKERS)
def gp(request: pytest.FixtureRequest) -> Surrogate:
    """A surrogate that knows forty points."""
    made: Surrogate = MAKERS[request.param]()
    X = random_points(40, 0)
    made.observe(X, torch.sin(5.0 * X[:, 0]))
    return made


def test_samples_have_the_posteriors_mean_and_covariance(gp: Surrogate) -> None:
    posterior = gp.posterior(random_points(5, 1))
    n = 20_000
    samples = posterior.sample(n, seed=3)
    assert samples.shape == (n, 5)
    L = np.linalg.cholesky(posterior.covariance.numpy() + 1e-12 * np.eye(5))
    white = np.linalg.solve(L, (samples - posterior.mean).numpy().T)
    # White noise: its mean's norm and its covariance's deviation follow laws; these are their far tails.
    assert n * (white.mean(1) ** 2).sum() < chi2.ppf(1.0 - 1e-6, 5)
    np.testing.assert_allclose(np.cov(white), np.eye(5), atol=6.0 * (2.0 / n) ** 0.5)


def test_samples_repeat_with_their_seed_and_only_then(gp: Surrogate) -> None:
    posterior = gp.posterior(random_points(5, 1))
    assert torch.equal(posterior.sample(3, seed=1), posterior.sample(3, seed=1))
    assert not torch.equal(posterior.sample(3, seed=1), posterior.sample(3, seed=2))
    assert not torch.equal(posterior.sample(3), posterior.sample(3))
    assert posterior.sample().shape == (1, 5)


def test_covariance_is_symmetric_positive_and_has_the_variances_on_its_diagonal(gp: Surrogate) -> None:
    X = torch.cat([random_points(60, 1), gp.observations.X[:10], random_points(2, 1)])  # with repeats
    posterior = gp.posterior(X)
    C = posterior.covariance
    np.testing.assert_allclose(C, C.T, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(C.diagonal(), posterior.variance, rtol=0.0, atol=1e-13)
    assert float(torch.linalg.eigvalsh(C)[0]) > -1e-13
    assert float(posterior.variance.min()) >= 0.0
    assert posterior.sample(2, seed=0).shape == (2, 72)


def test_leverage_and_stddev_are_the_variance_in_other_units(gp: Surrogate) -> None:
    posterior = gp.posterior(random_points(5, 1))
    assert isinstance(posterior, Posterior)
    torch.testing.assert_close(posterior.leverage * gp.noise, posterior.variance, rtol=1e-15, atol=0.0)
    torch.testing.assert_close(posterior.stddev**2, posterior.variance, rtol=1e-14, atol=0.0)


def test_posterior_is_differentiable_in_the_points(gp: Surrogate) -> None:
    X = random_points(4, 1).requires_grad_()

    def all_of_it(T: Tensor) -> tuple[Tensor, ...]:
        p = gp.posterior(T)
        return p.mean, p.variance, p.stddev, p.covariance

    assert torch.autograd.gradcheck(all_of_it, (X,))


def test_sample_is_differentiable_in_the_points(gp: Surrogate) -> None:
    X = random_points(2, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda T: gp.posterior(T).sample(2, seed=0), (X,))


def test_collapsed_predictor_is_the_model(gp: Surrogate) -> None:
    X = torch.cat([random_points(60, 1), gp.observations.X, torch.full((1, 2), 30.0).double()])
    for a, b in zip(gp.model.collapse()(X), gp.model(X), strict=True):
        # Its rounding error is relative to the prior variance 2, through a dictionary of condition 1e3.
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-11)


def test_collapsed_predictor_of_a_starved_model_is_the_model() -> None:
    starved = MAKERS["sor"]()
    starved.observe(random_points(40, 0), np.arange(40.0))
    X = random_points(50, 1)
    np.testing.assert_allclose(starved.model.collapse()(X)[1], starved.model(X)[1], rtol=0.0, atol=1e-12)


def test_rounding_beyond_the_prior_explains_no_variance() -> None:
    kernel, lam = matern52(2, 0.5), 0.1
    features = Nystrom.from_points(kernel, random_points(6, 0))
    root = torch.eye(6, dtype=torch.float64) * ((1.0 + 1e-9) / lam) ** 0.5  # V^-1 above I / lam, as by rounding
    X = random_points(20, 1)
    _, variance = collapsed(features, root[0], root, lam)(X)
    np.testing.assert_allclose(variance, kernel.diag(X), rtol=0.0, atol=1e-8)


def repeated(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Thirty values with weights, some of them at one point: points (30, 2), values and weights (30,)."""
    rng = np.random.default_rng(seed)
    X = random_points(24, seed)
    X = torch.cat([X, X[:6]])
    return X, torch.as_tensor(rng.standard_normal(30)), torch.as_tensor(rng.uniform(0.2, 3.0, 30))


@pytest.mark.parametrize("maker", ["exact", "bkb of all points"])
def test_a_value_left_out_is_predicted_as_by_an_exact_gp_without_it(maker: str) -> None:
    X, y, weight = repeated()
    gp: Surrogate = ExactGP(KERNEL, NOISE) if maker == "exact" else BKB(KERNEL, NOISE, qbar=1e9, max_inducing=None)
    gp.observe(X, y, weight)
    mean, variance = gp.model.left_out(X, y, weight, gp.observations)
    for i in range(len(X)):
        rest = torch.arange(len(X)) != i
        other = ExactGP(KERNEL, NOISE)
        other.observe(X[rest], y[rest], weight[rest])
        own_mean, own_variance = other.model(X[i : i + 1])
        assert float(mean[i]) == pytest.approx(float(own_mean), abs=1e-8)
        assert float(variance[i]) == pytest.approx(float(own_variance), rel=1e-8)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("noise", [1e-12, 1e-8, 1.0, 1e8])
def test_a_value_left_out_is_predicted_as_without_it_whether_noise_is_tiny_or_huge(noise: float, size: float) -> None:
    kernel = matern52(2, 0.05)  # the points are far apart: the kernel matrix is well conditioned
    X, y, weight = repeated(2)
    weight = size * weight
    gp = ExactGP(kernel, noise)
    gp.observe(X, y, weight)
    some = torch.arange(0, 30, 3)  # also of points whose other values are not asked for
    mean, variance = gp.model.left_out(X[some], y[some], weight[some], gp.observations)
    for k, i in enumerate(some.tolist()):
        rest, others = torch.arange(len(X)) != i, Observations(2)
        others.add(X[rest], y[rest], weight[rest])
        row, U = kernel(X[i : i + 1], others.X)[0], others.X
        P = torch.linalg.inv(kernel(U, U).diagonal_scatter(1.0 + noise / others.n))
        assert float(mean[k]) == pytest.approx(float(row @ P @ (others.s / others.n)), rel=1e-9, abs=1e-13)
        # The reference is rounded in units of k(x, x) = 1.
        assert float(variance[k]) == pytest.approx(1.0 - float(row @ P @ row), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("maker", ["bkb", "sor", "fourier"])
def test_a_value_left_out_is_predicted_by_ridge_regression_on_the_other_rows_of_the_features(maker: str) -> None:
    X, y, weight = repeated(1)
    gp: Surrogate = MAKERS[maker]()
    gp.observe(X, y, weight)
    Z = gp.model.features(X)
    mean, variance = gp.model.left_out(X, y, weight, gp.observations)
    for i in range(len(X)):
        rest = torch.arange(len(X)) != i
        V = (Z[rest].T * weight[rest]) @ Z[rest] + NOISE * torch.eye(Z.shape[1], dtype=Z.dtype)
        own_mean = Z[i] @ torch.linalg.solve(V, Z[rest].T @ (weight[rest] * y[rest]))
        own_variance = gp.model.features.residual(X, Z)[i] + NOISE * Z[i] @ torch.linalg.solve(V, Z[i])
        assert float(mean[i]) == pytest.approx(float(own_mean), abs=1e-7)
        assert float(variance[i]) == pytest.approx(float(own_variance), rel=1e-7)
