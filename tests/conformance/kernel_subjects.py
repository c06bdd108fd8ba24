"""Every kernel, at some hyper-parameters, on points with three numbers and a category."""

from dataclasses import replace
from typing import Any

import gpytorch
import torch
from torch import Tensor

from bkbopt._support.foreign_kernels import FittableCallable
from bkbopt.kernels import (
    CallableKernel,
    ColumnsKernel,
    FittableKernel,
    GPyTorchKernel,
    Kernel,
    RotatedKernel,
    ScaledKernel,
    SphericalKernel,
    SumKernel,
    matern52,
)
from bkbopt.kernels.ard import FORMS
from bkbopt.learners.numerics.gram import GramKernel, as_gram

__all__ = ["ARD", "CATEGORY", "CLOSED", "COLUMNS", "DIM", "FITTABLE", "KERNELS", "Sine", "moved", "points", "rotation"]

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
#: Those with derivatives in closed form.
CLOSED: dict[str, Any] = {
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


class Sine:
    """A fittable kernel of the user's own, with prior variances that differ from point to point."""

    def __init__(self, theta: Tensor) -> None:
        self.theta = theta

    def _features(self, X: Tensor) -> Tensor:
        return torch.cat([torch.ones_like(X[:, :1]), torch.sin(self.theta[0].exp() * X)], 1) * self.theta[1].exp()

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        return self._features(X1) @ self._features(X2).T

    def diag(self, X: Tensor) -> Tensor:
        return self._features(X).square().sum(1)

    def with_theta(self, theta: Tensor) -> "Sine":
        return Sine(theta)

    def log_prior(self) -> Tensor:
        return -0.5 * self.theta.square().sum()


def theirs() -> Any:
    base = gpytorch.kernels.RBFKernel(ard_num_dims=DIM, lengthscale_prior=gpytorch.priors.LogNormalPrior(0.2, 1.1))
    return gpytorch.kernels.ScaleKernel(base)


LINEAR = CallableKernel(lambda A, B: 0.5 + A @ B.T)
#: Those that can be fitted.
FITTABLE: dict[str, Any] = CLOSED | {
    "GPyTorch": GPyTorchKernel.wrap(theirs()),
    "scaled": ScaledKernel(LINEAR, torch.tensor(0.5).double(), 0.25),
    "own": FittableCallable(Sine(torch.zeros(2).double())),
}
KERNELS: dict[str, Kernel] = {name: moved(kernel) for name, kernel in FITTABLE.items()} | {
    "callable": LINEAR,
    "callable of arrays": CallableKernel(lambda A, B: (1.0 + A[:, None] * B[None]).prod(-1)),
    "of a learner": GramKernel(as_gram(None, 0.7, DIM)),
}


def points(n: int, seed: int = 0) -> Tensor:
    X = torch.rand(n, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    X[:, CATEGORY] = (3.0 * X[:, CATEGORY]).floor()
    return X
