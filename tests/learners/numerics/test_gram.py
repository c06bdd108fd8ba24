"""Kernel matrices of numpy arrays against the package's kernels."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from bkbopt.errors import ArgumentError, ArgumentTypeError, KernelError
from bkbopt.kernels import ARDKernel, matern52, rbf
from bkbopt.learners import KONS
from bkbopt.learners.numerics.gram import GramKernel, as_gram

A = np.random.default_rng(0).standard_normal((7, 3))
B = np.random.default_rng(1).standard_normal((5, 3))


def test_gaussian_is_that_of_the_package() -> None:
    ours = as_gram(None, 0.7, 3)
    expected = rbf(3, 0.7)(torch.from_numpy(A), torch.from_numpy(B)).numpy()
    np.testing.assert_allclose(ours(A, B), expected, atol=1e-15)
    np.testing.assert_array_equal(ours.diag(A), np.ones(7))
    assert ours(A, B[:0]).shape == (7, 0)


def test_gaussian_of_a_point_with_itself_is_one_far_from_zero_too() -> None:
    far = A + 1e6
    assert as_gram(None, 1.0, 3)(far, far).max() <= 1.0


@pytest.mark.parametrize("kernel", [None, rbf(3, [0.5, 1.0, 2.0], 1.7)], ids=["lengthscale", "ard"])
def test_gaussian_depends_on_differences_alone(kernel: object) -> None:
    gram = as_gram(kernel, 1.0, 3)
    # Multiples of 2^-10 are exact also after the shift; dividing by the lengthscale rounds at 1e-16 of it.
    near = [np.round(1024.0 * M) / 1024.0 for M in (A, B)]
    shift = 2.0**20
    np.testing.assert_allclose(gram(near[0] + shift, near[1] + shift), gram(*near), rtol=0, atol=1e-9)
    huge = gram(1e200 * A, B)
    assert np.isfinite(huge).all()
    assert huge.max() < 1e-300


def test_kernels_of_the_package_and_functions_serve() -> None:
    kernel = matern52(3, 0.7, 2.0)
    K = kernel(torch.from_numpy(A), torch.from_numpy(B)).numpy()
    for given in (kernel, kernel.__call__):
        gram = as_gram(given, 1.0, 3)
        np.testing.assert_allclose(gram(A, B), K, atol=1e-14)
        np.testing.assert_allclose(gram.diag(A), 2.0, atol=1e-14)
        assert gram(A, B).flags.c_contiguous
    assert as_gram(kernel, 1.0, 3).is_builtin
    assert not as_gram(kernel.__call__, 1.0, 3).is_builtin


def test_gram_is_a_kernel_on_tensors() -> None:
    kernel = GramKernel(as_gram(None, 0.7, 3))
    torch.testing.assert_close(
        kernel(torch.from_numpy(A), torch.from_numpy(B)), rbf(3, 0.7)(*map(torch.from_numpy, (A, B)))
    )
    torch.testing.assert_close(kernel.diag(torch.from_numpy(A)), torch.ones(7, dtype=torch.float64))


@pytest.mark.parametrize("lengthscale", [0.0, -1.0, float("inf")])
def test_lengthscale_must_be_positive(lengthscale: float) -> None:
    with pytest.raises(ArgumentError, match="lengthscale: expected a positive finite length"):
        as_gram(None, lengthscale, 3)


def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="kernel: expected a kernel of bkbopt"):
        as_gram("rbf", 1.0, 3)


def test_kernel_with_a_negative_variance_is_refused_by_learners_of_labels_too() -> None:
    def negative(A: Tensor, B: Tensor) -> Tensor:
        return -(A @ B.T)

    model = KONS(kernel=negative)
    with pytest.raises(KernelError, match=r"^kernel: expected a positive semi-definite kernel, got k\(x, x\) = -"):
        model.fit([[1.0], [2.0]], [0, 1])
    assert not hasattr(model, "n_rounds_")


@pytest.mark.parametrize("form", [rbf, matern52])
def test_inactive_columns_of_a_kernel_change_nothing(form: Callable[..., ARDKernel]) -> None:
    without = as_gram(form(2, 0.5), "scale", 2)(A[:, 1:], B[:, 1:])
    kernel = form(3, 0.5, inactive=[0])
    np.testing.assert_allclose(as_gram(kernel, "scale", 3)(A, B), without, rtol=1e-12)
    with pytest.raises(ArgumentError, match="expected one for 2 features, got one for 3"):
        as_gram(kernel, "scale", 2)
