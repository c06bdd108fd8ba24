"""Optimistic hypervolume improvement: the upper confidence bound for several objectives.

| symbol    | shape  | units | meaning                                                                     |
| --------- | ------ | ----- | --------------------------------------------------------------------------- |
| F         | (p, k) | y     | values of known points (posterior means), larger is better in each column   |
| reference | (k,)   | y     | reference point of the hypervolume                                          |
| Y         | (n, k) | y     | upper confidence bounds of candidates                                       |

The improvement is the volume, bounded by the reference point, that a point would add to the region that the front
dominates. It is zero for dominated bounds; there the score decreases with the distance from the front, so that it has a
gradient.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bkbopt.errors import extra

__all__ = ["Improvement"]

#: Largest number of points of the front by number of objectives, and for more objectives; a larger front is thinned
#: evenly. The number of cells grows fast with both: twelve points of seven objectives take 12 s, four take 0.4 s.
MAX_FRONT, FEWEST = {2: 256, 3: 64, 4: 24, 5: 12, 6: 6, 7: 4, 8: 3}, 2

#: Lower bound of the volume, below which the score depends on the distance from the front.
SMALLEST = 1e-12


@dataclass(frozen=True)
class Improvement:
    """Scores of candidates against a front; make it with `over`."""

    front: Tensor
    reference: Tensor
    cells: Tensor

    @classmethod
    def over(cls, F: Tensor, reference: Tensor | None = None) -> "Improvement":
        """The improvement over the non-dominated rows of `F (p, k)`; the `reference (k,)` is below all, or follows.

        Raises:
            MissingPackageError: BoTorch, which decomposes the space, is not installed.
        """
        with extra("botorch"):
            from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
            from botorch.utils.multi_objective.pareto import is_non_dominated
        front = F[is_non_dominated(F)]
        # From the worst of all points, not of the front, since a front may cover only a part of the trade-off.
        if reference is None:
            reference = F.min(0).values - 0.1 * (F.max(0).values - F.min(0).values)
        most = MAX_FRONT.get(F.shape[1], FEWEST)
        if len(front) > most:
            # Even steps in the order of the first objective keep both ends and the shape of the front.
            order = torch.argsort(front[:, 0], stable=True)
            front = front[order[torch.linspace(0, len(order) - 1, most).round().long()]]
        cells = FastNondominatedPartitioning(ref_point=reference, Y=front).get_hypercell_bounds()
        return cls(front, reference, cells)

    def __call__(self, Y: Tensor) -> Tensor:
        """Log improvement `(n,)` for the bounds `Y (n, k)`, minus distances for dominated ones; differentiable."""
        low, high = self.cells[0], self.cells[1]
        sides = (torch.minimum(Y[:, None, :], high[None]) - low[None]).clamp_min(0.0)
        volume = sides.prod(2).sum(1)
        # Distances of the bounds behind the front (over its points, the largest smallest lead) and the reference.
        behind = (self.front[None] - Y[:, None, :]).min(2).values.max(1).values.clamp_min(0.0)
        short = (self.reference - Y).clamp_min(0.0).sum(1)
        return volume.clamp_min(SMALLEST).log() - behind - short
