"""Foreign kernels: conversion of GPyTorch kernels and plain callables, and an outputscale for them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from torch import Tensor

from bkbopt._support.foreign_kernels import CallableKernel, FittableCallable, GPyTorchKernel
from bkbopt.errors import ArgumentTypeError
from bkbopt.kernels.ard import ARDKernel
from bkbopt.kernels.base import Kernel, is_fittable
from bkbopt.kernels.spherical import SphericalKernel
from bkbopt.kernels.structured import ColumnsKernel, RotatedKernel, SumKernel

__all__ = ["CallableKernel", "GPyTorchKernel", "ScaledKernel", "as_kernel"]


@dataclass(frozen=True)
class ScaledKernel:
    """A kernel without fitted hyper-parameters, multiplied by an outputscale that is fitted.

    Attributes:
        base: the kernel.
        log_outputscale: logarithm of the factor, a scalar.
        log_variance: logarithm of the base's usual k(x, x), so that its units do not matter for the prior.

    Example:
        >>> import torch
        >>> from bkbopt.kernels import ScaledKernel, as_kernel
        >>> linear = as_kernel(lambda A, B: A @ B.T)
        >>> X = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
        >>> ScaledKernel(linear, torch.tensor(10.0).log())(X, X)
        tensor([[10., 20.],
                [20., 40.]], dtype=torch.float64)
    """

    base: Kernel
    log_outputscale: Tensor
    log_variance: float = 0.0

    @classmethod
    def start(cls, base: Kernel, X: Tensor) -> "ScaledKernel":
        """The kernel at which a fit begins: its prior variance is about 1 on average over the points `X (n, d)`."""
        variance = float(base.diag(X).mean())
        # Two decimals are enough, and a kernel with k(x, x) = 1 up to rounding is not scaled.
        log_variance = round(math.log(variance), 2) if variance > 0.0 else 0.0
        return cls(base, X.new_tensor(-log_variance), log_variance)

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """See `Kernel`."""
        return self.log_outputscale.exp() * self.base(X1, X2)

    def diag(self, X: Tensor) -> Tensor:
        """See `Kernel`."""
        return self.log_outputscale.exp() * self.base.diag(X)

    @property
    def theta(self) -> Tensor:
        """Logarithm of the usual prior variance, (1,)."""
        return self.log_outputscale.reshape(1) + self.log_variance

    def with_theta(self, theta: Tensor) -> "ScaledKernel":
        """See `FittableKernel`."""
        return replace(self, log_outputscale=theta[0] - self.log_variance)

    def log_prior(self) -> Tensor:
        """Normal on the logarithm of the usual prior variance, location 0 and scale 1, up to a constant."""
        return -0.5 * (self.log_outputscale + self.log_variance) ** 2


#: Kernel classes that `as_kernel` returns unchanged.
OURS = (
    ARDKernel,
    ColumnsKernel,
    SphericalKernel,
    SumKernel,
    RotatedKernel,
    GPyTorchKernel,
    CallableKernel,
    ScaledKernel,
)


def as_kernel(kernel: object, objects: Sequence[object] | None = None) -> Kernel:
    """A `Kernel` from a kernel of bkbopt, a GPyTorch kernel, or any callable `(X1, X2) -> K`.

    A callable with the members of a `FittableKernel` can be fitted.

    Raises:
        ArgumentTypeError: `kernel` is none of these.

    Example:
        >>> from bkbopt.kernels import as_kernel
        >>> type(as_kernel(lambda A, B: A @ B.T)).__name__
        'CallableKernel'
    """
    if objects is None and isinstance(kernel, OURS):
        return kernel
    if objects is None and any(c.__module__.startswith("gpytorch.kernels") for c in type(kernel).__mro__):
        return GPyTorchKernel.wrap(kernel)
    if not callable(kernel):
        raise ArgumentTypeError(
            f"kernel: expected a kernel of bkbopt or GPyTorch, or a callable (X1, X2) -> K, got {type(kernel).__name__}"
            "; pass an object that can be called."
        )
    return (FittableCallable if is_fittable(cast(Kernel, kernel)) else CallableKernel)(kernel, objects)
