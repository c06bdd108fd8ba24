"""Fantasies of a quantity beside many running trials: they follow from the last anchor, see `surrogates.anchors`.

Anchors are at fixed numbers of rows after a mark, so that a new process has the same ones.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bkbopt.posterior.model import Model
from bkbopt.search.quantities.marked_rows import Failures
from bkbopt.surrogates.anchors import Anchor

__all__ = ["BETWEEN_ANCHORS", "MANY", "Crowd"]

#: Number of running trials that were suggested before the last value came, from which on fantasies follow from an
#: anchor. A batch that is suggested at once needs none, and the first fantasy of an anchor may cost a scan of a pool.
MANY = 32
#: Number of rows between two anchors.
BETWEEN_ANCHORS = 64


class Crowd:
    """An anchor, with the rows learnt since: points, numbers of their trials, standardised values, weights.

    Args:
        anchor: the anchor.
        n: its number of rows.

    Attributes:
        failed: the trials that failed since; None for none. They stay pending until the next anchor, so that the points
            after them need not be counted anew.
    """

    def __init__(self, anchor: Anchor, n: int) -> None:
        self._anchor, self.n = anchor, n
        self.failed: Failures | None = None
        self._X: list[Tensor] = []
        self._numbers: list[int] = []
        self._v: list[float] = []
        self._weight: list[float] = []

    def learn(self, X: Tensor, numbers: Sequence[int], v: Tensor, weight: Tensor | None) -> None:
        """Add rows: points `X (n, d)`, values `v (n,)` and their weights `(n,)`, by default ones."""
        self._X.append(X)
        self._numbers += numbers
        self._v += v.tolist()
        self._weight += [1.0] * len(v) if weight is None else weight.tolist()

    @property
    def keeps_bounds(self) -> bool:
        """Whether bounds of variances in the latest posterior hold in a fantasy, where values have a weight of one.

        They do not if a value is known to be more precise.
        """
        return max(self._weight, default=1.0) <= 1.0

    def fantasy(self, pending: Tensor, numbers: Sequence[int], *, beyond_budget: bool) -> Model:
        """The posterior of all rows with `pending (p, d)` counted, the points of running trials with these `numbers`.

        Points are counted in the order of their trials: a trial that is told keeps its place, a new one is the last.
        See `Surrogate.fantasy` for `beyond_budget`.
        """
        more, others = ((), pending[:0]) if self.failed is None else (self.failed.numbers, self.failed.X)
        order = np.argsort(np.array([*self._numbers, *more, *numbers]), kind="stable")
        rows = np.argsort(order, kind="stable")[: len(self._numbers)].tolist()
        X = torch.cat([*self._X, others, pending])[torch.as_tensor(order)]
        return self._anchor.fantasy(X, rows, self._v, self._weight, beyond_budget=beyond_budget)
