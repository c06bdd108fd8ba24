"""What schedules of beta look at and what takes a pass over points: each point is computed once.

Both go over their points in blocks from the first on, so that a number depends on the list of points alone, and not on
when they came: a product, or a kernel of the user's, may round as the size of a block is.
"""

import torch
from torch import Tensor

from bkbopt.kernels import ARDKernel, Kernel
from bkbopt.spaces.stored_rows import EncodedRows
from bkbopt.surrogates import Surrogate

__all__ = ["HighestPrior", "PendingVariances"]

#: Points that are computed at once: observed ones and arms of a pool (prior variances), and pending ones.
PRIOR_BLOCK, ARMS_BLOCK, PENDING_BLOCK = 64, 4096, 32


class PendingVariances:
    """Posterior variances of pending points given what was observed, y squared; those of full blocks are kept.

    Args:
        surrogate: it observes nothing more.
    """

    def __init__(self, surrogate: Surrogate) -> None:
        self._surrogate = surrogate
        self._X = surrogate.observations.X[:0]
        self._variances = self._X.new_zeros(0)

    def __call__(self, pending: Tensor) -> Tensor:
        """Variances `(p,)` of the points `pending (p, d)`."""
        n = len(self._X) if torch.equal(self._X, pending[: len(self._X)]) else 0
        blocks = pending[n:].split(PENDING_BLOCK) if n < len(pending) else ()
        variances = torch.cat([self._variances[:n], *(self._surrogate.posterior(X).variance for X in blocks)])
        full = len(pending) - len(pending) % PENDING_BLOCK
        self._X, self._variances = pending[:full].clone(), variances[:full]
        return variances


class HighestPrior:
    """kappa^2: the largest prior variance k(x, x) of an observed point or an arm, y squared.

    Each point is computed once, in blocks from the first on, so that the number does not depend on when points came: a
    kernel of the user's may round as the size of a block is. Where points are not listed, in a box, the supremum is
    that over the observed ones, which is all that the bounds of logdet(I + K / lam) need.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._n, self._highest = 0, 0.0
        self._arms: Tensor | EncodedRows | None = None
        self._highest_arm = 0.0

    def __call__(self, X: Tensor, arms: Tensor | EncodedRows | None) -> float:
        """The largest prior variance among `X (u, d)`, which has more rows at each call, and the `arms (A, d)`."""
        if isinstance(self.kernel, ARDKernel):
            return float(self.kernel.outputscale)  # stationary
        while len(X) - self._n > PRIOR_BLOCK:
            self._highest = max(self._highest, self._of(X[self._n : self._n + PRIOR_BLOCK]))
            self._n += PRIOR_BLOCK
        highest = max(self._highest, self._of(X[self._n :]))
        if arms is None:
            return highest
        if arms is not self._arms:
            self._highest_arm = max(map(self._of, arms.split(ARMS_BLOCK)))
            self._arms = arms
        return max(highest, self._highest_arm)

    def _of(self, X: Tensor) -> float:
        return float(self.kernel.diag(X).max())
