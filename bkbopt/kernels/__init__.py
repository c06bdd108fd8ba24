"""Kernels: the default, structured kernels, and wrappers for GPyTorch kernels and plain callables."""

from bkbopt.kernels.ard import ARDKernel, matern, matern52, rbf
from bkbopt.kernels.base import ClosedFormKernel, FittableKernel, Kernel, gram
from bkbopt.kernels.foreign import CallableKernel, GPyTorchKernel, ScaledKernel, as_kernel
from bkbopt.kernels.spherical import SphericalKernel
from bkbopt.kernels.structured import ColumnsKernel, RotatedKernel, SumKernel

__all__ = [
    "ARDKernel",
    "CallableKernel",
    "ClosedFormKernel",
    "ColumnsKernel",
    "FittableKernel",
    "GPyTorchKernel",
    "Kernel",
    "RotatedKernel",
    "ScaledKernel",
    "SphericalKernel",
    "SumKernel",
    "as_kernel",
    "gram",
    "matern",
    "matern52",
    "rbf",
]
