"""Inputs of schedules of beta that need a pass over points; each point is computed once.

Points are processed in fixed blocks from the first on, so that results depend only on the list of points, and not on
the times of the calls: rounding errors of products, or of a user's kernel, may depend on the size of a block.
"""

import torch
from torch import Tensor

from bkbopt.kernels import ARDKernel, Kernel
from bkbopt.spaces.rows import RowSource
from bkbopt.surrogates import Surrogate
from bkbopt.surrogates.pending import Counted, count_all

__all__ = ["HighestPrior", "PendingVariances"]

#: Sizes of blocks: observed points and arms of a pool.
PRIOR_BLOCK, ARMS_BLOCK = 64, 4096


class PendingVariances:
    """Posterior variances of pending points given the observations, y squared, in the steps of `count_all`.

    Args:
        surrogate: the surrogate, whose observations must not change.
    """

    def __init__(self, surrogate: Surrogate) -> None:
        self._surrogate = surrogate
        X = surrogate.observations.X[:0].cpu()
        self._kept: tuple[Counted[Tensor], ...] = (Counted(X, X.new_zeros(0)),)

    def __call__(self, pending: Tensor) -> Tensor:
        """Variances `(p,)` of the points `pending (p, d)`."""
        self._kept = count_all(self._kept, pending, self._with)
        return self._kept[-1].value

    def _with(self, variances: Tensor, X: Tensor) -> Tensor:
        return torch.cat([variances, self._surrogate.posterior(X).variance.cpu()])


class HighestPrior:
    """kappa^2: the largest prior variance k(x, x) of an observed point or an arm, y squared.

    In a box the maximum is over the observed points only, which suffices for the bounds of logdet(I + K / lam). See the
    module's text for the blocks.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._n, self._highest = 0, 0.0
        self._arms: RowSource | None = None
        self._highest_arm = 0.0

    def __call__(self, X: Tensor, arms: RowSource | None) -> float:
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
            self._highest_arm = max(
                self._of(arms[i : i + ARMS_BLOCK].to(X.device)) for i in range(0, len(arms), ARMS_BLOCK)
            )
            self._arms = arms
        return max(highest, self._highest_arm)

    def _of(self, X: Tensor) -> float:
        return float(self.kernel.diag(X).max())
