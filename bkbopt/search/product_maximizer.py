"""The best row that a search over the parts of a product finds: no list of rows, and no proof that it is the best.

| symbol | shape  | units | meaning                                                                           |
| ------ | ------ | ----- | --------------------------------------------------------------------------------- |
| P      | -      | -     | number of parts                                                                   |
| n_p    | -      | -     | entries of part p                                                                 |
| e      | (P,)   | -     | entries of a row, one a part                                                      |
| line   | (n_p,) | -     | the rows that differ from e in part p alone; all of them are scored               |
| cross  | (c,)   | -     | the combinations of the best entries of each line through e, about `CROSS` of them |

The search starts from several rows and follows lines, each time to the best row of one, until e is the best row of
every line through it. Of the best of these rows the cross is scored, where several parts change at once; from a better
row in it the search continues. A sweep over all lines takes n_1 + ... + n_P scores; the product has n_1 ... n_P rows.

Pending points lower scores and raise none, so good rows of one suggestion are good starts for the next one.
Suggestions of a large batch share a cross and random rows, choose among these by the lazy argmax, and climb from the
chosen row once.

Bounds over sub-products were tried instead; `docs/guides/product-pools.md` says why they exclude too little.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt.spaces.rows import ProductRows

__all__ = ["N_CLIMBS", "N_RANDOM", "Climb", "ProductMaximizer", "Usable"]

#: Random rows that are scored; the best of them are starts.
N_RANDOM = 2048
#: Number of random starts, beside the best known row.
N_CLIMBS = 2
#: Largest number of rows of a cross, which has the same number of entries of each part, but at least two: of more than
#: 13 parts it has 2^P rows.
CROSS = 8192
#: Rows scored at once: kernel matrices of them stay in the cache.
BLOCK = 512

#: Scores `(n,)` of encoded points `(n, d)`.
Score = Callable[[Tensor], Tensor]
#: Whether a row of the product, by its number, may be chosen.
Usable = Callable[[int], bool]


@dataclass(frozen=True)
class Climb:
    """A row that is the best one of every line through it.

    Attributes:
        row: its number.
        score: its score.
        tops: of each line the rows with the best scores, best first, usable or not.
    """

    row: int
    score: float
    tops: tuple[Tensor, ...]


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

    @torch.no_grad()
    def best(self, score: Score, starts: Tensor, usable: Usable) -> Climb | None:
        """The best row reached from the rows `starts (s,)`; None if no usable row is found."""
        reached = [self.climbed(score, int(row), usable) for row in starts]
        # Of rows with equal scores the lowest, as in a list.
        best = max((c for c in reached if c is not None), key=lambda c: (c.score, -c.row), default=None)
        while best is not None:
            found = self._better(score, self.cross(best), best.score, usable)[0]
            if found is None:
                break
            best = self.climbed(score, found[0], usable, found[1])
        return best

    @torch.no_grad()
    def climbed(self, score: Score, at: int, usable: Usable, value: float = -torch.inf) -> Climb | None:
        """The row reached along lines from row `at`, usable or not, with score `value` (-inf: it is computed)."""
        if value == -torch.inf and usable(at):
            value = float(self.scores(score, torch.tensor([at]))[0])
        tops = [torch.zeros(0, dtype=torch.int64) for _ in self.X.sizes]
        stale = dict.fromkeys(range(len(tops)))  # parts whose line through `at` has not been searched, in order
        while stale:
            p = next(iter(stale))
            found, tops[p] = self._better(score, self.line(at, p), value, usable)
            del stale[p]
            if found is not None:
                at, value = found
                stale = dict.fromkeys(q for q in range(len(tops)) if q != p)
        return Climb(at, value, tuple(tops)) if value > -torch.inf else None

    def line(self, row: int, p: int) -> Tensor:
        """The rows that differ from a row in part p alone, with that row, in the order of the part."""
        stride, n = self.X.strides[p], self.X.sizes[p]
        return row - row // stride % n * stride + stride * torch.arange(n)

    def cross(self, climb: Climb) -> Tensor:
        """The rows made of the best entries of each line through a row."""
        k = max(2, int(CROSS ** (1.0 / len(climb.tops))))
        rows = torch.tensor([climb.row])
        for top, stride, n in zip(climb.tops, self.X.strides, self.X.sizes, strict=True):
            steps = (top[:k] // stride % n - climb.row // stride % n) * stride
            rows = (rows[:, None] + steps).reshape(-1)
        return rows

    def _better(
        self, score: Score, rows: Tensor, value: float, usable: Usable
    ) -> tuple[tuple[int, float] | None, Tensor]:
        """The best usable row with its score if that exceeds `value`, else None; and the best rows, usable or not."""
        scores = self.scores(score, rows)
        order = torch.argsort(scores, descending=True, stable=True)
        top = rows[order[:CROSS]]
        for i in order[: int((scores > value).sum())].tolist():
            if usable(int(rows[i])):
                return (int(rows[i]), float(scores[i])), top
        return None, top
