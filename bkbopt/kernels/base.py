"""Protocols of kernels, and the Gram matrix.

| symbol  | shape   | units     | meaning                                                            |
| ------- | ------- | --------- | ------------------------------------------------------------------ |
| X1, X2  | (n, d)  | encoded   | points                                                             |
| K       | (n1,n2) | y squared | k(X1, X2)                                                          |
| theta   | (p,)    | log, raw  | unconstrained hyper-parameters                                     |
| U       | (n, d)  | encoded   | points of a fit                                                    |
| M       | (n, n)  | -         | derivative of a scalar by K, symmetric                             |

Kernels are immutable: fitting makes a new one with `with_theta`, so that feature maps that hold a kernel stay valid.
"""

import copy
import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, TypeVar, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.errors import KernelError

__all__ = [
    "ByTheta",
    "ClosedFormKernel",
    "FittableKernel",
    "Kernel",
    "Pullback",
    "Sloped",
    "check_columns",
    "gram",
    "has_closed_form",
    "is_fittable",
    "noisy_gram",
    "parts_of",
    "placed",
    "spread",
]

KernelT = TypeVar("KernelT")

Floats = NDArray[np.float64]

#: The chain rule through K for a scalar L: maps dL/dK to dL/dX `(n, d)`.
Pullback = Callable[[Tensor], Tensor]
#: Maps points X1 to the kernel matrix K(X1, X2), for fixed X2, and its pullback.
Sloped = Callable[[Tensor], tuple[Tensor, Pullback]]
#: Maps theta to the kernel matrix K(U, U), for fixed U, and the map from a symmetric dL/dK to dL/dtheta `(p,)`; in
#: NumPy, since half of a call with a hundred points would be overhead of PyTorch.
ByTheta = Callable[[Floats], tuple[Floats, Callable[[Floats], Floats]]]


@runtime_checkable
class Kernel(Protocol):
    """The interface that surrogates need."""

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """The matrix k(X1, X2) `(n1, n2)`, y squared."""

    def diag(self, X: Tensor) -> Tensor:
        """The prior variances k(x, x) `(n,)`, y squared."""


@runtime_checkable
class FittableKernel(Kernel, Protocol):
    """A kernel whose hyper-parameters can be fitted."""

    @property
    def theta(self) -> Tensor:
        """Unconstrained hyper-parameters `(p,)`."""

    def with_theta(self, theta: Tensor) -> "FittableKernel":
        """The same kernel at other hyper-parameters; differentiable in `theta`."""

    def log_prior(self) -> Tensor:
        """Log prior density of the hyper-parameters, a scalar that is differentiable in `theta`."""


@dataclass(frozen=True)
class NormalPrior:
    """A normal density of the hyper-parameters theta `(p,)`.

    Attributes:
        loc: the mean, (p,).
        precision: the inverse of the covariance, (p, p).
    """

    loc: Tensor
    precision: Tensor

    @classmethod
    def independent(cls, loc: Tensor, scale: Tensor) -> "NormalPrior":
        """Independent densities with standard deviations `scale (p,)`."""
        return cls(loc, scale.square().reciprocal().diag())

    @classmethod
    def alike(cls, loc: Tensor, scale: float, spread: float) -> "NormalPrior":
        """The density of loc + m + e: a number m with standard deviation `scale`, independent e (p,) with `spread`."""
        p, s2 = len(loc), spread**2
        # (s2 I + scale^2 1 1^T)^-1, by Sherman and Morrison's formula.
        return cls(loc, (torch.eye(p).to(loc) - scale**2 / (s2 + p * scale**2)) / s2)

    @classmethod
    def join(cls, priors: Sequence["NormalPrior"]) -> "NormalPrior":
        """The prior of several vectors, concatenated."""
        return cls(torch.cat([prior.loc for prior in priors]), torch.block_diag(*(prior.precision for prior in priors)))

    def to_the_power(self, power: float) -> "NormalPrior":
        """The prior whose density is this one to a power."""
        return NormalPrior(self.loc, power * self.precision)

    def log_density(self, theta: Tensor) -> Tensor:
        """Log of density / largest density, a differentiable scalar.

        The normalising constant is left out, so that a hyper-parameter that the data do not determine adds nothing in a
        comparison of kernels: integrated out, it would contribute a factor that cancels the constant.
        """
        away = theta - self.loc
        return -0.5 * (away @ self.precision @ away)

    def with_slope(self, theta: Floats) -> tuple[float, Floats]:
        """`log_density`, and its derivative by theta `(p,)`."""
        away = theta - self.loc.numpy()
        slope = -self.precision.numpy() @ away
        return 0.5 * float(away @ slope), slope


@runtime_checkable
class ClosedFormKernel(FittableKernel, Protocol):
    """A kernel with derivatives in closed form, which are several times faster than autograd.

    k(x, x) must not depend on the numeric columns. The derivatives are implemented for points in CPU memory.
    """

    def with_theta(self, theta: Tensor) -> "ClosedFormKernel":
        """See `FittableKernel`."""

    @property
    def prior(self) -> NormalPrior:
        """The prior of theta."""

    def by_theta(self, U: Tensor) -> ByTheta:
        """A function of theta that returns K(U, U) `(n, n)` and the map from a symmetric dL/dK to dL/dtheta.

        The caller may overwrite the matrix before it calls the map.
        """

    def sloped(self, X2: Tensor) -> Sloped:
        """A function of X1 that returns K(X1, X2) `(n, m)` and the map from dL/dK `(n, m)` to dL/dX1 `(n, d)`."""


def placed(kernel: KernelT, device: torch.device | None) -> KernelT:
    """A kernel with its numbers on a `device`; as it is for None, as a plain callable is."""
    return kernel if device is None else _at(kernel, device)


def _at(value: Any, device: torch.device) -> Any:
    """A kernel, or what it is made of, on a device; the same object where nothing has to move."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, torch.nn.Module):
        there = all(number.device == device for number in (*value.parameters(), *value.buffers()))
        return value if there else copy.deepcopy(value).to(device)
    if isinstance(value, tuple):
        parts = tuple(_at(part, device) for part in value)
        return value if all(map(operator.is_, parts, value)) else parts
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    moved = {name: new for name, old in fields.items() if (new := _at(old, device)) is not old}
    return dataclasses.replace(value, **moved) if moved else value


@functools.singledispatch
def parts_of(_: object) -> tuple[Kernel, ...]:
    """The kernels on which it depends whether a kernel can be fitted, and has closed form; none for most kernels."""
    return ()


def is_fittable(kernel: Kernel) -> TypeGuard[FittableKernel]:
    """Whether the kernel, and each of its parts, has hyper-parameters to fit."""
    return _has_members(kernel, FittableKernel)


def has_closed_form(kernel: Kernel, X: Tensor) -> TypeGuard[ClosedFormKernel]:
    """Whether the kernel has closed-form derivatives for points on the device of `X` (only the CPU is supported)."""
    return X.device.type == "cpu" and _has_members(kernel, ClosedFormKernel)


def _has_members(kernel: Kernel, protocol: type) -> bool:
    """Whether a kernel, and each of its parts, has all members of a protocol.

    `isinstance` computes all properties, the prior among them, in Python 3.11, and does not see what parts lack in
    later versions.
    """
    has_own = all(hasattr(kernel, name) for name in _not_of_class(type(kernel), protocol))
    return has_own and all(_has_members(part, protocol) for part in parts_of(kernel))


@functools.cache
def _not_of_class(cls: type, protocol: type) -> list[str]:
    """The members of a protocol of kernels that only instances of a class may have."""
    members = {name for base in protocol.__mro__ for name in vars(base) if name == "__call__" or name[0] != "_"}
    return [name for name in members if not hasattr(cls, name)]


def selected(X: Tensor, columns: Sequence[int]) -> Tensor:
    """The given columns of the points `X (n, d)`; `X` itself if they are all, since a selection is a copy."""
    return X if len(columns) == X.shape[1] else X[:, columns]


def spread(slopes: Tensor, X: Tensor, columns: Sequence[int]) -> Tensor:
    """Derivatives `(n, d)` by the points `X (n, d)`: `slopes (n, c)` in the given columns, zero in the others."""
    if len(columns) == X.shape[1]:
        return slopes
    out = torch.zeros_like(X)
    out[:, columns] = slopes
    return out


def check_columns(X1: Tensor, X2: Tensor, dim: int) -> None:
    """Raise `KernelError` unless both sets of points have `dim` columns."""
    if not X1.shape[1] == X2.shape[1] == dim:
        raise KernelError(
            f"kernel: expected points with {dim} columns, the kernel's dimension, got {X1.shape[1]} and "
            f"{X2.shape[1]}; use a kernel with one dimension for each column of the encoded points."
        )


def gram(kernel: Kernel, X: Tensor) -> Tensor:
    """The symmetric matrix k(X, X) `(n, n)` with the exact prior variances on its diagonal.

    Raises:
        KernelError: a prior variance is negative or not finite.

    Example:
        >>> import torch
        >>> from bkbopt.kernels import gram, rbf
        >>> gram(rbf(1, lengthscale=1.0), torch.tensor([[0.0], [1.0]], dtype=torch.float64))
        tensor([[1.0000, 0.6065],
                [0.6065, 1.0000]], dtype=torch.float64)
    """
    K = kernel(X, X)
    K = 0.5 * (K + K.mT)
    d = kernel.diag(X)
    if not bool((torch.isfinite(d) & (d >= 0)).all()):
        raise KernelError("kernel: expected finite prior variances k(x, x) >= 0, got a negative or non-finite one.")
    # The distance formula of the matrix has rounding errors of 1e-16 on the diagonal; `diag` is exact.
    return torch.diagonal_scatter(K, d, dim1=-2, dim2=-1)


def noisy_gram(kernel: Kernel, X: Tensor, variances: Tensor) -> Tensor:
    """K + diag(variances) `(n, n)`: the covariance of values at `X (n, d)` with noise of these variances `(n,)`.

    For the mean values of unique points with the counts N it is K + lam N^-1. It is differentiable; the error is
    `gram`'s.
    """
    K = gram(kernel, X)
    return K.diagonal_scatter(K.diagonal() + variances)
