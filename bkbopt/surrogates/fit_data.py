"""The data of a likelihood, and the subset of them that a fit of bounded cost uses.

| symbol | shape  | units | meaning                                                                    |
| ------ | ------ | ----- | -------------------------------------------------------------------------- |
| U      | (u, d) | enc.  | unique points                                                              |
| n      | (u,)   | -     | counts                                                                     |
| ybar   | (u,)   | y     | mean value of each point                                                   |
| lam    | scalar | y^2   | unknown noise variance of an evaluation with weight 1                      |

Where some evaluations have known noise and others do not, U has the points of both, one after the other: a point with
evaluations of both kinds is there twice. The known variances do not depend on lam.

The points of a search are dense around the best ones. A random 400 of 1,000 points has few in the rest of the space,
and lengthscales are then fitted to noise. So half of a subset is spread over the space by Gonzalez' greedy rule (1985:
the next point is the one furthest from those chosen), and half is random, which keeps dense regions dense. With many
columns all points are about equally far apart, also in columns without effect. Instead of those far apart the subset
then has the first points, which in a search come from the whole space. Of rows that are sorted they are a biased half.

A subset leaves values out. Where their noise is larger than the differences between neighbours, all values count if
points are moved to the means of groups instead: the groups of those that are nearest to the same point of a subset.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from bkbopt.posterior.observations import Observations

__all__ = ["MANY", "FitData"]

#: With more columns that vary than this a subset has the first points in place of those far apart.
MANY = 30
#: The greedy rule chooses from at most this many points.
SEARCHED = 10_000
#: Number of points whose distances from the points of a subset are in memory at a time.
BLOCK = 4_096


@dataclass(frozen=True)
class FitData:
    """The statistics of the observations that a likelihood needs.

    Attributes:
        U: unique points (u, d).
        n: counts (u,).
        ybar: mean value of each unique point (u,), units of y.
        within: Y2 - sum s_i^2 / n_i, sum of squares of the repeats around their means, y squared.
        repeats: number of evaluations of each unique point after the first, (u,).
        known: noise variances of `ybar` that are known, (u,), y squared, and 0 for the others; None if all are unknown.
            Points with known variances have the count 1 and no repeats.
        least_noise: smallest noise variance that a fit may find, y squared.
    """

    U: Tensor
    n: Tensor
    ybar: Tensor
    within: float
    repeats: Tensor
    known: Tensor | None = None
    least_noise: float = 0.0

    @classmethod
    def of(cls, obs: "Observations | FitData") -> "FitData":
        """The data of all observations."""
        if isinstance(obs, FitData):
            return obs
        return cls(obs.X, obs.n, obs.s / obs.n, obs.within, obs.repeats)

    @classmethod
    def partly_known(cls, X: Tensor, y: Tensor, variances: Tensor) -> "FitData":
        """The data of values `y (n,)` at points `X (n, d)` with noise `variances (n,)`, NaN where they are unknown."""
        given, unknown, known = torch.isfinite(variances), Observations(X.shape[1]), Observations(X.shape[1])
        unknown.add(X[~given], y[~given])
        known.add(X[given], y[given], 1.0 / variances[given])
        rest, n, zeros = cls.of(unknown), torch.ones_like(known.n), torch.zeros_like(known.n)
        return cls(
            torch.cat([rest.U, known.X]),
            torch.cat([rest.n, n]),
            torch.cat([rest.ybar, known.s / known.n]),
            rest.within,
            torch.cat([rest.repeats, zeros]),
            torch.cat([torch.zeros_like(rest.n), 1.0 / known.n]),
        )

    @cached_property
    def n_repeats(self) -> float:
        """Number of evaluations after the first of their points."""
        return float(self.repeats.sum())

    @cached_property
    def log_counts(self) -> float:
        """Sum of the logarithms of the counts."""
        return float(self.n.log().sum())

    @cached_property
    def _per_count(self) -> Tensor:
        """1 / n, (u,): PyTorch divides a number by a tensor in three calls."""
        return self.n.reciprocal()

    def noises(self, lam: Tensor | float) -> Tensor:
        """Noise variances of `ybar`, (u,), y squared."""
        noises = lam * self._per_count
        return noises if self.known is None else torch.where(self.known > 0.0, self.known, noises)

    def unknown(self, values: Tensor) -> Tensor:
        """Those of `values (u,)` whose noise is unknown; zero for the others."""
        return values if self.known is None else torch.where(self.known > 0.0, 0.0, values)

    def subset(self, most: int, rng: np.random.Generator) -> "FitData":
        """The data of at most `most` points, half of them from the whole space; see the module's text.

        The part of `within` is the points' share of the repeats.

        Args:
            most: largest number of points.
            rng: generator of the random choice.
        """
        if len(self.U) <= most:
            return self
        order = rng.permutation(len(self.U))
        if int((self.U.amax(0) > self.U.amin(0)).sum()) > MANY:
            spread = np.arange(most // 2)
        else:
            pool = order[:SEARCHED]
            spread = pool[_far_apart(self.U[torch.as_tensor(pool)], most // 2)]
        rest = order[~np.isin(order, spread)][: most - len(spread)]
        rows = torch.as_tensor(np.sort(np.concatenate([spread, rest])), device=self.U.device)
        repeats = self.repeats[rows]
        within = self.within * float(repeats.sum()) / max(self.n_repeats, 1.0)
        known = None if self.known is None else self.known[rows]
        return FitData(self.U[rows], self.n[rows], self.ybar[rows], within, repeats, known, self.least_noise)

    def merged(self, most: int, rng: np.random.Generator) -> "FitData":
        """The data with at most `most` points, the means of groups; see the module's text.

        The columns are numeric, and no noise is known. What the values of a group differ by counts as noise.

        Args:
            most: largest number of points.
            rng: generator of the random choice.
        """
        if len(self.U) <= most:
            return self
        centers = self.subset(most, rng).U
        middle = centers.mean(0)  # squares of numbers that are far from zero would leave distances no digits
        near = centers - middle
        group = torch.cat([torch.cdist(block - middle, near).argmin(1) for block in self.U.split(BLOCK)])

        def summed(values: Tensor) -> Tensor:
            return values.new_zeros(len(centers), *values.shape[1:]).index_add_(0, group, values)

        n = summed(self.n)
        filled = n > 0.0  # of centers that are equal but for rounding all but one may have no points
        U, ybar = summed(self.n[:, None] * self.U) / n[:, None], summed(self.n * self.ybar) / n
        within = self.within + float(self.n @ (self.ybar - ybar[group]).square())
        repeats = summed(self.repeats + 1.0) - 1.0
        return FitData(U[filled], n[filled], ybar[filled], within, repeats[filled], None, self.least_noise)


def _far_apart(U: Tensor, k: int) -> list[int]:
    """Indices of `k` rows of `U`: the first, then each time the one furthest from those chosen; columns are scaled."""
    spread = U.amax(0) - U.amin(0)
    A = U / torch.where(spread > 0.0, spread, 1.0)
    rows, away = [0], torch.full((len(A),), torch.inf, dtype=A.dtype, device=A.device)
    while len(rows) < k:
        away = torch.minimum(away, (A - A[rows[-1]]).square().sum(1))
        rows.append(int(away.argmax()))
    return rows[:k]
