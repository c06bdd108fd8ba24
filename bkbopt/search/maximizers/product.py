"""The best row that a search over the parts of a product finds: no list of rows, and no proof that it is the best.

| symbol | shape  | units | meaning                                                                           |
| ------ | ------ | ----- | --------------------------------------------------------------------------------- |
| P      | -      | -     | number of parts                                                                   |
| n_p    | -      | -     | entries of part p                                                                 |
| e      | (P,)   | -     | entries of a row, one a part                                                      |
| line   | (n_p,) | -     | the rows that differ from e in part p alone; all of them are scored               |
| cross  | (c,)   | -     | the combinations of the best entries of the lines through e, at most `CROSS`      |

The search starts from several rows and follows lines, each time to the best row of one, until e is the best row of
every line through it. Of the best of these rows the cross is scored, where several parts change at once; from a better
row in it the search continues. A sweep over all lines takes n_1 + ... + n_P scores; the product has n_1 ... n_P rows.

Pending points lower scores and raise none, so good rows of one suggestion are good starts for the next one.
Suggestions of a large batch share a cross and random rows, choose among these by the lazy argmax, and climb from the
chosen row once.

Bounds over sub-products were tried instead and excluded few rows; see `docs/design/pool-argmax.md`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt.search.maximizers.ascent import Score
from bkbopt.spaces.rows import ProductRows

__all__ = ["N_CLIMBS", "N_RANDOM", "ProductMaximizer", "Usable"]

#: Random rows that are scored; the best of them are starts.
N_RANDOM = 2048
#: Number of random starts, beside the best known row.
N_CLIMBS = 2
#: Largest number of rows of a cross, which has the same number of entries of each part, at least two.
CROSS = 8192
#: Most parts that a cross can have: those whose second best entries have the largest scores.
MOST_CROSSED = int(math.log2(CROSS))
#: Rows scored at once: kernel matrices of them stay in the cache.
BLOCK = 512

#: Whether a row of the product, by its number, may be chosen.
Usable = Callable[[int], bool]


@dataclass(frozen=True)
class Climb:
    """A row that is the best one of every line through it.

    Attributes:
        row: its number.
        score: its score.
        tops: of each line the rows with the best scores, best first, usable or not.
        seconds: of each line the second largest score; -inf for a part with one entry.
    """

    row: int
    score: float
    tops: tuple[Tensor, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class _Found:
    """The best usable one of some rows, or None, and its score; the best rows and the second largest score of all."""

    row: int | None
    score: float
    top: Tensor
    second: float


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
            found = self._better(score, self.cross(best), best.score, usable)
            if found.row is None:
                break
            best = self.climbed(score, found.row, usable, found.score)
        return best

    @torch.no_grad()
    def climbed(self, score: Score, at: int, usable: Usable, value: float = -torch.inf) -> Climb | None:
        """The row reached along lines from row `at`, usable or not, with score `value` (-inf: it is computed)."""
        if value == -torch.inf and usable(at):
            value = float(self.scores(score, torch.tensor([at]))[0])
        lines: list[_Found | None] = [None] * len(self.X.sizes)
        stale = dict.fromkeys(range(len(lines)))  # parts whose line through `at` has not been searched, in order
        while stale:
            p = next(iter(stale))
            lines[p] = found = self._better(score, self.line(at, p), value, usable)
            del stale[p]
            if found.row is not None:
                at, value = found.row, found.score
                stale = dict.fromkeys(q for q in range(len(lines)) if q != p)
        if value == -torch.inf:
            return None
        searched = [line for line in lines if line is not None]
        return Climb(at, value, tuple(line.top for line in searched), tuple(line.second for line in searched))

    def line(self, row: int, p: int) -> Tensor:
        """The rows that differ from a row in part p alone, with that row, in the order of the part."""
        stride, n = self.X.strides[p], self.X.sizes[p]
        return row - row // stride % n * stride + stride * torch.arange(n)

    def cross(self, climb: Climb) -> Tensor:
        """The rows made of the best entries of each line through a row, or of `MOST_CROSSED` lines."""
        crossed = sorted(range(len(climb.tops)), key=lambda p: -climb.seconds[p])[:MOST_CROSSED]
        k = max(2, int(CROSS ** (1.0 / len(crossed))))
        rows = torch.tensor([climb.row])
        for p in sorted(crossed):
            stride, n = self.X.strides[p], self.X.sizes[p]
            steps = (climb.tops[p][:k] // stride % n - climb.row // stride % n) * stride
            rows = (rows[:, None] + steps).reshape(-1)
        return rows

    def _better(self, score: Score, rows: Tensor, value: float, usable: Usable) -> "_Found":
        """The best usable one of some rows if its score exceeds `value`."""
        scores = self.scores(score, rows)
        order = torch.argsort(scores, descending=True, stable=True)
        top, second = rows[order[:CROSS]], float(scores[order[1]]) if len(rows) > 1 else -torch.inf
        for i in order[: int((scores > value).sum())].tolist():
            if usable(int(rows[i])):
                return _Found(int(rows[i]), float(scores[i]), top, second)
        return _Found(None, value, top, second)
