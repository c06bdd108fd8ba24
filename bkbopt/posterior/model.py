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
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.errors import KernelError
from bkbopt.kernels import ClosedFormKernel, Kernel
from bkbopt.kernels.base import Sloped, check_columns, has_closed_form
from bkbopt.posterior.features import FeatureMap, Nystrom
from bkbopt.posterior.linalg import eigh, in_memory, safe_cholesky

if TYPE_CHECKING:
    from bkbopt.kernels._loops import FixedKernel
    from bkbopt.posterior._loops import PlainModel

__all__ = ["Collapsed", "Model", "Posterior", "Predictor", "collapsed"]

#: Points up to which a compiled loop, which uses one thread, replaces some twenty calls of torch.
FEW = 256
#: Added to the diagonal of I - lam V^-1 before its factorisation, since its eigenvalues are zero in directions without
#: data. It lowers a variance by this multiple of |z|^2, no more than the variance's rounding error.
ROUNDING = 1e-14
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


#: The chain rule for a scalar L: maps dL/dmean and dL/dvariance, each (n,), to dL/dX, (n, d).
PosteriorPullback = Callable[[Tensor, Tensor], Tensor]


class Predictor(Protocol):
    """The interface of a posterior that predicts mean and variance."""

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance, each `(n,)`, of the points `X (n, d)`."""
        ...


@dataclass(frozen=True)
class Collapsed:
    """The posterior of a model with Nystrom features, written in the kernel functions k_S(x) of the inducing points.

    mean(x) = k_S(x) . a and cov(x, x') = k(x, x') - k_S(x)^T C C^T k_S(x'), where C C^T = W (I - lam V^-1) W^T.

    Attributes:
        kernel: the kernel.
        S: inducing points, (m, d).
        a: weights of the mean, W w, (m,).
        C: root of the variance that the observations explain, (m, r).
        fixed: the kernel with `S` for compiled loops, or None.
    """

    kernel: Kernel
    S: Tensor
    a: Tensor
    C: Tensor
    fixed: "FixedKernel | None" = None

    @cached_property
    def has_slopes(self) -> bool:
        """Whether the kernel has derivatives in closed form."""
        return self.fixed is not None or has_closed_form(self.kernel, self.S)

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance, each `(n,)`, of the points `X (n, d)`; differentiable in `X`."""
        if X.requires_grad and torch.is_grad_enabled() and self.has_slopes:
            # Autograd through each operation of the kernel would spend most of its time on overhead.
            return cast(tuple[Tensor, Tensor], _Sloped.apply(X, self))  # type: ignore[no-untyped-call]
        if self.fixed is not None and self._compiles(X):
            return self._compiled(X, self.fixed)
        there = X.to(self.a.device)
        K = self.kernel(there, self.S)
        P = K @ self.C
        return (K @ self.a).to(X.device), self._variance(there, P).clamp_min(0.0).to(X.device)

    def mean(self, X: Tensor) -> Tensor:
        """The mean `(n,)` alone of the points `X (n, d)`, in a tenth of the time where it is compiled."""
        if self.fixed is None or not self._compiles(X):
            return self(X)[0]
        from bkbopt.posterior._loops import predict_mean

        check_columns(X, self.S, self.S.shape[1])
        mean = X.new_empty(len(X))
        predict_mean(X.contiguous().numpy(), np.arange(len(X)), self.fixed, self.a.numpy(), mean.numpy())
        return mean

    def _compiles(self, X: Tensor) -> bool:
        """Whether compiled loops, which use one thread, are the fastest way to predict at `X (n, d)`."""
        return in_memory(X) and torch.get_num_threads() <= 2

    def _compiled(self, X: Tensor, fixed: "FixedKernel") -> tuple[Tensor, Tensor]:
        from bkbopt.posterior._loops import predict_collapsed

        check_columns(X, self.S, self.S.shape[1])
        mean, variance = X.new_empty(len(X)), X.new_empty(len(X))
        X = X.contiguous()
        upper = len(X) >= 4 * len(self.S)  # enough points to make up for the computation of the triangular root
        C = self.upper if upper else self._roots[1]
        predict_collapsed(X.numpy(), fixed, self.a.numpy(), C, upper, mean.numpy(), variance.numpy())
        return mean, variance

    @cached_property
    def upper(self) -> NDArray[np.float64]:
        """An upper triangular (min(m, r), m) R with R^T R = C C^T: products with R^T take half the time."""
        return torch.linalg.qr(self.C.T, mode="r").R.contiguous().numpy()

    def _variance(self, X: Tensor, P: Tensor) -> Tensor:
        return self.kernel.diag(X) - torch.linalg.vector_norm(P, dim=1).square()

    @cached_property
    def _sloped(self) -> Sloped:
        return cast(ClosedFormKernel, self.kernel).sloped(self.S)

    def with_pullback(self, X: Tensor) -> tuple[Tensor, Tensor, "PosteriorPullback"]:
        """Mean and variance, each `(n,)`, and their pullback to `X (n, d)`; needs `has_slopes`."""
        if self.fixed is not None and in_memory(X) and len(X) <= FEW:
            return self._compiled_slopes(X, self.fixed)
        K, pullback = self._sloped(X)
        P = K @ self.C
        variance = self._variance(X, P)

        def back(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            Q = (P * (-2.0 * by_variance * (variance > 0.0))[:, None]) @ self.C.T
            return pullback(torch.addcmul(Q, by_mean[:, None], self.a))

        return K @ self.a, variance.clamp_min(0.0), back

    def _compiled_slopes(self, X: Tensor, fixed: "FixedKernel") -> tuple[Tensor, Tensor, "PosteriorPullback"]:
        from bkbopt.posterior._loops import predict_sloped

        check_columns(X, self.S, self.S.shape[1])
        mean, variance, slopes = X.new_empty(len(X)), X.new_empty(len(X)), X.new_empty(2, *X.shape)
        X = X.contiguous()
        predict_sloped(X.numpy(), fixed, self.a.numpy(), self._roots, mean.numpy(), variance.numpy(), slopes.numpy())

        def back(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            return torch.addcmul(by_mean[:, None] * slopes[0], by_variance[:, None], slopes[1])

        return mean, variance, back

    @cached_property
    def _roots(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """C and C^T, both by rows."""
        return self.C.contiguous().numpy(), self.C.T.contiguous().numpy()


class _Sloped(torch.autograd.Function):
    """Mean and variance of a `Collapsed` as an autograd function."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, collapsed: Collapsed) -> tuple[Tensor, Tensor]:
        mean, variance, ctx.back = collapsed.with_pullback(X)
        return mean, variance

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        return ctx.back(*slopes), None


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
        return Model(self.features, self.w, self.root, self.lam, epoch, self.V, growth, self.collapsed)

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

    def left_out(self, X: Tensor, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance, each `(n,)`, of the noise-free value of each observation given all others.

        The observations are the values `y (n,)` of the points `X (n, d)`, with noise variances lam / weight (n,), from
        which the model was learnt; features, kernel and noise stay. With the share h of a value in its point's mean

            h = weight |root z|^2       (weight variance / lam for an exact GP, whose residual is its variance)
            mean = y - (y - mean(x)) / (1 - h)
            variance = lam |root z|^2 / (1 - h) + residual(x)

        The noise is not in the variance: that of a tiny weight would leave none of its digits.
        """
        there = X.to(self.w.device)
        Z = self.features(there)
        residual = self.features.residual(there, Z).to(X.device)
        inside = (Z @ self.root.T).square().sum(1).to(X.device)
        if not len(self.root):
            residual, inside = torch.zeros_like(residual), residual / self.lam
        rest = (1.0 - weight * inside).clamp_min(RESTING)
        return y - (y - (Z @ self.w).to(X.device)) / rest, self.lam * inside / rest + residual

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


def collapsed(features: Nystrom, w: Tensor, root: Tensor, lam: float) -> Collapsed:
    """The predictor of a posterior with Nystrom features; the arguments are those of `Model`."""
    C = features.W
    if len(root):
        C = C @ _explained_root(root, lam)
    return Collapsed(features.kernel, features.S, features.W @ w, C, features.fixed)


def _explained_root(root: Tensor, lam: float) -> Tensor:
    """Root `R (r, r)` of the part of the prior covariance that the observations explain, R R^T = I - lam V^-1."""
    A = root.T @ root
    B = (-lam * A).diagonal_scatter(1.0 + ROUNDING - lam * A.diagonal())
    R, info = torch.linalg.cholesky_ex(B)
    if int(info) == 0:
        return R
    # Where the counts span many orders of magnitude, lam V^-1 may exceed I by rounding.
    e, Q = eigh(A)
    return Q * (1.0 - lam * e).clamp_min(0.0).sqrt()
