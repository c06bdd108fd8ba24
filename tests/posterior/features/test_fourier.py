"""Random Fourier features: exact prior variance, the kernel in the mean, and refusals."""

import numpy as np
import pytest
import torch
from torch import Tensor

from bkbopt.errors import ArgumentError
from bkbopt.kernels import ARDKernel, CallableKernel, matern52
from bkbopt.posterior.features import FeatureMap, RandomFourier

LENGTHSCALES = [0.5, 2.0]


def kernel_of(form: str) -> ARDKernel:
    k = matern52(2, LENGTHSCALES, 3.0)
    return ARDKernel(k.log_lengthscale, k.log_outputscale, k.log_hamming, form=form)


def random_points(n: int) -> Tensor:
    return torch.as_tensor(np.random.default_rng(0).random((n, 2)))


@pytest.mark.parametrize("form", ["rbf", "matern12", "matern32", "matern52"])
def test_inner_products_come_near_the_kernel(form: str) -> None:
    kernel = kernel_of(form)
    D = 40_000
    features = RandomFourier.from_kernel(kernel, D, np.random.default_rng(1))
    X = random_points(30)
    Z = features(X)
    # A mean of D cosines scatters by at most 3 / sqrt(2 D) = 0.011 around k; five times that over 435 pairs.
    np.testing.assert_allclose(Z @ Z.T, kernel(X, X), rtol=0.0, atol=0.055)


def test_frequencies_of_inactive_columns_are_zero() -> None:
    few, all_columns = matern52(2, LENGTHSCALES), matern52(4, LENGTHSCALES, inactive=[0, 2])
    expected, got = (RandomFourier.from_kernel(k, 50, np.random.default_rng(1)).omega for k in (few, all_columns))
    assert torch.equal(got[:, [1, 3]], expected)
    assert not got[:, [0, 2]].any()


def test_prior_variance_is_exact_and_the_residual_zero() -> None:
    features = RandomFourier.from_kernel(kernel_of("rbf"), 5, np.random.default_rng(1))
    X = random_points(6) * 100.0
    Z = features(X)
    assert isinstance(features, FeatureMap)
    assert Z.shape == (6, features.size) == (6, 10)
    np.testing.assert_allclose((Z * Z).sum(1), 3.0, rtol=1e-14)
    assert not features.residual(X, Z).any()
    assert features.residual_covariance(X, Z).shape == (6, 6)
    assert not features.residual_covariance(X, Z).any()


def test_same_generator_same_frequencies() -> None:
    a, b, c = (RandomFourier.from_kernel(kernel_of("matern32"), 4, np.random.default_rng(s)) for s in (1, 1, 2))
    assert torch.equal(a.omega, b.omega)
    assert not torch.equal(a.omega, c.omega)


def test_kernel_without_a_known_spectrum_is_refused() -> None:
    kernel = CallableKernel(lambda A, B: A @ B.T)
    with pytest.raises(ArgumentError, match="kernel: expected an ARDKernel, whose spectral density is known"):
        RandomFourier.from_kernel(kernel, 4, np.random.default_rng(0))  # type: ignore[arg-type]


def test_no_frequencies_are_refused() -> None:
    with pytest.raises(ArgumentError, match="n_frequencies: expected at least 1, got 0"):
        RandomFourier.from_kernel(kernel_of("rbf"), 0, np.random.default_rng(0))
