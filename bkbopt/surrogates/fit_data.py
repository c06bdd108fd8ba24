"""What a likelihood needs of the observations, and which of them a fit of bounded cost looks at.

| symbol | shape  | units | meaning                                                                    |
| ------ | ------ | ----- | -------------------------------------------------------------------------- |
| U      | (u, d) | enc.  | unique points                                                              |
| n      | (u,)   | -     | counts                                                                     |
| ybar   | (u,)   | y     | mean value of each                                                         |

The points of a search crowd around the best ones: of 1,000 points a random 400 hold few of those that say how the
function varies over the space, and lengthscales are then fitted to noise. So half of a subset lies far apart, by
Gonzalez' greedy rule (1985: each next point is the one furthest from those taken), and half is random, which keeps
what is dense dense.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt.posterior.observations import Observations

__all__ = ["FitData"]

#: The points of a subset that lie far apart are looked for among at most this many.
SEARCHED = 10_000


@dataclass(frozen=True)
class FitData:
    """What a likelihood needs of the observations.

    Attributes:
        U: unique points (u, d).
        n: counts (u,).
        ybar: mean value of each unique point (u,), units of y.
        within: Y2 - sum s_i^2 / n_i, the spread of the repeats, y squared.
        repeats: number of evaluations of each unique point after the first, (u,).
    """

    U: Tensor
    n: Tensor
    ybar: Tensor
    within: float
    repeats: Tensor

    @classmethod
    def of(cls, obs: Observations) -> "FitData":
        """All of it."""
        within = max(obs.Y2 - float((obs.s * obs.s / obs.n).sum()), 0.0)
        return cls(obs.X, obs.n, obs.s / obs.n, within, obs.repeats)

    def subset(self, most: int, rng: np.random.Generator) -> "FitData":
        """That of at most so many points, half of them far apart; the spread of the repeats is shared out.

        Args:
            most: number of points.
            rng: of the choice.
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
    """`k` rows of `U`, the first and then always the one furthest from those taken; all columns count alike."""
    spread = U.amax(0) - U.amin(0)
    A = U / torch.where(spread > 0.0, spread, 1.0)
    rows, away = [0], torch.full((len(A),), torch.inf, dtype=A.dtype, device=A.device)
    while len(rows) < k:
        away = torch.minimum(away, (A - A[rows[-1]]).square().sum(1))
        rows.append(int(away.argmax()))
    return rows[:k]
