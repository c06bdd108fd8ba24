"""Parameters as people write them, to and from points as the search knows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.search.evaluations import Point
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.space import Space
from bkbopt.spaces.values import is_missing

__all__ = ["Params", "PoolVocabulary", "SpaceVocabulary", "Vocabulary", "vocabulary_of"]

Params = Mapping[str, Any]


class Vocabulary(Protocol):
    """The words of a space or of a pool."""

    def points(self, rows: Sequence[Params]) -> list[Point]:
        """Points of whole sets of parameters; refuses what does not belong to the space or pool."""
        ...

    def fixed(self, params: Params, argument: str) -> Point:
        """The point of some of the parameters; refuses as `points` does, and names the `argument`."""
        ...

    def params(self, point: Point, index: int | None) -> dict[str, Any]:
        """The parameters of a point, in the row `index` of the pool; of part of a point, those that it has."""
        ...

    def holds(self, point: Point) -> bool:
        """Whether the space or pool as it is now has points with these values."""
        ...

    def without_gaps(self, row: Params) -> Params:
        """A row of a table without the empty cells of parameters that need not be there."""
        ...

    def index(self, point: Point, row: Params) -> int | None:
        """The row of the pool that a point is; None outside of pools, and for arms that are no longer there."""
        ...

    def stored(self, point: Point) -> dict[str, Any]:
        """The parameters of a point, or of part of one, in JSON's terms."""
        ...

    def restored(self, rows: Sequence[Params], is_part: bool) -> list[Point]:
        """The inverse of `stored`, of whole points or of parts; refuses what does not belong to the space or pool."""
        ...


@dataclass(frozen=True)
class SpaceVocabulary:
    """See `Vocabulary`."""

    space: Space

    def points(self, rows: Sequence[Params]) -> list[Point]:
        """See `Vocabulary`."""
        return list(self.space.internal(rows))

    def fixed(self, params: Params, argument: str) -> Point:
        """See `Vocabulary`."""
        return self.space.fixed(params, argument)

    def params(self, point: Point, index: int | None) -> dict[str, Any]:
        """See `Vocabulary`."""
        return self.space.external([point])[0]

    def holds(self, point: Point) -> bool:
        """See `Vocabulary`."""
        params = self.space.external([point])[0]
        if len(params) < len(point):
            return False
        try:
            self.space.fixed(params)
        except ArgumentError:
            return False
        return True

    def without_gaps(self, row: Params) -> Params:
        """See `Vocabulary`."""
        parameters, conditions = self.space.parameters, self.space.conditions

        def is_gap(name: str, value: Any) -> bool:
            return name in conditions and is_missing(value) and parameters[name].locate(value) is None

        return {name: value for name, value in row.items() if not is_gap(name, value)}

    def index(self, point: Point, row: Params) -> None:
        """See `Vocabulary`."""
        return

    def stored(self, point: Point) -> dict[str, Any]:
        """See `Vocabulary`."""
        return self.params(point, None)

    def restored(self, rows: Sequence[Params], is_part: bool) -> list[Point]:
        """See `Vocabulary`."""
        return [self.space.fixed(row) for row in rows] if is_part else self.points(rows)


@dataclass(frozen=True)
class PoolVocabulary:
    """See `Vocabulary`."""

    pool: Arms

    def points(self, rows: Sequence[Params]) -> list[Point]:
        """See `Vocabulary`."""
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise ArgumentTypeError(f"params: expected a dict, got {type(row).__name__} in row {i}.")
        return [self.pool.internal(row) for row in rows]

    def fixed(self, params: Params, argument: str) -> Point:
        """See `Vocabulary`."""
        return self.pool.fixed(params, argument)

    def params(self, point: Point, index: int | None) -> dict[str, Any]:
        """See `Vocabulary`."""
        return dict(self.pool.params_of(point) if index is None else self.pool.decode(index))

    def holds(self, point: Point) -> bool:
        """See `Vocabulary`."""
        return bool(self.pool.rows_like(point))

    def without_gaps(self, row: Params) -> Params:
        """See `Vocabulary`."""
        return row

    def index(self, point: Point, row: Params) -> int | None:
        """See `Vocabulary`."""
        rows = self.pool.rows_at(self.pool.encode([point])[0])
        given = self.pool.row_named(row)
        if given is not None and given in rows:
            return given
        return int(rows[0]) if len(rows) else None

    def stored(self, point: Point) -> dict[str, Any]:
        """See `Vocabulary`; text stands for itself, other objects by their numbers."""
        params = self.pool.values_of(point)
        if self.pool.objects is None or not params or isinstance(params["arm"], str):
            return params
        return {"arm": {"object": int(point["arm"])}}

    def restored(self, rows: Sequence[Params], is_part: bool) -> list[Point]:
        """See `Vocabulary`."""
        if self.pool.objects is not None:
            rows = [{name: self._object(given) for name, given in row.items()} for row in rows]
        return [self.pool.part(row) for row in rows] if is_part else self.points(rows)

    def _object(self, given: Any) -> Any:
        """An object of the pool as `stored` says it."""
        if isinstance(given, str):
            return given
        objects = self.pool.objects or []
        number = given.get("object") if isinstance(given, dict) else None
        if not isinstance(number, int) or not 0 <= number < len(objects):
            raise ArgumentError(f"arm: expected one of {len(objects)} objects, got {given!r}.")
        return objects[number]


def vocabulary_of(candidates: Space | Arms) -> Vocabulary:
    """The words of a space or pool."""
    return SpaceVocabulary(candidates) if isinstance(candidates, Space) else PoolVocabulary(candidates)
