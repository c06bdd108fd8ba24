"""Predictions of values from all others, against scikit-learn's process and SciPy's densities."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern
from torch import Tensor

from bkbopt.kernels import matern52
from bkbopt.surrogates import left_out
from bkbopt.surrogates.left_out import gains, predictions_from_others

LAM, LENGTHSCALE = 0.04, 0.4


def data() -> tuple[Tensor, Tensor, Tensor]:
    """Values of a sine at points of which the first are repeated by the last, and which of them are kept."""
    rng = np.random.default_rng(0)
    X = rng.random((37, 2))
    X[30:35], X[35:] = X[:5], X[0]
    y = np.sin(5.0 * X.sum(1)) + 0.2 * rng.standard_normal(37)
    is_kept = np.ones(37, dtype=bool)
    is_kept[[2, 7, 31, 36]] = False  # one that is alone at its point, and some that are not
    return torch.as_tensor(X), torch.as_tensor(y), torch.as_tensor(is_kept)


def from_others(X: Tensor, y: Tensor, is_kept: Tensor, i: int) -> tuple[float, float]:
    """scikit-learn's prediction of value i from all other kept ones."""
    others = is_kept.clone()
    others[i] = False
    process = GaussianProcessRegressor(Matern(LENGTHSCALE, nu=2.5), alpha=LAM, optimizer=None)
    process.fit(X[others].numpy(), y[others].numpy())
    mean, deviation = process.predict(X[i : i + 1].numpy(), return_std=True)
    return float(mean[0]), float(deviation[0]) ** 2 + LAM


def test_each_value_is_predicted_from_all_other_kept_ones() -> None:
    X, y, is_kept = data()
    found = predictions_from_others(X, y, is_kept, matern52(2, LENGTHSCALE), LAM, np.random.default_rng(0))
    expected = torch.tensor([from_others(X, y, is_kept, i) for i in range(len(y))], dtype=torch.float64)
    torch.testing.assert_close(torch.stack(found, 1), expected, rtol=1e-8, atol=1e-10)


def test_of_many_points_a_subset_predicts_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_out, "MOST", 20)
    monkeypatch.setattr(left_out, "BLOCK", 7)
    X, y = (part[:30] for part in data()[:2])  # without repeats
    every = torch.ones(30, dtype=torch.bool)
    mean, variance = predictions_from_others(X, y, every, matern52(2, LENGTHSCALE), LAM, np.random.default_rng(0))
    taken = left_out.FitData.of(observed(X, y)).subset(20, np.random.default_rng(0)).U
    is_taken = (X[:, None] == taken).all(2).any(1)
    assert int(is_taken.sum()) == 20
    expected = torch.tensor([from_others(X, y, is_taken, i) for i in range(30)], dtype=torch.float64)
    torch.testing.assert_close(torch.stack([mean, variance], 1), expected, rtol=1e-8, atol=1e-10)


def observed(X: Tensor, y: Tensor) -> left_out.Observations:
    out = left_out.Observations(2)
    out.add(X, y)
    return out


@pytest.mark.parametrize("z", [0.3, 1.0, 1.7, 4.0, 30.0])
def test_the_gain_is_that_of_the_best_noise_variance_of_the_value(z: float) -> None:
    mean, variance = 0.7, 2.0
    y = mean + z * variance**0.5

    def loss(log_more: float) -> float:
        return -float(norm.logpdf(y, mean, (variance + np.exp(log_more)) ** 0.5))

    best = minimize_scalar(loss, bounds=(-30.0, 12.0), method="bounded", options={"xatol": 1e-9})
    expected = -best.fun - norm.logpdf(y, mean, variance**0.5)
    found = gains(*(torch.tensor([a], dtype=torch.float64) for a in (y, mean, variance)))
    assert float(found) == pytest.approx(float(expected), abs=1e-9)
