"""The BKB posterior for BoTorch: batches of points, batches of models, conditioning.

| symbol | shape          | units     | meaning                                                              |
| ------ | -------------- | --------- | -------------------------------------------------------------------- |
| X      | (..., q, d)    | model's   | points, after the input transforms                                   |
| R      | (..., n)       | y         | targets minus the prior mean, after the outcome transform            |
| noise  | (..., n)       | y squared | noise variances; observation i counts lam / noise_i times            |
| D      | (..., p, p)    | y squared | posterior covariance of the points conditioned on, plus their noise  |
| c(x)   | (..., q, p)    | y squared | posterior covariance of x with the points conditioned on             |

The posterior of each batch element is a `bkbopt.posterior.collapsed.Collapsed`. They are padded to one size, with
inducing points of weight zero, and stacked. Conditioning on further points is exact, as for any Gaussian process:

    mean'(x) = mean(x) + c(x) D^-1 (R - mean),   cov'(x, x') = cov(x, x') - c(x) D^-1 c(x')^T
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from gpytorch.kernels import Kernel as Module
from torch import Tensor

from bkbopt.adapters.botorch.covariance import JointCovariance, ModuleKernel
from bkbopt.kernels import GPyTorchKernel
from bkbopt.posterior.collapsed import Collapsed
from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.linalg import safe_cholesky
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates import BKB
from bkbopt.surrogates.bkb import DRAW_FRACTION

__all__ = ["Options", "Prediction", "joined", "learn"]

#: An oversampling qbar with which every point is drawn.
ALL = 1e300


@dataclass(frozen=True)
class Options:
    """Options of the draw of inducing points; see `BKBModel`."""

    qbar: float
    max_inducing: int | None
    seed: int


@dataclass(frozen=True)
class Given:
    """Points that a model was conditioned on.

    Attributes:
        X: the points, (..., p, d).
        R: targets minus the prior mean, (..., p).
        noise: noise variances, (..., p).
        T: k(X, S) C C^T, (..., p, m), so that c(x) = k(x, X) - k(x, S) T^T.
        L: lower Cholesky factor of D, (..., p, p).
        alpha: D^-1 (R - mean), (..., p).
    """

    X: Tensor
    R: Tensor
    noise: Tensor
    T: Tensor
    L: Tensor
    alpha: Tensor


@dataclass(frozen=True)
class Prediction:
    """The posterior of a model, given its training data and the points on which it was conditioned.

    Leading dimensions are batches of models.

    Attributes:
        kernel: the kernel.
        theta: the hyper-parameters with which the posterior was computed.
        S: inducing points, (..., m, d).
        a: the mean is k(x, S) a, (..., m).
        C: see `JointCovariance`, (..., m, r).
        W: thin root of the inverse of k(S, S), (..., m, r).
        root: root of the covariance of the features' weights, (..., r, r): C C^T = W (I - root^T root) W^T.
        given: the points on which the model was conditioned, or None.
    """

    kernel: ModuleKernel
    theta: Tensor
    S: Tensor
    a: Tensor
    C: Tensor
    W: Tensor
    root: Tensor
    given: Given | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> "Prediction":
        """The object itself, since it is immutable."""
        return self

    def __call__(self, X: Tensor) -> tuple[Tensor, JointCovariance]:
        """Mean minus the prior mean `(..., q)` and joint covariance `(..., q, q)` of the points `X (..., q, d)`.

        They are computed in float64 and returned in the dtype of `X`. The covariance is not a plain tensor, since
        GPyTorch would factorise a tensor at once, and it may be singular.
        """
        shapes = [X.shape[:-2], self.S.shape[:-2]]
        if self.given is not None:
            shapes.append(self.given.alpha.shape[:-1])
        batch = torch.broadcast_shapes(*shapes)
        if self.S.ndim > 2:
            X = X.expand(*batch, *X.shape[-2:])
        U = X.double()
        K = self.kernel(U, self.S)
        mean, A = _product(K, self.a), U.new_zeros(*U.shape[:-1], 0)
        if self.given is not None:
            c = self.kernel(U, self.given.X) - K @ self.given.T.mT
            mean = mean + _product(c, self.given.alpha)
            A = torch.linalg.solve_triangular(self.given.L, c.mT, upper=False).mT
        mean = mean.expand(*batch, mean.shape[-1]).to(X.dtype)
        return mean, JointCovariance(X, K, A, self.C, kernel=self.kernel, batch=batch)

    def conditioned(self, X: Tensor, R: Tensor, noise: Tensor) -> "Prediction":
        """The posterior conditioned on further targets `R (..., q)` with noise variances `noise (..., q)`.

        The points are `X (..., q, d)`. Differentiable in all three.
        """
        X, R, noise = X.double(), R.double(), noise.double()
        if self.given is not None:
            X, R = joined(self.given.X, X, -2), joined(self.given.R, R, -1)
            noise = joined(self.given.noise, noise, -1)
        mean, covariance = replace(self, given=None)(X)
        L = safe_cholesky(covariance.to_dense() + torch.diag_embed(noise))
        alpha = torch.cholesky_solve((R - mean)[..., None], L)[..., 0]
        T = (covariance.K @ self.C) @ self.C.mT
        return replace(self, given=Given(covariance.X, R, noise, T, L, alpha))


def learn(module: Module, X: Tensor, R: Tensor, noise: Tensor, theta: Tensor, options: Options) -> Prediction:
    """The BKB posterior of each batch element.

    Args:
        module: the kernel; its batch dimensions are the last ones of `R`.
        X: points (..., n, d).
        R: targets minus the prior mean, (..., n).
        noise: noise variances, (..., n), or (..., 1) if they are all the same.
        theta: the hyper-parameters of kernel, mean and noise.
        options: options of the dictionary.
    """
    batch = R.shape[:-1]
    kernel = ModuleKernel.frozen(module)
    X, R, noise = (T.detach().double() for T in (X.expand(*batch, *X.shape[-2:]), R, noise.expand(R.shape)))
    with torch.no_grad():
        parts = [_learn_one(kernel.part(i), X[i], R[i], noise[i], options) for i in np.ndindex(*batch)]
    inducing, *rest = zip(*parts, strict=True)
    m = max(len(S) for S in inducing)
    inducing = tuple(S[torch.arange(m).clamp_max(len(S) - 1)] for S in inducing)  # padded by copies of the last point
    stacks = [_stacked(tensors) for tensors in (inducing, *rest)]
    S, a, C, W, root = (T.reshape(*batch, *T.shape[1:]) for T in stacks)
    return Prediction(kernel, theta, S, a, C, W, root)


def _learn_one(kernel: ModuleKernel, X: Tensor, R: Tensor, noise: Tensor, options: Options) -> tuple[Tensor, ...]:
    """S, a, C, W and root of one model."""
    rate = 1.0 / noise
    lam = 1.0 / float(rate.mean())
    observations = Observations(X.shape[-1], X.device)
    observations.add(X, R, lam * rate)
    own, most = GPyTorchKernel.wrap(kernel.module), options.max_inducing
    # If all points fit into the dictionary, all are inducing points, and the posterior is exact.
    whole = most is not None and len(observations) <= most
    surrogate = BKB(
        own,
        noise=lam,
        qbar=ALL if whole else options.qbar,
        # A draw leaves room for points that are appended later; there are none here, so the limit is raised.
        max_inducing=None if whole or most is None else math.ceil(most / DRAW_FRACTION),
        seed=options.seed,
        device=X.device,
    )
    surrogate.rebuild(observations, own, lam)
    model = surrogate.model
    collapsed, W = cast(Collapsed, model.collapse()), cast(Nystrom, model.features).W
    return collapsed.S, collapsed.a, collapsed.C, W, model.root * lam**0.5


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    """Matrices or vectors of different sizes as one tensor, padded by zeros at their ends."""
    sizes = [max(lengths) for lengths in zip(*(T.shape for T in tensors), strict=True)]
    stack = tensors[0].new_zeros(len(tensors), *sizes)
    for room, T in zip(stack, tensors, strict=True):
        room[tuple(slice(length) for length in T.shape)] = T
    return stack


def _product(A: Tensor, x: Tensor) -> Tensor:
    """The product A x `(..., q)` of `A (..., q, m)` and `x (..., m)`."""
    return (A @ x[..., None])[..., 0]


def joined(old: Tensor, new: Tensor, dim: int) -> Tensor:
    """Both tensors concatenated along `dim` (-1 or -2), with their leading dimensions broadcast."""
    batch = torch.broadcast_shapes(old.shape[:dim], new.shape[:dim])
    return torch.cat([T.expand(*batch, *T.shape[dim:]) for T in (old, new)], dim)
