"""Known noise: a value of weight a is the mean of a values, and one whose noise has the variance lam / a."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from bkbopt import BKB, ExactGP, FourierGP, LearnerSurrogate
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.kernels import matern52
from bkbopt.surrogates import Surrogate
from bkbopt.surrogates.fit import log_marginal_likelihood
from bkbopt.surrogates.fit_data import FitData
from bkbopt.surrogates.gradients import likelihood_and_gradient

OUTPUTSCALE, NOISE = 2.0, 0.05
# So short a lengthscale that every point is worth appending to a dictionary.
KERNEL = matern52(2, 0.1, OUTPUTSCALE)
EVERYTHING = {"qbar": 1e12, "max_inducing": None}
MAKERS = {
    "exact": lambda: ExactGP(KERNEL, NOISE),
    "bkb": lambda: BKB(KERNEL, NOISE, **EVERYTHING),
    "bkb, every": lambda: BKB(KERNEL, NOISE, resample="every", **EVERYTHING),
    "bkb, fixed": lambda: BKB(KERNEL, NOISE, dictionary="uniform", max_inducing=80, leverage_budget=1e12),
    "fourier": lambda: FourierGP(KERNEL, NOISE, n_frequencies=40),
}
XS = np.random.default_rng(9).random((40, 2))


def data(n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((n, 2))[np.append(np.arange(n - 10), rng.integers(0, n - 10, 10))]  # ten repeats
    return X, np.sin(5.0 * X[:, 0]) + NOISE**0.5 * rng.standard_normal(n)


def agree(a: Surrogate, b: Surrogate, tol: float) -> None:
    np.testing.assert_allclose(a.posterior(XS).mean, b.posterior(XS).mean, rtol=0.0, atol=tol)
    np.testing.assert_allclose(a.posterior(XS).variance, b.posterior(XS).variance, rtol=0.0, atol=tol)
    np.testing.assert_allclose(a.fitted(), b.fitted(), rtol=0.0, atol=tol)
    assert a.effective_dimension() == pytest.approx(b.effective_dimension(), rel=1e-9)


@pytest.mark.parametrize("parts", [1, 80])
@pytest.mark.parametrize("name", MAKERS)
def test_a_weight_of_three_is_three_values_with_the_same_mean(name: str, parts: int) -> None:
    X, y = data()
    weighted, plain = MAKERS[name](), MAKERS[name]()
    for part in np.array_split(np.arange(len(y)), parts):
        weighted.observe(X[part], y[part], np.full(len(part), 3.0))
        plain.observe(np.tile(X[part], (3, 1)), np.concatenate([y[part] - 0.4, y[part] + 0.7, y[part] - 0.3]))
    agree(weighted, plain, 1e-10)
    assert torch.equal(weighted.observations.n, plain.observations.n)


@pytest.mark.parametrize("parts", [1, 80])
@pytest.mark.parametrize("name", ["exact", "bkb", "bkb, every"])
def test_noise_of_different_variance_is_scikit_learns(name: str, parts: int) -> None:
    X, y = data()
    variance = 10.0 ** np.random.default_rng(4).uniform(-3.0, 1.0, len(y))
    gp = MAKERS[name]()
    for part in np.array_split(np.arange(len(y)), parts):
        gp.observe(X[part], y[part], NOISE / variance[part])
    oracle = GaussianProcessRegressor(
        ConstantKernel(OUTPUTSCALE, "fixed") * Matern(0.1, "fixed", nu=2.5), alpha=variance, optimizer=None
    ).fit(X, y)
    mean, covariance = oracle.predict(XS, return_cov=True)
    np.testing.assert_allclose(gp.posterior(XS).mean, mean, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(gp.posterior(XS).variance, covariance.diagonal(), rtol=0.0, atol=1e-10)


def test_log_growth_bounds_the_log_determinant_of_weighted_points() -> None:
    X, y = data()
    weight = 10.0 ** np.random.default_rng(4).uniform(1.0, 3.0, len(y))
    for parts in (1, 80):
        gp = BKB(KERNEL, NOISE)
        for part in np.array_split(np.arange(len(y)), parts):
            gp.observe(X[part], y[part], weight[part])
        K = KERNEL(torch.as_tensor(X), torch.as_tensor(X)).numpy()
        logdet = float(np.linalg.slogdet(np.eye(len(y)) + K * weight / NOISE)[1])
        assert logdet <= gp.log_growth < 4.0 * logdet


def test_a_heavy_value_is_worth_an_inducing_point_where_a_light_one_is_not() -> None:
    for weight, size in ((1.0, 1), (100.0, 2)):
        gp = BKB(KERNEL, 10.0, max_inducing=None)
        gp.observe([[0.0, 0.0]], [1.0])
        gp.observe([[0.9, 0.9]], [1.0], [weight])
        assert len(gp.inducing) == size


def test_learners_refuse_known_noise_and_stay_as_they_were() -> None:
    X, y = data()
    gp = LearnerSurrogate(KERNEL, NOISE)
    gp.observe(X, y, np.ones(len(y)))
    before = gp.posterior(XS).mean.clone()
    with pytest.raises(ArgumentError, match=r"^std: expected none with surrogate='pkawv'.*use surrogate='bkb' or"):
        gp.observe(X, y, np.full(len(y), 2.0))
    assert torch.equal(gp.posterior(XS).mean, before)
    assert gp.observations.total == len(y)


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        ([1.0], ArgumentError, r"^weight: expected shape \(2,\)"),
        ([1.0, 0.0], ArgumentError, r"^weight: expected positive numbers, got 0.0 at position 1"),
        ([-1.0, 2.0], ArgumentError, r"^weight: expected positive numbers, got -1.0 at position 0"),
        ([1.0, np.nan], ArgumentError, r"^weight: expected finite values, got nan at position 1"),
        (["a", "b"], ArgumentTypeError, r"^weight: expected real numbers"),
    ],
)
def test_weights_that_are_none_are_refused(weight: list[object], error: type[Exception], message: str) -> None:
    gp = BKB(KERNEL, NOISE)
    with pytest.raises(error, match=message):
        gp.observe([[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0], weight)
    assert len(gp.observations) == 0


def partly_known() -> tuple[np.ndarray, np.ndarray, np.ndarray, FitData]:
    """Points, values and known variances (NaN: unknown); some points have values of both kinds, and repeats."""
    rng = np.random.default_rng(5)
    X = rng.random((12, 2))[[*range(12), 0, 0, 1, 1, 2, 2]]
    y, variance = rng.standard_normal(18), 10.0 ** rng.uniform(-2.0, 0.5, 18)
    variance[[0, 2, 3, 7, 12, 14, 15]] = np.nan
    return X, y, variance, FitData.partly_known(*map(torch.as_tensor, (X, y, variance)))


def test_likelihood_of_unknown_noise_beside_known_noise_is_the_joint_normal_density() -> None:
    X, y, variance, data = partly_known()
    K = KERNEL(torch.as_tensor(X), torch.as_tensor(X)).numpy()
    lams = (1e-3, 0.05, 2.0)
    dense = [
        multivariate_normal.logpdf(y, cov=K + np.diag(np.where(np.isfinite(variance), variance, lam))) for lam in lams
    ]
    ours = [float(log_marginal_likelihood(data, KERNEL, torch.tensor(lam, dtype=torch.float64))) for lam in lams]
    # Up to a constant.
    np.testing.assert_allclose(np.diff(ours), np.diff(dense), rtol=1e-10)


def test_gradient_by_unknown_noise_beside_known_noise_is_that_of_automatic_differentiation() -> None:
    data = partly_known()[-1]
    x = torch.tensor(-2.0, dtype=torch.float64, requires_grad=True)
    expected = log_marginal_likelihood(data, KERNEL, x.exp(), 1.0)
    (slope,) = torch.autograd.grad(expected, x)
    theta, lam = KERNEL.theta.numpy(), float(x.detach().exp())
    value, gradient = likelihood_and_gradient(data, KERNEL.by_theta(data.U), theta, lam, 1.0)
    assert value == pytest.approx(float(expected.detach()), rel=1e-11)
    assert float(gradient[-1]) == pytest.approx(float(slope), rel=1e-9)


def test_a_subset_keeps_known_variances_with_their_points() -> None:
    data = partly_known()[-1]
    part = data.subset(9, np.random.default_rng(0))
    assert part.known is not None
    assert data.known is not None
    for u, value, known in zip(part.U, part.ybar, part.known, strict=True):
        row = int(((u == data.U).all(1) & (data.ybar == value)).nonzero()[0])
        assert known == data.known[row]
