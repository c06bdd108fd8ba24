"""Sums over columns, sums of kernels, rotations; and the closed-form derivatives of all kernels."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.gaussian_process.kernels import Matern
from torch import Tensor

import bkbopt as bo
from bkbopt.errors import KernelError
from bkbopt.kernels import (
    ClosedFormKernel,
    ColumnsKernel,
    FittableKernel,
    RotatedKernel,
    SphericalKernel,
    SumKernel,
    as_kernel,
    matern52,
    rbf,
)
from bkbopt.kernels.ard import FORMS, ARDKernel
from bkbopt.kernels.base import has_closed_form, is_fittable

DIM, CATEGORY = 4, 2


def rotation(columns: tuple[int, ...] = (0, 1, 3)) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    R, index = torch.eye(DIM, dtype=torch.float64), torch.tensor(columns)
    A = torch.randn(len(columns), len(columns), generator=generator, dtype=torch.float64)
    R[index[:, None], index] = torch.linalg.qr(A)[0]
    return R


def moved(kernel: FittableKernel) -> FittableKernel:
    """The kernel away from where it starts, differently in each hyper-parameter."""
    return kernel.with_theta(kernel.theta + torch.linspace(-0.4, 0.5, len(kernel.theta), dtype=torch.float64))


ARD, COLUMNS = matern52(DIM, categorical=[CATEGORY]), ColumnsKernel.start(DIM, [CATEGORY])
CLOSED = {
    **{form: replace(ARD, form=form) for form in FORMS},
    "inactive": matern52(DIM, categorical=[CATEGORY], inactive=[1]),
    "columns": COLUMNS,
    "numbers only": ColumnsKernel.start(DIM),
    "sum": SumKernel((ARD, COLUMNS)),
    "rotated": RotatedKernel(ARD, rotation()),
    "rotated sum": SumKernel((RotatedKernel(ARD, rotation()), COLUMNS)),
    "ripples": SumKernel((ARD, replace(ARD, form="rbf", height_prior=(-2.0, 1.5)))),
    "spherical": SphericalKernel.start(DIM, [CATEGORY]),
    "trend": SumKernel((ARD, SphericalKernel.start(DIM, [CATEGORY]))),
}


def points(n: int, seed: int = 0) -> Tensor:
    X = torch.rand(n, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    X[:, CATEGORY] = (3.0 * X[:, CATEGORY]).floor()
    return X


@pytest.fixture(params=CLOSED)
def kernel(request: pytest.FixtureRequest) -> ClosedFormKernel:
    kernel = moved(CLOSED[request.param])
    assert isinstance(kernel, ClosedFormKernel)
    return kernel


def test_derivative_by_hyper_parameters_is_that_of_automatic_differentiation(kernel: ClosedFormKernel) -> None:
    U = points(15)
    M = torch.randn(15, 15, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    M = M + M.T
    theta = kernel.theta.clone().requires_grad_()
    K = kernel.with_theta(theta)(U, U)
    (expected,) = torch.autograd.grad((M * K).sum(), theta)
    value, pullback = kernel.by_theta(U)(kernel.theta.numpy())
    np.testing.assert_allclose(value, K.detach().numpy(), rtol=1e-12, atol=1e-14)
    # Sums of 225 terms of size one.
    np.testing.assert_allclose(pullback(M.numpy()), expected.numpy(), rtol=1e-10, atol=1e-12)


def test_derivative_by_points_is_that_of_automatic_differentiation(kernel: ClosedFormKernel) -> None:
    X, U = points(5, seed=2).requires_grad_(), points(15)
    M = torch.randn(5, 15, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    K = kernel(X, U)
    (expected,) = torch.autograd.grad((M * K).sum(), X)
    value, pullback = kernel.sloped(U)(X.detach())
    torch.testing.assert_close(value, K.detach(), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(pullback(M), expected, rtol=1e-10, atol=1e-12)


def test_prior_variances_are_the_diagonal(kernel: ClosedFormKernel) -> None:
    X = points(9)
    torch.testing.assert_close(kernel(X, X).diagonal(), kernel.diag(X), rtol=1e-12, atol=0.0)


def test_slope_of_the_prior_is_that_of_its_density(kernel: ClosedFormKernel) -> None:
    theta = kernel.theta.clone().requires_grad_()
    (expected,) = torch.autograd.grad(kernel.prior.log_density(theta), theta)
    value, slope = kernel.prior.with_slope(kernel.theta.numpy())
    np.testing.assert_allclose(slope, expected.numpy(), rtol=1e-12, atol=1e-15)
    for density in (kernel.log_prior(), kernel.prior.log_density(kernel.theta)):
        assert value == pytest.approx(float(density), rel=1e-12)


def test_kernel_is_taken_as_it_is(kernel: ClosedFormKernel) -> None:
    assert as_kernel(kernel) is kernel


@pytest.mark.parametrize("n", [0, 1, 256, 257])
def test_columns_are_the_sum_of_scikit_learns_kernels_of_one_column(n: int) -> None:
    lengthscales, variances = (0.1, 0.7, 2.0, 0.3), (0.5, 1.5, 0.1, 1.0)
    kernel = ColumnsKernel(
        torch.tensor(lengthscales, dtype=torch.float64).log(), torch.tensor(variances, dtype=torch.float64).log()
    )
    X = torch.rand(n, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    U = torch.rand(7, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = torch.zeros(n, 7, dtype=torch.float64)
    for j, (lengthscale, variance) in enumerate(zip(lengthscales, variances, strict=True)):
        if n:
            one = Matern(lengthscale, nu=2.5)(X[:, [j]].numpy(), U[:, [j]].numpy())
            expected += variance * torch.as_tensor(one)
    torch.testing.assert_close(kernel(X, U), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("far", [10.0, 1e6])
def test_columns_reach_beyond_where_exponentials_are_doubles(far: float) -> None:
    kernel = ColumnsKernel(torch.tensor([-4.0]).double(), torch.zeros(1).double())
    X = torch.tensor([[0.0], [far]], dtype=torch.float64)
    U = torch.tensor([[0.0], [far], [far + 0.01]], dtype=torch.float64)
    K = kernel(X, U)
    assert float(K[0, 0]) == float(K[1, 1]) == 1.0
    assert float(K[0, 1]) == 0.0
    # Up to the rounding of `far`, 1e-10.
    expected = float(Matern(math.exp(-4.0), nu=2.5)([[0.0]], [[0.01]])[0, 0])
    assert float(K[1, 2]) == pytest.approx(expected, rel=1e-7)


def test_category_of_a_sum_over_columns_counts_where_it_is_equal() -> None:
    kernel = ColumnsKernel(torch.zeros(1).double(), torch.tensor([1.0, 3.0]).double().log(), categorical=(0,))
    X = torch.tensor([[0.0, 0.5], [1.0, 0.5]], dtype=torch.float64)
    torch.testing.assert_close(kernel(X, X), torch.tensor([[4.0, 1.0], [1.0, 4.0]], dtype=torch.float64))


def test_inactive_columns_of_a_sum_have_no_part() -> None:
    X = torch.rand(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    X[:, 2] = torch.tensor([0.0, 1.0, 0.0, 1.0, 2.0, 2.0])
    with_all, without = ColumnsKernel.start(4, [2], inactive=[0]), ColumnsKernel.start(3, [1])
    assert (with_all.dim, with_all.numeric, with_all.theta.tolist()) == (4, [1, 3], without.theta.tolist())
    assert torch.equal(with_all(X, X[:2]), without(X[:, 1:], X[:2, 1:]))
    assert float(with_all.log_prior()) == float(without.log_prior())


def test_rotation_does_not_change_an_isotropic_kernel() -> None:
    X, R = torch.rand(6, DIM, dtype=torch.float64), rotation((0, 1, 2, 3))
    kernel = rbf(DIM, lengthscale=0.7)
    torch.testing.assert_close(RotatedKernel(kernel, R)(X, X), kernel(X, X), rtol=1e-12, atol=1e-14)


def test_hyper_parameters_of_a_sum_are_those_of_its_parts() -> None:
    kernel = SumKernel((ARD, COLUMNS))
    theta = torch.arange(float(len(kernel.theta)), dtype=torch.float64)
    first, second = kernel.with_theta(theta).parts
    assert torch.equal(torch.cat([first.theta, second.theta]), theta)


def test_points_of_other_columns_are_refused(kernel: ClosedFormKernel) -> None:
    with pytest.raises(KernelError, match="kernel: expected points with 4 columns"):
        kernel(points(2), torch.zeros(2, 3, dtype=torch.float64))


def test_away_from_the_hosts_memory_nothing_is_compiled(kernel: ClosedFormKernel) -> None:
    # The meta device stands for a GPU: it computes shapes, and refuses what reads numbers.
    away = points(3).to("meta")
    assert has_closed_form(kernel, points(3))
    assert not has_closed_form(kernel, away)


def test_columns_are_summed_where_the_points_are() -> None:
    away = torch.empty(3, DIM, dtype=torch.float64, device="meta")
    assert COLUMNS.to(torch.device("meta"))(away, away).device.type == "meta"


def test_the_prior_is_not_computed_to_see_whether_there_is_a_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(ARDKernel, "prior", property(calls.append))
    assert has_closed_form(matern52(2), points(3))
    assert calls == []


def test_a_compound_kernel_lacks_what_a_part_of_it_lacks() -> None:
    foreign: Any = as_kernel(lambda A, B: A @ B.T)
    for compound in (SumKernel((matern52(DIM), foreign)), RotatedKernel(foreign, rotation())):
        assert not is_fittable(compound)
        assert not has_closed_form(compound, points(3))
    optimizer = bo.Optimizer({"x": (0.0, 1.0)}, surrogate=bo.ExactGP(SumKernel((matern52(1), foreign)), 0.1), fit=False)
    for value in (0.0, 1.0):
        optimizer.tell({"x": value}, value)
    assert optimizer.recommend().params == {"x": 0.0}


def test_hyper_parameters_may_be_an_attribute_of_the_instance() -> None:
    class Line:
        def __init__(self, theta: Tensor) -> None:
            self.theta = theta

        def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
            return self.theta.exp() * X1 @ X2.T

        def diag(self, X: Tensor) -> Tensor:
            return self.theta.exp() * (X * X).sum(1)

        def with_theta(self, theta: Tensor) -> "Line":
            return Line(theta)

        def log_prior(self) -> Tensor:
            return -0.5 * self.theta.square().sum()

    line = Line(torch.zeros(1, dtype=torch.float64))
    assert is_fittable(line)
    assert not has_closed_form(line, points(3))
