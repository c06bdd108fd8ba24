"""Parameters as people write them, to and from points as the search knows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.search.evaluations import Point
from bkbopt.search.keyed import keyed
from bkbopt.spaces.encoding import column_key
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
        self.space.encode(rows)  # checks names and values, and names the row at fault
        parameters = self.space.parameters
        constants = {name: p.first for name, p in self.space.items if p.n_values == 1}
        out: list[Point] = []
        for row in rows:
            given = {**constants, **row} if constants else row
            active = self.space.active(given) if self.space.is_conditional else parameters
            out.append({self._keys[name]: parameters[name].internal(given[name]) for name in active})
        return out

    def fixed(self, params: Params) -> Point:
        """See `Vocabulary`."""
        parameters = self.space.parameters
        point: dict[str, float] = {}
        for name, value in params.items():
            if name not in parameters:
                raise ArgumentError(f"params: expected parameters among {self.space.names}, got {name!r}.")
            try:
                point[self._keys[name]] = parameters[name].internal(value)
            except ArgumentError as error:
                raise ArgumentError(f"parameter {name!r}: {error}") from None
        conditions = keyed(self.space).conditions
        for name in params:
            for parent, allowed in conditions.get(self._keys[name], {}).items():
                if parent in point and point[parent] not in allowed:
                    raise ArgumentError(
                        f"params: expected parameters that are active together, got {name!r} with a value of another "
                        "parameter under which it is not active."
                    )
        return point

    def params(self, point: Point, index: int | None) -> dict[str, Any]:
        """See `Vocabulary`."""
        out: dict[str, Any] = {}
        for name, parameter in self.space.items:
            key = self._keys[name]
            if key in point:
                out[name] = parameter.external(point[key])
            elif parameter.n_values == 1 and not parameter.when:
                out[name] = parameter.first
        return out

    def index(self, point: Point, row: Params) -> None:
        """See `Vocabulary`."""
        return

    @property
    def _keys(self) -> Mapping[str, str]:
        return {name: column_key(name, parameter) for name, parameter in self.space.items}


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
