"""Parameters as people write them, to and from points as the search knows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bkbopt.errors import ArgumentTypeError
from bkbopt.search.evaluations import Point
from bkbopt.spaces.pool import EncodedPool
from bkbopt.spaces.space import Space

__all__ = ["Params", "PoolVocabulary", "SpaceVocabulary", "Vocabulary"]

Params = Mapping[str, Any]


class Vocabulary(Protocol):
    """The words of a space or of a pool."""

    def points(self, rows: Sequence[Params]) -> list[Point]:
        """Points of whole sets of parameters; refuses what does not belong to the space or pool."""
        ...

    def fixed(self, params: Params) -> Point:
        """The point of some of the parameters; refuses as `points` does."""
        ...

    def params(self, point: Point, index: int | None) -> dict[str, Any]:
        """The parameters of a point, in the row `index` of the pool."""
        ...

    def index(self, point: Point, row: Params) -> int | None:
        """The row of the pool that a point is; None outside of pools, and for arms that are no longer there."""
        ...


@dataclass(frozen=True)
class SpaceVocabulary:
    """See `Vocabulary`."""

    space: Space

    def points(self, rows: Sequence[Params]) -> list[Point]:
        """See `Vocabulary`."""
        return list(self.space.internal(rows))

    def fixed(self, params: Params) -> Point:
        """See `Vocabulary`."""
        return self.space.fixed(params)

    def params(self, point: Point, index: int | None) -> dict[str, Any]:
        """See `Vocabulary`."""
        return self.space.external([point])[0]

    def index(self, point: Point, row: Params) -> None:
        """See `Vocabulary`."""
        return


@dataclass(frozen=True)
class PoolVocabulary:
    """See `Vocabulary`."""

    pool: EncodedPool

    def points(self, rows: Sequence[Params]) -> list[Point]:
        """See `Vocabulary`."""
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise ArgumentTypeError(f"params: expected a dict, got {type(row).__name__} in row {i}.")
        return [self.pool.internal(row) for row in rows]

    def fixed(self, params: Params) -> Point:
        """See `Vocabulary`."""
        return self.pool.fixed(params)

    def params(self, point: Point, index: int | None) -> dict[str, Any]:
        """See `Vocabulary`."""
        return dict(self.pool.params_of(point) if index is None else self.pool.decode(index))

    def index(self, point: Point, row: Params) -> int | None:
        """See `Vocabulary`."""
        rows = self.pool.rows_at(self.pool.encode([point])[0])
        given = row.get("index") if set(row) == {"index"} else None
        if given is not None and int(given) in rows:
            return int(given)
        return int(rows[0]) if len(rows) else None
