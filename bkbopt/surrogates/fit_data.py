"""The data of a likelihood, and the subset of them that a fit of bounded cost uses.

| symbol | shape  | units | meaning                                                                    |
| ------ | ------ | ----- | -------------------------------------------------------------------------- |
| U      | (u, d) | enc.  | unique points                                                              |
| n      | (u,)   | -     | counts                                                                     |
| ybar   | (u,)   | y     | mean value of each point                                                   |

The points of a search are dense around the best ones. A random 400 of 1,000 points has few in the rest of the space,
and lengthscales are then fitted to noise. So half of a subset is spread over the space by Gonzalez' greedy rule (1985:
the next point is the one furthest from those chosen), and half is random, which keeps dense regions dense.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt.posterior.observations import Observations

__all__ = ["FitData"]

#: The greedy rule chooses from at most this many points.
SEARCHED = 10_000


@dataclass(frozen=True)
class FitData:
    """The statistics of the observations that a likelihood needs.

    Attributes:
        U: unique points (u, d).
        n: counts (u,).
        ybar: mean value of each unique point (u,), units of y.
        within: Y2 - sum s_i^2 / n_i, sum of squares of the repeats around their means, y squared.
        repeats: number of evaluations of each unique point after the first, (u,).
    """

    U: Tensor
    n: Tensor
    ybar: Tensor
    within: float
    repeats: Tensor

    @classmethod
    def of(cls, obs: Observations) -> "FitData":
        """The data of all observations."""
        within = max(obs.Y2 - float((obs.s * obs.s / obs.n).sum()), 0.0)
        return cls(obs.X, obs.n, obs.s / obs.n, within, obs.repeats)

    def subset(self, most: int, rng: np.random.Generator) -> "FitData":
        """The data of at most `most` points, half of them far apart; `within` is scaled by their share of the repeats.

        Args:
            most: largest number of points.
            rng: generator of the random choice.
        """
        if len(self.U) <= most:
            return self
        order = rng.permutation(len(self.U))
        pool = order[:SEARCHED]
        apart = pool[_far_apart(self.U[torch.as_tensor(pool)], most // 2)]
        rest = order[~np.isin(order, apart)][: most - len(apart)]
        rows = torch.as_tensor(np.sort(np.concatenate([apart, rest])), device=self.U.device)
        repeats = self.repeats[rows]
        within = self.within * float(repeats.sum()) / max(float(self.repeats.sum()), 1.0)
        return FitData(self.U[rows], self.n[rows], self.ybar[rows], within, repeats)


def _far_apart(U: Tensor, k: int) -> list[int]:
    """Indices of `k` rows of `U`: the first, then each time the one furthest from those chosen; columns are scaled."""
    spread = U.amax(0) - U.amin(0)
    A = U / torch.where(spread > 0.0, spread, 1.0)
    rows, away = [0], torch.full((len(A),), torch.inf, dtype=A.dtype, device=A.device)
    while len(rows) < k:
        away = torch.minimum(away, (A - A[rows[-1]]).square().sum(1))
        rows.append(int(away.argmax()))
    return rows[:k]
