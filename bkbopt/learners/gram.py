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
from bkbopt._support.states import Form, Kept, Number, checked, refused
from bkbopt.errors import ArgumentError
from bkbopt.kernels import ARDKernel, Kernel, as_kernel, rbf
from bkbopt.learners._loops_kernel import gaussian_matrix
from bkbopt.learners.losses import Array

__all__ = [
    "ForeignGram",
    "GaussianGram",
    "Gram",
    "GramKernel",
    "as_gram",
    "is_scale",
    "kernel_from_state",
    "kernel_to_state",
]

_KERNEL = Form({"form": Kept(), "sizes": Kept(), "prior_loc": Number(), "theta": Kept()})


class Gram(Protocol):
    """What the learners need of a kernel."""

    @property
    def ours(self) -> bool:
        """Whether it cannot fail: the code of others may return anything."""
        ...

    @property
    def kernel(self) -> Kernel:
        """The same on tensors."""
        ...

    def __call__(self, A: Array, B: Array) -> Array:
        """The matrix k(A, B) `(n1, n2)`, C-contiguous."""
        ...

    def diag(self, A: Array) -> Array:
        """The prior variances k(x, x) `(n,)`."""
        ...


@dataclass(frozen=True, eq=False)
class GaussianGram:
    """height exp(-sum_j ((x_j - x'_j) / scale_j)^2); compiled loops may compute it themselves.

    It is computed by differences. Squares and products would be faster where there are many features, but of points
    far from zero (time stamps, say) nothing is left then.

    Args:
        scale: sqrt(2) lengthscales, `(d,)`, as X.
        height: k(x, x).
        kernel: the same as a kernel on tensors.
    """

    scale: Array
    height: float
    kernel: ARDKernel
    ours = True

    def __call__(self, A: Array, B: Array) -> Array:
        """See `Gram`."""
        K = np.empty((len(A), len(B)))
        gaussian_matrix(np.ascontiguousarray((B / self.scale).T), A / self.scale, self.height, K)
        return K

    def diag(self, A: Array) -> Array:
        """See `Gram`."""
        return np.full(len(A), self.height)


@dataclass(frozen=True)
class ForeignGram:
    """A kernel on tensors, called on blocks of rows."""

    kernel: Kernel

    @property
    def ours(self) -> bool:
        """See `Gram`."""
        return isinstance(self.kernel, ARDKernel)

    def __call__(self, A: Array, B: Array) -> Array:
        """See `Gram`."""
        with torch.no_grad():
            return np.ascontiguousarray(self.kernel(torch.from_numpy(A), torch.from_numpy(B)).numpy())

    def diag(self, A: Array) -> Array:
        """See `Gram`."""
        with torch.no_grad():
            return np.array(self.kernel.diag(torch.from_numpy(A)).numpy())


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
    """Whether the lengthscale is to follow from the rows."""
    return isinstance(lengthscale, str) and lengthscale == "scale"


def as_gram(kernel: object, lengthscale: object, d: int) -> GaussianGram | ForeignGram:
    """The Gaussian of that `lengthscale` for None, else `kernel` (see `bkbopt.kernels.as_kernel`), for `d` features.

    Raises:
        ArgumentError: the lengthscale is not positive and finite, or the kernel is for another number of features.
        ArgumentTypeError: the kernel or the lengthscale has a wrong type.
    """
    if kernel is None:
        what = 'a positive finite length, in units of the features, or "scale"'
        length = check_number("lengthscale", lengthscale, 0.0, what, strict=True)
        return GaussianGram(np.full(d, math.sqrt(2.0) * length), 1.0, rbf(d, length))
    if isinstance(kernel, ARDKernel):
        columns = len(kernel.log_lengthscale) + len(kernel.categorical)
        if columns != d:
            raise ArgumentError(f"kernel: expected one for {d} features, got one for {columns}.")
        if kernel.form == "rbf" and not kernel.categorical:
            return GaussianGram(math.sqrt(2.0) * kernel.lengthscale.cpu().numpy(), float(kernel.outputscale), kernel)
    return ForeignGram(as_kernel(kernel))


def kernel_to_state(kernel: object) -> object:
    """The argument `kernel` for a state file: an `ARDKernel` whole, of others nothing but that there was one."""
    if isinstance(kernel, ARDKernel):
        sizes = [len(kernel.log_lengthscale), list(kernel.categorical)]
        return {"form": kernel.form, "sizes": sizes, "prior_loc": kernel.prior_loc, "theta": kernel.theta}
    return None if kernel is None else {"form": None}


def kernel_from_state(state: object, given: object) -> object:
    """The inverse of `kernel_to_state`; `given` is the kernel of the caller, needed where it is not ours.

    Raises:
        ArgumentError: such a kernel was saved and none is given, or it has no such form.
        StateFileError: `state` is none of a kernel.
    """
    if state is None:
        return None
    if state == {"form": None}:
        if given is None:
            raise ArgumentError(
                "kernel: this state was saved with a kernel of yours; pass kernel= with the same kernel to load."
            )
        return given
    saved = checked(state, _KERNEL, where="the kernel")
    if not isinstance(saved["sizes"], list) or len(saved["sizes"]) != 2 or not isinstance(saved["form"], str):
        raise refused("the kernel's sizes", "a number of columns and a list of others", repr(saved["sizes"])[:80])
    n, categorical = saved["sizes"]
    theta = saved["theta"]
    columns = theta.numel() - 1 if isinstance(theta, Tensor) and theta.ndim == 1 else -1
    known = isinstance(categorical, list) and type(n) is int and 0 <= n == columns - len(categorical)
    if not known or len({j for j in categorical if type(j) is int and 0 <= j < columns}) < len(categorical):
        raise refused("the kernel's sizes", "those of its parameters", repr(saved["sizes"])[:80])
    # Within that, scales and their inverses are positive and finite.
    if not theta.is_floating_point() or not bool((theta.abs() < 300.0).all()):
        raise refused("the kernel's parameters", "logarithms of positive finite scales", f"{theta.dtype}")
    blank = torch.zeros(n + len(categorical) + 1, dtype=torch.float64)
    kernel = ARDKernel(blank[:n], blank[-1], blank[n:-1], tuple(categorical), saved["form"], saved["prior_loc"])
    return kernel.with_theta(theta)
