"""Nystrom features: the projection on the span of any inducing points."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from bkbopt.errors import KernelError
from bkbopt.kernels import ARDKernel, as_kernel, gram, matern52, rbf
from bkbopt.posterior.features import Extension, FeatureMap, Nystrom, WithoutResidual
from bkbopt.posterior.linalg import inverse_root

KERNEL = matern52(2, 0.4, 3.0)


def random_points(n: int, seed: int = 0) -> Tensor:
    return torch.as_tensor(np.random.default_rng(seed).random((n, 2)))


def test_inner_products_are_the_projected_kernel() -> None:
    S, X = random_points(12), random_points(30, 1)
    features = Nystrom.from_points(KERNEL, S)
    Z = features(X)
    K_XS = KERNEL(X, S).numpy()
    expected = K_XS @ np.linalg.solve(gram(KERNEL, S).numpy(), K_XS.T)
    np.testing.assert_allclose(Z @ Z.T, expected, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(features.residual(X, Z), 3.0 - expected.diagonal(), rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(
        features.residual_covariance(X, Z), gram(KERNEL, X).numpy() - expected, rtol=0.0, atol=1e-12
    )


@pytest.mark.parametrize("kernel", [KERNEL, rbf(2, 2.0)])
def test_residual_is_zero_at_the_inducing_points_and_never_negative(kernel: object) -> None:
    S = random_points(80)  # the smooth kernel's matrix has a condition number past 1e16
    features = Nystrom.from_points(as_kernel(kernel), S)
    own = features.residual(S, features(S))
    assert float(own.max()) < 1e-12
    assert float(own.min()) >= 0.0  # where rounding would bring it below
    assert float(features.residual(random_points(200, 1), features(random_points(200, 1))).min()) >= 0.0


def test_duplicates_in_the_dictionary_change_nothing() -> None:
    S, X = random_points(10), random_points(20, 1)
    one, two = Nystrom.from_points(KERNEL, S), Nystrom.from_points(KERNEL, torch.cat([S, S, S[:3]]))
    assert one.size == two.size == 10
    Z1, Z2 = one(X), two(X)
    np.testing.assert_allclose(Z1 @ Z1.T, Z2 @ Z2.T, rtol=0.0, atol=1e-12)


def test_near_duplicates_do_not_spoil_the_projection() -> None:
    S, X = random_points(10), random_points(20, 1)
    near = Nystrom.from_points(KERNEL, torch.cat([S, S + 1e-9]))
    Z1, Z2 = Nystrom.from_points(KERNEL, S)(X), near(X)
    # The differences of near points are rounding error of size 1e-16 divided by distances of 1e-9, and squared.
    np.testing.assert_allclose(Z1 @ Z1.T, Z2 @ Z2.T, rtol=0.0, atol=1e-6)
    assert float(near.residual(X, Z2).min()) >= 0.0


@pytest.mark.parametrize("lengthscale", [0.03, 0.3])
@pytest.mark.parametrize("kernel", [matern52, rbf])
def test_projection_is_not_longer_than_a_point_where_inducing_points_nearly_coincide(
    kernel: Callable[[int, float], ARDKernel], lengthscale: float
) -> None:
    k, rng = kernel(2, lengthscale), np.random.default_rng(0)
    for distance in np.geomspace(2e-8, 2e-6, 300) * lengthscale:
        x, step = torch.as_tensor(rng.random((2, 2)))
        features = Nystrom.from_points(k, torch.stack([x, x + distance * step / step.norm()]))
        line = x + torch.linspace(-2.0, 2.0, 21)[:, None] * lengthscale * step / step.norm()
        Z = features(line)
        assert float((Z * Z).sum(1).max()) < 1.0 + 1e-4


@pytest.mark.parametrize("k", [1, 3])
def test_extension_is_the_map_of_the_larger_dictionary_and_keeps_the_features(k: int) -> None:
    S, X = random_points(8), random_points(20, 1)
    small = Nystrom.from_points(KERNEL, S[:-k])
    Z = small(S[-k:])
    more = Extension(small, S[-k:], Z, inverse_root(small.residual_covariance(S[-k:], Z)))
    grown = more.whole()
    assert torch.equal(grown.S, S)
    assert grown.size == 8
    Z, expected = grown(X), Nystrom.from_points(KERNEL, S)(X)
    np.testing.assert_allclose(Z[:, :-k], small(X), rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(Z[:, -k:], more.columns(X, small(X)), rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, rtol=0.0, atol=1e-12)


def test_kernel_that_vanishes_at_the_first_point_leaves_no_feature() -> None:
    features = Nystrom.from_points(as_kernel(lambda A, B: A @ B.T), torch.zeros(1, 2, dtype=torch.float64))
    X = random_points(4)
    Z = features(X)
    assert Z.shape == (4, 0)
    torch.testing.assert_close(features.residual(X, Z), (X * X).sum(1))


def test_dictionary_of_a_kernel_that_is_none_is_refused() -> None:
    with pytest.raises(KernelError, match="kernel: expected"):
        Nystrom.from_points(as_kernel(lambda A, B: -rbf(2)(A, B)), random_points(3))


def test_without_residual_keeps_the_features_and_drops_the_rest() -> None:
    features = Nystrom.from_points(KERNEL, random_points(5))
    starved = WithoutResidual(features)
    X = random_points(7, 1)
    Z = starved(X)
    assert isinstance(features, FeatureMap)
    assert isinstance(starved, FeatureMap)
    assert starved.size == features.size
    assert torch.equal(Z, features(X))
    assert not starved.residual(X, Z).any()
    assert starved.residual_covariance(X, Z).shape == (7, 7)
    assert not starved.residual_covariance(X, Z).any()
