"""The Fourier surrogate: ridge regression on its features, near the exact GP with many of them."""

import numpy as np
import pytest
import torch

from bkbopt import ExactGP, FourierGP
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.kernels import CallableKernel, matern52

KERNEL, NOISE = matern52(2, 0.5, 2.0), 0.05


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))[np.append(np.arange(40), rng.integers(0, 40, 60))]
    return X, np.sin(5.0 * X[:, 0]) + NOISE**0.5 * rng.standard_normal(100)


@pytest.mark.parametrize("parts", [1, 10, 100])
def test_posterior_is_ridge_regression_on_the_features(parts: int) -> None:
    X, y = data()
    gp = FourierGP(KERNEL, NOISE, n_frequencies=15)
    for part in np.array_split(np.arange(100), parts):
        gp.observe(X[part], y[part])
    Xs = np.random.default_rng(1).random((20, 2))
    Z, Zs = (gp.model.features(torch.as_tensor(T)).numpy() for T in (X, Xs))
    V = Z.T @ Z + NOISE * np.eye(30)
    np.testing.assert_allclose(gp.posterior(Xs).mean, Zs @ np.linalg.solve(V, Z.T @ y), rtol=0.0, atol=1e-10)
    expected = NOISE * (Zs * np.linalg.solve(V, Zs.T).T).sum(1)
    np.testing.assert_allclose(gp.posterior(Xs).variance, expected, rtol=1e-9)
    np.testing.assert_allclose(gp.fitted(), gp.posterior(gp.observations.X).mean, rtol=0.0, atol=1e-12)
    assert gp.effective_dimension() == pytest.approx(float(gp.posterior(X).leverage.sum()), rel=1e-9)


def test_many_features_come_near_the_exact_gp() -> None:
    X, y = data()
    exact, gp = ExactGP(KERNEL, NOISE), FourierGP(KERNEL, NOISE, n_frequencies=600)
    Xs = np.random.default_rng(1).random((20, 2))
    for one in (exact, gp):
        one.observe(X, y)
    # The features' error is 1 / sqrt(1200); the posterior smooths it rather than blowing it up.
    np.testing.assert_allclose(gp.posterior(Xs).mean, exact.posterior(Xs).mean, rtol=0.0, atol=0.1)
    np.testing.assert_allclose(gp.posterior(Xs).stddev, exact.posterior(Xs).stddev, rtol=0.2, atol=0.02)


def test_frequencies_survive_a_rebuild_and_depend_on_the_seed() -> None:
    X, y = data()
    gps = [FourierGP(KERNEL, NOISE, n_frequencies=5, seed=s) for s in (1, 1, 2)]
    for gp in gps:
        gp.observe(X, y)
    gps[0].rebuild(gps[0].observations, KERNEL, NOISE)
    means = [gp.posterior(X).mean for gp in gps]
    assert torch.equal(means[0], means[1])
    assert not torch.allclose(means[0], means[2])


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^n_frequencies: expected a whole number >= 1, got 0"):
        FourierGP(n_frequencies=0)
    with pytest.raises(ArgumentTypeError, match=r"^n_frequencies: expected a whole number >= 1, got 'ten'"):
        FourierGP(n_frequencies="ten")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"^kernel: expected an ARDKernel, whose spectral density is known"):
        FourierGP(CallableKernel(KERNEL))
