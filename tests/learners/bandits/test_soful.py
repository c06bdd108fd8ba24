"""SOFUL against dense matrices, and the inequalities that it rests on."""

import math
from pathlib import Path

import numpy as np
import pytest

from bkbopt.errors import ArgumentError, NotReadyError
from bkbopt.learners import SOFUL
from bkbopt.learners.bandits.soful import FrequentDirections
from tests.learners.streams import ARMS_D as D
from tests.learners.streams import arms_and_values


@pytest.mark.parametrize("size", [1, 3, 5, 8, 20])
def test_sketch_lies_below_the_matrix_by_no_more_than_rho(size: int) -> None:
    sketch, X = FrequentDirections(size, D), arms_and_values(200)[0]
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
    X, y, theta = arms_and_values(60)
    bandit = SOFUL(D, lam=0.5, noise_std=0.1, delta=0.05)
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
        X, y, theta = arms_and_values(150, seed)
        bandit = SOFUL(sketch, lam=1.0, noise_std=0.1, delta=0.1)
        for x, v in zip(X, y, strict=True):
            bandit.learn_one(x, v)
            mean, width = bandit.bounds(X[:20])
            assert bool((np.abs(mean - X[:20] @ theta) <= width).all())
        excess, rows = 1.0 + bandit.rho_, 2 * sketch
        inside = rows * math.log(1.0 + len(X) / rows) + D * math.log(excess) + 2.0 * math.log(10.0)
        assert bandit.radius_ <= 0.1 * math.sqrt(inside * excess) + excess + 1e-12


@pytest.mark.parametrize("sketch", [2, 4])
def test_sketched_radius_is_that_of_dense_matrices(sketch: int) -> None:
    X, y, _ = arms_and_values(100)
    bandit = SOFUL(sketch, lam=0.5, norm=1.5, noise_std=0.1, delta=0.05)
    for x, v in zip(X, y, strict=True):
        bandit.learn_one(x, v)
    V = bandit._sketch.S.T @ bandit._sketch.S + 0.5 * np.eye(D)
    logdet = np.linalg.slogdet((V + bandit.rho_ * np.eye(D)) / 0.5)[1]
    excess = 1.0 + bandit.rho_ / 0.5
    assert excess > 1.2
    noise = 0.1 * math.sqrt(excess) * math.sqrt(logdet + 2.0 * math.log(20.0))
    assert bandit.radius_ == pytest.approx(noise + 1.5 * math.sqrt(0.5) * excess, rel=1e-12)
    # The two inequalities that it rests on.
    full = X.T @ X + 0.5 * np.eye(D)
    assert np.linalg.eigvalsh(excess * V - full)[0] >= -1e-10
    assert np.linalg.eigvalsh(full - V)[0] >= -1e-10


def test_soful_thompson_draws_have_the_covariance_of_the_ellipsoid() -> None:
    X, y, _ = arms_and_values(40)
    bandit = SOFUL(3, noise_std=0.1, policy="thompson")
    for x, v in zip(X, y, strict=True):
        bandit.learn_one(x, v)
    mean, width = bandit.bounds(np.eye(D))
    draws = np.array([bandit._draw(np.eye(D)) for _ in range(10_000)])
    # 10,000 draws: the standard errors are 0.01 sd of a mean and 0.7 % of a deviation.
    np.testing.assert_allclose((draws.mean(0) - mean) / width, 0.0, atol=0.03)
    np.testing.assert_allclose(draws.std(0) / width, 1.0, atol=0.03)


def test_estimate_is_refused_before_the_first_arm_and_the_radius_is_that_of_the_prior() -> None:
    with pytest.raises(NotReadyError, match="SOFUL: expected arms first; call select, bounds or learn_one"):
        _ = SOFUL(3).theta_
    bandit = SOFUL(3, lam=0.25, norm=2.0, noise_std=0.1, delta=0.05)
    assert bandit.radius_ == pytest.approx(0.1 * math.sqrt(2.0 * math.log(20.0)) + 2.0 * 0.5)
    assert bandit.rho_ == 0.0
    # Nothing was learnt: all means are zero, and an arm is as uncertain as it is long.
    mean, width = bandit.bounds(np.eye(D))
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_allclose(width, bandit.radius_ / 0.5)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"sketch": 0}, "sketch: expected a whole number >= 1, got 0"),
        ({"lam": 0.0}, "lam: expected a positive ridge, got 0"),
        ({"norm": -1.0}, "norm: expected a bound >= 0, got -1"),
        ({"noise_std": -0.1}, "noise_std: expected a standard deviation >= 0"),
        ({"delta": 1.0}, "delta: expected a probability between 0 and 1, got 1"),
    ],
)
def test_parameters_out_of_range_are_refused(bad: dict[str, float], message: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{message}"):
        SOFUL(**{"sketch": 3, **bad})  # type: ignore[arg-type]


def test_sketch_of_the_longest_arms_can_be_loaded(tmp_path: Path) -> None:
    bandit = SOFUL(2)
    for _ in range(4):
        bandit.learn_one([9e139, 9e139, 9e139], 1.0)
    bandit.save(tmp_path / "bandit")
    np.testing.assert_array_equal(SOFUL.load(tmp_path / "bandit").theta_, bandit.theta_)


def test_interrupted_reduction_of_the_sketch_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).standard_normal((6, 5))
    bandit, twin = SOFUL(2), SOFUL(2)
    for x in X[:3]:
        bandit.learn_one(x, 1.0)
        twin.learn_one(x, 1.0)

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np.linalg, "svd", stopped)
        with pytest.raises(KeyboardInterrupt):
            bandit.learn_one(X[3], 1.0)
    for x in X[3:]:
        bandit.learn_one(x, 1.0)
        twin.learn_one(x, 1.0)
    np.testing.assert_array_equal(bandit.theta_, twin.theta_)
    assert bandit.rho_ == twin.rho_
