"""Maximisation of an acquisition function over a mixed space: many starts, batched gradients, discrete moves.

| symbol | shape  | units   | meaning                                             |
| ------ | ------ | ------- | --------------------------------------------------- |
| X      | (n, d) | encoded | candidates                                          |
| score  | (n,)   | -       | acquisition function, larger is better              |

Columns are *relaxed* (searched by gradients, then rounded) if they are continuous or have a long grid.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.threads import small_work
from bkbopt.search.maximizers.ascent import Score, ascend, ascend_bound, differences, plain_bound_of, slopes_of
from bkbopt.spaces.space import Space

__all__ = ["BoxMaximizer", "SearchSettings"]

#: Grids with more values than this are searched by gradients, then rounded; shorter ones by discrete moves only.
RELAX_ABOVE = 12
#: Smallest perturbation of a relaxed column, as a fraction of its range; gradients reach nearer points.
FAR = 0.1
#: Whether a row of points `(n, d)` is feasible.
UsableRow = Callable[[Tensor, int], bool]


@dataclass(frozen=True)
class SearchSettings:
    """Effort of one search.

    Attributes:
        n_raw: quasi-random candidates over the whole space, for one suggestion.
        n_shared: quasi-random points that the suggestions of a large batch share; those of a certificate.
        n_local: candidates around each incumbent.
        n_starts: candidates refined by gradients and moves.
        max_iterations: most steps of a gradient ascent.
        n_scan: values that are tried along each relaxed column, from the best refined point.
        n_scans: largest number of scans over all columns.
        n_local_of_batch: as `n_local`, for one of many suggestions.
        n_starts_of_batch: as `n_starts`, for one of many suggestions, beside the one that they share.
        max_iterations_of_batch: as `max_iterations`, for one of many suggestions; see `docs/design/batches.md`.
    """

    n_raw: int = 512
    n_shared: int = 1024
    n_local: int = 48
    n_starts: int = 6
    max_iterations: int = 40
    n_scan: int = 48
    n_scans: int = 3
    n_local_of_batch: int = 12
    n_starts_of_batch: int = 2
    max_iterations_of_batch: int = 15


class BoxMaximizer:
    """Ranking of candidates of a mixed space by an acquisition function, best first.

    Args:
        space: the search space, with at least one column that varies.
        settings: effort of a search.
    """

    def __init__(self, space: Space, settings: SearchSettings | None = None) -> None:
        self.space = space
        self.settings = settings or SearchSettings()
        self._relaxed = [j for j in space.numeric if (n := space.columns[j].n_values) is None or n > RELAX_ABOVE]
        self._base: Tensor | None = None

    @property
    def is_relaxed(self) -> bool:
        """Whether a column is searched by gradients."""
        return bool(self._relaxed)

    def ranked(
        self,
        score: Score,
        incumbents: Tensor,
        rng: np.random.Generator,
        usable: UsableRow,
    ) -> Tensor:
        """Candidates `(n, d)`: the refined ones by decreasing score, then the others by decreasing score.

        Args:
            score: scores (n,) of points `(n, d)`.
            incumbents: the best known points, best first, (k, d); they are among the starts.
            rng: generator of the candidates.
            usable: whether a row of points is feasible; refinement starts from usable points only.
        """
        with small_work(), torch.no_grad():
            return self._searched(score, self.candidates(incumbents, rng, self.settings.n_raw), usable)

    def ranked_from(
        self,
        start: Tensor,
        score: Score,
        incumbents: Tensor,
        rng: np.random.Generator,
        usable: UsableRow,
    ) -> Tensor:
        """`ranked` from the points `start (n, d)` and some near incumbents, without scans along columns.

        It costs less than half of a whole search, and is used for suggestions of large batches.
        """
        with small_work(), torch.no_grad():
            X = torch.cat([incumbents, self.around(incumbents, rng, self.settings.n_local_of_batch)])
            X = _sorted(X, score)
            starts = torch.cat([start, _spread(X, usable, self.settings.n_starts_of_batch)])
            refined = self._refine(starts, score, self.settings.max_iterations_of_batch)
            return torch.cat([_sorted(refined, score), start, X])

    def perturbations(self, x: Tensor, n: int, rng: np.random.Generator) -> Tensor:
        """At most `n` copies of `x (d,)`, each with one column redrawn; relaxed columns move by more than `FAR`."""
        d = len(x)
        column = torch.as_tensor(rng.integers(d, size=(2 * n, 1)))
        X = torch.where(torch.arange(d) == column, self.space.sample(2 * n, rng), x)
        # On a short grid any other value will do.
        near = torch.tensor([FAR if j in self._relaxed else 0.0 for j in range(d)], dtype=torch.float64)
        return X[((X - x).abs() > near).any(1)][:n]

    def _searched(self, score: Score, X: Tensor, usable: UsableRow) -> Tensor:
        """The refined best candidates of `X`, then all of `X`, each by decreasing score."""
        X = X[torch.argsort(score(X), descending=True, stable=True)]
        starts = _spread(X, usable, self.settings.n_starts)
        most = self.settings.max_iterations
        refined = _sorted(self._refine(starts, score, most), score) if len(starts) else starts
        for _ in range(self.settings.n_scans if self._relaxed and len(refined) else 0):
            moved = self._scanned(refined[:1], score)
            if not len(moved):
                break
            refined = _sorted(torch.cat([self._refine(moved, score, most), refined]), score)
        return torch.cat([refined, X])

    def _scanned(self, x: Tensor, score: Score) -> Tensor:
        """The best point of a scan along every relaxed column from `x (1, d)`: one better point, or none.

        Two points are tried: a move in the column that gains most, and moves in all columns that gain. If the score is
        a sum over columns, the second point is its maximiser over the grid of all scanned values.
        """
        columns, n = torch.tensor(self._relaxed), self.settings.n_scan
        c = len(columns)
        Y = x.repeat(c * n, 1)
        grid = (torch.arange(n, dtype=torch.float64) + 0.5) / n
        Y[torch.arange(c * n), columns.repeat_interleave(n)] = grid.repeat(c)
        Y = self.space.snap(Y)
        scores = score(Y).reshape(c, n)
        best, at = scores.max(1)
        rows = torch.arange(c) * n + at
        every = x.clone()
        every[0, columns] = torch.where(best > score(x), Y[rows, columns], x[0, columns])
        both = torch.cat([x, Y[rows[best.argmax()]][None], every])
        found = int(score(both).argmax())
        return both[found : found + 1] if found else both[:0]

    def candidates(self, incumbents: Tensor, rng: np.random.Generator, n: int) -> Tensor:
        """The incumbents `(k, d)`, `n` quasi-random points of the space, and points around them."""
        parts = [incumbents, self.everywhere(rng, n)]
        if len(incumbents):
            parts.append(self.around(incumbents, rng, self.settings.n_local))
        return torch.cat(parts)

    def everywhere(self, rng: np.random.Generator, n: int) -> Tensor:
        """Quasi-random points `(n, d)` of the space."""
        d = self.space.dim
        if self._base is None or len(self._base) < n:
            self._base = torch.quasirandom.SobolEngine(d, scramble=True, seed=0).draw(n, dtype=torch.float64)
        # A random shift of one quasi-random set is as uniform as a new set, and cheap.
        return self.space.from_unit(torch.remainder(self._base[:n] + torch.as_tensor(rng.random(d)), 1.0))

    def ball(self, x: Tensor, n: int, rng: np.random.Generator) -> Tensor:
        """Copies `(n, d)` of `x (d,)` with normal steps in all relaxed columns; the sizes are log-uniform up to one."""
        size = torch.as_tensor(10.0 ** rng.uniform(-3.0, 0.0, (n, 1)))
        X = x.repeat(n, 1)
        X[:, self._relaxed] += size * torch.as_tensor(rng.standard_normal((n, len(self._relaxed))))
        return self.space.snap(X)

    def around(self, incumbents: Tensor, rng: np.random.Generator, copies: int) -> Tensor:
        """Copies `(k * copies, d)` of the incumbents with a few columns changed: by normal steps, or redrawn."""
        k, d = incumbents.shape
        n = k * copies
        X = incumbents.repeat_interleave(copies, 0)
        size = torch.as_tensor(10.0 ** -rng.integers(1, 4, size=(n, 1)))
        moved = torch.as_tensor(rng.random((n, d)) < min(1.0, 8.0 / d))
        moved[torch.arange(n), torch.as_tensor(rng.integers(d, size=n))] = True
        steps = size * torch.as_tensor(rng.standard_normal((n, d)))
        elsewhere = self.space.sample(n, rng)
        jump = torch.zeros(n, d, dtype=torch.bool)
        for j, column in enumerate(self.space.columns):
            if column.kind == "categorical":
                jump[:, j] = torch.as_tensor(rng.random(n) < 0.3)
                steps[:, j] = 0.0
            elif column.n_values is not None and column.n_values <= RELAX_ABOVE:
                jump[:, j] = torch.as_tensor(rng.random(n) < 0.5)
        return self.space.snap(torch.where(moved, torch.where(jump, elsewhere, X + steps), X).clamp_(min=0.0))

    def _refine(self, X: Tensor, score: Score, most: int) -> Tensor:
        """Gradient ascent on the relaxed columns and best-improvement moves on the discrete ones, in turn."""
        discrete = any(c.n_values is not None for c in self.space.columns)
        moving = list(range(len(X)))
        for _ in range(3 if discrete else 1):
            climbed = self.climbed(X, score, most)
            if not discrete:
                return climbed
            # A row that no move improves, and that has not changed since, is not moved again.
            rows = sorted({*moving, *(climbed != X).any(1).nonzero()[:, 0].tolist()})
            X, moving = self._move(climbed, score, rows)
            if torch.equal(X, climbed):
                break
        return X

    def climbed(self, X: Tensor, score: Score, most: int) -> Tensor:
        """The points `X (n, d)` after a gradient ascent of `most` steps in the relaxed columns, where it improves them.

        The score may differ from row to row; it is called with the points or with several copies of them.
        """
        if not self._relaxed:
            return X
        columns, Y, bound = self._relaxed, X.clone(), plain_bound_of(score)
        if bound is None:
            Y[:, columns] = torch.from_numpy(self._ascended(X, score, most))
        else:
            Y[:, columns] = torch.from_numpy(ascend_bound(bound, X.numpy(), columns, most))
        Y = self.space.snap(Y)
        better = score(Y) > score(X)
        return torch.where(better[:, None], Y, X)

    def _ascended(self, X: Tensor, score: Score, most: int) -> np.ndarray:
        """The relaxed columns `(n, c)` after a gradient ascent from each row."""
        columns, Y, with_slopes = self._relaxed, X.clone(), slopes_of(score)

        def sloped(free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            Y.numpy()[:, columns] = free
            scores, by_all = with_slopes(Y)
            slopes = by_all.numpy()[:, columns]
            if np.isnan(slopes).any():
                slopes = np.where(np.isnan(slopes), differences(score, Y, columns, scores).numpy(), slopes)
            return scores.numpy(), slopes

        return ascend(sloped, X[:, columns].numpy(), most)

    def _move(self, X: Tensor, score: Score, rows: list[int]) -> tuple[Tensor, list[int]]:
        """Local search: each of some rows moves to its best neighbour in one discrete column, at most eight times.

        Also returns the rows that may have better neighbours still.
        """
        X = X.clone()
        current = score(X)
        for _ in range(8):
            if not rows:
                break
            near, sizes = self.space.neighbours(X[rows])
            moved = []
            for i, block, own in zip(rows, near.split(sizes), score(near).split(sizes), strict=True):
                j = int(own.argmax())
                if own[j] > current[i]:
                    X[i], current[i] = block[j], own[j]
                    moved.append(i)
            rows = moved
        return X, rows


def _sorted(X: Tensor, score: Score) -> Tensor:
    return X[torch.argsort(score(X), descending=True, stable=True)]


def _spread(X: Tensor, usable: UsableRow, n: int) -> Tensor:
    """The first `n` usable rows of `X`, without those very near an earlier one."""
    taken: list[int] = []
    radius = 0.02 * X.shape[1] ** 0.5
    points, is_open = X.numpy(), np.ones(len(X), np.bool_)
    while len(taken) < n and is_open.any():
        i = int(is_open.argmax())
        is_open[i] = False
        if usable(X, i):
            taken.append(i)
            is_open &= np.square(points - points[i]).sum(1) >= radius**2
    return X[taken]
