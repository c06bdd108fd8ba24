"""Exact features of finite-rank kernels, and features of sums of kernels.

| symbol | shape  | units | meaning                                                   |
| ------ | ------ | ----- | --------------------------------------------------------- |
| z(x)   | (r,)   | y     | features with z(x).z(x') = k(x, x')                       |

The residual is zero, since the features represent the kernel exactly.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bkbopt.kernels import SphericalKernel
from bkbopt.posterior.features.base import FeatureMap, ZeroResidual

__all__ = ["Joined", "Spherical"]


@dataclass(frozen=True)
class Spherical(ZeroResidual):
    """The c + 2 features of a `SphericalKernel`, which represent it exactly without inducing points.

    Example:
        >>> import torch
        >>> from bkbopt.kernels import SphericalKernel
        >>> from bkbopt.posterior.features import Spherical
        >>> kernel = SphericalKernel.start(3)
        >>> X = torch.rand(9, 3, dtype=torch.float64)
        >>> Z = Spherical(kernel)(X)
        >>> Z.shape, torch.allclose(Z @ Z.T, kernel(X, X))
        (torch.Size([9, 5]), True)
    """

    kernel: SphericalKernel

    @property
    def size(self) -> int:
        """Number of features c + 2."""
        return len(self.kernel.theta)

    def __call__(self, X: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return self.kernel.features(X)


@dataclass(frozen=True)
class Joined(ZeroResidual):
    """Concatenated features of several maps without residual: the features of the sum of their kernels."""

    parts: tuple[FeatureMap, ...]

    @property
    def size(self) -> int:
        """Number of features of all parts."""
        return sum(part.size for part in self.parts)

    def __call__(self, X: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return torch.cat([part(X) for part in self.parts], 1)
