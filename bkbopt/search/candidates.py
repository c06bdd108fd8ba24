"""The sets that a suggestion is chosen from: the rows of a pool, the points of a grid, or those of a box.

| symbol | shape  | units   | meaning                                                                  |
| ------ | ------ | ------- | ------------------------------------------------------------------------ |
| X      | (n, d) | encoded | points, in the columns of the whole encoding                             |
| U      | (n, k) | encoded | points of the space inside the encoding that a suggestion is chosen from |

Points that may not be chosen come as rows of X. A set answers None where it has nothing else to offer.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.errors import ArgumentError, SpaceExhaustedError
from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import row_keys
from bkbopt.search.ascent import slopes_of
from bkbopt.search.box_maximizer import BoxMaximizer
from bkbopt.search.criteria import Criterion, UpperBound
from bkbopt.search.pool_maximizer import PoolMaximizer
from bkbopt.spaces.encoding import Embedding
from bkbopt.spaces.pool import EncodedPool

__all__ = ["BoxCandidates", "CandidateSet", "Choice", "GridCandidates", "PoolCandidates", "candidates_of", "exhausted"]

#: Discrete spaces up to this many points are searched exactly, as a pool.
GRID_LIMIT = 20_000
#: Random points tried before a feasible set is called empty.
TRIES = 10_000
#: Random points that compete to be a coordinate perturbation.
N_PERTURBATIONS = 8

Point = Mapping[str, float]
Feasible = Callable[[Point], bool]


@dataclass(frozen=True)
class Choice:
    """A point that was chosen.

    Attributes:
        x: its encoded form, (d,).
        point: its parameters, in internal form.
        index: its row in the pool, or None.
    """

    x: Tensor
    point: Point
    index: int | None = None


class CandidateSet(Protocol):
    """What a designer asks of a set of candidates."""

    @property
    def n_arms(self) -> int | None:
        """Number of points where they are listed."""
        ...

    @property
    def is_discrete(self) -> bool:
        """Whether a point can be met twice by chance."""
        ...

    @property
    def has_choices(self) -> bool:
        """Whether a column has few values: categories, or a short grid."""
        ...

    @property
    def is_perturbed(self) -> bool:
        """Whether some suggestions are to be perturbations: not where a search sees the set whole."""
        ...

    def best(
        self,
        criterion: Criterion,
        good: Tensor,
        rng: np.random.Generator,
        taken: Tensor,
        shared: Sequence[int] | None = None,
    ) -> Choice | None:
        """The point with the largest score, none of `taken (t, d)`; searches start from `good (g, d)` too.

        With `shared`, a search of points that are not listed starts from the best of random points that follow from
        these numbers alone: suggestions that have them in common compute them once, and a search costs less than half.
        """
        ...

    def perturbed(self, criterion: Criterion, center: Tensor, rng: np.random.Generator, taken: Tensor) -> Choice | None:
        """The best of a few random points that differ from `center (d,)` in one parameter."""
        ...

    def random(self, rng: np.random.Generator, taken: Tensor) -> Choice | None:
        """A random point, none of `taken (t, d)`."""
        ...

    def upper_bound(self, model: Model, beta: float, good: Tensor) -> float:
        """The largest upper confidence bound, feasible or not: exact where points are listed, else as found."""
        ...


class _Listed(ABC):
    """What pools and grids share: rows that are closed, and the exact argmax over the others."""

    is_discrete = True
    has_choices = True
    is_perturbed = False

    def __init__(self, X: Tensor, feasible: Feasible | None) -> None:
        self.search = PoolMaximizer(X)
        self._feasible = feasible
        self._infeasible = torch.zeros(len(X), dtype=torch.bool)
        self._checked = torch.zeros(len(X), dtype=torch.bool)
        #: The points asked about last, and which rows they are.
        self._taken = X[:0], torch.zeros(len(X), dtype=torch.bool)

    @property
    def n_arms(self) -> int | None:
        return len(self.search.X)

    @abstractmethod
    def rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """Rows that are one of the points `X (n, d)`."""

    @abstractmethod
    def choice(self, row: int) -> Choice:
        """The point in a row."""

    def closed(self, taken: Tensor) -> Tensor:
        """Rows that may not be chosen, (A,)."""
        last, rows = self._taken
        n = len(last)
        if not torch.equal(last, taken[:n]):
            n, rows = 0, torch.zeros_like(rows)
        if n < len(taken):
            rows = rows.clone()
            rows[self.rows_of(taken[n:])] = True
        self._taken = taken, rows
        return self._infeasible | rows

    def _usable(self, row: int) -> bool:
        if self._feasible is not None and not self._checked[row]:
            self._infeasible[row] = not self._feasible(self.choice(row).point)  # may raise: checked only after it
            self._checked[row] = True
        return not self._infeasible[row]

    def best(
        self,
        criterion: Criterion,
        good: Tensor,
        rng: np.random.Generator,
        taken: Tensor,
        shared: Sequence[int] | None = None,
    ) -> Choice | None:
        """See `CandidateSet`."""
        closed = self.closed(taken)
        while not bool(closed.all()):
            row = criterion.best_row(self.search, closed)
            if self._usable(row):
                return self.choice(row)
            closed[row] = True
        return None

    def perturbed(self, criterion: Criterion, center: Tensor, rng: np.random.Generator, taken: Tensor) -> Choice | None:
        """See `CandidateSet`."""
        return None

    def random(self, rng: np.random.Generator, taken: Tensor) -> Choice | None:
        """See `CandidateSet`."""
        closed = self.closed(taken)
        for _ in range(100):
            row = int(rng.integers(len(closed)))
            if not closed[row] and self._usable(row):
                return self.choice(row)
        for row in rng.permutation(len(closed)).tolist():
            if not closed[row] and self._usable(row):
                return self.choice(row)
        return None

    def upper_bound(self, model: Model, beta: float, good: Tensor) -> float:
        """See `CandidateSet`."""
        return float(UpperBound.over(model, beta).acquisition(*self.search.scan(model)).max())


class PoolCandidates(_Listed):
    """The arms of a pool, or those whose fixed columns have the values asked for.

    Args:
        pool: the arms.
        feasible: the user's constraint on points.
        open_rows: (A,) which arms may be chosen; None for all.
    """

    def __init__(self, pool: EncodedPool, feasible: Feasible | None, open_rows: Tensor | None = None) -> None:
        super().__init__(pool.X, feasible)
        self.pool, self._open = pool, open_rows

    def restricted(self, open_rows: Tensor) -> "PoolCandidates":
        """The same arms and bounds, with only some of them open."""
        out = PoolCandidates(self.pool, self._feasible, open_rows)
        out.search, out._infeasible, out._checked = self.search, self._infeasible, self._checked
        return out

    def rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """Rows that are one of the points `X (n, d)`."""
        return self.pool.rows_of(X)

    def choice(self, row: int) -> Choice:
        """An arm."""
        return Choice(self.pool.X[row], self.pool.point(row), row)

    def closed(self, taken: Tensor) -> Tensor:
        """Rows that may not be chosen, (A,)."""
        closed = super().closed(taken)
        return closed if self._open is None else closed | ~self._open


class GridCandidates(_Listed):
    """All points of a discrete space."""

    def __init__(self, embedding: Embedding, feasible: Feasible | None) -> None:
        self.embedding = embedding
        U = torch.zeros(1, 1, dtype=torch.float64)
        if embedding.space is not None and embedding.space.dim:
            U = embedding.space.all_points(GRID_LIMIT)
        super().__init__(embedding(U), feasible)
        self._U = U
        self._rows = {key: i for i, key in enumerate(row_keys(U))}

    def rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """Rows that are one of the points `X (n, d)`."""
        keys = row_keys(self.embedding.project(X[self.embedding.holds(X)]))
        return np.array([self._rows[key] for key in keys if key in self._rows], dtype=np.int64)

    def choice(self, row: int) -> Choice:
        """A point of the grid."""
        return Choice(self.search.X[row], self.embedding.point(self._U[row]))


@dataclass(frozen=True)
class _Within:
    """A criterion as a score of the points `U (n, k)` of an embedded space."""

    criterion: Criterion
    embedding: Embedding

    def __call__(self, U: Tensor) -> Tensor:
        return self.criterion(self.embedding(U))

    def with_slopes(self, U: Tensor) -> tuple[Tensor, Tensor]:
        """See `SlopedScore`."""
        scores, slopes = self._sloped(self.embedding(U))
        return scores, self.embedding.pullback(slopes)

    @cached_property
    def _sloped(self) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
        return slopes_of(self.criterion)


@dataclass(frozen=True)
class _Shared:
    """Points that several suggestions start from.

    Attributes:
        numbers: what their random numbers follow from.
        U: the points, (n, k).
        search: of the best one, with bounds that it keeps.
        unusable: which of them are infeasible, as far as that is known, (n,).
    """

    numbers: tuple[int, ...]
    U: Tensor
    search: PoolMaximizer
    unusable: Tensor


class BoxCandidates:
    """The points of a space that cannot be listed."""

    n_arms = None

    def __init__(self, embedding: Embedding, feasible: Feasible | None) -> None:
        assert embedding.space is not None
        self.embedding, self.space = embedding, embedding.space
        self.maximizer = BoxMaximizer(embedding.space)
        self._feasible = feasible
        self._known: dict[bytes, bool] = {}
        self._shared: _Shared | None = None

    @property
    def is_discrete(self) -> bool:
        """See `CandidateSet`."""
        return self.space.is_discrete

    @property
    def has_choices(self) -> bool:
        """See `CandidateSet`."""
        return self.maximizer.has_choices

    @property
    def is_perturbed(self) -> bool:
        """See `CandidateSet`. A search sees a line whole, and a perturbation would be a random point of it."""
        return self.space.dim > 1

    def _usable(self, u: Tensor) -> bool:
        if self._feasible is None:
            return True
        key = row_keys(u[None])[0]
        if key not in self._known:
            self._known[key] = self._feasible(self.embedding.point(u))
        return self._known[key]

    def _keys(self, taken: Tensor) -> set[bytes]:
        if not len(taken):
            return set()
        return set(row_keys(self.embedding.project(taken[self.embedding.holds(taken)])))

    def _canonical(self, U: Tensor) -> Tensor:
        """The points `(n, k)` as they come back through their parameters, so that one point has one key."""
        return self.space.encode(self.space.decode(U))

    def _first_open(self, U: Tensor, taken: set[bytes]) -> Choice | None:
        for i in range(len(U)):  # over a tensor, a loop would take all of it apart first
            u = self._canonical(U[i : i + 1])[0]
            if row_keys(u[None])[0] not in taken and self._usable(u):
                return Choice(self.embedding(u[None])[0], self.embedding.point(u))
        return None

    def best(
        self,
        criterion: Criterion,
        good: Tensor,
        rng: np.random.Generator,
        taken: Tensor,
        shared: Sequence[int] | None = None,
    ) -> Choice | None:
        """See `CandidateSet`."""
        score, good = _Within(criterion, self.embedding), self.embedding.project(good)
        if shared is not None and len(good) and (start := self._best_of_shared(criterion, tuple(shared))) is not None:
            ranked = self.maximizer.ranked_from(start, score, good, rng, self._usable)
        else:
            ranked = self.maximizer.ranked(score, good, rng, self._usable)
        return self._first_open(ranked, self._keys(taken))

    def _best_of_shared(self, criterion: Criterion, numbers: tuple[int, ...]) -> Tensor | None:
        """The best usable one of the random points that follow from `numbers`, (1, k); None where none is usable."""
        if self._shared is None or self._shared.numbers != numbers:
            U = self.maximizer.everywhere(np.random.default_rng(numbers))
            search = PoolMaximizer(self.embedding(U))
            self._shared = _Shared(numbers, U, search, torch.zeros(len(U), dtype=torch.bool))
        U, unusable = self._shared.U, self._shared.unusable
        while not bool(unusable.all()):
            row = criterion.best_row(self._shared.search, unusable)
            if self._usable(U[row]):
                return U[row : row + 1]
            unusable[row] = True
        return None

    def perturbed(self, criterion: Criterion, center: Tensor, rng: np.random.Generator, taken: Tensor) -> Choice | None:
        """See `CandidateSet`.

        They are few on purpose: of many, an acquisition function takes one that hardly differs from the centre.
        """
        u = self.embedding.project(center[None])[0]
        U = self._canonical(self.maximizer.perturbations(u, N_PERTURBATIONS, rng))
        order = torch.argsort(criterion(self.embedding(U)), descending=True, stable=True)
        return self._first_open(U[order], self._keys(torch.cat([taken, center[None]])))

    def random(self, rng: np.random.Generator, taken: Tensor) -> Choice | None:
        """See `CandidateSet`."""
        keys = self._keys(taken)
        if len(keys) >= self.space.cardinality:
            return None
        for _ in range(TRIES // 100):
            if (choice := self._first_open(self.space.sample(100, rng), keys)) is not None:
                return choice
        return None

    def upper_bound(self, model: Model, beta: float, good: Tensor) -> float:
        """See `CandidateSet`."""
        criterion = UpperBound.over(model, beta)
        rng = np.random.default_rng(0)  # a report has random numbers of its own
        ranked = self.maximizer.ranked(
            _Within(criterion, self.embedding), self.embedding.project(good), rng, lambda _: True
        )
        return float(criterion.acquisition(*model(self.embedding(ranked[:1])))[0])


def candidates_of(embedding: Embedding, feasible: Feasible | None) -> BoxCandidates | GridCandidates:
    """The points of an embedding, listed where they are few."""
    space = embedding.space
    if space is None or (space.is_discrete and space.cardinality <= GRID_LIMIT):
        return GridCandidates(embedding, feasible)
    return BoxCandidates(embedding, feasible)


def exhausted(pool: EncodedPool | None, is_discrete: bool) -> SpaceExhaustedError | ArgumentError:
    """The error where nothing is left to propose."""
    if pool is not None:
        return SpaceExhaustedError(
            f"pool: all {len(pool.X)} arms have been proposed, have failed or are infeasible; "
            'stop here, add arms with set_pool, or allow repeats with duplicates="allow".'
        )
    if is_discrete:
        return SpaceExhaustedError(
            "space: all points have been proposed, have failed or are infeasible; "
            'stop here, or allow repeats with duplicates="allow".'
        )
    return ArgumentError(
        f"feasible: expected points to propose, but none of {TRIES} random ones was feasible and new; "
        "check the constraint, or narrow the space to where it can hold."
    )
