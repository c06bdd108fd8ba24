"""SOFUL, CBRAP and features with Thompson sampling against dense matrices and the inequalities they rest on."""

import math

import numpy as np
import pytest
import torch

from bkbopt import ExactGP
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.features import QuadratureFourier
from bkbopt.kernels import rbf
from bkbopt.learners import CBRAP, SOFUL, FeatureBandit
from bkbopt.learners.linear_bandits import FrequentDirections

D = 8


def stream(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arms in the unit ball with a falling spectrum, values, and theta with norm one."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(D)
    theta /= np.linalg.norm(theta)
    X = rng.standard_normal((n, D)) * 0.5 ** np.arange(D)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    return X, X @ theta + 0.1 * rng.standard_normal(n), theta


@pytest.mark.parametrize("size", [1, 3, 5, 8, 20])
def test_sketch_lies_below_the_matrix_by_no_more_than_rho(size: int) -> None:
    sketch, X = FrequentDirections(size, D), stream(200)[0]
    for t, x in enumerate(X, start=1):
        sketch.add(x)
        e = np.linalg.eigvalsh(X[:t].T @ X[:t] - sketch.S.T @ sketch.S)
        assert -1e-10 <= e[0] <= e[-1] <= sketch.rho + 1e-10
    assert len(sketch.S) < 2 * size
    # Liberty's bound: rho <= |X|_F^2 / m, since each shrink takes rho from m singular values at least.
    assert sketch.rho <= np.sum(X**2) / size
    if size >= D:
        assert sketch.rho <= 1e-12


def test_soful_with_a_full_sketch_is_oful() -> None:
    X, y, theta = stream(60)
    bandit = SOFUL(D, lam=0.5, noise_sd=0.1, delta=0.05)
    for x, v in zip(X, y, strict=True):
        bandit.learn_one(x, v)
    V = X.T @ X + 0.5 * np.eye(D)
    np.testing.assert_allclose(bandit.theta_, np.linalg.solve(V, X.T @ y), rtol=0.0, atol=1e-10)
    radius = 0.1 * math.sqrt(np.linalg.slogdet(V / 0.5)[1] + 2.0 * math.log(20.0)) + math.sqrt(0.5)
    assert bandit.radius_ == pytest.approx(radius, rel=1e-9)
    mean, width = bandit.bounds(X)
    expected = radius * np.sqrt(np.einsum("ij,jk,ik->i", X, np.linalg.inv(V), X))
    np.testing.assert_allclose(width, expected, rtol=1e-9)
    assert bool((np.abs(mean - X @ theta) <= width).all())


@pytest.mark.parametrize("sketch", [2, 4])
def test_sketched_radius_covers_and_is_no_larger_than_the_printed_one(sketch: int) -> None:
    for seed in range(20):
        X, y, theta = stream(150, seed)
        bandit = SOFUL(sketch, lam=1.0, noise_sd=0.1, delta=0.1)
        for x, v in zip(X, y, strict=True):
            bandit.learn_one(x, v)
            mean, width = bandit.bounds(X[:20])
            assert bool((np.abs(mean - X[:20] @ theta) <= width).all())
        excess, rows = 1.0 + bandit.rho_, 2 * sketch
        inside = rows * math.log(1.0 + len(X) / rows) + D * math.log(excess) + 2.0 * math.log(10.0)
        assert bandit.radius_ <= 0.1 * math.sqrt(inside * excess) + excess + 1e-12


def test_soful_thompson_draws_have_the_covariance_of_the_ellipsoid() -> None:
    X, y, _ = stream(40)
    bandit = SOFUL(3, noise_sd=0.1, policy="thompson")
    for x, v in zip(X, y, strict=True):
        bandit.learn_one(x, v)
    mean, width = bandit.bounds(np.eye(D))
    draws = np.array([bandit._draw(np.eye(D)) for _ in range(20_000)])
    # 20,000 draws: the standard errors are 0.007 sd of a mean and 0.5 % of a deviation.
    np.testing.assert_allclose((draws.mean(0) - mean) / width, 0.0, atol=0.03)
    np.testing.assert_allclose(draws.std(0) / width, 1.0, atol=0.03)


def test_cbrap_is_ridge_regression_on_projections_that_keep_inner_products() -> None:
    X, y, _ = stream(60)
    bandit = CBRAP(5, lam=0.3, width=2.0, seed=4)
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
    draws = np.array([bandit._draw(arms) for _ in range(20_000)])
    correlation = np.cov(draws.T) / np.outer(sd, sd)
    np.testing.assert_allclose(correlation, posterior.covariance / torch.as_tensor(np.outer(sd, sd)), atol=0.05)
    np.testing.assert_allclose((draws.mean(0) - mean) / sd, 0.0, atol=0.03)


@pytest.mark.parametrize("policy", ["ucb", "thompson"])
def test_regret_is_far_below_that_of_chance(policy: str) -> None:
    arms, _, theta = stream(50)
    rng, values = np.random.default_rng(1), arms @ theta
    for bandit in (
        SOFUL(4, noise_sd=0.1, norm=0.2, policy=policy),
        CBRAP(8, lam=0.1, width=0.5, policy=policy),
    ):
        regret = 0.0
        for _ in range(300):
            i = bandit.select(arms)
            bandit.learn_one(arms[i], values[i] + 0.1 * rng.standard_normal())
            regret += values.max() - values[i]
        # The radius of the theorem explores much at so few rounds, and draws with it more than bounds do.
        assert regret < (0.35 if policy == "ucb" else 0.7) * 300 * (values.max() - values.mean()), type(bandit).__name__


def test_bad_input_is_refused_and_changes_nothing() -> None:
    bandit = SOFUL(3)
    bandit.learn_one(np.ones(D), 1.0)
    before = bandit.theta_.copy()
    for x, y, error in ((np.ones(D + 1), 1.0, ArgumentError), (np.ones(D), math.nan, ArgumentError)):
        with pytest.raises(error):
            bandit.learn_one(x, y)
    with pytest.raises(ArgumentTypeError):
        bandit.learn_one(np.ones(D), "1")
    np.testing.assert_array_equal(bandit.theta_, before)
    for make in (
        lambda: SOFUL(0),
        lambda: SOFUL(3, lam=0.0),
        lambda: SOFUL(3, delta=1.0),
        lambda: CBRAP(2, policy="x"),
    ):
        with pytest.raises(ArgumentError):
            make()
