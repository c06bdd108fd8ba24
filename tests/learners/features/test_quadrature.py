"""Quadrature features against the kernel itself and their error bound."""

import numpy as np
import pytest
import torch

from bkbopt.errors import ArgumentError
from bkbopt.kernels import matern52, rbf
from bkbopt.learners.features import QuadratureFourier
from bkbopt.posterior.features import FeatureMap


@pytest.mark.parametrize(("d", "order"), [(1, 1), (1, 4), (1, 7), (1, 12), (2, 5), (2, 8), (3, 6)])
@pytest.mark.parametrize("lengthscale", [0.4, 0.7, 1.5])
def test_error_is_within_its_bound_and_the_bound_is_not_idle(d: int, order: int, lengthscale: float) -> None:
    kernel = rbf(d, lengthscale, 2.0)
    features = QuadratureFourier.from_kernel(kernel, order)
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * d), -1).reshape(-1, d)
    X = torch.as_tensor(np.vstack([np.random.default_rng(0).random((40, d)), corners]))
    Z = features(X)
    error = float((kernel(X, X) - Z @ Z.T).abs().max())
    bound = features.error_bound()
    assert error <= bound + 1e-13
    # Between opposite corners the derivative that the rule misses is nearly the largest one at long lengthscales.
    if lengthscale == 1.5 and bound > 1e-10:
        assert error > 0.2 * bound
    assert isinstance(features, FeatureMap)


def test_order_to_the_power_of_d_features_and_exact_prior_variances() -> None:
    kernel = rbf(2, [0.5, 2.0], 3.0)
    X = torch.as_tensor(np.random.default_rng(1).random((10, 2)) * [1.0, 4.0])
    for order in (1, 2, 5, 6):
        features = QuadratureFourier.from_kernel(kernel, order)
        Z = features(X)
        assert Z.shape == (10, features.size)
        assert features.size == order**2
    Z = QuadratureFourier.from_kernel(kernel, 20)(X)
    np.testing.assert_allclose(Z @ Z.T, kernel(X, X), rtol=0.0, atol=1e-11)
    assert QuadratureFourier.from_kernel(kernel, 20).error_bound([1.0, 4.0]) < 1e-6
    for order in (1, 2, 5, 6):  # the weights add up to one in every order, however far the rule is from the kernel
        features = QuadratureFourier.from_kernel(kernel, order)
        Z = features(X)
        np.testing.assert_allclose((Z**2).sum(1), 3.0, rtol=1e-14)
        assert not features.residual(X, Z).any()
        assert not features.residual_covariance(X, Z).any()


@pytest.mark.parametrize("order", [150, 151, 1001, 2000])
def test_short_lengthscales_take_many_nodes(order: int) -> None:
    lengthscale = 0.9 * (order / 2) ** -0.5
    kernel, X = rbf(1, lengthscale), torch.linspace(0.0, 1.0, 41, dtype=torch.float64)[:, None]
    features = QuadratureFourier.from_kernel(kernel, order)
    assert features.error_bound() < 1e-10
    Z = features(X)
    # Phases up to sqrt(8 m) / lengthscale radians, of which doubles keep all but the last digits.
    np.testing.assert_allclose(Z @ Z.T, kernel(X, X), rtol=0.0, atol=1e-12)


def test_kernels_without_quadrature_are_refused() -> None:
    for kernel in (matern52(1), rbf(2, inactive=[1])):
        with pytest.raises(ArgumentError, match=r"^kernel: expected a Gaussian"):
            QuadratureFourier.from_kernel(kernel, 4)
    with pytest.raises(
        ArgumentError, match=r"^order: expected at most 10000 features, but order 12 in 6 dimensions gives"
    ):
        QuadratureFourier.from_kernel(rbf(6), 12)
    with pytest.raises(ArgumentError, match=r"^order: expected a whole number >= 1"):
        QuadratureFourier.from_kernel(rbf(1), 0)
    with pytest.raises(ArgumentError, match=r"^widths: expected numbers >= 0"):
        QuadratureFourier.from_kernel(rbf(2), 3).error_bound([1.0, -1.0])
