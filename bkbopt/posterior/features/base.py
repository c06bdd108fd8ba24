"""The protocol of a feature map.

| symbol   | shape  | units     | meaning                                                     |
| -------- | ------ | --------- | ----------------------------------------------------------- |
| X        | (n, d) | encoded   | points                                                      |
| Z        | (n, r) | y         | features, rows z(x)                                         |
| residual | (n,)   | y squared | k(x, x) - z(x).z(x) >= 0, what the features cannot see      |
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

__all__ = ["FeatureMap", "WithoutResidual", "ZeroResidual"]


@runtime_checkable
class FeatureMap(Protocol):
    """A map to r features with a residual; a projection of the kernel's own feature space if the residual is exact."""

    @property
    def size(self) -> int:
        """Number of features r."""
        ...

    def __call__(self, X: Tensor) -> Tensor:
        """Features `Z (n, r)` of the points `X (n, d)`."""
        ...

    def residual(self, X: Tensor, Z: Tensor) -> Tensor:
        """k(x, x) - |z(x)|^2 `(n,)`, clamped at zero; `Z` = self(X) is passed so that it is not computed twice."""
        ...

    def residual_covariance(self, X: Tensor, Z: Tensor) -> Tensor:
        """K(X, X) - Z Z^T `(n, n)`, the joint form of the residual."""
        ...


class ZeroResidual:
    """The residual of features with |z(x)|^2 = k(x, x) wherever x lies, or for which this is declared."""

    def residual(self, X: Tensor, Z: Tensor) -> Tensor:
        """Zeros `(n,)`."""
        return Z.new_zeros(Z.shape[0])

    def residual_covariance(self, X: Tensor, Z: Tensor) -> Tensor:
        """Zeros `(n, n)`."""
        return Z.new_zeros(Z.shape[0], Z.shape[0])


@dataclass(frozen=True)
class WithoutResidual(ZeroResidual):
    """The same features, with what they cannot see declared to be nothing: subset of regressors.

    This is the variance starvation that BKB's paper warns of (Calandriello et al. 2019, section 3.1); it is here to be
    compared with.

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
