"""The best row that a search over the parts of a product finds: no list of rows, and no proof that it is the best.

| symbol | shape  | units | meaning                                                                       |
| ------ | ------ | ----- | ----------------------------------------------------------------------------- |
| P      | -      | -     | number of parts                                                               |
| n_p    | -      | -     | entries of part p                                                             |
| e      | (P,)   | -     | entries of a row, one a part                                                  |
| line   | (n_p,) | -     | the rows that differ from e in part p alone; all of them are scored           |
| cross  | -      | -     | the rows made of the best `CROSS` entries of the lines through e, part by part |

From several rows the search goes along lines, each time to the best row of one, until e is the best row of every line
through it; then it looks at the cross, where several parts change at once, and goes on from there if that has a better
one. A sweep over all lines takes n_1 + ... + n_P scores where there are n_1 ... n_P rows.

Bounds over sub-products were tried in place of it; see `docs/guides/product-pools.md` for why they prune too little.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt.spaces.rows import ProductRows

__all__ = ["N_CLIMBS", "N_RANDOM", "Climb", "ProductMaximizer"]

#: Random rows that are scored; the best of them are starts.
N_RANDOM = 2048
#: Starts that are climbed from, beside the best known row.
N_CLIMBS = 3
#: Rows of a cross: the same number of entries of each part, as many as that leaves.
CROSS = 2048
#: Rows scored at once: kernel matrices of them stay in the cache.
BLOCK = 512

#: Scores `(n,)` of encoded points `(n, d)`.
Score = Callable[[Tensor], Tensor]
#: Whether a row of the product, by its number, may be chosen.
Usable = Callable[[int], bool]


@dataclass(frozen=True)
class Climb:
    """A row that no line through it has a better one than.

    Attributes:
        row: its number.
        score: its score.
    """

    row: int
    score: float


@dataclass(frozen=True)
class ProductMaximizer:
    """Searches the rows `X` of a product; see the module's text."""

    X: ProductRows

    @torch.no_grad()
    def scores(self, score: Score, rows: Tensor) -> Tensor:
        """Scores `(n,)` of the rows `(n,)`, in blocks."""
        return torch.cat([score(self.X[block]) for block in rows.split(BLOCK)])

    def sample(self, rng: np.random.Generator, n: int) -> Tensor:
        """Random rows `(n,)`."""
        return torch.from_numpy(rng.integers(len(self.X), size=n))

    def best(self, score: Score, starts: Tensor, usable: Usable) -> Climb | None:
        """The best row that is reached from the rows `starts (s,)`; None where no usable one is met."""
        climbs = [self.climbed(score, int(row), usable) for row in starts]
        # Of equal ones the lowest row, as in a list.
        return max((c for c in climbs if c is not None), key=lambda c: (c.score, -c.row), default=None)

    @torch.no_grad()
    def climbed(self, score: Score, start: int, usable: Usable) -> Climb | None:
        """Where lines and crosses lead from a row, which itself need not be usable."""
        at, best = start, -torch.inf
        if usable(start):
            best = float(self.scores(score, torch.tensor([start]))[0])
        tops: list[Tensor] = [torch.zeros(0, dtype=torch.int64)] * len(self.X.sizes)
        stale = dict.fromkeys(range(len(self.X.sizes)))  # parts whose line has not been seen from here, in their order
        while stale:
            p = next(iter(stale))
            line = self.line(at, p)
            found = self._better(score, line, best, usable)
            tops[p], moved = found.top, found.climb
            del stale[p]
            if moved is None and not stale and best > -torch.inf:
                moved = self._better(score, self._cross(at, tops), best, usable).climb
                p = -1
            if moved is not None:
                at, best = moved.row, moved.score
                stale = dict.fromkeys(q for q in range(len(tops)) if q != p)
        return Climb(at, best) if best > -torch.inf else None

    def line(self, row: int, p: int) -> Tensor:
        """The rows that differ from a row in part p alone, that one among them, in the order of the part."""
        stride, n = self.X.strides[p], self.X.sizes[p]
        return row - row // stride % n * stride + stride * torch.arange(n)

    def _cross(self, row: int, tops: list[Tensor]) -> Tensor:
        """The rows made of the best entries of each line, given as the rows of these lines."""
        k = max(2, int(CROSS ** (1.0 / len(tops))))
        rows = torch.tensor([row])
        for top, stride, n in zip(tops, self.X.strides, self.X.sizes, strict=True):
            steps = (top[:k] // stride % n - row // stride % n) * stride
            rows = (rows[:, None] + steps).reshape(-1)
        return rows

    def _better(self, score: Score, rows: Tensor, best: float, usable: Usable) -> "_Found":
        """The best usable one of the rows that are better than `best`, and the best ones whether usable or not."""
        scores = self.scores(score, rows)
        order = torch.argsort(scores, descending=True, stable=True)
        for i in order.tolist():
            value = float(scores[i])
            if not value > best:
                break
            if usable(int(rows[i])):
                return _Found(rows[order[:CROSS]], Climb(int(rows[i]), value))
        return _Found(rows[order[:CROSS]], None)


@dataclass(frozen=True)
class _Found:
    """What a set of rows has: the best ones, and the usable one to go to."""

    top: Tensor
    climb: Climb | None
