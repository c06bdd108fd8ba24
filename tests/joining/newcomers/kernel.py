"""A kernel of functions that repeat themselves."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

__all__ = ["Periodic"]


@dataclass(frozen=True)
class Periodic:
    """k(x, x') = outputscale * exp(-2 sum_j sin^2(pi (x_j - x'_j) / period) / lengthscale^2), with fitted scales.

    Args:
        theta: logarithms of the lengthscale (no unit) and of the outputscale (y squared), (2,).
        period: in units of the encoded columns.

    Example:
        >>> kernel = Periodic(torch.zeros(2).double(), period=0.5)
        >>> X = torch.tensor([[0.0], [0.25], [0.5]], dtype=torch.float64)
        >>> kernel(X[:1], X)
        tensor([[1.0000, 0.1353, 1.0000]], dtype=torch.float64)
    """

    theta: Tensor
    period: float = 1.0

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """The matrix `(n1, n2)`, y squared."""
        sines = torch.sin(math.pi * (X1[:, None] - X2[None]) / self.period)
        return torch.exp(self.theta[1] - 2.0 * sines.square().sum(-1) * torch.exp(-2.0 * self.theta[0]))

    def diag(self, X: Tensor) -> Tensor:
        """The prior variances `(n,)`, y squared."""
        return self.theta[1].exp().expand(len(X))

    def with_theta(self, theta: Tensor) -> "Periodic":
        """The same kernel at other hyper-parameters."""
        return replace(self, theta=theta)

    def log_prior(self) -> Tensor:
        """Standard normal densities of the logarithms, up to a constant."""
        return -0.5 * self.theta.square().sum()
