"""The edge of a region in which trials fail: which points a search excludes.

| symbol     | shape  | units | meaning                                              |
| ---------- | ------ | ----- | ---------------------------------------------------- |
| X          | (n, d) | enc.  | encoded points                                       |
| corr(x, y) | -      | -     | k(x, y) / sqrt(k(x, x) k(y, y)) under a prior kernel |
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.kernels import Kernel
from bkbopt.kernels.fixed import fixed_kernel, gram_to_fixed
from bkbopt.posterior.linalg import in_memory

if TYPE_CHECKING:
    from bkbopt.kernels._fixed_loops import FixedKernel

Floats = NDArray[np.float64]

__all__ = ["CRASH_PENALTY", "Crashes", "crash_penalty"]

#: Penalty of a score where a trial is expected to fail, larger than all differences of log improvements.
CRASH_PENALTY = 1e6
#: Relative difference of correlations that are considered equal; the border of a failing region is then approached to
#: less than a thousandth of a lengthscale.
ALIKE = 2e-7
#: Points between a success and a failure are excluded beyond (1 - CAUTION) / 2 of the way, a third; with zero, where
#: the search is a bisection, half of the trials at an edge fail. See docs/design/failed-trials.md.
CAUTION = 1.0 / 3.0
#: Number of successes that are compared with each failure.
N_NEAREST = 32


@dataclass(frozen=True)
class Crashes:
    """Exclusion of points that are more similar to a failed trial than to any successful one, or almost so.

    Similarity is the prior correlation under the objective's kernel. Each success makes points beyond it admissible, so
    that the search approaches the border of a failing region by steps of a third of the gap between the two, until
    correlations differ by less than `ALIKE`. With f the failure and s the success that are most similar to x, a point x
    is excluded if

        corr(x, f) (1 + CAUTION (1 - corr(f, s))) > (1 - ALIKE) corr(x, s).

    Attributes:
        kernel: kernel of the objective.
        failures: points that failed and never had a value, (f, d).
        successes: points with a value that are nearest to the failures, (s, d).
    """

    kernel: Kernel
    failures: Tensor
    successes: Tensor

    @classmethod
    def among(cls, kernel: Kernel, failures: Tensor, known: Tensor) -> "Crashes":
        """All `failures (f, d)`, and for each of them the `N_NEAREST` most similar points of `known (u, d)`."""
        nearest = _correlation(kernel, failures, known).topk(min(N_NEAREST, len(known)), dim=1).indices
        return cls(kernel, failures, known[torch.unique(nearest)])

    def __call__(self, X: Tensor) -> Tensor:
        """A mask (n,) of the points `X (n, d)` that are excluded."""
        points, deviations, margins, fixed = self._points
        with torch.no_grad():
            K = self.kernel(X, points) if fixed is None or not in_memory(X) else gram_to_fixed(X, fixed)
        # The prior standard deviation at x is left out: it is the same on both sides.
        similarity, k, rows = K.cpu().numpy() / deviations, len(self.failures), np.arange(len(X))
        f, s = similarity[:, :k].argmax(1), similarity[:, k:].argmax(1)
        excluded = similarity[rows, f] * margins[f, s] > (1.0 - ALIKE) * similarity[rows, k + s]
        return torch.from_numpy(excluded).to(X.device)

    @cached_property
    def _points(self) -> tuple[Tensor, Floats, Floats, "FixedKernel | None"]:
        """Failures and successes, (f + s, d), their prior deviations, the margins of the pairs, (f, s), and the kernel.

        The kernel is that for compiled loops, which take a seventh of the time here, where there is one.
        """
        points = torch.cat([self.failures, self.successes])
        margins = 1.0 + CAUTION * (1.0 - _correlation(self.kernel, self.failures, self.successes))
        fixed = fixed_kernel(self.kernel, points) if in_memory(points) else None
        return points, self.kernel.diag(points).sqrt().cpu().numpy(), margins.cpu().numpy(), fixed


def crash_penalty(crashes: Crashes | None, X: Tensor, unit: float = 1.0) -> Tensor:
    """What is subtracted from the scores of the points `X (n, d)`, (n,); its gradient is zero.

    Args:
        crashes: the exclusion; None if there is none.
        X: encoded points.
        unit: of the scores.
    """
    none = X.new_zeros(len(X))
    return none if crashes is None else none + CRASH_PENALTY * unit * crashes(X)


def _correlation(kernel: Kernel, A: Tensor, B: Tensor) -> Tensor:
    return kernel(A, B) / (kernel.diag(A)[:, None] * kernel.diag(B)).sqrt()
