"""Quadrature Fourier features of the Gaussian kernel (Mutny and Krause 2018): few dimensions, very accurate.

| symbol | shape    | units     | meaning                                                                   |
| ------ | -------- | --------- | ------------------------------------------------------------------------- |
| m      | -        | -         | order of the Gauss-Hermite rule in each dimension                         |
| t, a   | (m,)     | -         | its nodes and weights, for the weight function exp(-t^2)                  |
| omega  | (D, d)   | 1/encoded | sqrt(2) t / lengthscale on the tensor grid, one of each pair omega, -omega |
| q      | (D,)     | -         | products of a / sqrt(pi), doubled for the pairs; they add up to one       |
| z(x)   | (r,)     | y         | sqrt(outputscale q) [cos(omega.x), sin(omega.x)]                          |

There are m^d features, since the sine of the zero frequency of odd orders is left out. On a box of the widths b the
error is at most outputscale m! / (2m)! sum_j (b_j / l_j)^(2m), the sum of the errors of the Gauss-Hermite rules in one
dimension. It falls faster than exponentially once m > e b^2 / (4 l^2).

z(x).z(x) = k(x, x) exactly, so the residual is zero, as with random frequencies; errors have both signs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.checks import check_count
from bkbopt.errors import ArgumentError
from bkbopt.kernels import ARDKernel
from bkbopt.posterior.features.base import ZeroResidual

__all__ = ["QuadratureFourier"]


@dataclass(frozen=True)
class QuadratureFourier(ZeroResidual):
    """Quadrature Fourier features; see the module's table. Made by `from_kernel`.

    Example:
        >>> from bkbopt.learners.features import QuadratureFourier
        >>> from bkbopt.kernels import rbf
        >>> features = QuadratureFourier.from_kernel(rbf(2, lengthscale=0.5), order=10)
        >>> features.size, features.error_bound(widths=1.0) < 1e-4
        (100, True)
    """

    cosines: Tensor
    sines: Tensor
    q_cosines: Tensor
    q_sines: Tensor
    lengthscale: Tensor
    outputscale: float
    order: int

    @classmethod
    def from_kernel(cls, kernel: ARDKernel, order: int, max_size: int = 10_000) -> "QuadratureFourier":
        """The features of a Gaussian kernel on numbers.

        Args:
            kernel: a Gaussian `ARDKernel` without categorical columns.
            order: m, the nodes in each dimension.
            max_size: the largest number of features allowed.

        Raises:
            ArgumentError: another kernel, an order below one, or more features than `max_size` (none are computed).
        """
        if not isinstance(kernel, ARDKernel) or kernel.form != "rbf" or kernel.categorical or kernel.inactive:
            raise ArgumentError(
                "kernel: expected a Gaussian ARDKernel (bkbopt.kernels.rbf) with numeric columns only, none of them "
                "inactive."
            )
        m, d = check_count("order", order), len(kernel.log_lengthscale)
        if m**d > max_size:
            raise ArgumentError(
                f"order: expected at most {max_size} features, but order {m} in {d} dimensions gives {m**d}; lower the "
                "order, take random or Nystrom features, or raise the limit."
            )
        from scipy.special import roots_hermite  # numpy's weights are NaN from about 380 nodes on

        t, a = roots_hermite(m)
        t[np.abs(t) < 1e-12] = 0.0  # the middle node of odd orders
        nodes = np.stack(np.meshgrid(*[t] * d, indexing="ij"), -1).reshape(-1, d)
        q = np.prod(np.stack(np.meshgrid(*[a / math.sqrt(math.pi)] * d, indexing="ij"), -1).reshape(-1, d), 1)
        # The grid is symmetric: its second half is the first one, negated and reversed.
        half = len(q) // 2
        omega = math.sqrt(2.0) * torch.as_tensor(nodes) / kernel.lengthscale.cpu()
        weight = torch.as_tensor(2.0 * q)
        if len(q) % 2:
            weight[half] *= 0.5
        n = half + len(q) % 2
        device = kernel.log_lengthscale.device
        omega, weight = omega.to(device), weight.to(device)
        scales = kernel.lengthscale, float(kernel.outputscale)
        return cls(omega[:n], omega[:half], weight[:n], weight[:half], *scales, m)

    @property
    def size(self) -> int:
        """Number of features, m^d."""
        return len(self.q_cosines) + len(self.q_sines)

    def error_bound(self, widths: float | Sequence[float] = 1.0) -> float:
        """An upper bound of |k(x, x') - z(x).z(x')|, y squared, for |x_j - x'_j| <= widths_j.

        Raises:
            ArgumentError: a width is negative or not a number.
        """
        relative = torch.as_tensor(widths, dtype=torch.float64) / self.lengthscale.cpu()
        if not bool((relative >= 0.0).all()):
            raise ArgumentError(f"widths: expected numbers >= 0, in units of the columns, got {widths}.")
        log = math.lgamma(self.order + 1) - math.lgamma(2 * self.order + 1)
        return self.outputscale * float(torch.exp(log + 2 * self.order * relative.log()).sum())

    def __call__(self, X: Tensor) -> Tensor:
        """See `FeatureMap`."""
        even = torch.cos(X @ self.cosines.T) * self.q_cosines.sqrt()
        odd = torch.sin(X @ self.sines.T) * self.q_sines.sqrt()
        return torch.cat([even, odd], 1) * math.sqrt(self.outputscale)
