"""Sample paths: joint draws of a posterior as functions, whose cost depends on the number of inducing points only.

| symbol | shape  | units | meaning                                                                        |
| ------ | ------ | ----- | ------------------------------------------------------------------------------ |
| p(x)   | (F,)   | y     | features of the prior: p(x).p(x') is k(x, x'), or an unbiased estimate of it   |
| C      | (F, s) | -     | their weights in s paths, standard normal; g(x) = p(x) C are paths of the prior |
| S, W   |        |       | inducing points (m, d) and their root (m, r): z(x) = W^T k_S(x), see `Nystrom` |
| e      | (m, s) | y     | noise at the inducing points; zero except for exact GPs                        |
| u      | (r, s) | -     | draws of the weights, normal with mean w and covariance lam V^-1               |

    f(x) = g(x) + k_S(x) . W (u - W^T (g(S) + e))

This is Matheron's rule with the inducing points as the data (Wilson et al. 2020, https://arxiv.org/abs/2002.09309). The
part g(x) - z(x) . W^T (g(S) + e) has the covariance k(x, x') - z(x) . z(x') of the residual, and z(x) . u has the mean
and covariance of the state. Mean and covariance of the paths are therefore those of `Model`; exactly so over paths of
which each has its own draw of the prior features. Paths that share 1,024 Fourier frequencies have variances with errors
of a few per cent, and larger errors where the noise is small and there are many points.

The noise e is zero for BKB, whose root has W^T K W = I. For an exact GP the root has W^T (K + lam N^-1) W = I, and the
variances of e are lam / n.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bkbopt.kernels import (
    ARDKernel,
    ColumnsKernel,
    Kernel,
    RotatedKernel,
    ScaledKernel,
    SphericalKernel,
    SumKernel,
    matern52,
)
from bkbopt.posterior.features import FeatureMap, Nystrom, Spherical, WideFourier
from bkbopt.posterior.features.base import ZeroResidual
from bkbopt.posterior.features.explicit import Joined
from bkbopt.posterior.model import Model

__all__ = ["Paths", "draw_paths", "prior_features"]

#: Fourier frequencies of a prior.
N_FREQUENCIES = 1024
#: Points that, with the inducing points, span the approximate prior of a kernel without a known spectral density.
N_SPANNING = 400
#: Points that are computed at once: their features, some thousand numbers a point, stay in the cache.
BLOCK = 256


def prior_features(
    kernel: Kernel, S: Tensor, X: Tensor, rng: np.random.Generator, n: int = N_FREQUENCIES
) -> FeatureMap:
    """Features whose inner products are the kernel's values: the kernel's exact ones, or `n` random frequencies.

    For kernels without exact features or a known spectral density they are the Nystrom features of the points
    `S (m, d)` and of at most `N_SPANNING` random rows of `X (n, d)`: exact if these are all rows, otherwise with too
    little variance far from the drawn rows.
    """
    known = _known_features(kernel, n, rng)
    if known is not None:
        return known
    rows = rng.choice(len(X), min(N_SPANNING, len(X)), replace=False)
    return Nystrom.from_points(kernel, torch.cat([S, X[torch.as_tensor(np.sort(rows), device=X.device)].to(S.device)]))


def _known_features(kernel: Kernel, n: int, rng: np.random.Generator) -> FeatureMap | None:
    """The kernel's exact features, or `n` random frequencies for each part of a sum; None if neither is known."""
    match kernel:
        case SphericalKernel():
            return Spherical(kernel)
        case ARDKernel():
            return WideFourier.from_kernel(kernel, n, rng)
        case ScaledKernel():
            base = _known_features(kernel.base, n, rng)
            scale = float(kernel.log_outputscale.exp()) ** 0.5
            return replace(base, height=base.height * scale) if isinstance(base, WideFourier) else None
        case RotatedKernel():
            base = _known_features(kernel.base, n, rng)
            return replace(base, omega=base.omega @ kernel.R.T) if isinstance(base, WideFourier) else None
        case SumKernel():
            parts = [_known_features(part, n, rng) for part in kernel.parts]
            known = [part for part in parts if part is not None]
            return Joined(tuple(known)) if len(known) == len(parts) else None
        case ColumnsKernel():
            columns = sorted([*kernel.numeric, *kernel.categorical])
            each = [_of_column(kernel, j, max(n // len(columns), 1), rng) for j in columns]
            return WideFourier(torch.cat([one.omega for one in each]), torch.cat([one.height for one in each]))
    return None


def _of_column(kernel: ColumnsKernel, j: int, n: int, rng: np.random.Generator) -> WideFourier:
    """Features of one column's part; for categories the mean of the cosines is zero where the codes differ."""
    omega = kernel.log_variance.new_zeros(n, kernel.dim)
    order = [*kernel.numeric, *kernel.categorical]
    variance = float(kernel.log_variance[order.index(j)].exp())
    if j in kernel.categorical:
        omega[:, j] = torch.as_tensor(rng.uniform(0.0, 2.0 * math.pi, n), device=omega.device)
        return WideFourier(omega, omega.new_full((n,), (variance / n) ** 0.5))
    lengthscale = float(kernel.log_lengthscale[kernel.numeric.index(j)].exp())
    line = WideFourier.from_kernel(matern52(1, lengthscale, variance), n, rng)
    omega[:, j] = line.omega[:, 0].to(omega.device)
    return WideFourier(omega, line.height.to(omega.device))


@dataclass(frozen=True)
class Paths:
    """Sample paths, functions that can be evaluated at any points; see the module's text.

    Attributes:
        prior: features p(x).
        weights: weights of the features in each path, C (F, s).
        correction: kernel, points S (m, d) and weights (m, s) of the added term; None if there is none.

    Example:
        >>> import numpy as np
        >>> import torch
        >>> import bkbopt as bo
        >>> from bkbopt.posterior.paths import draw_paths
        >>> model = bo.ExactGP(bo.kernels.rbf(1, lengthscale=0.3), noise=1e-4)
        >>> model.observe([[0.1], [0.5]], [1.0, 2.0])
        >>> X = torch.tensor([[0.1], [0.5], [9.0]], dtype=torch.float64)
        >>> paths = draw_paths(model.model, X, np.random.default_rng(0), 100)
        >>> paths(X).std(1) < 0.05  # all paths pass the data within the noise
        tensor([ True,  True, False])
    """

    prior: FeatureMap
    weights: Tensor
    correction: tuple[Kernel, Tensor, Tensor] | None = None

    def __call__(self, X: Tensor) -> Tensor:
        """Values `(n, s)`, units of y, of the paths at the points `X (n, d)`; differentiable in `X`."""
        if len(X) > BLOCK:
            return torch.cat([self(B) for B in X.split(BLOCK)])
        there = X.to(self.weights.device)
        values = _weighted(self.prior, there, self.weights)
        if self.correction is not None:
            kernel, S, weights = self.correction
            values = values + kernel(there, S) @ weights
        return values.to(X.device)

    def each(self, X: Tensor, path: Tensor) -> Tensor:
        """Values `(n,)`, units of y, of path `path[i]` at point `X[i]`, for `X (n, d)`; differentiable in `X`."""
        there = X.to(self.weights.device)
        values = (self.prior(there) * self.weights.T[path]).sum(1)
        if self.correction is not None:
            kernel, S, weights = self.correction
            values = values + (kernel(there, S) * weights.T[path]).sum(1)
        return values.to(X.device)


def _weighted(features: FeatureMap, X: Tensor, weights: Tensor) -> Tensor:
    """The sums `(n, s)` of features of the points `X (n, d)` with `weights (F, s)`.

    The features of a path are thousands of columns, so that to scale and to join them takes as long as to compute them.
    """
    match features:
        case Joined():
            shares = weights.split([part.size for part in features.parts])
            sums = [_weighted(part, X, share) for part, share in zip(features.parts, shares, strict=True)]
            return torch.stack(sums).sum(0)
        case WideFourier():
            P, (even, odd) = X @ features.omega.T, weights.chunk(2)
            height = features.height[:, None]
            return torch.cos(P) @ (height * even) + torch.sin(P) @ (height * odd)
    return features(X) @ weights


def draw_paths(
    model: Model, X: Tensor, rng: np.random.Generator, n_paths: int = 1, n_frequencies: int = N_FREQUENCIES
) -> Paths:
    """Draw paths of a posterior.

    Args:
        model: the posterior.
        X: points (n, d) at which the paths will be evaluated, or some of them; see `prior_features`.
        rng: generator of the random numbers.
        n_paths: number of paths s.
        n_frequencies: number of random frequencies of the prior's features.
    """
    device = model.w.device

    def normal(rows: int) -> Tensor:
        return torch.as_tensor(rng.standard_normal((rows, n_paths)), device=device)

    u = model.w[:, None] + model.lam**0.5 * (model.root.T @ normal(len(model.root)))
    features = model.features
    if isinstance(features, ZeroResidual):
        return Paths(features, u)
    assert isinstance(features, Nystrom)
    kernel, S, W = features.kernel, features.S, features.W
    prior = prior_features(kernel, S, X, rng, n_frequencies)
    weights = normal(prior.size)
    g = prior(S) @ weights
    if not len(model.root) and W.shape[0] == W.shape[1]:
        # K + lam N^-1 = (W W^T)^-1 = R^T R with R = W^-1; the noise variances are its diagonal minus that of K.
        R = torch.linalg.inv(W)
        variance = (R.square().sum(0) - kernel.diag(S)).clamp_min(0.0)
        g = g + variance.sqrt()[:, None] * normal(len(S))
    return Paths(prior, weights, (kernel, S, W @ (u - W.T @ g)))
