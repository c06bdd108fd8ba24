"""The posterior formula.

| symbol     | shape  | units     | meaning                                                              |
| ---------- | ------ | --------- | -------------------------------------------------------------------- |
| z(x)       | (r,)   | y         | features                                                             |
| residual   | (n,)   | y squared | k(x, x) - |z(x)|^2, prior variance outside of the features           |
| w          | (r,)   | -         | weights                                                              |
| root       | (k, r) | 1/y       | root^T root = V^-1; k = 0 if the weights are known exactly           |
| lam        | scalar | y squared | noise variance = ridge                                               |

    mean(x)     = z . w
    variance(x) = residual(x) + lam |root z|^2            (Calandriello et al. 2019, Eq. 4, the DTC form)
    leverage(x) = variance(x) / lam                       (what the paper writes as sigma-tilde squared)

The exact GP is the same formula with all unique points as inducing points, whitened by the noisy kernel matrix
K + lam N^-1: the residual is then the whole posterior variance, and k = 0.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt.errors import KernelError
from bkbopt.kernels.base import check_columns
from bkbopt.posterior.collapsed import FEW, Collapsed, collapsed
from bkbopt.posterior.features import FeatureMap, Nystrom
from bkbopt.posterior.linalg import in_memory, safe_cholesky
from bkbopt.posterior.observations import Observations

if TYPE_CHECKING:
    from bkbopt.posterior._loops import PlainModel

__all__ = ["Model", "Posterior", "Predictor"]

#: Smallest share of the other observations in the mean of a point, above the rounding errors of variance / lam.
RESTING = 1e-12


@dataclass(frozen=True)
class Posterior:
    """The posterior of the black box at the points `X (n, d)`.

    Attributes:
        model: the model.
        X: the points, (n, d).
        mean: posterior mean (n,), units of y.
        variance: posterior variance of the noise-free value (n,), y squared, never negative.

    Example:
        >>> import bkbopt as bo
        >>> model = bo.ExactGP(bo.kernels.rbf(1, lengthscale=0.3), noise=0.01)
        >>> model.observe([[0.1], [0.5]], [1.0, 2.0])
        >>> posterior = model.posterior([[0.1], [0.3]])
        >>> posterior.stddev, posterior.leverage
        (tensor([0.0994, 0.3125], dtype=torch.float64), tensor([0.9881, 9.7636], dtype=torch.float64))
        >>> posterior.sample(100, seed=0).shape
        torch.Size([100, 2])
    """

    model: "Model"
    X: Tensor
    mean: Tensor
    variance: Tensor

    @property
    def leverage(self) -> Tensor:
        """variance / lam (n,), without units: the paper's sigma-tilde squared."""
        return self.variance / self.model.lam

    @property
    def stddev(self) -> Tensor:
        """Posterior standard deviation (n,), units of y."""
        return self.variance.sqrt()

    @cached_property
    def covariance(self) -> Tensor:
        """Joint posterior covariance (n, n), y squared; positive semi-definite."""
        return self.model.covariance(self.X)

    def sample(self, n: int = 1, seed: int | None = None) -> Tensor:
        """`n` joint samples of the noise-free values, (n, number of points), units of y.

        Args:
            n: number of samples.
            seed: seed of the random numbers; None for a fresh one.
        """
        L = self.model.covariance_root(self.X)
        rng = np.random.default_rng(seed)
        eps = torch.as_tensor(rng.standard_normal((n, len(self.mean))), device=L.device)
        return self.mean + eps @ L.T


class Predictor(Protocol):
    """The interface of a posterior that predicts mean and variance."""

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance, each `(n,)`, of the points `X (n, d)`."""


@dataclass(frozen=True)
class Model:
    """An immutable posterior; see the module's table.

    Within an *epoch*, a sequence of models with the same number `epoch`, data are only added and features only
    appended. Between two models of an epoch a standard deviation grows at most by the ratio of their `growth` >= 1
    (see `bkbopt.surrogates.epochs`); the lazy maximiser over a pool relies on this bound. `V (r, r)` is the matrix of
    which `root` is the inverse root, or None. `collapsed` gives the result of `collapse` where it is known. Points may
    lie on another device; what is computed of them returns there.

    Example:
        >>> import torch
        >>> import bkbopt as bo
        >>> surrogate = bo.BKB(noise=0.01)
        >>> surrogate.observe([[0.1], [0.5]], [1.0, 2.0])
        >>> mean, variance = surrogate.model(torch.tensor([[0.5]], dtype=torch.float64))
        >>> mean, variance
        (tensor([1.9773], dtype=torch.float64), tensor([0.0098], dtype=torch.float64))
    """

    features: FeatureMap
    w: Tensor
    root: Tensor
    lam: float
    epoch: int = 0
    V: Tensor | None = None
    growth: float = 1.0
    collapsed: Callable[[], Collapsed] | None = field(default=None, repr=False)

    def placed(self, epoch: int, growth: float = 1.0) -> "Model":
        """The same posterior in an epoch."""
        return replace(self, epoch=epoch, growth=growth)

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance, each `(n,)`, of the points `X (n, d)`; differentiable in `X`."""
        if len(X) <= FEW and in_memory(X) and self.plain is not None:
            return self._compiled(X, self.plain)
        there = X.to(self.w.device)
        Z = self.features(there)
        P = Z @ self.root.T
        variance = self.features.residual(there, Z) + self.lam * (P * P).sum(1)
        return (Z @ self.w).to(X.device), variance.to(X.device)

    def _compiled(self, X: Tensor, plain: "PlainModel") -> tuple[Tensor, Tensor]:
        from bkbopt.posterior._loops import predict

        S = cast(Nystrom, self.features).S
        check_columns(X, S, S.shape[1])
        mean, variance = X.new_empty(len(X)), X.new_empty(len(X))
        predict(X.contiguous().numpy(), np.arange(len(X)), plain, mean.numpy(), variance.numpy())
        return mean, variance

    @cached_property
    def plain(self) -> "PlainModel | None":
        """The model as arrays for compiled loops; None where there are none for its features."""
        features = self.features
        if not isinstance(features, Nystrom) or features.fixed is None or self.w.requires_grad:
            return None
        from bkbopt.posterior._loops import PlainModel

        w, root = (part.contiguous().numpy() for part in (self.w, self.root))
        return PlainModel(features.fixed, features.transposed, w, root, self.lam)

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without what is cached."""
        return {one.name: getattr(self, one.name) for one in fields(self)} | {"collapsed": None}

    def collapse(self) -> Predictor:
        """A predictor that needs one matrix product instead of two, for predictions at many points.

        For Nystrom features it is a `Collapsed`, otherwise the model itself. The rounding error of its variance is
        relative to k(x, x), not to the variance.
        """
        if not isinstance(self.features, Nystrom):
            return self
        if self.collapsed is not None:
            return self.collapsed()
        return collapsed(self.features, self.w, self.root, self.lam)

    def left_out(self, X: Tensor, y: Tensor, weight: Tensor, seen: Observations) -> tuple[Tensor, Tensor]:
        """Mean and variance, each `(n,)`, of the noise-free value of each observation given all others.

        The observations are the values `y (n,)` of the points `X (n, d)`, with noise variances lam / weight (n,), or
        some of them; `seen` are all from which the model was learnt. Features, kernel and noise stay. With the share h
        of a value in its point's mean

            h = weight |root z|^2       (weight variance / lam for an exact GP, whose residual is its variance)
            mean = y - (y - mean(x)) / (1 - h)
            variance = lam |root z|^2 / (1 - h) + residual(x)

        The noise is not in the variance: that of a tiny weight would leave none of its digits.
        """
        there = X.to(self.w.device)
        Z = self.features(there)
        residual = self.features.residual(there, Z).to(X.device)
        if not len(self.root):
            return self._left_out_of_exact(X, y, weight, residual, seen)
        inside = (Z @ self.root.T).square().sum(1).to(X.device)
        rest = (1.0 - weight * inside).clamp_min(RESTING)
        return y - (y - (Z @ self.w).to(X.device)) / rest, self.lam * inside / rest + residual

    def _left_out_of_exact(
        self, X: Tensor, y: Tensor, weight: Tensor, residual: Tensor, seen: Observations
    ) -> tuple[Tensor, Tensor]:
        """`left_out` for an exact GP, whose W W^T is E^-1 = (K + lam N^-1)^-1, with its `residual (n,)`.

        With t = lam / n and c = (E^-1)_xx of a point with the count n and the mean value ybar

            variance(x) = t (1 - t c),   y - mean(x) = y - ybar + t (E^-1 ybar)_x

        Without noise t is tiny, h is nearly one, and 1 - h = 1 - weight / n + weight t c / n would have no digits left
        as a difference of 1 and of a variance that is rounded in units of k(x, x).
        """
        rows = torch.tensor([seen.row_of(key) for key in row_keys(X)], dtype=torch.int64)
        n, s = seen.n.to(X.device)[rows], seen.s.to(X.device)[rows]
        W = cast(Nystrom, self.features).W
        c, a = (part.to(X.device)[rows] for part in ((W * W).sum(1), W @ self.w))
        t, share = self.lam / n, weight / n
        rest = (1.0 - share).clamp_min(0.0) + share * t * c
        # With much noise it is 1 - t c that has no digits left.
        variance = torch.where(t * c < 0.5, t * (1.0 - t * c), residual)
        away = torch.where(share < 1.0, y - s / n, 0.0) + t * a  # the only value of a point is its mean
        return y - away / rest, variance / rest

    def covariance(self, X: Tensor) -> Tensor:
        """Joint posterior covariance `(n, n)` of the points `X (n, d)`, y squared."""
        there = X.to(self.w.device)
        Z = self.features(there)
        P = Z @ self.root.T
        return (self.features.residual_covariance(there, Z) + self.lam * (P @ P.T)).to(X.device)

    def covariance_root(self, X: Tensor) -> Tensor:
        """Lower Cholesky factor `(n, n)` of the joint posterior covariance of the points `X (n, d)`, units of y."""
        C = self.covariance(X)
        try:
            return safe_cholesky(C)
        except KernelError:
            # The posterior covariance is tiny; its rounding error has the scale of the prior covariance.
            there = X.to(self.w.device)
            Z = self.features(there)
            return safe_cholesky(C, float((self.features.residual(there, Z) + (Z * Z).sum(1)).mean()))

    def posterior(self, X: Tensor) -> Posterior:
        """The posterior at the points `X (n, d)`."""
        mean, variance = self(X)
        return Posterior(self, X, mean, variance)
