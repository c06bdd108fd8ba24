"""Kernels with structure: sums over single columns, sums of kernels, rotated columns.

| symbol | shape  | units     | meaning                                                              |
| ------ | ------ | --------- | -------------------------------------------------------------------- |
| X      | (n, d) | encoded   | points                                                               |
| a      | (d,)   | y squared | prior variance of the part of each column                            |
| l      | (c,)   | encoded   | lengthscales of the c numeric columns                                |
| D      | (n, m) | -         | sqrt(5) |x_j - x'_j| / l_j of one column j                           |
| R      | (c, c) | -         | orthogonal; its columns are the directions of the lengthscales       |

A sum over single columns models a separable part of the black box: f(x) = g(x) + sum_j h_j(x_j). Observations on one
line in direction j then determine h_j on all such lines, so that functions with 10^5 basins are learnt from hundreds
of points.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bkbopt.kernels.base import (
    ByTheta,
    ClosedFormKernel,
    Floats,
    NormalPrior,
    Pullback,
    Sloped,
    check_columns,
    parts_of,
    placed,
    selected,
    spread,
)

__all__ = ["ColumnsKernel", "RotatedKernel", "SumKernel"]

SQRT5 = math.sqrt(5.0)
#: Priors of `ColumnsKernel`; see `ColumnsKernel.prior`.
LENGTHSCALE_LOC, LENGTHSCALE_SCALE, LENGTHSCALE_SPREAD = math.log(0.25), 1.0, 0.5
VARIANCE_SCALE = 1.5


@dataclass(frozen=True)
class ColumnsKernel:
    """A sum of one-column kernels: Matern-5/2 on numbers, equality on categories.

    k(x, x') = sum_j a_j matern52(|x_j - x'_j| / l_j) + sum_c a_c [x_c = x'_c].

    Args:
        log_lengthscale: logarithm of the lengthscales of the numeric columns, (c,).
        log_variance: logarithm of the variance of each column's part (y squared), numeric columns first, (d,).
        categorical: indices of the categorical columns.
        inactive: indices of the columns without effect, which have no part.

    Example:
        >>> import torch
        >>> from bkbopt.kernels import ColumnsKernel
        >>> kernel = ColumnsKernel(torch.zeros(2).double(), torch.zeros(2).double())
        >>> X = torch.tensor([[0.0, 0.0], [0.0, 9.0]], dtype=torch.float64)
        >>> kernel(X, X)  # the points agree in the first column only
        tensor([[2.0000, 1.0000],
                [1.0000, 2.0000]], dtype=torch.float64)
    """

    log_lengthscale: Tensor
    log_variance: Tensor
    categorical: tuple[int, ...] = ()
    inactive: tuple[int, ...] = ()

    @classmethod
    def start(cls, dim: int, categorical: Sequence[int] = (), inactive: Sequence[int] = ()) -> "ColumnsKernel":
        """The kernel at which a fit begins; from longer lengthscales the fit misses ripples.

        Args:
            dim: number of encoded columns.
            categorical: columns that hold category codes.
            inactive: columns without effect.
        """
        n = dim - len(inactive)
        lengthscale = torch.full((n - len(categorical),), math.log(0.1), dtype=torch.float64)
        variance = torch.full((n,), -math.log(4.0 * max(n, 1)), dtype=torch.float64)
        return cls(lengthscale, variance, tuple(categorical), tuple(inactive))

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.log_variance) + len(self.inactive)

    @property
    def numeric(self) -> list[int]:
        """Indices of the numeric columns that have a part."""
        return [j for j in range(self.dim) if j not in self.categorical and j not in self.inactive]

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """See `Kernel`."""
        check_columns(X1, X2, self.dim)
        scale, variance = SQRT5 * torch.exp(-self.log_lengthscale), self.log_variance.exp()
        A, B = (selected(X, self.numeric) * scale for X in (X1, X2))
        if X1.device.type != "cpu" or any(part.requires_grad for part in (X1, X2, scale, variance)):
            D = (A.T[:, :, None] - B.T[:, None, :]).abs()
            K = (((1.0 + D + D * D / 3.0) * torch.exp(-D)) * variance[: len(scale), None, None]).sum(0)
        else:
            K = _column_sum(A.contiguous(), B.T.contiguous(), variance)
        return self._with_categories(K, X1, X2)

    def _with_categories(self, K: Tensor, X1: Tensor, X2: Tensor) -> Tensor:
        c = len(self.log_lengthscale)
        for i, j in enumerate(self.categorical):
            K = K + self.log_variance[c + i].exp() * (X1[:, j, None] == X2[None, :, j])
        return K

    def diag(self, X: Tensor) -> Tensor:
        """See `Kernel`."""
        return self.log_variance.exp().sum().expand(X.shape[0])

    def by_theta(self, U: Tensor) -> ByTheta:
        """See `ClosedFormKernel`."""
        from bkbopt.kernels._loops import add_categories, add_columns_gram, by_categories, by_columns

        points, c = selected(U, self.numeric).contiguous().numpy(), len(self.log_lengthscale)
        codes = selected(U, self.categorical).T.contiguous().numpy()

        def at(theta: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
            A, variance = points * (SQRT5 * np.exp(-theta[:c])), np.exp(theta[c:])
            B, K = np.ascontiguousarray(A.T), np.zeros((len(A), len(A)))
            add_columns_gram(A, B, variance, K)
            add_categories(codes, variance[c:], K)

            def pullback(M: Floats) -> Floats:
                by_scale, by_variance = np.empty(c), np.empty(len(variance))
                by_columns(A, B, variance, M, by_scale, by_variance)
                by_categories(codes, M, True, by_variance[c:])
                by_variance[c:] *= variance[c:]
                return np.concatenate([by_scale, by_variance])

            return K, pullback

        return at

    def sloped(self, X2: Tensor) -> Sloped:
        """See `ClosedFormKernel`."""
        from bkbopt.kernels._loops import by_points

        scale, variance, numeric = SQRT5 * torch.exp(-self.log_lengthscale), self.log_variance.exp(), self.numeric
        B = (selected(X2, numeric) * scale).T.contiguous()

        def at(X1: Tensor) -> tuple[Tensor, Pullback]:
            A = (selected(X1, numeric) * scale).contiguous()

            def pullback(M: Tensor) -> Tensor:
                out = torch.empty_like(A)
                by_points(A.numpy(), B.numpy(), variance.numpy(), M.numpy(), out.numpy())
                return spread(out * scale, X1, numeric)

            return self._with_categories(_column_sum(A, B, variance), X1, X2), pullback

        return at

    @property
    def theta(self) -> Tensor:
        """Log lengthscales and log variances, (c + d,)."""
        return torch.cat([self.log_lengthscale, self.log_variance])

    def with_theta(self, theta: Tensor) -> "ColumnsKernel":
        """See `FittableKernel`."""
        c = len(self.log_lengthscale)
        return replace(self, log_lengthscale=theta[:c], log_variance=theta[c:])

    @property
    def prior(self) -> NormalPrior:
        """Normal densities on the logarithms.

        Lengthscales have location log(1/4) and a common shift with scale 1, from which each of them deviates by 1/2: in
        a column in which the search has not moved yet, the ripples are as short as in the others. Variances, on
        standardised y: location log(1 / (4 d)), scale 1.5.
        """
        lengths = torch.full_like(self.log_lengthscale, LENGTHSCALE_LOC)
        variances = torch.full_like(self.log_variance, -math.log(4.0 * max(len(self.log_variance), 1)))
        return NormalPrior.join(
            [
                NormalPrior.alike(lengths, LENGTHSCALE_SCALE, LENGTHSCALE_SPREAD),
                NormalPrior.independent(variances, torch.full_like(variances, VARIANCE_SCALE)),
            ]
        )

    def log_prior(self) -> Tensor:
        """See `FittableKernel`."""
        return self.prior.log_density(self.theta)

    def to(self, device: torch.device) -> "ColumnsKernel":
        """The same kernel with its numbers on `device`."""
        return placed(self, device)


def _column_sum(A: Tensor, B: Tensor, variance: Tensor) -> Tensor:
    """sum_j variance_j (1 + D + D^2 / 3) exp(-D) `(n, m)`, D = |A_aj - B_jb|, for `A (n, c)` and `B (c, m)`."""
    from bkbopt.kernels._loops import add_columns

    K = A.new_zeros(len(A), B.shape[1])
    add_columns(A.numpy(), B.numpy(), variance.numpy(), K.numpy())
    return K


@dataclass(frozen=True)
class SumKernel:
    """The sum of kernels; its hyper-parameters are those of the parts, concatenated.

    Example:
        >>> from bkbopt.kernels import ColumnsKernel, SumKernel, matern52
        >>> kernel = SumKernel((matern52(3), ColumnsKernel.start(3)))
        >>> len(kernel.theta)
        10
    """

    parts: tuple[ClosedFormKernel, ...]

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """See `Kernel`."""
        K = self.parts[0](X1, X2)
        for part in self.parts[1:]:
            K = K + part(X1, X2)
        return K

    def diag(self, X: Tensor) -> Tensor:
        """See `Kernel`."""
        return torch.stack([part.diag(X) for part in self.parts]).sum(0)

    def by_theta(self, U: Tensor) -> ByTheta:
        """See `ClosedFormKernel`."""
        ends = itertools.accumulate((len(part.theta) for part in self.parts), initial=0)
        own = [slice(*pair) for pair in itertools.pairwise(ends)]
        parts = [part.by_theta(U) for part in self.parts]

        def at(theta: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
            made = [part(theta[one]) for part, one in zip(parts, own, strict=True)]
            K = made[0][0]
            for other, _ in made[1:]:
                K += other
            return K, lambda M: np.concatenate([pullback(M) for _, pullback in made])

        return at

    def sloped(self, X2: Tensor) -> Sloped:
        """See `ClosedFormKernel`."""
        parts = [part.sloped(X2) for part in self.parts]

        def at(X1: Tensor) -> tuple[Tensor, Pullback]:
            made = [part(X1) for part in parts]
            K = functools.reduce(torch.add, [K for K, _ in made])
            return K, lambda M: functools.reduce(torch.add, [pullback(M) for _, pullback in made])

        return at

    @property
    def theta(self) -> Tensor:
        """Hyper-parameters of the parts, concatenated, (p,)."""
        return torch.cat([part.theta for part in self.parts])

    def with_theta(self, theta: Tensor) -> "SumKernel":
        """See `FittableKernel`."""
        sizes = [len(part.theta) for part in self.parts]
        pieces = theta.split(sizes)
        return SumKernel(tuple(part.with_theta(t) for part, t in zip(self.parts, pieces, strict=True)))

    @property
    def prior(self) -> NormalPrior:
        """The joined prior of the parts."""
        return NormalPrior.join([part.prior for part in self.parts])

    def log_prior(self) -> Tensor:
        """See `FittableKernel`."""
        return self.prior.log_density(self.theta)


@dataclass(frozen=True)
class RotatedKernel:
    """A kernel of rotated points, k(x, x') = base(x R, x' R).

    Args:
        base: the kernel.
        R: orthogonal matrix (d, d), which must not rotate categorical columns.

    Example:
        >>> import torch
        >>> from bkbopt.kernels import RotatedKernel, rbf
        >>> R = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64) * 0.5**0.5
        >>> kernel = RotatedKernel(rbf(2, lengthscale=[10.0, 0.1]), R)  # changes across the diagonal only
        >>> X = torch.tensor([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
        >>> kernel(X[:1], X)
        tensor([[1.0000e+00, 9.9005e-01, 1.3853e-11]], dtype=torch.float64)
    """

    base: ClosedFormKernel
    R: Tensor

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """See `Kernel`."""
        check_columns(X1, X2, len(self.R))
        return self.base(X1 @ self.R, X2 @ self.R)

    def diag(self, X: Tensor) -> Tensor:
        """See `Kernel`."""
        return self.base.diag(X)

    def by_theta(self, U: Tensor) -> ByTheta:
        """See `ClosedFormKernel`."""
        return self.base.by_theta(U @ self.R)

    def sloped(self, X2: Tensor) -> Sloped:
        """See `ClosedFormKernel`."""
        base = self.base.sloped(X2 @ self.R)

        def at(X1: Tensor) -> tuple[Tensor, Pullback]:
            K, pullback = base(X1 @ self.R)
            return K, lambda M: pullback(M) @ self.R.T

        return at

    @property
    def theta(self) -> Tensor:
        """Hyper-parameters of the base, (p,)."""
        return self.base.theta

    def with_theta(self, theta: Tensor) -> "RotatedKernel":
        """See `FittableKernel`."""
        return replace(self, base=self.base.with_theta(theta))

    @property
    def prior(self) -> NormalPrior:
        """The prior of the base."""
        return self.base.prior

    def log_prior(self) -> Tensor:
        """See `FittableKernel`."""
        return self.base.log_prior()


@parts_of.register
def _parts_of_a_sum(kernel: SumKernel) -> tuple[ClosedFormKernel, ...]:
    return kernel.parts


@parts_of.register
def _parts_of_a_rotation(kernel: RotatedKernel) -> tuple[ClosedFormKernel, ...]:
    return (kernel.base,)
