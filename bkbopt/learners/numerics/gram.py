"""Kernel matrices of numpy arrays, for the learners: Gaussians, and any other kernel of the package.

| symbol | shape    | units     | meaning                                            |
| ------ | -------- | --------- | -------------------------------------------------- |
| A, B   | (n, d)   | as given  | points                                             |
| K      | (n1, n2) | y squared | k(A, B)                                            |
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.checks import check_number
from bkbopt.errors import ArgumentError, KernelError
from bkbopt.kernels import ARDKernel, Kernel, as_kernel, rbf
from bkbopt.learners.numerics._loops_kernel import gaussian_matrix
from bkbopt.learners.numerics.losses import Array

__all__ = [
    "GaussianGram",
    "Gram",
    "GramKernel",
    "as_gram",
    "is_scale",
]


class Gram(Protocol):
    """The interface of a kernel for the learners."""

    @property
    def is_builtin(self) -> bool:
        """Whether the kernel is one of the package, which cannot fail; user code may."""

    @property
    def kernel(self) -> Kernel:
        """The same on tensors."""

    def __call__(self, A: Array, B: Array) -> Array:
        """The matrix k(A, B) `(n1, n2)`, C-contiguous."""

    def diag(self, A: Array) -> Array:
        """The prior variances k(x, x) `(n,)`."""


@dataclass(frozen=True, eq=False)
class GaussianGram:
    """height exp(-sum_j ((x_j - x'_j) / scale_j)^2); compiled loops may compute it themselves.

    It is computed from differences. Expanding the squares would be faster for many features, but cancels all digits of
    points far from zero (time stamps, say).

    Args:
        scale: sqrt(2) lengthscales, `(d,)`, as X.
        height: k(x, x).
        kernel: the same as a kernel on tensors.
    """

    scale: Array
    height: float
    kernel: ARDKernel
    is_builtin = True

    def __call__(self, A: Array, B: Array) -> Array:
        """See `Gram`."""
        K = np.empty((len(A), len(B)))
        gaussian_matrix(np.ascontiguousarray((B / self.scale).T), A / self.scale, self.height, K)
        return K

    def diag(self, A: Array) -> Array:
        """See `Gram`."""
        return np.full(len(A), self.height)


@dataclass(frozen=True)
class TensorGram:
    """A kernel on tensors, called on blocks of rows."""

    kernel: Kernel

    @property
    def is_builtin(self) -> bool:
        """See `Gram`."""
        return isinstance(self.kernel, ARDKernel)

    def __call__(self, A: Array, B: Array) -> Array:
        """See `Gram`."""
        with torch.no_grad():
            return np.ascontiguousarray(self.kernel(torch.from_numpy(A), torch.from_numpy(B)).numpy())

    def diag(self, A: Array) -> Array:
        """See `Gram`.

        Raises:
            KernelError: a negative variance.
        """
        with torch.no_grad():
            diag = np.array(self.kernel.diag(torch.from_numpy(A)).numpy())
        if (diag < 0.0).any():
            raise KernelError(
                f"kernel: expected a positive semi-definite kernel, got k(x, x) = {diag.min():.3g} for x = "
                f"{A[diag.argmin()].tolist()}."
            )
        return diag


@dataclass(frozen=True)
class GramKernel:
    """A `Gram` as a `bkbopt.kernels.Kernel`: on tensors, without gradients."""

    gram: Gram

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """See `Kernel`."""
        return torch.from_numpy(self.gram(X1.numpy(), X2.numpy()))

    def diag(self, X: Tensor) -> Tensor:
        """See `Kernel`."""
        return torch.from_numpy(self.gram.diag(X.numpy()))


def is_scale(lengthscale: object) -> bool:
    """Whether the lengthscale is computed from the rows."""
    return isinstance(lengthscale, str) and lengthscale == "scale"


def as_gram(kernel: object, lengthscale: object, d: int) -> GaussianGram | TensorGram:
    """The Gaussian with that `lengthscale` for None, else `kernel` (see `bkbopt.kernels.as_kernel`), for `d` features.

    Raises:
        ArgumentError: the lengthscale is not positive and finite, or the kernel is for another number of features.
        ArgumentTypeError: the kernel or the lengthscale has a wrong type.
    """
    if kernel is None:
        what = 'a positive finite length, in units of the features, or "scale"'
        length = check_number("lengthscale", lengthscale, 0.0, what, strict=True)
        return GaussianGram(np.full(d, math.sqrt(2.0) * length), 1.0, rbf(d, length))
    if isinstance(kernel, ARDKernel):
        if kernel.dim != d:
            raise ArgumentError(f"kernel: expected one for {d} features, got one for {kernel.dim}.")
        if kernel.form == "rbf" and not (kernel.categorical or kernel.inactive):
            return GaussianGram(math.sqrt(2.0) * kernel.lengthscale.cpu().numpy(), float(kernel.outputscale), kernel)
    return TensorGram(as_kernel(kernel))
