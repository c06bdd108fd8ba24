"""Pareto fronts, and optimistic hypervolume improvement: the upper confidence bound for several objectives.

| symbol    | shape  | units | meaning                                                                     |
| --------- | ------ | ----- | --------------------------------------------------------------------------- |
| F         | (p, k) | y     | values of known points, larger is better in each column                     |
| reference | (k,)   | y     | reference point of the hypervolume                                          |
| Y         | (n, k) | y     | upper confidence bounds of candidates                                       |

The improvement is the volume, bounded by the reference point, that a point would add to the region that the front
dominates. It is zero for dominated bounds; there the score decreases with the distance from the front, so that it has a
gradient.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bkbopt._support.compiled import compiled
from bkbopt.search.criteria.cells import cells_of

__all__ = ["Improvement", "chained", "hypervolume", "near_reference_of", "non_dominated", "reference_of"]

#: Largest number of points of the front by number of objectives, and for more objectives; a larger front is thinned
#: evenly. The number of cells grows fast with both: at these numbers there are one or two thousand.
MAX_FRONT, FEWEST = {2: 1024, 3: 1024, 4: 256, 5: 96, 6: 48, 7: 24, 8: 16}, 8

#: Number of points of five and more objectives whose cells are kept for the volume that they dominate.
FEW = 64

#: A front whose range in an objective is at most this share of the range of all points is short in it.
SHORT = 0.05

#: Lower bound of the volume, below which the score depends on the distance from the front.
SMALLEST = 1e-12

#: Difference from the score of no improvement up to which a point counts as one of the front.
ROUNDING = 1e-9

Floats = npt.NDArray[np.float64]


def non_dominated(Y: Floats, usable: Callable[[int], bool] = lambda _: True) -> list[int]:
    """The rows of `Y (n, k)`, larger is better, that no other usable row dominates, the best in the first column first.

    `usable` is asked about rows that no usable row dominates. Equal rows are all kept.
    """
    # Sorted by the first column, then the second and so on, so that no row is dominated by a later one.
    order = np.lexsort((np.arange(len(Y)), *-Y.T[::-1]))
    Y, front, p, at = Y[order], np.empty(len(Y), np.int64), 0, 0
    while (at := _next_leading(Y, at, front[:p])) < len(Y):
        if usable(int(order[at])):
            front[p], p = at, p + 1
        at += 1
    return [int(row) for row in order[front[:p]]]


@compiled
def _next_leading(Y: Floats, start: int, front: npt.NDArray[np.int64]) -> int:
    """The first row of `Y (n, k)` from `start` on that no row of the front dominates; n if there is none."""
    n, k = Y.shape
    for i in range(start, n):
        dominated = False
        for p in range(len(front) - 1, -1, -1):  # the nearest ones in the first column dominate most often
            as_good, better = True, False
            for j in range(k):
                as_good = as_good and Y[front[p], j] >= Y[i, j]
                better = better or Y[front[p], j] > Y[i, j]
            if as_good and better:
                dominated = True
                break
        if not dominated:
            return i
    return n


def hypervolume(F: Floats, reference: Floats) -> float:
    """The volume above the `reference (k,)` that the rows of `F (p, k)` dominate, larger is better."""
    F = F[(reference < F).all(1)]
    F = np.unique(F[non_dominated(F)], axis=0)
    if len(F) <= FEW or F.shape[1] <= 4:
        return cells_of(F, reference).dominated
    # Many points have too many cells to keep. What a point adds is its own volume less that of the other points' parts
    # below it (While, Bradstreet and Barone 2012, "A fast way of calculating exact hypervolumes", Algorithm 1).
    own = (F - reference).prod(1).tolist()
    return sum(own[i] - hypervolume(np.minimum(F[i + 1 :], F[i]), reference) for i in range(len(F)))


@compiled
def _improved(
    Y: Floats, low: Floats, high: Floats, front: Floats, reference: Floats, scores: Floats, slopes: Floats
) -> None:
    """Write the scores (n,) of the bounds `Y (n, k)` and their gradients (n, k); see `Improvement.__call__`."""
    n, k = Y.shape
    slope = np.empty(k)
    for i in range(n):
        y, volume = Y[i], 0.0
        slope[:] = 0.0
        for c in range(len(low)):
            cell = 1.0
            for j in range(k):
                cell *= max(min(y[j], high[c, j]) - low[c, j], 0.0)
            if cell > 0.0:
                volume += cell
                for j in range(k):
                    if y[j] < high[c, j]:
                        slope[j] += cell / (y[j] - low[c, j])
        behind, side = 0.0, -1
        for p in range(len(front)):
            lead, at = np.inf, -1
            for j in range(k):
                if front[p, j] - y[j] < lead:
                    lead, at = front[p, j] - y[j], j
            if lead > behind:
                behind, side = lead, at
        scores[i] = np.log(max(volume, SMALLEST)) - behind
        for j in range(k):
            slopes[i, j] = (slope[j] / volume if volume > SMALLEST else 0.0) + (1.0 if j == side else 0.0)
            if y[j] < reference[j]:
                scores[i] -= reference[j] - y[j]
                slopes[i, j] += 1.0


def chained(by_bounds: Tensor, by_X: Sequence[Tensor]) -> Tensor:
    """The gradients `(n, d)` of a score with the slopes `by_bounds (n, k)` by k bounds, whose own are `by_X`."""
    return torch.stack([by_bounds[:, j, None] * by for j, by in enumerate(by_X)]).sum(0)


def reference_of(F: Tensor) -> Tensor:
    """A reference point (k,) below all rows of `F (p, k)`, by a tenth of their range.

    It is below all of them, not only below the front, since a front may cover only a part of the trade-off.
    """
    return F.min(0).values - 0.1 * (F.max(0).values - F.min(0).values)


def near_reference_of(F: Tensor) -> Tensor:
    """A reference point (k,) below the front of `F (p, k)`, by a tenth of the front's range.

    In objectives in which the front is short, as one of a single point is in all, it is that of `reference_of`.
    """
    front = F[non_dominated(F.numpy())]
    spread, whole = (rows.max(0).values - rows.min(0).values for rows in (front, F))
    near = front.min(0).values - 0.1 * spread
    return torch.where(spread > SHORT * whole, near.maximum(reference_of(F)), reference_of(F))


@dataclass(frozen=True)
class Improvement:
    """Scores of candidates against a front; make it with `over`."""

    front: Tensor
    reference: Tensor
    cells: Tensor

    @classmethod
    def over(cls, F: Tensor, reference: Tensor) -> "Improvement":
        """The improvement over the non-dominated rows of `F (p, k)`, which are above the `reference (k,)`."""
        # Sorted by the first objective, without copies of equal points.
        front = torch.from_numpy(np.unique(F.numpy()[non_dominated(F.numpy())], axis=0))
        most = MAX_FRONT.get(F.shape[1], FEWEST)
        if len(front) > most:
            # Even steps in the order of the first objective keep both ends and the shape of the front.
            front = front[torch.linspace(0, len(front) - 1, most).round().long()]
        cells = cells_of(front.numpy(), reference.numpy())
        return cls(front, reference, torch.from_numpy(np.stack([cells.low, cells.high])))

    def __call__(self, Y: Tensor) -> Tensor:
        """Scores `(n,)` of the bounds `Y (n, k)`: log improvement, minus distances for dominated ones.

        The distances are those of the bounds behind the front (over its points, the largest smallest lead), and the sum
        of those behind the reference.
        """
        return self.with_slopes(Y)[0]

    def untied(self, parts: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """Scores `(n,)` of points with means and bounds, `(n,)` each, of each objective.

        Points of the front improve nothing and have equal scores. To each of them the width of its bounds is added, the
        sum over the objectives: where no other point improves, as late in a pool with noise, the least known one of the
        front is evaluated again, and not always the first.
        """
        scores = self(torch.stack([upper for _, upper in parts], 1))
        width = torch.stack([upper - mean for mean, upper in parts]).sum(0)
        return scores + width.where((scores - math.log(SMALLEST)).abs() < ROUNDING, 0.0)

    def with_slopes(self, Y: Tensor) -> tuple[Tensor, Tensor]:
        """Scores `(n,)` and their gradients `(n, k)` at the bounds `Y (n, k)`."""
        scores, slopes = np.empty(len(Y)), np.empty(Y.shape)
        low, high = self.cells.numpy()
        _improved(Y.numpy(), low, high, self.front.numpy(), self.reference.numpy(), scores, slopes)
        unknown = np.isnan(Y.numpy()).any(1)
        scores[unknown] = slopes[unknown] = np.nan
        return torch.from_numpy(scores), torch.from_numpy(slopes)
