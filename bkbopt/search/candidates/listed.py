"""Candidates that are listed, the arms of a pool and the points of a grid; the best one is found exactly."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt._support.latest import Latest
from bkbopt._support.row_keys import row_keys
from bkbopt.posterior.model import Model
from bkbopt.search.candidates.base import CandidateSet, Choice, Feasible, Scope, best_usable, one_row_each
from bkbopt.search.criteria.criterion import Criterion, Search, UpperBound
from bkbopt.search.criteria.expected import Expected
from bkbopt.search.maximizers.cluster_parts import ClusterPart, at_once
from bkbopt.search.maximizers.parted import PartedMaximizer
from bkbopt.search.maximizers.parts import LocalPart, Part
from bkbopt.search.maximizers.pool import PoolMaximizer
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Point
from bkbopt.spaces.encoding import Embedding
from bkbopt.spaces.remote import RemotePart
from bkbopt.spaces.rows import RowSource
from bkbopt.spaces.stored import StoredPool
from bkbopt.spaces.stored_rows import EncodedRows

__all__ = ["GRID_LIMIT", "GridCandidates", "Listed", "PoolCandidates"]

#: Discrete spaces up to this many points are searched exactly, as a pool.
GRID_LIMIT = 20_000


class Listed(CandidateSet, ABC):
    """The common base of pools and grids: rows that are closed, and the exact argmax over the others."""

    is_discrete = is_listed = True

    def __init__(self, search: Search, feasible: Feasible | None) -> None:
        n = len(search.X)
        self.search = search
        self._feasible = feasible
        self._infeasible = torch.zeros(n if feasible is not None else 0, dtype=torch.bool)
        self._checked = torch.zeros_like(self._infeasible)
        #: The arguments of the last call, and which rows are closed by them.
        self._taken: tuple[bool, Tensor, Tensor] | None = None
        #: The criterion of the greedy suggestions of a batch under constraints.
        self._in_batch: Latest[Expected] = Latest()

    @property
    def n_arms(self) -> int | None:
        """See `CandidateSet`."""
        return len(self.search.X)

    @abstractmethod
    def rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """Rows that are one of the points `X (n, d)`."""

    @abstractmethod
    def choice(self, row: int) -> Choice:
        """The point in a row."""

    def closed(self, taken: Tensor, each_row: bool = False) -> Tensor:
        """Rows that may not be chosen, a new tensor (A,)."""
        rows = self._rows_taken(taken, each_row)
        return rows | self._infeasible if self._feasible is not None else rows.clone()

    def _rows_taken(self, taken: Tensor, each_row: bool) -> Tensor:
        """Rows that the points `taken (t, d)` close, (A,), until the next call, which may change them in place."""
        known, self._taken = self._taken, None  # rows that an interrupt leaves half-way are not those of any points
        if known is None or known[0] != each_row or not torch.equal(known[1], taken[: len(known[1])]):
            known = each_row, taken[:0], torch.zeros(len(self.search.X), dtype=torch.bool)
        _, before, rows = known
        new = taken[len(before) :]
        if len(new):
            found, closed = self.rows_of(new), rows.numpy()
            closed[one_row_each(new, found[~closed[found]], self.search.X) if each_row else found] = True
        self._taken = each_row, taken, rows
        return rows

    def usable(self, row: int) -> bool:
        """Whether the user's constraint accepts the point in a row."""
        if self._feasible is None:
            return True
        if not self._checked[row]:
            self._infeasible[row] = not self._feasible(self.choice(row).point)  # may raise: recorded only after it
            self._checked[row] = True
        return not self._infeasible[row]

    def best(self, criterion: Criterion, scope: Scope) -> Choice | None:
        """See `CandidateSet`."""
        if scope.shared is not None and scope.shared.finished is not None and isinstance(criterion, Expected):
            criterion = self._expected(scope.shared.finished, (scope.shared.numbers, scope.shared.data))
        row = best_usable(criterion, self.search, self.closed(scope.taken, scope.each_row), self.usable)
        return None if row is None else self.choice(row)

    def _expected(self, finished: Callable[[], Criterion], key: tuple[object, ...]) -> Expected:
        """The criterion of greedy suggestions: means, which running trials do not change, so that scores are kept."""
        return self._in_batch.of(key, lambda: cast(Expected, finished()).kept(self.search))

    def random(self, rng: np.random.Generator, taken: Tensor, *, each_row: bool = False) -> Choice | None:
        """See `CandidateSet`."""
        rows_taken = self._rows_taken(taken, each_row).numpy()
        for _ in range(100):
            row = int(rng.integers(len(rows_taken)))
            if not rows_taken[row] and self.usable(row):
                return self.choice(row)
        rows = rng.permutation(len(rows_taken))
        for row in rows[~self.closed(taken, each_row).numpy()[rows]].tolist():
            if self.usable(row):
                return self.choice(row)
        return None

    def upper_bound(self, model: Model, beta: float, incumbents: Tensor) -> float:
        """See `CandidateSet`."""
        return float(UpperBound.over(model, beta).acquisition(*self.search.scan(model)).max())


class PoolCandidates(Listed):
    """The arms of a pool, or those whose fixed columns have the values asked for.

    Args:
        pool: the arms.
        feasible: the user's constraint on points.
        open_rows: (A,) which arms may be chosen; None for all.
        search: with bounds of the arms; None for a new one.
        before: candidates of an earlier pool with the same encoding; the bounds of unchanged parts are kept.
    """

    def __init__(
        self,
        pool: Arms,
        feasible: Feasible | None,
        open_rows: Tensor | None = None,
        search: Search | None = None,
        before: "PoolCandidates | None" = None,
    ) -> None:
        super().__init__(_search_of(pool, before) if search is None else search, feasible)
        self.pool, self._open = pool, open_rows

    def restricted(self, fixed: Point) -> "PoolCandidates":
        """The same arms and bounds, with only those open that have the given values of some columns."""
        out = PoolCandidates(self.pool, self._feasible, self.pool.matching(fixed), self.search)
        out._infeasible, out._checked = self._infeasible, self._checked
        return out

    def rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """Rows that are one of the points `X (n, d)`."""
        return self.pool.rows_of(X)

    def choice(self, row: int) -> Choice:
        """An arm."""
        return Choice(self.pool.X[row], self.pool.point(row), row)

    def spread(self, incumbents: Tensor, rng: np.random.Generator) -> tuple[RowSource, Callable[[int], bool]]:
        """Points that represent the pool, `(n, d)`, here all of them, and which of them are usable."""
        return self.pool.X, self.usable

    def closed(self, taken: Tensor, each_row: bool = False) -> Tensor:
        """Rows that may not be chosen, a new tensor (A,)."""
        closed = super().closed(taken, each_row)
        return closed if self._open is None else closed | ~self._open

    def usable(self, row: int) -> bool:
        """Whether a row matches the fixed values, and the user's constraint accepts its point."""
        return (self._open is None or bool(self._open[row])) and super().usable(row)


def _search_of(pool: Arms, before: PoolCandidates | None) -> Search:
    """The search for the best arm of a pool."""
    if not isinstance(pool, StoredPool):
        return PoolMaximizer(pool.X)
    earlier, known = None, dict[int, Part]()
    if before is not None and isinstance(before.pool, StoredPool) and isinstance(before.search, PartedMaximizer):
        # Later pools keep the first one's scales and the codes of its choices, so encoded parts stay valid.
        earlier = before.search
        known = {id(rows): part for rows, part in zip(before.pool.rows.parts, earlier.parts, strict=True)}
    parts: list[Part] = []
    for number, (part, codes) in enumerate(zip(pool.rows.parts, pool.rows.codes, strict=True)):
        if id(part) in known:
            parts.append(known[id(part)])
        elif isinstance(part, RemotePart):
            parts.append(ClusterPart(part, pool.columns, codes))
        else:
            parts.append(LocalPart(EncodedRows(pool.rows.only(number), pool.columns)))
    each = map if pool.pool.client is None else at_once
    return PartedMaximizer(
        pool.X,
        parts,
        shows_bar=pool.pool.show_progress_bar,
        each=each,
        before=earlier,
    )


class GridCandidates(Listed):
    """All points of a discrete space."""

    def __init__(self, embedding: Embedding, feasible: Feasible | None) -> None:
        self.embedding = embedding
        U = torch.zeros(1, 1, dtype=torch.float64)
        if embedding.space is not None and embedding.space.dim:
            U = embedding.space.all_points(GRID_LIMIT)
        super().__init__(PoolMaximizer(embedding(U)), feasible)
        self._U = U
        self._rows = {key: i for i, key in enumerate(row_keys(U))}

    def rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """Rows that are one of the points `X (n, d)`."""
        keys = row_keys(self.embedding.project(X[self.embedding.holds(X)]))
        return np.array([self._rows[key] for key in keys if key in self._rows], dtype=np.int64)

    def choice(self, row: int) -> Choice:
        """A point of the grid."""
        return Choice(self.search.X[row], self.embedding.point(self._U[row]))
