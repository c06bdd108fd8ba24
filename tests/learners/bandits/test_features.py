"""Bandits on features and random projections against dense matrices and the Gaussian process."""

import math

import numpy as np
import pytest
import torch

from bkbopt import ExactGP
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.kernels import rbf
from bkbopt.learners import CBRAP, FeatureBandit
from bkbopt.learners.features import QuadratureFourier
from tests.learners.streams import arms_and_values


def test_cbrap_is_ridge_regression_on_projections_that_keep_inner_products() -> None:
    X, y, _ = arms_and_values(60)
    bandit = CBRAP(5, lam=0.3, beta=2.0, seed=4)
    for x, v in zip(X, y, strict=True):
        bandit.learn_one(x, v)
    Z = X @ bandit.P_.numpy().T
    A = Z.T @ Z + 0.3 * np.eye(5)
    mean, width = bandit.bounds(X)
    np.testing.assert_allclose(mean, Z @ np.linalg.solve(A, Z.T @ y), rtol=0.0, atol=1e-10)
    expected = 2.0 * math.sqrt(0.3) * np.sqrt(np.einsum("ij,jk,ik->i", Z, np.linalg.inv(A), Z))
    np.testing.assert_allclose(width, expected, rtol=1e-9)
    products = []
    for seed in range(400):
        one = CBRAP(5, seed=seed)
        one.bounds(X[:2])
        P = one.P_.numpy()
        products.append((P @ X[0]) @ (P @ X[1]))
    # The variance of one is at most 2 |x|^2 |x'|^2 / m = 0.4, so a mean of 400 has a deviation of 0.03 at most.
    assert abs(np.mean(products) - X[0] @ X[1]) < 0.12


def test_quadrature_features_give_the_gaussian_process_and_its_thompson_draws() -> None:
    rng = np.random.default_rng(0)
    X, kernel = rng.random((30, 2)), rbf(2, 0.5)
    y = np.sin(4.0 * X[:, 0]) + 0.1 * rng.standard_normal(30)
    bandit, gp = (
        FeatureBandit(QuadratureFourier.from_kernel(kernel, 14), lam=0.01, policy="thompson"),
        ExactGP(kernel, 0.01),
    )
    for x, v in zip(X, y, strict=True):
        bandit.learn_one(x, v)
    gp.observe(X, y)
    arms = rng.random((6, 2))
    mean, sd = bandit.bounds(arms)
    posterior = gp.posterior(arms)
    # The features are off by 1e-9 at this order.
    np.testing.assert_allclose(mean, posterior.mean, rtol=0.0, atol=1e-5)
    np.testing.assert_allclose(sd, posterior.stddev, rtol=0.0, atol=1e-5)
    draws = np.array([bandit._draw(arms) for _ in range(5_000)])
    correlation = np.cov(draws.T) / np.outer(sd, sd)
    np.testing.assert_allclose(correlation, posterior.covariance / torch.as_tensor(np.outer(sd, sd)), atol=0.05)
    np.testing.assert_allclose((draws.mean(0) - mean) / sd, 0.0, atol=0.03)


def test_many_rounds_add_up_to_no_more_than_rounding() -> None:
    X, y, _ = arms_and_values(1_100)
    bandit, fresh = CBRAP(6, lam=1e-3), []
    for x, v in zip(X, y, strict=True):
        bandit.learn_one(x, v)
        # Triangular as it is made, and no longer after a rank-one step.
        if torch.equal(bandit._ridge.root, bandit._ridge.root.tril()):
            fresh.append(bandit.n_rounds_)
    assert fresh == [512, 1024]
    Z = X @ bandit.P_.numpy().T
    A = Z.T @ Z + 1e-3 * np.eye(6)
    root = bandit._ridge.root.numpy()
    np.testing.assert_allclose(root.T @ root @ A, np.eye(6), rtol=0.0, atol=1e-10)


def test_maps_that_do_not_fit_are_refused_and_change_nothing() -> None:
    with pytest.raises(ArgumentTypeError, match=r"^features: expected a map of tensors.*got str"):
        FeatureBandit("taylor")  # type: ignore[arg-type]
    scale = [1.0]
    bandit = FeatureBandit(lambda X: X * scale[0])
    bandit.learn_one([1.0, 2.0], 3.0)
    before = bandit.bounds(np.eye(2))[0]
    scale[0] = math.nan
    for call in (lambda: bandit.learn_one([1.0, 2.0], 3.0), lambda: bandit.select(np.eye(2))):
        with pytest.raises(ArgumentError, match=r"^features: expected finite features of shape \(., r\)"):
            call()
    scale[0] = 1.0
    np.testing.assert_array_equal(bandit.bounds(np.eye(2))[0], before)
    assert bandit.n_rounds_ == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CBRAP(0), "projection: expected a whole number >= 1, got 0"),
        (lambda: CBRAP(2, lam=-1.0), "lam: expected a positive ridge, got -1"),
        (lambda: CBRAP(2, beta=-1.0), "beta: expected a number of standard deviations >= 0, got -1"),
    ],
)
def test_parameters_out_of_range_are_refused(make: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{message}"):
        make()  # type: ignore[operator]


def test_maps_of_the_user_may_have_names_of_ours_and_raise_their_own_errors() -> None:
    class Taylor:
        def __call__(self, X: torch.Tensor) -> torch.Tensor:
            if bool((X > 1.0).any()):
                raise ZeroDivisionError("the user's")
            return X

    bandit = FeatureBandit(Taylor())
    assert bandit.select([[0.0], [0.5]]) == 1
    with pytest.raises(ZeroDivisionError, match="the user's"):
        bandit.select([[0.0], [2.0]])
    assert bandit.state_dict()["params"]["features"] == {"map": {"form": None}}  # type: ignore[index]
