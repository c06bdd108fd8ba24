"""Sums over columns, sums of kernels, rotations; what all kernels keep to is in `tests/conformance`."""

import math
from typing import Any

import pytest
import torch
from sklearn.gaussian_process.kernels import Matern

import bkbopt as bo
from bkbopt.kernels import (
    ColumnsKernel,
    RotatedKernel,
    SumKernel,
    as_kernel,
    matern52,
    rbf,
)
from bkbopt.kernels.ard import ARDKernel
from bkbopt.kernels.base import has_closed_form, is_fittable
from tests.conformance.kernel_subjects import ARD, COLUMNS, DIM, Sine, points, rotation


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
    own = Sine(torch.zeros(2, dtype=torch.float64))
    assert is_fittable(own)
    assert not has_closed_form(own, points(3))
