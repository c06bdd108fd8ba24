"""The protocol of feature maps.

| symbol   | shape  | units     | meaning                                                     |
| -------- | ------ | --------- | ----------------------------------------------------------- |
| X        | (n, d) | encoded   | points                                                      |
| Z        | (n, r) | y         | features, rows z(x)                                         |
| residual | (n,)   | y squared | k(x, x) - z(x).z(x) >= 0, prior variance not in the features |
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

__all__ = ["FeatureMap", "WithoutResidual", "ZeroResidual"]


@runtime_checkable
class FeatureMap(Protocol):
    """A map to r features, with a residual; with an exact residual it is a projection of the kernel's feature space."""

    @property
    def size(self) -> int:
        """Number of features r."""

    def __call__(self, X: Tensor) -> Tensor:
        """Features `Z (n, r)` of the points `X (n, d)`."""

    def residual(self, X: Tensor, Z: Tensor) -> Tensor:
        """k(x, x) - |z(x)|^2 `(n,)`, at least zero; `Z` = self(X) is an argument so that it is not computed twice."""

    def residual_covariance(self, X: Tensor, Z: Tensor) -> Tensor:
        """K(X, X) - Z Z^T `(n, n)`, the joint form of the residual."""


class ZeroResidual:
    """Base class of feature maps whose residual is zero everywhere, or is taken to be zero."""

    def residual(self, X: Tensor, Z: Tensor) -> Tensor:
        """Zeros `(n,)`."""
        return Z.new_zeros(Z.shape[0])

    def residual_covariance(self, X: Tensor, Z: Tensor) -> Tensor:
        """Zeros `(n, n)`."""
        return Z.new_zeros(Z.shape[0], Z.shape[0])


@dataclass(frozen=True)
class WithoutResidual(ZeroResidual):
    """The same features with the residual set to zero: subset of regressors (SoR).

    The variance starves, as BKB's paper warns (Calandriello et al. 2019, section 3.1); the class exists for comparison.

    Example:
        >>> import torch
        >>> from bkbopt.posterior.features import Nystrom, WithoutResidual
        >>> from bkbopt.kernels import rbf
        >>> X = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
        >>> honest = Nystrom.from_points(rbf(1, lengthscale=0.5), X[:1])
        >>> starved = WithoutResidual(honest)
        >>> honest.residual(X, honest(X)), starved.residual(X, starved(X))
        (tensor([0.0000, 0.9817], dtype=torch.float64), tensor([0., 0.], dtype=torch.float64))
    """

    features: FeatureMap

    @property
    def size(self) -> int:
        """Number of features r."""
        return self.features.size

    def __call__(self, X: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return self.features(X)
