"""The spherical kernel: linear functions of points on a sphere, for many columns.

| symbol | shape   | units     | meaning                                                            |
| ------ | ------- | --------- | ------------------------------------------------------------------ |
| Z      | (n, c)  | -         | numeric columns minus the cube's centre, over lengthscales l       |
| h      | (n,)    | -         | 1 + |z|^2                                                          |
| u(x)   | (c+1,)  | -         | [2 z, |z|^2 - 1] / h, the inverse stereographic projection of z    |
| t      | (n, m)  | -         | u(x) . u(x') = 1 - 2 |z - z'|^2 / (h h')                           |
| a      | (2,)    | y squared | variances of the constant and of the linear part                   |

    k(x, x') = a_0 + a_1 u(x) . u(x')

Its functions are (w + v . z + q |z|^2) / (1 + |z|^2): planes, and bowls with axes along the columns. The kernel has
c + 2 features, so c + 2 inducing points span it exactly. On the sphere all points have the same prior variance; planes
and bowls in x itself would have nearly all of it in the corners of the box.

Source: Doumont, Fan, Maus, Gardner, Moss and Pleiss, "We still don't understand high-dimensional Bayesian optimization"
(2025).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bkbopt.kernels.ard import LENGTHSCALE_SCALE, prior_mode, usual_lengthscale
from bkbopt.kernels.base import ByTheta, Floats, NormalPrior, Pullback, Sloped, check_columns, placed, selected, spread

__all__ = ["MIDDLE", "SphericalKernel"]

#: The centre of the cube, in each column.
MIDDLE = 0.5


@dataclass(frozen=True)
class SphericalKernel:
    """k(x, x') = a_0 + a_1 u(x) . u(x'), linear in the projection u of a point on a sphere; see the module's table.

    Args:
        log_lengthscale: logarithm of the lengthscales of the columns that are not inactive, (c,).
        log_variance: logarithms of a_0 and a_1 (y squared), (2,).
        inactive: indices of the columns without effect; columns of category codes have to be among them.

    Example:
        >>> import torch
        >>> from bkbopt.kernels import SphericalKernel
        >>> kernel = SphericalKernel.start(3)
        >>> X = torch.rand(100, 3, dtype=torch.float64)
        >>> int(torch.linalg.matrix_rank(kernel(X, X)))
        5
    """

    log_lengthscale: Tensor
    log_variance: Tensor
    inactive: tuple[int, ...] = ()

    @classmethod
    def start(cls, dim: int, inactive: Sequence[int] = ()) -> "SphericalKernel":
        """The kernel at which a fit begins, for points with `dim` columns, some of them `inactive`."""
        c = dim - len(inactive)
        lengthscale = torch.full((c,), math.log(usual_lengthscale(c)), dtype=torch.float64)
        return cls(lengthscale, torch.full((2,), math.log(0.5), dtype=torch.float64), tuple(inactive))

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.log_lengthscale) + len(self.inactive)

    @property
    def numeric(self) -> list[int]:
        """Indices of the numeric columns that are not inactive."""
        return [j for j in range(self.dim) if j not in self.inactive]

    def _rows(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Z `(n, c)` and h `(n,)`."""
        Z = (selected(X, self.numeric) - MIDDLE) * torch.exp(-self.log_lengthscale)
        return Z, 1.0 + (Z * Z).sum(1)

    def projected(self, X: Tensor) -> Tensor:
        """The projections u `(n, c + 1)` of the points `X (n, d)`."""
        Z, h = self._rows(X)
        return torch.cat([2.0 * Z, h[:, None] - 2.0], 1) / h[:, None]

    def features(self, X: Tensor) -> Tensor:
        """Features `(n, c + 2)` of the points `X (n, d)`, units of y; their inner products are the kernel's values."""
        root = torch.exp(0.5 * self.log_variance)
        return torch.cat([root[0].expand(len(X), 1), root[1] * self.projected(X)], 1)

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """See `Kernel`."""
        check_columns(X1, X2, self.dim)
        return self.features(X1) @ self.features(X2).T

    def diag(self, X: Tensor) -> Tensor:
        """See `Kernel`."""
        return self.log_variance.exp().sum().expand(X.shape[0])

    def by_theta(self, U: Tensor) -> ByTheta:
        """See `ClosedFormKernel`."""
        points = selected(U, self.numeric).numpy() - MIDDLE

        def at(theta: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
            Z, (a0, a1) = points * np.exp(-theta[:-2]), np.exp(theta[-2:])
            h = 1.0 + (Z * Z).sum(1)
            u = np.concatenate([2.0 * Z, h[:, None] - 2.0], 1) / h[:, None]
            T = u @ u.T

            def pullback(M: Floats) -> Floats:
                # dz_j / d log l_j = -z_j in 1 - t = 2 |z - z'|^2 / (h h').
                P = M / np.outer(h, h)
                apart = 2.0 * (P.sum(1) @ (Z * Z) - (Z * (P @ Z)).sum(0))  # sum_ab P_ab (Z_aj - Z_bj)^2
                by_lengthscale = 4.0 * a1 * (apart - ((M * (1.0 - T)).sum(1) / h) @ (Z * Z))
                return np.concatenate([by_lengthscale, [a0 * M.sum(), a1 * (M * T).sum()]])

            return a0 + a1 * T, pullback

        return at

    def sloped(self, X2: Tensor) -> Sloped:
        """See `ClosedFormKernel`."""
        (B, g), F = self._rows(X2), self.features(X2)
        (a0, a1), scale = self.log_variance.exp(), torch.exp(-self.log_lengthscale)

        def at(X1: Tensor) -> tuple[Tensor, Pullback]:
            (A, h), K = self._rows(X1), self.features(X1) @ F.T

            def pullback(M: Tensor) -> Tensor:
                # dt / dz = (4 z' + 2 (|z'|^2 - 1) z) / (h h') - 2 t z / h
                P = M / torch.outer(h, g)
                along = P @ (g - 2.0) - (M * (K - a0)).sum(1) / (a1 * h)
                return spread(a1 * (4.0 * (P @ B) + 2.0 * along[:, None] * A) * scale, X1, self.numeric)

            return K, pullback

        return at

    @property
    def theta(self) -> Tensor:
        """Log lengthscales and log variances, (c + 2,)."""
        return torch.cat([self.log_lengthscale, self.log_variance])

    def with_theta(self, theta: Tensor) -> "SphericalKernel":
        """See `FittableKernel`."""
        c = len(self.log_lengthscale)
        return replace(self, log_lengthscale=theta[:c], log_variance=theta[c:])

    @property
    def prior(self) -> NormalPrior:
        """Normal densities on the logarithms: lengthscales as in `ARDKernel`, variances location 0 and scale 1."""
        c = len(self.log_lengthscale)
        loc, scale = torch.zeros_like(self.theta), torch.ones_like(self.theta)
        loc[:c], scale[:c] = prior_mode(c), LENGTHSCALE_SCALE
        return NormalPrior.independent(loc, scale)

    def log_prior(self) -> Tensor:
        """See `FittableKernel`."""
        return self.prior.log_density(self.theta)

    def to(self, device: torch.device) -> "SphericalKernel":
        """The same kernel with its numbers on `device`."""
        return placed(self, device)
