"""Kernels: ours against GPyTorch's, and refusals of invalid kernels."""

import math
from collections.abc import Callable

import gpytorch
import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import Tensor

from bkbopt import BKB, ExactGP
from bkbopt.errors import ArgumentError, KernelError
from bkbopt.kernels import (
    ARDKernel,
    Kernel,
    as_kernel,
    gram,
    matern,
    matern52,
    rbf,
)
from tests.kernels.twins import FORMS, ours, random_points, theirs

# -- ours ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_values_are_gpytorchs(form: str) -> None:
    A, B = random_points(40), random_points(30, seed=1)
    expected = theirs(form)(A, B).to_dense().detach()
    # The fast distance formula is good to 1e-15 in r^2; a Matern-1/2 kernel would feel its root, and avoids it.
    torch.testing.assert_close(ours(form)(A, B), expected, rtol=0.0, atol=1e-13)
    torch.testing.assert_close(ours(form).diag(A), torch.full((40,), 2.5, dtype=torch.float64))


@pytest.mark.parametrize("form", FORMS)
def test_values_are_the_same_with_and_without_gradients(form: str) -> None:
    A, B = random_points(20), random_points(10, seed=1)
    kernel = ours(form)
    torch.testing.assert_close(kernel(A.clone().requires_grad_(), B).detach(), kernel(A, B), rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_in_points_are_gpytorchs(form: str) -> None:
    A, B = random_points(8), random_points(6, seed=1)
    weights = random_points(8, 6, seed=2)
    gradients = []
    for kernel in (lambda X: ours(form)(X, B), lambda X: theirs(form)(X, B).to_dense()):
        X = A.clone().requires_grad_()
        gradients.append(torch.autograd.grad((kernel(X) * weights).sum(), X)[0])
    torch.testing.assert_close(*gradients, rtol=1e-11, atol=1e-12)


def test_gradient_in_a_point_is_finite_and_zero_at_a_point_itself() -> None:
    for form in ("rbf", "matern32", "matern52"):
        X = random_points(3).requires_grad_()
        (g,) = torch.autograd.grad(ours(form)(X, X.detach()).diagonal().sum(), X)
        # k(x, x') is flat at x = x'; what is left is rounding of r^2, whose root is up to 1e-8.
        assert float(g.abs().max()) < 1e-6


def test_a_category_costs_a_factor_and_codes_have_no_order() -> None:
    kernel = matern52(3, 0.7, categorical=[1])
    kernel = kernel.with_theta(torch.log(torch.tensor([0.7, 0.7, 0.5, 1.0], dtype=torch.float64)))
    numeric = matern52(2, 0.7)
    A, B = random_points(6), random_points(5, seed=1)
    codes_a, codes_b = torch.arange(6) % 3, torch.arange(5) % 3
    A[:, 1], B[:, 1] = codes_a.double(), codes_b.double()
    same = codes_a[:, None] == codes_b[None, :]
    factor = torch.tensor(math.exp(-1.0 / 0.5), dtype=torch.float64)
    expected = numeric(A[:, [0, 2]], B[:, [0, 2]]) * torch.where(same, 1.0, factor)
    torch.testing.assert_close(kernel(A, B), expected, rtol=1e-14, atol=0.0)
    # Other names for the same categories change nothing.
    names = torch.tensor([5.0, -1.0, 40.0], dtype=torch.float64)
    A[:, 1], B[:, 1] = names[codes_a], names[codes_b]
    torch.testing.assert_close(kernel(A, B), expected, rtol=1e-14, atol=0.0)


def test_inactive_columns_have_no_effect() -> None:
    A, B = random_points(6), random_points(5, seed=1)
    kernel = matern52(3, 0.7, 2.0, inactive=[1])
    assert (kernel.dim, kernel.numeric, len(kernel.theta)) == (3, (0, 2), 3)
    assert torch.equal(kernel(A, B), matern52(2, 0.7, 2.0)(A[:, [0, 2]], B[:, [0, 2]]))
    # Start and prior are those of a kernel of the active columns.
    few = matern52(2)
    assert torch.equal(matern52(3, inactive=[1]).theta, few.theta)
    assert float(matern52(3, inactive=[1]).log_prior()) == float(few.log_prior())


def test_categories_alone_make_a_positive_definite_kernel() -> None:
    kernel = matern52(2, categorical=[0, 1])
    grid = torch.cartesian_prod(torch.arange(4.0), torch.arange(3.0)).double()
    K = gram(kernel, grid)
    assert float(torch.linalg.eigvalsh(K)[0]) > 1e-3
    assert torch.equal(kernel.diag(grid), torch.ones(12, dtype=torch.float64))


def test_log_prior_is_normal_on_the_logarithms() -> None:
    kernel = matern52(4, [0.5, 1.0, 2.0], 3.0, categorical=[3])
    loc = math.sqrt(2.0) + 0.5 * math.log(3) - 3.0  # the mode of the log-normal density with scale sqrt(3)

    def normal(x: object, mean: float, sd: float) -> float:
        return float((norm.logpdf(x, mean, sd) - norm.logpdf(mean, mean, sd)).sum())

    kernel = kernel.with_theta(torch.log(torch.tensor([0.5, 1.0, 2.0, 4.0, 3.0], dtype=torch.float64)))
    expected = normal(np.log([0.5, 1.0, 2.0]), loc, math.sqrt(3.0)) + normal(np.log([4.0]), 0.0, 1.0)
    expected += normal(np.log([3.0]), 0.0, 0.5)
    assert float(kernel.log_prior()) == pytest.approx(expected, rel=1e-12)


class Rounded:
    """A user's kernel whose matrix is neither symmetric nor exact on its diagonal."""

    def __call__(self, A: Tensor, B: Tensor) -> Tensor:
        return matern52(3, 0.5, 2.0)(A, B) * (1.0 - 1e-12 * torch.arange(len(A)).double()[:, None])

    def diag(self, X: Tensor) -> Tensor:
        return matern52(3, 0.5, 2.0).diag(X)


@pytest.mark.parametrize("kernel", [matern52(3, 0.5, 2.0), Rounded()])
def test_gram_is_symmetric_with_exact_diagonal(kernel: Kernel) -> None:
    X = random_points(50) * 1e3
    K = gram(kernel, X)
    assert torch.equal(K, K.T)
    assert torch.equal(K.diagonal(), torch.full((50,), 2.0, dtype=torch.float64).log().exp())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lengthscale": [1.0, 2.0]}, "lengthscale: expected one value or 3"),
        ({"lengthscale": 0.0}, "lengthscale: expected positive"),
        ({"lengthscale": [1.0, float("nan"), 1.0]}, "lengthscale: expected positive"),
        ({"outputscale": -1.0}, "outputscale: expected a positive"),
        ({"outputscale": float("inf")}, "outputscale: expected a positive"),
        ({"categorical": [3]}, r"categorical: expected different columns from 0 to 2, got \[3\]"),
        ({"categorical": [-1]}, "categorical: expected different columns"),
        ({"categorical": [1, 1]}, "categorical: expected different columns"),
        ({"inactive": [3]}, r"inactive: expected different numeric columns from 0 to 2, got \[3\]"),
        ({"inactive": [1, 1]}, "inactive: expected different numeric columns"),
        ({"categorical": [1], "inactive": [1]}, "inactive: expected .* cannot be among `categorical`, too"),
        ({"inactive": [1], "lengthscale": [1.0] * 3}, r"expected one value or 2 \(one for each active numeric column"),
    ],
)
def test_default_kernels_refuse_bad_arguments(arguments: dict[str, object], message: str) -> None:
    for make in (matern52, rbf):
        with pytest.raises(ArgumentError, match=message):
            make(3, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(("nu", "form"), [(0.5, "matern12"), (1.5, "matern32"), (2.5, "matern52")])
def test_the_smoothness_decides_the_form(nu: float, form: str) -> None:
    kernel, default = matern(3, nu, [0.4, 0.7], 2.0, [1]), matern52(3, [0.4, 0.7], 2.0, [1])
    assert kernel.form == form
    assert torch.equal(kernel.theta, default.theta)
    assert kernel.categorical == (1,)


def test_unknown_smoothness_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^nu: expected one of 0.5, 1.5, 2.5, got 3.0"):
        matern(2, nu=3.0)


def test_unknown_form_is_refused() -> None:
    zero = torch.zeros(1, dtype=torch.float64)
    with pytest.raises(ArgumentError, match=r"form: expected one of matern12, .*, got 'cubic'"):
        ARDKernel(zero, zero[0], zero[:0], form="cubic")


# -- what is no kernel -----------------------------------------------------------------------------------------------


def indefinite(A: Tensor, B: Tensor) -> Tensor:
    """Symmetric with a unit diagonal, and far from positive definite."""
    d = torch.cdist(A, B)
    return torch.where(d == 0.0, 1.0, torch.sin(1e4 * d))


BAD_KERNELS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], str]] = {
    "transposed": (lambda A, B: matern52(3)(B, A)[:, :1].expand(len(B), len(A) + 1), r"expected values of shape"),
    "a vector": (lambda A, B: torch.ones(len(A)), r"expected values of shape \(\d+, \d+\) .* got shape"),
    "NaN": (lambda A, B: matern52(3)(A, B) * float("nan"), "finite"),
    "infinite": (lambda A, B: matern52(3)(A, B) * float("inf"), "finite"),
    "minus a kernel": (lambda A, B: -rbf(3)(A, B), "got a negative"),
    "indefinite": (indefinite, "expected a positive semi-definite matrix"),
    "complex": (lambda A, B: matern52(3)(A, B) * 1j, "expected real numbers"),
    "text": (lambda A, B: [["a"] * len(B)] * len(A), "expected real numbers"),
}


@pytest.mark.parametrize("make", [ExactGP, BKB])
@pytest.mark.parametrize("one_by_one", [True, False])
@pytest.mark.parametrize("name", BAD_KERNELS)
def test_surrogates_refuse_what_is_no_kernel(make: Callable[..., BKB], name: str, one_by_one: bool) -> None:
    function, message = BAD_KERNELS[name]
    gp = make(function, 1e-2)
    X = random_points(70)

    def observe_all() -> None:
        for x in X.split(1 if one_by_one else 70):
            gp.observe(x, torch.ones(len(x)))

    with pytest.raises(KernelError, match=message):
        observe_all()


@pytest.mark.parametrize("kernel", [lambda A, B: -rbf(3)(A, B), as_kernel(lambda A, B: rbf(3)(A, B) * float("nan"))])
def test_gram_refuses_a_prior_variance_that_is_none(kernel: object) -> None:
    wrapped: Kernel = as_kernel(kernel)
    with pytest.raises(KernelError, match=r"^kernel: expected .*finite"):
        gram(wrapped, random_points(3))


def test_gpytorch_kernel_with_a_batch_is_refused() -> None:
    kernel = gpytorch.kernels.RBFKernel(batch_shape=torch.Size([2]))
    with pytest.raises(KernelError, match=r"expected values of shape \(3, 3\) .* got shape \(2, 3, 3\)"):
        as_kernel(kernel)(random_points(3), random_points(3))
