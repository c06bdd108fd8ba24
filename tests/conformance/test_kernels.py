"""What every kernel keeps to, and those that can be fitted or have closed form; subjects: `kernel_subjects.py`.

A kernel that is defined elsewhere joins by a line there, or by a file of tests that runs this suite.
"""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
import torch

from bkbopt.errors import KernelError
from bkbopt.kernels import ClosedFormKernel, FittableKernel, Kernel, as_kernel, gram
from bkbopt.kernels.base import has_closed_form, is_fittable, placed
from bkbopt.kernels.saving import kernel_from_state, kernel_to_state
from tests.conformance.kernel_subjects import CLOSED, DIM, FITTABLE, KERNELS, moved, points
from tests.conformance.suites import check_complete, implementations, joined

EXEMPT = dict.fromkeys(
    ("GaussianGram", "TensorGram"), "of arrays; tests/learners/numerics/test_gram.py compares them with kernels"
)


def names(kernels: dict[str, Any]) -> set[str]:
    return {type(kernel).__name__ for kernel in kernels.values()}


def test_every_kernel_of_the_package_is_a_subject_or_exempt() -> None:
    every = implementations(Kernel)
    check_complete(every, names(KERNELS) | joined("test_kernels", every), EXEMPT)
    every = implementations(FittableKernel)
    check_complete(every, names(FITTABLE) | joined("test_kernels", every), {})
    every = implementations(ClosedFormKernel)
    check_complete(every, names(CLOSED) | joined("test_kernels", every), {})


# -- all -------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return KERNELS[request.param]


def test_matrix_is_symmetric_and_positive_semidefinite(kernel: Kernel) -> None:
    X = points(30)
    K = kernel(X, X)
    scale = float(kernel.diag(X).max())
    torch.testing.assert_close(K, K.T, rtol=0.0, atol=1e-14 * scale)
    assert float(torch.linalg.eigvalsh(gram(kernel, X))[0]) > -1e-13 * scale


def test_prior_variances_are_the_diagonal(kernel: Kernel) -> None:
    X = points(9)
    torch.testing.assert_close(kernel(X, X).diagonal(), kernel.diag(X), rtol=1e-12, atol=0.0)


def test_a_value_is_that_of_its_two_points_alone(kernel: Kernel) -> None:
    X, U = points(7), points(5, seed=1)
    alone = torch.cat([torch.cat([kernel(x, u) for u in U.split(1)], 1) for x in X.split(1)])
    # Products of other shapes round differently.
    torch.testing.assert_close(kernel(X, U), alone, rtol=1e-13, atol=1e-14)


def test_values_are_doubles_also_for_no_points(kernel: Kernel) -> None:
    X = points(4)
    for A, B in ((X, X), (X[:0], X), (X, X[:0])):
        assert (kernel(A, B).shape, kernel(A, B).dtype) == ((len(A), len(B)), torch.float64)
        assert (kernel.diag(A).shape, kernel.diag(A).dtype) == ((len(A),), torch.float64)


def test_a_surrogate_takes_the_kernel_with_its_values_and_what_can_be_fitted(kernel: Kernel) -> None:
    taken, X = as_kernel(kernel), points(6)
    assert torch.equal(taken(X, X), kernel(X, X))
    assert is_fittable(taken) == is_fittable(kernel)


def test_a_kernel_on_the_device_where_it_is_stays_as_it_is(kernel: Kernel) -> None:
    assert placed(kernel, torch.device("cpu")) is kernel
    assert placed(kernel, None) is kernel


def test_a_kernel_is_restored_from_its_state_or_given_again(kernel: Kernel) -> None:
    state = kernel_to_state(kernel)
    restored: Any = kernel_from_state(state, kernel if state == {"form": None} else None)
    X = points(7)
    assert torch.equal(restored(X, X), kernel(X, X))
    assert plain(restored) == plain(kernel)


def plain(kernel: Any) -> dict[str, object]:
    """The fields of a kernel that are numbers, text or columns."""
    if not is_dataclass(kernel):
        return {}
    values = {field.name: getattr(kernel, field.name) for field in fields(kernel)}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, str | float) or (isinstance(value, tuple) and all(isinstance(i, int) for i in value))
    }


# -- that can be fitted ----------------------------------------------------------------------------------------------


@pytest.fixture(params=FITTABLE)
def fittable(request: pytest.FixtureRequest) -> FittableKernel:
    return moved(FITTABLE[request.param])


def test_hyper_parameters_make_the_same_kernel_again(fittable: FittableKernel) -> None:
    again, X = fittable.with_theta(fittable.theta), points(6)
    assert torch.equal(again.theta, fittable.theta)
    assert torch.equal(again(X, X), fittable(X, X))
    assert torch.equal(again.log_prior(), fittable.log_prior())
    assert plain(again) == plain(fittable)


def test_other_hyper_parameters_leave_the_kernel_as_it_was(fittable: FittableKernel) -> None:
    X, before = points(6), fittable.theta.clone()
    K = fittable(X, X)
    other = fittable.with_theta(before + 0.5)
    assert torch.equal(other.theta, before + 0.5)
    assert not torch.allclose(other(X, X), K)
    assert torch.equal(fittable.theta, before)
    assert torch.equal(fittable(X, X), K)


def test_gradients_in_hyper_parameters_are_those_of_finite_differences(fittable: FittableKernel) -> None:
    A, B = points(5), points(4, seed=1)
    theta = fittable.theta.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda t: fittable.with_theta(t)(A, B), (theta,))
    assert torch.autograd.gradcheck(lambda t: fittable.with_theta(t).diag(A), (theta,))
    assert torch.autograd.gradcheck(lambda t: fittable.with_theta(t).log_prior(), (theta,))


# -- with closed form ------------------------------------------------------------------------------------------------


@pytest.fixture(params=CLOSED)
def closed(request: pytest.FixtureRequest) -> ClosedFormKernel:
    kernel = moved(CLOSED[request.param])
    assert isinstance(kernel, ClosedFormKernel)
    return kernel


def test_derivative_by_hyper_parameters_is_that_of_automatic_differentiation(closed: ClosedFormKernel) -> None:
    U = points(15)
    M = torch.randn(15, 15, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    M = M + M.T
    theta = closed.theta.clone().requires_grad_()
    K = closed.with_theta(theta)(U, U)
    (expected,) = torch.autograd.grad((M * K).sum(), theta)
    value, pullback = closed.by_theta(U)(closed.theta.numpy())
    np.testing.assert_allclose(value, K.detach().numpy(), rtol=1e-12, atol=1e-14)
    # Sums of 225 terms of size one.
    np.testing.assert_allclose(pullback(M.numpy()), expected.numpy(), rtol=1e-10, atol=1e-12)


def test_derivative_by_points_is_that_of_automatic_differentiation(closed: ClosedFormKernel) -> None:
    X, U = points(5, seed=2).requires_grad_(), points(15)
    M = torch.randn(5, 15, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    K = closed(X, U)
    (expected,) = torch.autograd.grad((M * K).sum(), X)
    value, pullback = closed.sloped(U)(X.detach())
    torch.testing.assert_close(value, K.detach(), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(pullback(M), expected, rtol=1e-10, atol=1e-12)


def test_slope_of_the_prior_is_that_of_its_density(closed: ClosedFormKernel) -> None:
    theta = closed.theta.clone().requires_grad_()
    (expected,) = torch.autograd.grad(closed.prior.log_density(theta), theta)
    value, slope = closed.prior.with_slope(closed.theta.numpy())
    np.testing.assert_allclose(slope, expected.numpy(), rtol=1e-12, atol=1e-15)
    for density in (closed.log_prior(), closed.prior.log_density(closed.theta)):
        assert value == pytest.approx(float(density), rel=1e-12)


def test_kernel_is_taken_as_it_is(closed: ClosedFormKernel) -> None:
    assert as_kernel(closed) is closed


def test_points_of_other_columns_are_refused(closed: ClosedFormKernel) -> None:
    with pytest.raises(KernelError, match=f"kernel: expected points with {DIM} columns"):
        closed(points(2), torch.zeros(2, 3, dtype=torch.float64))


def test_away_from_the_hosts_memory_nothing_is_compiled(closed: ClosedFormKernel) -> None:
    # The meta device stands for a GPU: it computes shapes, and refuses what reads numbers.
    away = points(3).to("meta")
    assert has_closed_form(closed, points(3))
    assert not has_closed_form(closed, away)
