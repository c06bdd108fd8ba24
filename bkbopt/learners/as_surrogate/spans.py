"""Projections on the span of a learner's functions, which grow point by point, and the Gaussian state on them.

| symbol   | shape  | units     | meaning                                                          |
| -------- | ------ | --------- | ---------------------------------------------------------------- |
| S        | (m, d) | enc.      | points of the learner's hypothesis                               |
| B        | (m, k) | -         | the span is that of the functions sum_i B_ij k(S_i, .)           |
| W        | (m, r) | 1/y       | W^T k(S, S) W = I_r, z(x) = W^T k_S(x)                           |
| residual | -      | y squared | k(x, x) - |z(x)|^2: exact, since z is a projection               |

A learner's own features need not be a projection: those of FORKS approximate the kernel, and k(x, x) less their square
is not a variance. But the functions that they represent are a subspace, and the projection on it has an exact residual.
So the mean is the learner's to the last digit, and the residual is the part of the kernel outside that subspace.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bkbopt.kernels import Kernel, gram
from bkbopt.posterior.features import Extension, Nystrom
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.linalg import thin_root

__all__ = ["RANK_TOLERANCE", "Span", "project"]

#: A residual below this fraction of k(x, x) is rounding error: the point lies in the span.
RANK_TOLERANCE = 1e-10


def project(kernel: Kernel, S: Tensor, B: Tensor | None) -> Nystrom:
    """The projection on the span of the functions `B (m, k)` of the points `S (m, d)`, or of all k(S_i, .)."""
    K = gram(kernel, S)
    W = thin_root(K)
    if B is not None:
        # Coordinates of the functions in the span of all points, and an orthonormal basis of those.
        U, size, _ = torch.linalg.svd(W.T @ (K @ B), full_matrices=False)
        W = W @ U[:, size > len(S) * torch.finfo(K.dtype).eps * size.max()]
    return Nystrom(kernel, S, W.contiguous())


@dataclass(frozen=True)
class Span:
    """A projection with the state of all observations on it; every step returns a new one.

    Args:
        features: the projection.
        Z: features of the unique observed points, (u, r).
        state: of all observations.
    """

    features: Nystrom
    Z: Tensor
    state: GaussianState

    @classmethod
    def of(cls, features: Nystrom, X: Tensor, n: Tensor, s: Tensor, lam: float) -> "Span":
        """From counts `n (u,)` and sums `s (u,)` at the unique points `X (u, d)`: O(u r^2 + r^3)."""
        Z = features(X)
        return cls(features, Z, GaussianState.from_data(Z, n, s, lam))

    def observe(self, row: int, x: Tensor, y: float) -> "Span":
        """The state with one more value `y` of unique point number `row`, `x (d,)`, which may be new: O(m r + r^2)."""
        Z = self.Z if row < len(self.Z) else torch.cat([self.Z, self.features(x[None])])
        return Span(self.features, Z, self.state.update(Z[row], y))

    def widen(self, x: Tensor, X: Tensor, n: Tensor, s: Tensor) -> "Span":
        """The span extended by the function k(x, .), if that is not in it: O(u r + r^2).

        `X (u, d)`, `n (u,)` and `s (u,)` are all observations.
        """
        z, prior = self.features(x[None])[0], float(self.features.kernel.diag(x[None])[0])
        residual = prior - float(z @ z)
        if residual <= RANK_TOLERANCE * prior:
            return self
        more = Extension(self.features, x[None], z[None], z.new_tensor([[residual**-0.5]]))
        C = more.columns(X, self.Z)
        NC = n[:, None] * C
        state = self.state.append(self.Z.T @ NC, C.T @ NC, C.T @ s)
        return Span(more.whole(), torch.cat([self.Z, C], 1), state)
