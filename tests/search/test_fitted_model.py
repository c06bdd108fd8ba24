"""When and how the surrogate is fitted, and kernels in state files."""

from itertools import pairwise
from typing import Any

import gpytorch
import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError
from bkbopt.kernels import ARDKernel, as_kernel, matern52, rbf
from bkbopt.search.fitted_model import GROWTH, FittedModel, kernel_state, restored_kernel
from bkbopt.surrogates.bkb import BKB


def modelling(surrogate: Any = None, **options: Any) -> FittedModel:
    settings: dict[str, Any] = {"fit": True, "sign": -1.0, "categorical": (), "rng": np.random.default_rng(0)}
    return FittedModel(surrogate or bo.ExactGP(), **settings | options)


def data(n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    X = torch.as_tensor(np.random.default_rng(seed).random((n, 2)))
    return X, torch.sin(6.0 * X[:, 0]) + X[:, 1]


def test_fits_are_due_when_the_data_have_grown_by_a_factor() -> None:
    m = modelling()
    due = []
    for n in range(1, 200):
        if m.fit_is_due(n):
            due.append(n)
            m.n_fitted = n
    assert due[0] == 1
    assert all(b == max(a + 1, int(np.ceil(GROWTH * a))) for a, b in pairwise(due))


def test_nothing_is_fitted_with_fit_false() -> None:
    kernel = rbf(2, 0.3)
    m = modelling(bo.ExactGP(kernel, noise=0.01), fit=False)
    X, y = data(20)
    m.tell(X, y)
    assert not any(m.fit_is_due(n) for n in (1, 20, 1000))
    assert m.surrogate.kernel is kernel
    assert m.surrogate.noise == 0.01
    assert torch.equal(m.surrogate.observations.s, -y)  # only the direction


@pytest.mark.parametrize("surrogate", [bo.BKB, lambda: bo.BKB(rbf(2)), lambda: bo.BKB(noise=0.1)])
def test_fit_false_needs_kernel_and_noise(surrogate: Any) -> None:
    with pytest.raises(ArgumentError, match="fit: expected a surrogate with kernel and noise"):
        modelling(surrogate(), fit=False)


def test_values_wait_for_the_first_fit() -> None:
    m = modelling()
    X, y = data(10)
    m.tell(X, y)
    assert not m.ready
    m.refit(X, y)
    assert m.ready
    more, values = data(3, seed=1)
    m.tell(more, values)
    assert m.surrogate.observations.total == 13


def test_noise_given_in_the_users_units_is_kept() -> None:
    X, y = data(30)
    for unit in (1.0, 1e-3, 1e6):
        m = modelling(bo.ExactGP(noise=(0.1 * unit) ** 2))
        m.refit(X, y * unit)
        assert m.scaler.width(m.surrogate.noise**0.5) == pytest.approx(0.1 * unit, rel=1e-9)
        m.refit(X, y * unit)  # and at the next fit too
        assert m.scaler.width(m.surrogate.noise**0.5) == pytest.approx(0.1 * unit, rel=1e-9)


def test_fit_finds_the_relevant_column() -> None:
    X = torch.as_tensor(np.random.default_rng(0).random((60, 2)))
    m = modelling()
    m.refit(X, torch.sin(6.0 * X[:, 0]))
    short, long = m.surrogate.kernel.lengthscale.tolist()
    assert long > 3.0 * short


def test_units_of_y_do_not_change_the_fit() -> None:
    X, y = data(30)
    lengthscales = []
    for unit in (1.0, 2.0**500, 2.0**-500):  # powers of two: the scaled values are the same to the last bit
        m = modelling()
        m.refit(X, y * unit)
        lengthscales.append(m.surrogate.kernel.lengthscale)
    assert torch.equal(lengthscales[0], lengthscales[1])
    assert torch.equal(lengthscales[0], lengthscales[2])


def test_kernel_without_hyperparameters_gets_a_fitted_scale() -> None:
    m = modelling(bo.ExactGP(kernel=lambda A, B: torch.exp(-torch.cdist(A, B))))
    X, y = data(20)
    m.refit(X, y)
    assert float(m.surrogate.kernel.diag(X[:1])[0]) != 1.0


def test_best_points_are_those_of_largest_posterior_mean() -> None:
    m = modelling(BKB())
    X, y = data(40)
    m.refit(X, y)
    obs = m.surrogate.observations
    means = m.surrogate.posterior(obs.X).mean
    assert torch.equal(m.best_points(3), obs.X[means.topk(3).indices])
    assert len(m.best_points(100)) == 40


def test_lie_is_a_poor_value() -> None:
    m = modelling()
    X, y = data(40)
    m.refit(X, y)
    v = m.scaler.transform(y)
    assert float(v.min()) < m.lie() < float(v.median())


def test_ard_kernel_comes_back_from_its_state() -> None:
    for form in ("matern12", "matern32", "matern52", "rbf"):
        base = matern52(4, 0.7, 2.0, categorical=(1, 3))
        kernel = ARDKernel(base.log_lengthscale, base.log_outputscale, base.log_hamming, (1, 3), form, 0.5)
        again = restored_kernel(kernel_state(kernel), None)
        X = torch.as_tensor(np.random.default_rng(0).integers(3, size=(10, 4)).astype(float))
        assert torch.equal(kernel(X, X), again(X, X))
        assert isinstance(again, ARDKernel)
        assert again.log_prior() == kernel.log_prior()


def test_kernel_that_is_not_ours_needs_its_code_and_gets_its_numbers() -> None:
    fitted = as_kernel(gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()))
    fitted = fitted.with_theta(fitted.theta + 0.7)
    state = kernel_state(fitted)
    with pytest.raises(ArgumentError, match="pass surrogate="):
        restored_kernel(state, None)
    given = as_kernel(gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()))
    X, _ = data(5)
    assert torch.equal(restored_kernel(state, given)(X, X), fitted(X, X))
