"""Nystrom features: the projection of the kernel's feature space on the span of the inducing points.

| symbol | shape  | units | meaning                                                    |
| ------ | ------ | ----- | ---------------------------------------------------------- |
| S      | (m, d) | enc.  | inducing points, the dictionary                            |
| W      | (m, r) | 1/y   | thin root, W^T k(S, S) W = I_r                             |
| z(x)   | (r,)   | y     | W^T k_S(x); z(x).z(x') = phi(x)^T P phi(x')                |

Calandriello et al. 2019, section 3.1. Any rotation of z gives the same posterior; the thin root is cheap to compute.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bkbopt.errors import KernelError
from bkbopt.kernels import Kernel, gram
from bkbopt.kernels.fixed import fixed_kernel
from bkbopt.posterior.linalg import append_to_thin_root, compiles, thin_root

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bkbopt.kernels._fixed_loops import FixedKernel

__all__ = ["Extension", "Nystrom"]


@dataclass(frozen=True)
class Nystrom:
    """Features of a dictionary `S (m, d)` under a root `W (m, r)`; see the module's table.

    Example:
        >>> import torch
        >>> from bkbopt.posterior.features import Nystrom
        >>> from bkbopt.kernels import rbf
        >>> X = torch.linspace(0.0, 1.0, 50, dtype=torch.float64)[:, None]
        >>> features = Nystrom.from_points(rbf(1, lengthscale=0.5), X[::10])
        >>> Z = features(X)
        >>> Z.shape, float(features.residual(X, Z).max()) < 0.01
        (torch.Size([50, 5]), True)
    """

    kernel: Kernel
    S: Tensor
    W: Tensor

    @classmethod
    def from_points(cls, kernel: Kernel, S: Tensor) -> "Nystrom":
        """The map of the dictionary `S (m, d)`; duplicates in `S` are allowed and change nothing but the cost."""
        return cls(kernel, S, thin_root(gram(kernel, S)))

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without what is cached."""
        return {"kernel": self.kernel, "S": self.S, "W": self.W}

    def __deepcopy__(self, memo: dict[int, Any]) -> "Nystrom":
        """The object itself, since it is immutable."""
        return self

    @property
    def size(self) -> int:
        """Number of features r, the numerical rank of k(S, S)."""
        return self.W.shape[1]

    @cached_property
    def fixed(self) -> "FixedKernel | None":
        """The kernel for compiled loops; None where there are none (see `compiles`) or for other kernels."""
        differentiated = self.W.requires_grad or self.S.requires_grad
        if differentiated or not compiles(len(self.S), self.S):
            return None
        return fixed_kernel(self.kernel, self.S)

    @cached_property
    def transposed(self) -> "NDArray[np.float64]":
        """W^T (r, m) for compiled loops."""
        return self.W.T.contiguous().numpy()

    def __call__(self, X: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return self.kernel(X, self.S) @ self.W

    def embedded(self, x: Tensor) -> tuple[Tensor, float]:
        """Features `(r,)` and residual of a point `x (1, d)`.

        Raises:
            KernelError: the kernel is no covariance: the projection of the point is longer than the point.
        """
        z, prior = self(x)[0], float(self.kernel.diag(x)[0])
        residual = prior - float(z @ z)
        # Draws of the dictionary also test the kernel, but may be many evaluations apart. The margin of 1e-3 admits
        # kernels that are computed in float32: their projections are too long by about 1e-4.
        if residual < -1e-3 * prior:
            raise KernelError(
                "kernel: expected a positive semi-definite matrix, got one under which the squared norm of a point's "
                f"projection exceeds k(x, x) (by {-residual:.3g}, prior variance {prior:.3g}); use a valid kernel."
            )
        return z, max(residual, 0.0)

    def residual(self, X: Tensor, Z: Tensor) -> Tensor:
        """See `FeatureMap`."""
        # At the inducing points the true value is zero, and rounding may make it -1e-16.
        return (self.kernel.diag(X) - (Z * Z).sum(-1)).clamp_min(0.0)

    def residual_covariance(self, X: Tensor, Z: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return gram(self.kernel, X) - Z @ Z.mT


@dataclass(frozen=True)
class Extension:
    """Appended inducing points: their Gram-Schmidt directions become new features, and the old features are unchanged.

    Attributes:
        features: the old map, r features.
        X: the new inducing points, (k, d).
        Z: old features of the new inducing points, (k, r).
        root: root of the inverse of their residual covariance, (k, k).

    Example:
        >>> import torch
        >>> from bkbopt.posterior.features import Extension, Nystrom
        >>> from bkbopt.posterior.linalg import inverse_root
        >>> from bkbopt.kernels import rbf
        >>> X = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64)
        >>> small = Nystrom.from_points(rbf(1, lengthscale=1.0), X[:1])
        >>> Z = small(X)
        >>> more = Extension(small, X[1:], Z[1:], inverse_root(small.residual_covariance(X[1:], Z[1:])))
        >>> large = more.whole()
        >>> large.residual(X, large(X)) < 1e-12
        tensor([True, True, True])
    """

    features: Nystrom
    X: Tensor
    Z: Tensor
    root: Tensor

    def whole(self) -> Nystrom:
        """The map of the larger dictionary: r + k features."""
        old = self.features
        return Nystrom(old.kernel, torch.cat([old.S, self.X]), append_to_thin_root(old.W, self.Z, self.root))

    def columns(self, X: Tensor, Z: Tensor) -> Tensor:
        """The new features `(n, k)` of the points `X (n, d)`, given their old features `Z (n, r)`."""
        return (self.features.kernel(X, self.X) - Z @ self.Z.T) @ self.root.T
