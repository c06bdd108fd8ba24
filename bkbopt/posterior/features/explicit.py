"""Features that a kernel writes down itself, and features of a sum.

| symbol | shape  | units | meaning                                                   |
| ------ | ------ | ----- | --------------------------------------------------------- |
| z(x)   | (r,)   | y     | features with z(x).z(x') = k(x, x')                       |

The residual is zero because nothing is left out.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bkbopt.kernels import SphericalKernel
from bkbopt.posterior.features.base import FeatureMap, ZeroResidual

__all__ = ["Joined", "Spherical"]


@dataclass(frozen=True)
class Spherical(ZeroResidual):
    """The c + 2 features of a `SphericalKernel`, which has no others: no inducing points are needed.

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
    """The features of several maps side by side, those of the sum of their kernels; none has a residual."""

    parts: tuple[FeatureMap, ...]

    @property
    def size(self) -> int:
        """Number of features of all parts."""
        return sum(part.size for part in self.parts)

    def __call__(self, X: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return torch.cat([part(X) for part in self.parts], 1)
