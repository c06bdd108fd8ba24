"""The posterior of Nystrom features in terms of the kernel, with one matrix product for mean, variance and slopes.

| symbol | shape  | units | meaning                                                                            |
| ------ | ------ | ----- | ---------------------------------------------------------------------------------- |
| S      | (m, d) | enc.  | inducing points                                                                    |
| K      | (n, m) | y^2   | kernel matrix of the points and the inducing points                                |
| a      | (m,)   | 1/y   | weights of the mean, W w                                                           |
| C      | (m, r) | 1/y   | root of the variance that the observations explain; see `bkbopt.posterior.explained` |

    mean(x) = k_S(x) . a          variance(x) = k(x, x) - |C^T k_S(x)|^2
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.kernels import ClosedFormKernel, Kernel
from bkbopt.kernels.base import Sloped, check_columns, has_closed_form
from bkbopt.posterior.explained import Explained, root_under, upper_root
from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.linalg import in_memory

if TYPE_CHECKING:
    from bkbopt.kernels._fixed_loops import FixedKernel

__all__ = ["FEW", "Collapsed", "collapsed"]

#: Points up to which a compiled loop, which uses one thread, replaces some twenty calls of torch.
FEW = 256

#: The chain rule for a scalar L: maps dL/dmean and dL/dvariance, each (n,), to dL/dX, (n, d).
PosteriorPullback = Callable[[Tensor, Tensor], Tensor]


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
        R: the same root as an upper triangle, R^T R = C C^T, where it is known.
    """

    kernel: Kernel
    S: Tensor
    a: Tensor
    C: Tensor
    fixed: "FixedKernel | None" = None
    R: NDArray[np.float64] | None = None

    def __getstate__(self) -> dict[str, object]:
        """Without the cached derivative: a function within a function cannot be pickled."""
        return {name: value for name, value in vars(self).items() if name != "_sloped"}

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
        # A triangle takes half the time; to compute it takes that of many points.
        upper = self.R is not None or len(X) >= 4 * len(self.S)
        C = self.upper if upper else self.roots[1]
        predict_collapsed(X.numpy(), fixed, self.a.numpy(), C, upper, mean.numpy(), variance.numpy())
        return mean, variance

    @cached_property
    def upper(self) -> NDArray[np.float64]:
        """An upper triangular R (m, m) with R^T R = C C^T."""
        return upper_root(self.C) if self.R is None else self.R

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
        n, d = X.shape
        mean, variance, slopes = np.empty(n), np.empty(n), np.empty((2, n, d))
        predict_sloped(X.contiguous().numpy(), fixed, self.a.numpy(), self.roots, mean, variance, slopes)

        def back(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            by_X = by_mean.numpy()[:, None] * slopes[0] + by_variance.numpy()[:, None] * slopes[1]
            return torch.from_numpy(by_X)

        return torch.from_numpy(mean), torch.from_numpy(variance), back

    @cached_property
    def roots(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


def collapsed(features: Nystrom, w: Tensor, root: Tensor, lam: float, explained: Explained | None = None) -> Collapsed:
    """The predictor of a posterior with Nystrom features.

    The first arguments are those of `bkbopt.posterior.Model`; with `explained` it costs O(m^2) after a single value.
    """
    W, a = features.W, features.W @ w
    if explained is None or not in_memory(W):
        return Collapsed(features.kernel, features.S, a, root_under(W, root, lam), features.fixed)
    if not explained.length:
        return Collapsed(features.kernel, features.S, a, explained.full(W), features.fixed)
    R = explained.upper(W)
    return Collapsed(features.kernel, features.S, a, torch.from_numpy(R).T, features.fixed, R)
