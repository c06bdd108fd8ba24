"""Candidates of a space whose points are not listed, because it is continuous or too large.

| symbol | shape  | units   | meaning                                                                  |
| ------ | ------ | ------- | ------------------------------------------------------------------------ |
| X      | (n, d) | encoded | points, in the columns of the whole encoding                             |
| U      | (n, k) | encoded | the same points in the columns of the space from which is chosen         |
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt.posterior.model import Model
from bkbopt.search.candidates.base import (
    BLOCK,
    TRIES,
    Choice,
    Feasible,
    Perturbed,
    Scope,
    Shared,
    best_usable,
    first_then_blocks,
)
from bkbopt.search.candidates.feasible_walk import KNOWN, small_set
from bkbopt.search.candidates.listed import GRID_LIMIT, GridCandidates
from bkbopt.search.criteria.criterion import Criterion, UpperBound, still_open_beside
from bkbopt.search.maximizers.ascent import plain_bound_of, slopes_of
from bkbopt.search.maximizers.box import BoxMaximizer
from bkbopt.search.maximizers.pool import PoolMaximizer
from bkbopt.spaces.encoding import Embedding
from bkbopt.spaces.stretched import StretchedFloat, StretchedInt, can_be_stretched

if TYPE_CHECKING:
    from bkbopt.search.maximizers._loops_bound import PlainBound

__all__ = ["BoxCandidates", "candidates_of"]

#: Shared points that are compared for a suggestion by criteria without a lazy argmax.
FRONT = 64
#: Points that are compared for a greedy suggestion: the best ones of the search, as many in a ball around the first of
#: them, and half as many with a few of its columns changed.
N_NEAR = 64
#: Logarithms of the distances from an end to which a choice at this end is moved, relative to the range, and how far
#: from it the first incumbent may be.
AWAY, NEAR_END = (-4.5, -2.0), 0.01
#: Share of the greedy suggestions that spread around the maximiser.
SPREAD = 0.3
#: Decimals that tell points from those that are taken, which come back from wider ranges with other roundings.
DECIMALS = 12


@runtime_checkable
class Greedy(Criterion, Protocol):
    """A criterion of greedy suggestions."""

    def in_batch_order(self, X: Tensor, finished: Any, spreads: bool, *, still_open: float) -> Iterator[int]:
        """See `UpperBound.in_batch_order`."""


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

    def plain(self) -> "PlainBound | None":
        """See `PlainScore`."""
        bound, embedding = plain_bound_of(self.criterion), self.embedding
        if bound is None or embedding.is_whole:
            return bound
        base, columns, low, width = (
            part.numpy() for part in (embedding.base, embedding.columns, embedding.low, embedding.width)
        )
        return bound._replace(base=base, columns=columns, low=low, width=width)

    @cached_property
    def _sloped(self) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
        return slopes_of(self.criterion)


@dataclass(frozen=True)
class _Taken:
    """Points that may not be chosen.

    Attributes:
        keys: their keys in some columns.
        columns: these columns; None for all.
    """

    keys: set[bytes]
    columns: list[int] | None

    def among(self, U: Tensor) -> list[bool]:
        """Which of the points `U (n, k)` are taken, (n,)."""
        return [key in self.keys for key in self.keys_of(U, self.columns)] if self.keys else [False] * len(U)

    @staticmethod
    def keys_of(U: Tensor, columns: list[int] | None) -> list[bytes]:
        """The keys of the points `U (n, k)`."""
        return row_keys((U if columns is None else U[:, columns]).round(decimals=DECIMALS))


@dataclass(frozen=True)
class _Untaken:
    """A score of the points `U (n, k)`, minus infinity for those that are taken."""

    score: _Within
    taken: _Taken

    def __call__(self, U: Tensor) -> Tensor:
        return torch.where(torch.tensor(self.taken.among(U), dtype=torch.bool), -torch.inf, self.score(U))

    def with_slopes(self, U: Tensor) -> tuple[Tensor, Tensor]:
        """See `SlopedScore`; an ascent passes over points that are taken."""
        return self.score.with_slopes(U)

    def plain(self) -> "PlainBound | None":
        """See `PlainScore`."""
        return self.score.plain()


@dataclass(frozen=True)
class _SharedStarts:
    """Random points that are shared by several suggestions as starts of their searches.

    Attributes:
        key: what the points follow from.
        U: the points, (n, k).
        search: the lazy argmax over the points, with its stored bounds.
        unusable: mask of the points that are known to be infeasible, (n,).
    """

    key: tuple[object, ...]
    U: Tensor
    search: PoolMaximizer
    unusable: Tensor


@dataclass(frozen=True)
class _Maximised:
    """The search for the maximiser of a criterion, which is shared by the greedy suggestions of a large batch.

    Attributes:
        key: what the search follows from.
        criterion: that of a greedy suggestion, without running trials.
        U: the best usable points found, best first, (<= N_NEAR, k).
    """

    key: tuple[object, ...]
    criterion: Greedy
    U: Tensor


@dataclass(frozen=True)
class _Decoded:
    """Some rows of `U (n, k)`, decoded together, which costs little more than one alone.

    Attributes:
        U: the points.
        first: the first of the rows.
        rows: their keys and points.
    """

    U: Tensor
    first: int
    rows: list[tuple[bytes, dict[str, float]]]


class BoxCandidates:
    """The points of a space, not listed; see `CandidateSet`."""

    n_arms = None
    is_listed = False

    def __init__(self, embedding: Embedding, feasible: Feasible | None) -> None:
        assert embedding.space is not None
        self.embedding, self.space = embedding, embedding.space
        self.maximizer = BoxMaximizer(embedding.space)
        self._feasible = feasible
        self._known: dict[bytes, bool] = {}
        self._decoded = _Decoded(torch.zeros(0, 1), 0, [])
        self._shared: _SharedStarts | None = None
        self._maximised: _Maximised | None = None

    @property
    def is_discrete(self) -> bool:
        """See `CandidateSet`."""
        return self.space.is_discrete

    @cached_property
    def has_many_choices(self) -> bool:
        """See `CandidateSet`."""
        return math.prod(self.space.columns[j].n_values or 1 for j in self._unordered) > GRID_LIMIT

    @cached_property
    def _unordered(self) -> list[int]:
        return [j for j, column in enumerate(self.space.columns) if column.kind == "categorical"]

    @property
    def coordinate_perturbation(self) -> Perturbed | None:
        """See `CandidateSet`. In one dimension the search is exhaustive, and a perturbation would be a random point."""
        return self._perturbed if self.space.dim > 1 else None

    def usable(self, U: Tensor, i: int) -> bool:
        """Whether row i of `U (n, k)` is feasible; rows behind it are decoded with it."""
        if self._feasible is None:
            return True
        if self._decoded.U is not U or not 0 <= i - self._decoded.first < len(self._decoded.rows):
            block = U[i : i + BLOCK]
            rows = list(zip(row_keys(block), self.embedding.points(block), strict=True))
            self._decoded = _Decoded(U, i, rows)
        key, point = self._decoded.rows[i - self._decoded.first]
        if key not in self._known:
            self._known[key] = self._feasible(point)
        return self._known[key]

    def usable_rows(self, U: Tensor) -> list[bool]:
        """Which rows of `U (n, k)` are feasible, (n,)."""
        return [self.usable(U, i) for i in range(len(U))]

    def _taken(self, taken: Tensor, *, new_choices: bool = False) -> _Taken:
        columns = self._unordered if new_choices else None
        if not len(taken):
            return _Taken(set(), columns)
        U = self.embedding.project(taken[self.embedding.holds(taken)])
        return _Taken(set(_Taken.keys_of(U, columns)), columns)

    def _first_open(self, U: Tensor, taken: _Taken) -> Choice | None:
        return self._first_of(first_then_blocks(U), taken)

    def _first_of(self, blocks: Iterable[Tensor], taken: _Taken) -> Choice | None:
        for block in blocks:
            U = self.space.canonical(block)
            for i, is_taken in enumerate(taken.among(U)):
                if not is_taken and self.usable(U, i):
                    return Choice(self.embedding(U[i : i + 1])[0], self.embedding.point(U[i]))
        return None

    def best(self, criterion: Criterion, scope: Scope) -> Choice | None:
        """See `CandidateSet`."""
        shared, taken = scope.shared, self._taken(scope.taken, new_choices=scope.new_choices)
        if shared is None:
            return self._first_open(self._ranked(criterion, scope, taken), taken)
        if shared.finished is not None and isinstance(criterion, Greedy) and self.maximizer.is_relaxed:
            maximised = self._maximiser(shared.finished, shared, scope)
            if len(maximised.U):
                still_open = still_open_beside(len(shared.pending))
                choice = self._first_of(self._near(criterion, maximised, still_open, scope.rng), taken)
                if choice is not None:
                    return choice
        return self._first_open(self._ranked_from_shared(criterion, shared, scope, taken), taken)

    def _score(self, criterion: Criterion, taken: _Taken) -> _Within | _Untaken:
        """The score of a search; on a continuum an open point is next to each one that is taken."""
        score = _Within(criterion, self.embedding)
        is_closed = taken.keys and (self.is_discrete or taken.columns is not None)
        return _Untaken(score, taken) if is_closed else score

    def _ranked(self, criterion: Criterion, scope: Scope, taken: _Taken) -> Tensor:
        """The points of a whole search, best first, (n, k)."""
        incumbents = self.embedding.project(scope.incumbents)
        return self.maximizer.ranked(self._score(criterion, taken), incumbents, scope.rng, self.usable)

    def _ranked_from_shared(self, criterion: Criterion, shared: Shared, scope: Scope, taken: _Taken) -> Tensor:
        """The points of a search from the shared random points, best first, (n, k)."""
        incumbents = self.embedding.project(scope.incumbents)
        start = self._best_of_shared(criterion, shared) if len(incumbents) else None
        if start is None:
            return self._ranked(criterion, scope, taken)
        return self.maximizer.ranked_from(start, self._score(criterion, taken), incumbents, scope.rng, self.usable)

    def _maximiser(self, finished: Callable[[], Criterion], shared: Shared, scope: Scope) -> _Maximised:
        """The search for the maximiser without running trials, made once for the same finished trials."""
        key = shared.numbers, shared.data, *row_keys(scope.incumbents)
        if self._maximised is None or self._maximised.key != key:
            criterion, rng = finished(), np.random.default_rng(shared.numbers)
            assert isinstance(criterion, Greedy)
            # Other suggestions order the shared points by another criterion, possibly with no pending point either.
            own = replace(shared, data=(*shared.data, key), pending=(), earlier=lambda: (criterion, scope.taken))
            U = self._ranked_from_shared(criterion, own, replace(scope, rng=rng), _Taken(set(), None))[:N_NEAR]
            canonical = self.space.canonical(U)
            usable = torch.tensor(self.usable_rows(canonical), dtype=torch.bool)
            self._maximised = _Maximised(key, criterion, U[usable])
        return self._maximised

    def _near(
        self, criterion: Greedy, maximised: _Maximised, still_open: float, rng: np.random.Generator
    ) -> Iterator[Tensor]:
        """The points of the search and some around the maximiser, in the order of `UpperBound.in_batch_order`.

        They come in blocks (n, k). The first has the first point alone, which is mostly all that is needed; the order
        of later ones is found when they are.

        Pending trials, counted as evaluated at their means, hardly move the maximiser of the posterior mean. Without
        a bound on the variance that is left all suggestions of a batch would be copies of it.
        """
        best = maximised.U[:1]
        near = [self.maximizer.ball(best[0], N_NEAR, rng), self.maximizer.around(best, rng, N_NEAR // 2)]
        U = torch.cat([maximised.U, *near])
        spreads, X = bool(rng.random() < SPREAD), self.embedding(U)
        rows = criterion.in_batch_order(X, maximised.criterion, spreads, still_open=still_open)
        size = 1
        while block := list(itertools.islice(rows, size)):
            yield U[block]
            size = min(2 * size, BLOCK)

    def _best_of_shared(self, criterion: Criterion, shared: Shared) -> Tensor | None:
        """The best usable one of the shared random points, (1, k); None if none is usable.

        Criteria other than the upper bound would score all of them for each suggestion. They compare those that were
        the best ones under the earlier criterion.
        """
        is_lazy = isinstance(criterion, UpperBound)
        key: tuple[object, ...] = (shared.numbers,) if is_lazy else (shared.numbers, shared.data, shared.pending)
        if self._shared is None or self._shared.key != key:
            U = self.maximizer.everywhere(np.random.default_rng(shared.numbers), self.maximizer.settings.n_shared)
            if not is_lazy:
                scores = _Within(shared.earlier()[0], self.embedding)(U)
                U = U[torch.argsort(scores, descending=True, stable=True)[:FRONT]]
            search = PoolMaximizer(self.embedding(U))
            self._shared = _SharedStarts(key, U, search, torch.zeros(len(U), dtype=torch.bool))
        U, search, unusable = self._shared.U, self._shared.search, self._shared.unusable
        row = best_usable(criterion, search, unusable, lambda row: self.usable(U[row : row + 1], 0))
        return None if row is None else U[row : row + 1]

    def _perturbed(self, criterion: Criterion, n: int, center: Tensor, scope: Scope) -> Choice | None:
        """The best of at most `n` random points that differ from `center (d,)` in one parameter."""
        u = self.embedding.project(center[None])[0]
        U = self.space.snap(self.maximizer.perturbations(u, n, scope.rng))
        order = torch.argsort(criterion(self.embedding(U)), descending=True, stable=True)
        return self._first_open(U[order], self._taken(torch.cat([scope.taken, center[None]])))

    def off_ends(self, choice: Choice, scope: Scope) -> Choice:
        """See `CandidateSet`."""
        if not len(scope.incumbents):
            return choice
        u, best = self.embedding.project(torch.stack([choice.x, scope.incumbents[0]]))
        is_low, is_high = (u == 0.0) & (best < NEAR_END), (u == 1.0) & (best > 1.0 - NEAR_END)
        moves = (is_low | is_high) & self._is_linear
        if not bool(moves.any()):
            return choice
        away = torch.from_numpy(10.0 ** scope.rng.uniform(*AWAY, len(u)))
        moved = torch.where(moves, torch.where(is_low, away, 1.0 - away), u)
        return self._first_open(moved[None], self._taken(scope.taken)) or choice

    @cached_property
    def _is_linear(self) -> Tensor:
        """Which columns are long ranges on a linear scale, (k,) of bool."""
        parameters = [self.space.parameters[column.name] for column in self.space.columns]
        known = (StretchedFloat, StretchedInt)
        return torch.tensor([can_be_stretched(p) and not isinstance(p, known) for p in parameters], dtype=torch.bool)

    def random(self, rng: np.random.Generator, taken: Tensor, *, each_row: bool = False) -> Choice | None:
        """See `CandidateSet`."""
        closed = self._taken(taken)
        if len(closed.keys) >= self.space.cardinality:
            return None
        for _ in range(TRIES // 100):
            if (choice := self._first_open(self.space.sample(100, rng), closed)) is not None:
                return choice
        if self._feasible is None:
            return None
        known = self.embedding.project(taken[-KNOWN:])
        return self._first_of(small_set(self.space, known, self.usable_rows, rng), closed)

    def upper_bound(self, model: Model, beta: float, incumbents: Tensor) -> float:
        """See `CandidateSet`."""
        criterion = UpperBound.over(model, beta)
        rng = np.random.default_rng(0)  # independent of the random numbers of suggestions
        ranked = self.maximizer.ranked(
            _Within(criterion, self.embedding), self.embedding.project(incumbents), rng, lambda *_: True
        )
        return float(criterion.acquisition(*model(self.embedding(ranked[:1])))[0])


def candidates_of(embedding: Embedding, feasible: Feasible | None) -> BoxCandidates | GridCandidates:
    """The candidates of an embedding: a grid if it has at most `GRID_LIMIT` points, otherwise a box."""
    space = embedding.space
    if space is None or (space.is_discrete and space.cardinality <= GRID_LIMIT):
        return GridCandidates(embedding, feasible)
    return BoxCandidates(embedding, feasible)
