"""Exact online regression against dense linear algebra, and its regret bound."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bkbopt.errors import ArgumentError, KernelError
from bkbopt.kernels import matern52
from bkbopt.learners import KernelAWV, OnlineKRR

RNG = np.random.default_rng(3)
X = RNG.uniform(-1.0, 1.0, (330, 3))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.standard_normal(330)
LAM, LENGTH = 0.3, 0.6


def gaussian(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.exp(-((A[:, None] - B) ** 2).sum(-1) / (2.0 * LENGTH**2))


def ridge_prediction(t: int) -> float:
    K = gaussian(X[:t], X[: t + 1])
    return float(Y[:t] @ np.linalg.solve(K[:, :t] + LAM * np.eye(t), K[:, t]))


def forward_prediction(t: int) -> float:
    """The forecaster's definition: ridge regression on all rows, the new one with target zero."""
    K = gaussian(X[: t + 1], X[: t + 1])
    return float(np.append(Y[:t], 0.0) @ np.linalg.solve(K + LAM * np.eye(t + 1), K[:, t]))


@pytest.mark.parametrize(("learner", "direct"), [(OnlineKRR, ridge_prediction), (KernelAWV, forward_prediction)])
def test_predictions_are_those_of_a_solve_from_scratch(learner: type[OnlineKRR], direct: object) -> None:
    predictions = learner.paper(lam=LAM, lengthscale=LENGTH).progressive(X, Y)
    rows = [0, 1, 2, 50, 255, 256, 257, 329]
    # Both are backward stable, with a condition number of about 1e3.
    np.testing.assert_allclose(predictions[rows], [direct(t) for t in rows], atol=1e-12)  # type: ignore[operator]


@pytest.mark.parametrize("learner", [OnlineKRR, KernelAWV])
def test_predict_is_what_the_next_row_would_get(learner: type[OnlineKRR]) -> None:
    model = learner.paper(lam=LAM, lengthscale=LENGTH).fit(X[:300], Y[:300])
    np.testing.assert_allclose(model.predict(X[300:301]), model.progressive(X[300:301], Y[300:301]), atol=1e-13)


def test_attributes_are_those_of_the_kernel_matrix() -> None:
    model = KernelAWV.paper(lam=LAM, lengthscale=LENGTH)
    predictions = model.progressive(X, Y)
    K = gaussian(X, X)
    assert model.logdet_ == pytest.approx(np.linalg.slogdet(np.eye(len(X)) + K / LAM)[1], rel=1e-10)
    least = LAM * Y @ np.linalg.solve(K + LAM * np.eye(len(X)), Y)
    assert model.regularised_minimum_ == pytest.approx(least, rel=1e-10)
    assert model.regret_ == pytest.approx(np.sum((predictions - Y) ** 2) - least, rel=1e-10)
    assert model.dictionary_size_ == len(X)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([0.01, 1.0, 30.0]), st.floats(0.1, 100.0))
def test_forward_regret_stays_below_its_bound_on_any_stream(seed: int, unique: int, lam: float, scale: float) -> None:
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1.0, 1.0, (unique, 2))[rng.integers(0, unique, 60)]
    targets = scale * rng.choice([-1.0, 1.0], 60)
    model = KernelAWV.paper(lam=lam)
    model.progressive(points, targets)
    assert model.regret_ <= model.regret_bound_ * (1.0 + 1e-9) + 1e-9 * scale**2


def test_ridge_regression_promises_no_regret_bound() -> None:
    assert OnlineKRR.paper().fit(X, Y).regret_bound_ == float("inf")


def test_other_kernels_of_the_package_serve() -> None:
    kernel = matern52(3, 0.7, 2.0)
    K = kernel(torch.from_numpy(X), torch.from_numpy(X)).numpy()
    model = OnlineKRR.paper(kernel=kernel, lam=LAM).fit(X[:100], Y[:100])
    direct = K[100:, :100] @ np.linalg.solve(K[:100, :100] + LAM * np.eye(100), Y[:100])
    np.testing.assert_allclose(model.predict(X[100:]), direct, atol=1e-11)


def test_kernel_for_other_features_is_refused() -> None:
    with pytest.raises(ArgumentError, match="kernel: expected one for 3 features, got one for 2"):
        OnlineKRR.paper(kernel=matern52(2)).fit(X, Y)


def test_kernel_that_is_not_positive_definite_is_refused() -> None:
    def negative(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return -np.asarray(A @ B.T) * 50.0

    model = OnlineKRR.paper(kernel=negative)
    with pytest.raises(KernelError, match="positive semi-definite"):
        model.fit(X, Y)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("lam", [1e-14, 1e-18, 1e-25])
def test_tiny_ridge_is_survived_where_rows_repeat(lam: float) -> None:
    # What is left of k(x, x) is rounding, negative or not, and much larger than the ridge.
    rows, y = np.vstack([X, X, np.repeat(X[:20], 13, axis=0)]), np.concatenate([Y, Y, np.repeat(Y[:20], 13)])
    model = OnlineKRR.paper(lam=lam)
    assert np.isfinite(model.progressive(rows, y)).all()
    assert model.n_rounds_ == len(rows)
    # The targets are smooth but for noise of 0.1, which no ridge takes away.
    assert np.abs(model.predict(X) - Y).max() < 0.1


@pytest.mark.parametrize("lam", [0.0, -1.0, float("nan")])
def test_ridge_must_be_positive(lam: float) -> None:
    with pytest.raises(ArgumentError, match="lam: expected a positive finite ridge"):
        KernelAWV.paper(lam=lam).fit(X, Y)
