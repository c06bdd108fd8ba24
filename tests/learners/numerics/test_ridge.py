"""The state of a ridge regression against dense formulas."""

import numpy as np
import pytest

from bkbopt.learners import PKAWV
from bkbopt.learners.numerics.ridge import Ridge

RNG = np.random.default_rng(0)
Z = RNG.standard_normal((120, 9))
Y = RNG.standard_normal(120)
LAM = 0.4


def check(ridge: Ridge, Z: np.ndarray, y: np.ndarray) -> None:
    A = Z.T @ Z + LAM * np.eye(Z.shape[1])
    w = np.linalg.solve(A, Z.T @ y)
    np.testing.assert_allclose(np.triu(ridge.R).T @ np.triu(ridge.R), A, atol=1e-11)
    np.testing.assert_allclose(ridge.w, w, atol=1e-12)
    assert ridge.logdet == pytest.approx(np.linalg.slogdet(A / LAM)[1], rel=1e-11)
    assert ridge.minimum == pytest.approx(np.sum((y - Z @ w) ** 2) + LAM * w @ w, rel=1e-11)
    np.testing.assert_allclose(ridge.leverage(Z[:5]), np.sum(Z[:5] * np.linalg.solve(A, Z[:5].T).T, axis=1), atol=1e-13)


@pytest.mark.parametrize("size", [1, 3, 10, 120])
@pytest.mark.parametrize("forward", [True, False])
def test_blocks_and_single_rows_lead_to_the_same_state_and_predictions(size: int, forward: bool) -> None:
    ridge = Ridge(LAM, 9)
    parts = [ridge.learn(Z[a : a + size], Y[a : a + size], forward=forward) for a in range(0, 120, size)]
    predictions = np.concatenate(parts)
    for t in (0, 1, 50, 119):
        A = Z[:t].T @ Z[:t] + LAM * np.eye(9)
        if forward:
            A += np.outer(Z[t], Z[t])
        assert predictions[t] == pytest.approx(Z[t] @ np.linalg.solve(A, Z[:t].T @ Y[:t]), abs=1e-12)
    check(ridge, Z, Y)


def test_blocks_and_rows_may_be_mixed() -> None:
    ridge = Ridge(LAM, 9)
    for a, b in ((0, 50), (50, 51), (51, 53), (53, 90), (90, 91), (91, 120)):
        ridge.learn(Z[a:b], Y[a:b], forward=True)
    check(ridge, Z, Y)


def test_a_feature_may_be_added_late() -> None:
    ridge = Ridge(LAM)
    old = Z[:80]
    ridge.learn(old[:, :0], Y[:80], forward=True)
    for i in range(9):
        z = old[:, i]
        ridge.grow(old[:, :i].T @ z, float(z @ z), float(Y[:80] @ z))
    check(ridge, old, Y[:80])
    ridge.learn(Z[80:], Y[80:], forward=True)
    check(ridge, Z, Y)


@pytest.mark.parametrize("lam", [1e-12, 1e-20, 1e-30])
def test_a_feature_that_is_there_already_is_survived(lam: float) -> None:
    ridge = Ridge(lam, 1)
    ridge.learn(Z[:, :1], Y, forward=False)
    z = Z[:, 0]
    ridge.grow(np.array([z @ z]), float(z @ z), float(Y @ z))
    assert ridge.w.sum() == pytest.approx(float(Y @ z / (z @ z)), rel=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_features_that_the_others_span_are_survived(seed: int) -> None:
    # What is left of them is rounding, negative as often as not.
    rng, ridge = np.random.default_rng(seed), Ridge(1e-20, 5)
    old = Z[:, :5]
    ridge.learn(old, Y, forward=False)
    for _ in range(4):
        z = old @ rng.standard_normal(old.shape[1])
        ridge.grow(old.T @ z, float(z @ z), float(Y @ z))
        old = np.column_stack([old, z])
    fitted = Z[:, :5] @ np.linalg.lstsq(Z[:, :5], Y, rcond=None)[0]
    np.testing.assert_allclose(old @ ridge.w, fitted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("lam", [1e-9, 1e-18, 1e-30])
def test_tiny_ridge_is_survived_where_features_repeat_each_other(lam: float) -> None:
    """Five directions in nine features: A is singular but for lam."""
    flat = Z[:, :5] @ RNG.standard_normal((5, 9))
    ridge = Ridge(lam, 9)
    predictions = np.concatenate(
        [ridge.learn(flat[a : a + 30], Y[a : a + 30], forward=True) for a in range(0, 120, 30)]
    )
    assert np.isfinite(predictions).all()
    if lam < 1e-20:
        return  # lam is far below the rounding of a single feature: finite is all that can be asked
    fitted = flat @ np.linalg.lstsq(flat, Y, rcond=1e-12)[0]
    # What lam leaves undetermined does not show in the fit, but rounding of A / lam does.
    np.testing.assert_allclose(flat @ ridge.w, fitted, atol=1e-4)


def test_where_arrays_lie_in_memory_changes_nothing() -> None:
    # Compilers add up in another order where arrays are near each other, if a loop lets them.
    rng = np.random.default_rng(8)
    X = rng.uniform(-1.0, 1.0, (240, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    kept, results = [], set()
    for _ in range(30):
        kept.append([bytearray(size) for size in rng.integers(1, 3000, size=20).tolist()])
        results.add(PKAWV.paper(features="nystrom").partial_fit(X[:1], y[:1]).progressive(X[1:], y[1:]).tobytes())
    assert len(results) == 1
