"""Candidates of a product that is too large to be listed: rows that a search over its parts finds.

| symbol | shape  | units   | meaning                                     |
| ------ | ------ | ------- | ------------------------------------------- |
| X      | (n, d) | encoded | points                                      |
| chosen | (n_p,) | -       | of each part the entries that may be chosen |

Fixed values leave some entries of each part. The rows that have them are a product again, and a small one is searched
as a list.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt._support.latest import Latest
from bkbopt.posterior.model import Model
from bkbopt.search.candidates.base import (
    TRIES,
    CandidateSet,
    Choice,
    Feasible,
    Scope,
    Shared,
    best_usable,
)
from bkbopt.search.candidates.listed import Listed, PoolCandidates
from bkbopt.search.criteria.criterion import Criterion, UpperBound
from bkbopt.search.maximizers.pool import PoolMaximizer
from bkbopt.search.maximizers.product import N_CLIMBS, N_RANDOM, ProductMaximizer, Usable
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Point
from bkbopt.spaces.product_pool import ProductPool
from bkbopt.spaces.rows import LISTED_LIMIT, Combinations, ProductRows

__all__ = ["ProductCandidates", "candidates_of_pool"]

#: Number of candidate sets for fixed values that are kept, with what they have computed.
KEPT = 8
#: Random rows that represent the pool in reports.
SPREAD = 20_000


@dataclass(frozen=True, eq=False)
class _Sub:
    """Some entries of each part of a pool, whose combinations are a product with row numbers of its own."""

    pool: ProductPool
    chosen: tuple[Tensor, ...]
    X: ProductRows

    @classmethod
    def of(cls, pool: ProductPool, fixed: Point) -> "_Sub":
        """The rows with the given values of some columns."""
        chosen = pool.entries_like(fixed)
        tables = tuple(table[entries] for table, entries in zip(pool.X.tables, chosen, strict=True))
        return cls(pool, chosen, ProductRows(tables))

    def choice(self, row: int) -> Choice:
        """The point in a row of the sub-product, with its row in the pool."""
        whole = self.whole(row)
        return Choice(self.X[row], self.pool.point(whole), whole)

    def whole(self, row: int) -> int:
        """The row of the pool."""
        own = zip(self._lists, self.X.entries_of(row), self.pool.X.strides, strict=True)
        return sum(entries[e] * stride for entries, e, stride in own)

    @cached_property
    def _lists(self) -> list[list[int]]:
        return [entries.tolist() for entries in self.chosen]

    @cached_property
    def _places(self) -> list[dict[int, int]]:
        return [{entry: place for place, entry in enumerate(entries)} for entries in self._lists]

    def rows_at(self, X: Tensor) -> list[Combinations]:
        """For each of the points `X (n, d)`, the rows of the sub-product that are this point."""
        return [
            self.X.combinations(
                [
                    [places[entry] for entry in entries if entry in places]
                    for entries, places in zip(found, self._places, strict=True)
                ]
            )
            for found in self.pool.entries_at(X)
        ]

    def firsts_of(self, X: Tensor) -> list[int]:
        """The first row for each of the points `X (n, d)` that is in the sub-product."""
        firsts = (next(iter(rows), None) for rows in self.rows_at(X))
        return [row for row in firsts if row is not None]

    def first_like(self, row: int) -> int:
        """The first row that is the same point."""
        entries = zip(self._alike_lists, self.X.entries_of(row), self.X.strides, strict=True)
        return sum(alike[e] * stride for alike, e, stride in entries)

    def firsts_like(self, rows: Tensor) -> Tensor:
        """The same for each of the rows `(n,)`."""
        entries = zip(self._alike, self.X.entries(rows).unbind(1), strict=True)
        return self.X.numbers(torch.stack([alike[e] for alike, e in entries], 1))

    @cached_property
    def _alike_lists(self) -> list[list[int]]:
        return [alike.tolist() for alike in self._alike]

    @cached_property
    def _alike(self) -> list[Tensor]:
        """For each entry of each part the first one with the same columns."""
        out = []
        for table in self.X.tables:
            values, group = torch.unique(table + 0.0, dim=0, return_inverse=True)
            first = torch.full((len(values),), len(table), dtype=torch.int64)
            out.append(first.scatter_reduce(0, group, torch.arange(len(table)), "amin")[group])
        return out


@dataclass(frozen=True)
class _Closed:
    """Rows of a sub-product that may not be chosen.

    Attributes:
        sub: the sub-product.
        each_row: whether they are single rows; otherwise all rows are closed that are equal to one of them.
        rows: their numbers; of equal rows, where all are closed, the first one's.
    """

    sub: _Sub
    each_row: bool
    rows: frozenset[int] = frozenset()

    def with_points(self, X: Tensor) -> "_Closed":
        """With the rows that the points `X (n, d)` close: all, or for each point the first one that is open."""
        if not self.each_row:
            return replace(self, rows=self.rows.union(self.sub.firsts_of(X)))
        closed = set(self.rows)
        for rows in self.sub.rows_at(X):
            closed.update(itertools.islice((row for row in rows if row not in closed), 1))
        return replace(self, rows=frozenset(closed))

    def __contains__(self, row: int) -> bool:
        return bool(self.rows) and (row if self.each_row else self.sub.first_like(row)) in self.rows

    def among(self, rows: Tensor) -> Tensor:
        """Which of the rows `(n,)` are closed."""
        numbers = rows if self.each_row else self.sub.firsts_like(rows)
        return torch.isin(numbers, torch.tensor(sorted(self.rows), dtype=torch.int64))


class _ListedSub(Listed):
    """The rows of a small sub-product, all of which are compared."""

    def __init__(self, sub: _Sub, feasible: Feasible | None) -> None:
        super().__init__(PoolMaximizer(sub.X), feasible)
        self._sub = sub

    def rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """Rows that are one of the points `X (n, d)`."""
        found = (self._sub.X.combined([np.array(part) for part in rows.choices]) for rows in self._sub.rows_at(X))
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])

    def choice(self, row: int) -> Choice:
        """A row of the pool."""
        return self._sub.choice(row)


@dataclass(frozen=True)
class _Nearby:
    """The rows among which suggestions of a large batch start; see `maximizers/product.py`.

    Attributes:
        key: seed and data that determine the rows.
        rows: their numbers, ascending, (k,).
        search: the lazy argmax over them, with its bounds.
    """

    key: tuple[object, ...]
    rows: Tensor
    search: PoolMaximizer

    def best(self, criterion: Criterion, closed: _Closed, usable: Usable) -> int | None:
        """The best usable row that is not one of the `closed` ones; None if there is none."""
        shut = closed.among(self.rows)
        at = best_usable(criterion, self.search, shut, lambda at: usable(int(self.rows[at])))
        return None if at is None else int(self.rows[at])


class ProductCandidates(CandidateSet):
    """The rows of a product that cannot be listed, or those with fixed values.

    Args:
        pool: the product.
        feasible: the user's constraint on points.
        fixed: values that are held.
    """

    is_discrete = True
    is_listed = False

    def __init__(self, pool: ProductPool, feasible: Feasible | None, fixed: Point | None = None) -> None:
        self._sub = _Sub.of(pool, fixed or {})
        self._search = ProductMaximizer(self._sub.X)
        self._feasible = feasible
        self._known: dict[int, bool] = {}
        self._restricted: Latest[CandidateSet] = Latest(KEPT)
        self._nearby: _Nearby | None = None
        self._taken: tuple[Tensor, _Closed] | None = None

    @property
    def n_arms(self) -> int | None:
        """See `CandidateSet`."""
        return len(self._sub.X)

    def restricted(self, fixed: Point) -> CandidateSet:
        """The rows with the given values of some columns."""

        def compute() -> CandidateSet:
            sub = _Sub.of(self._sub.pool, fixed)
            small = len(sub.X) <= LISTED_LIMIT
            return _ListedSub(sub, self._feasible) if small else ProductCandidates(sub.pool, self._feasible, fixed)

        return self._restricted.of(tuple(sorted(fixed.items())), compute)

    def usable(self, row: int) -> bool:
        """Whether the user's constraint accepts the point in a row."""
        if self._feasible is None:
            return True
        if row not in self._known:
            self._known[row] = self._feasible(self._sub.pool.point(self._sub.whole(row)))
        return self._known[row]

    def _closed(self, taken: Tensor, each_row: bool) -> _Closed:
        """Rows that are closed; the result of the last call is extended if its points are the first of `taken`."""
        nothing = _Closed(self._sub, each_row)
        last, closed = self._taken or (taken[:0], nothing)
        if closed.each_row != each_row or not torch.equal(last, taken[: len(last)]):
            last, closed = taken[:0], nothing
        if len(taken) > len(last):
            closed = closed.with_points(taken[len(last) :])
        self._taken = taken, closed
        return closed

    def best(self, criterion: Criterion, scope: Scope) -> Choice | None:
        """See `CandidateSet`; the best row that is found."""
        closed = self._closed(scope.taken, scope.each_row)

        def usable(row: int) -> bool:
            return row not in closed and self.usable(row)

        found = None
        if scope.shared is not None:
            start = self._near(scope.shared, scope.incumbents).best(criterion, closed, self.usable)
            found = None if start is None else self._search.climbed(criterion, start, usable)
        if found is None:
            found = self._search.best(criterion, self._starts(criterion, scope.incumbents, scope.rng), usable)
        return None if found is None else self._sub.choice(found.row)

    def _starts(self, criterion: Criterion, incumbents: Tensor, rng: np.random.Generator) -> Tensor:
        """Rows to climb from: the best of the known points `incumbents (g, d)`, and the best of random rows."""
        known = torch.tensor(self._sub.firsts_of(incumbents), dtype=torch.int64)
        rows = self._search.sample(rng, N_RANDOM)
        if len(known):
            known = known[self._search.scores(criterion, known).argmax()][None]
        return torch.cat([known, rows[self._search.scores(criterion, rows).topk(N_CLIMBS).indices]])

    def _near(self, shared: Shared, incumbents: Tensor) -> _Nearby:
        """The cross of the best row for an earlier suggestion, and random rows."""
        key = (shared.numbers, shared.data, shared.pending)
        if self._nearby is None or self._nearby.key != key:
            (criterion, taken), rng = shared.earlier(), np.random.default_rng(shared.numbers)
            closed = _Closed(self._sub, each_row=False).with_points(taken)
            starts = self._starts(criterion, incumbents, rng)
            found = self._search.best(criterion, starts, lambda row: row not in closed and self.usable(row))
            rows = self._search.sample(rng, N_RANDOM)
            rows = torch.unique(rows if found is None else torch.cat([rows, self._search.cross(found)]))
            self._nearby = _Nearby(key, rows, PoolMaximizer(self._sub.X[rows]))
        return self._nearby

    def random(self, rng: np.random.Generator, taken: Tensor, *, each_row: bool = False) -> Choice | None:
        """See `CandidateSet`."""
        closed = self._closed(taken, each_row)
        for _ in range(TRIES):
            row = int(rng.integers(len(self._sub.X)))
            if row not in closed and self.usable(row):
                return self._sub.choice(row)
        return None

    def upper_bound(self, model: Model, beta: float, incumbents: Tensor) -> float:
        """See `CandidateSet`."""
        criterion = UpperBound.over(model, beta)
        rng = np.random.default_rng(0)  # a report does not share random numbers with suggestions
        found = self._search.best(criterion, self._starts(criterion, incumbents, rng), lambda _: True)
        assert found is not None
        return found.score

    def spread(self, incumbents: Tensor, rng: np.random.Generator) -> tuple[Tensor, Callable[[int], bool]]:
        """Points that represent the pool, `(n, d)`, and which of them are usable.

        They are random rows, and those that differ from an incumbent by a part.
        """
        rows = [self._search.sample(rng, SPREAD)]
        for row in self._sub.firsts_of(incumbents):
            rows += [self._search.line(row, p) for p in range(len(self._sub.X.sizes))]
        found = torch.cat(rows)
        return self._sub.X[found], lambda i: self.usable(int(found[i]))


def candidates_of_pool(
    pool: Arms, feasible: Feasible | None, before: PoolCandidates | ProductCandidates | None = None
) -> PoolCandidates | ProductCandidates:
    """The arms of a pool, listed if possible; for `before` see `PoolCandidates`."""
    if isinstance(pool, ProductPool) and not pool.is_listed:
        return ProductCandidates(pool, feasible)
    return PoolCandidates(pool, feasible, before=before if isinstance(before, PoolCandidates) else None)
