"""Compiled loops against the same formulas in torch: equal but for the order of sums."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.kernels import ARDKernel, ColumnsKernel, Kernel, RotatedKernel, SphericalKernel, SumKernel, matern52
from bkbopt.kernels.ard import FORMS
from bkbopt.kernels.fixed import fixed_kernel
from bkbopt.posterior import gaussian_state
from bkbopt.posterior.collapsed import Collapsed
from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.linalg import LEAST_COMPILED, MOST_COMPILED
from bkbopt.posterior.model import Model

# Sums of some dozen terms below ten, in another order.
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


#: A rotation of the numeric columns 0 and 2.
R = torch.eye(4, dtype=torch.float64)
R[0, 0], R[0, 2], R[2, 0], R[2, 2] = 0.8, 0.6, -0.6, 0.8
STRUCTURES = (
    *("rotated", "additive", "rotated and additive", "inactive", "trend", "inactive trend", "rotated trend"),
    *("ripples", "rotated with ripples"),
)
KERNELS = (*FORMS, *STRUCTURES)


def kernel(form: str) -> Kernel:
    """A kernel on two numbers and two categories."""
    scales, hamming = torch.tensor([-1.0, -0.4]).double(), torch.tensor([0.3, -0.2]).double()
    if "inactive" in form:
        few = matern52(4, lengthscale=0.4, categorical=(1, 3), inactive=(0,))
        return SumKernel((few, trend((0, 1, 3)))) if "trend" in form else few
    name = form if form in FORMS else "matern52"
    base: Any = ARDKernel(scales, torch.tensor(0.7).double(), hamming, categorical=(1, 3), form=name)
    if "rotated" in form:
        base = RotatedKernel(base, R)
    if "trend" in form:
        return SumKernel((base, trend((1, 3))))
    if "ripples" in form:
        return SumKernel(
            (base, ARDKernel(scales - 1.2, torch.tensor(-0.8).double(), hamming + 0.4, (1, 3), "matern32"))
        )
    if "additive" not in form:
        return base  # type: ignore[no-any-return]
    variances = torch.tensor([-0.5, 0.2, -1.0, -0.7]).double()
    return SumKernel((base, ColumnsKernel(torch.tensor([-1.5, -0.9]).double(), variances, (1, 3))))


def trend(inactive: tuple[int, ...]) -> SphericalKernel:
    scales = torch.tensor([-0.5, 0.1]).double()[: 4 - len(inactive)]
    return SphericalKernel(scales, torch.tensor([-0.3, 0.4]).double(), inactive)


def points(n: int, seed: int = 0) -> Tensor:
    rng = np.random.default_rng(seed)
    return torch.as_tensor(np.where([True, False, True, False], rng.random((n, 4)), rng.integers(0, 3, (n, 4))))


def learnt(form: str, **options: Any) -> Model:
    """A posterior whose dictionary has drawn and appended points."""
    bkb = bo.BKB(kernel(form), noise=0.05, **options)
    X = points(80, seed=1)
    bkb.observe(X[:70], torch.sin(5.0 * X[:70, 0]))
    bkb.observe(X[70:], torch.cos(4.0 * X[70:, 2]))
    model = bkb.model
    assert model.plain is not None
    return model


def by_torch(model: Model, X: Tensor) -> tuple[Tensor, Tensor]:
    Z = model.features(X)
    residual = model.features.residual(X, Z)
    return Z @ model.w, residual + model.lam * (Z @ model.root.T).square().sum(1)


@pytest.mark.parametrize("form", KERNELS)
def test_mean_and_variance_are_those_of_the_formula_in_torch(form: str) -> None:
    model, X = learnt(form), points(77)
    for one, other in zip(model(X), by_torch(model, X), strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("n", [1, 3, 4, 5, 32, 33])
def test_a_prediction_does_not_depend_on_the_points_beside_it(n: int) -> None:
    model, X = learnt("matern52"), points(40)
    for few, many in zip(model(X[:n]), model(X), strict=True):
        assert torch.equal(few, many[:n])


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("n", [5, 400, 403])  # with few points the triangular root does not pay
def test_collapsed_predictions_are_those_of_torch(form: str, n: int) -> None:
    model, X = learnt(form), points(n)
    collapsed = model.collapse()
    assert isinstance(collapsed, Collapsed)
    slow = Collapsed(collapsed.kernel, collapsed.S, collapsed.a, collapsed.C)
    assert collapsed._compiles(X)
    for one, other in zip(collapsed(X), slow(X), strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("n", [1, 6])
def test_slopes_of_mean_and_variance_are_those_of_torch(form: str, n: int) -> None:
    model, X = learnt(form), points(n, seed=2)
    collapsed = model.collapse()
    assert isinstance(collapsed, Collapsed)
    slow = Collapsed(collapsed.kernel, collapsed.S, collapsed.a, collapsed.C)
    by_mean, by_variance = (torch.as_tensor(np.random.default_rng(seed).standard_normal(n)) for seed in (3, 4))
    one, other = (
        (mean, variance, back(by_mean, by_variance))
        for mean, variance, back in (predict.with_pullback(X) for predict in (collapsed, slow))
    )
    for fast, reference in zip(one, other, strict=True):
        torch.testing.assert_close(fast, reference, **CLOSE)


def test_a_variance_of_zero_has_no_slope() -> None:
    model = learnt("matern52")
    collapsed = model.collapse()
    assert isinstance(collapsed, Collapsed)
    known = replace(collapsed, C=2.0 * collapsed.C)  # explains more than the prior variance
    X = points(5, seed=2)
    _, variance, back = known.with_pullback(X)
    assert torch.equal(variance, torch.zeros(5).double())
    assert torch.equal(back(torch.zeros(5).double(), torch.ones(5).double()), torch.zeros(5, 4).double())


def test_exact_posterior_without_a_state_is_that_of_torch() -> None:
    gp = bo.ExactGP(kernel("rbf"), noise=0.05)
    X = points(40)
    gp.observe(X, X[:, 0])
    for one, other in zip(gp.model(points(9, 3)), by_torch(gp.model, points(9, 3)), strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("size", [LEAST_COMPILED, 37])
def test_rank_one_steps_are_those_of_torch(size: int, weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(size)
    Z, n, s = (torch.as_tensor(rng.random(shape)) for shape in ((50, size), 50, 50))
    state, z = GaussianState.from_data(Z, n, s, 0.3), torch.as_tensor(rng.standard_normal(size))
    before = [part.clone() for part in (state.V, state.root, state.b, state.w)]
    one, leverage = state.update_and_leverage(z, 1.7, weight)
    assert all(torch.equal(*pair) for pair in zip(before, (state.V, state.root, state.b, state.w), strict=True))
    monkeypatch.setattr(gaussian_state, "compiles", lambda size, A: False)
    other, other_leverage = state.update_and_leverage(z, 1.7, weight)
    assert leverage == pytest.approx(other_leverage, rel=1e-12)
    assert leverage == pytest.approx(float(state.leverage(z[None])), rel=1e-12)
    for name in ("V", "root", "b", "w"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name), **CLOSE)


@pytest.mark.parametrize("m", [LEAST_COMPILED - 1, MOST_COMPILED + 1])
def test_few_and_very_many_inducing_points_are_left_to_torch(m: int) -> None:
    S = torch.as_tensor(np.random.default_rng(0).random((m, 3)))
    assert Nystrom(bo.kernels.rbf(3, 0.5), S, torch.eye(m, dtype=torch.float64)).fixed is None


def test_other_kernels_are_left_to_torch() -> None:
    bkb = bo.BKB(lambda A, B: torch.exp(-((A[:, None] - B[None]) ** 2).sum(-1)), noise=0.05)
    bkb.observe(points(60), points(60)[:, 0])
    assert bkb.model.plain is None


@pytest.mark.parametrize(
    "parts",
    [
        (kernel("rbf"), SphericalKernel.start(4, (0, 1, 3))),
        (kernel("rbf"), ColumnsKernel.start(4)),
        (kernel("rbf"), matern52(4, categorical=(1,))),
        (kernel("inactive"), ColumnsKernel.start(4, (1, 3))),
        (ColumnsKernel.start(4, (1, 3)), kernel("rbf")),
        (kernel("rbf"), ColumnsKernel.start(4, (1, 3)), ColumnsKernel.start(4, (1, 3))),
    ],
)
def test_other_sums_are_left_to_torch(parts: tuple[Any, ...]) -> None:
    assert fixed_kernel(SumKernel(parts), points(20)) is None


def test_points_of_other_columns_are_refused() -> None:
    with pytest.raises(bo.errors.KernelError, match="expected points with 4 columns"):
        learnt("rbf")(points(5)[:, :3])


def test_what_is_cached_does_not_travel_with_a_model() -> None:
    model, X = learnt("matern52"), points(9)
    copy = pickle.loads(pickle.dumps(model))
    assert "plain" not in vars(copy)
    assert "fixed" not in vars(copy.features)
    for one, other in zip(copy(X), model(X), strict=True):
        assert torch.equal(one, other)
