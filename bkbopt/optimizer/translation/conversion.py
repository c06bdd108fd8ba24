"""The conversion between the user's parameters and the points of the search, for spaces and for pools."""

import contextlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from bkbopt._support.row_keys import row_keys
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer.log.trials import Entry, Trial
from bkbopt.optimizer.translation.rounded_points import meant_points
from bkbopt.search.trials.evaluations import Point
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Params
from bkbopt.spaces.choices import Categorical, Ordinal
from bkbopt.spaces.points import in_row, places_of
from bkbopt.spaces.space import Parameter, Space
from bkbopt.spaces.values import as_python, is_hashable, is_missing, is_real, with_hint

__all__ = ["Conversion", "conversion_of"]


class Conversion(Protocol):
    """The conversion between parameters and points for a space or a pool.

    Methods about rows of a pool have bodies, which are those of a space.
    """

    def points(self, rows: Sequence[Params]) -> list[Point]:
        """Points of complete sets of parameters; raises an error for one that is not in the space or pool."""

    def told(self, rows: Sequence[Params], running: Iterable[Entry]) -> list[Point]:
        """The points of parameters that are told; numbers of a row of the pool, or of a trial, may have been rounded.

        Args:
            rows: the parameters.
            running: trials that may be meant; points that are equal to theirs are meant as they are.

        Raises the errors of `points`.
        """

    def fixed(self, params: Params, argument: str) -> Point:
        """The partial point of some of the parameters; raises the errors of `points`, which name the `argument`."""

    def params(self, point: Point, index: int | None) -> dict[str, Any]:
        """The parameters of a point, or of a partial point; `index` is its row of the pool, if known."""

    def label(self, index: int | None, point: Point | None = None) -> Hashable | None:
        """The name of a row of the pool by its `id_column`; None if it has none, or another point than this one."""
        return None

    def labels(self, params: Params) -> dict[str, Any]:
        """The labels of a product's parts among some of the parameters; raises a ValueError for one that is none."""
        return {}

    def recorded(self, point: Point, trial: Trial) -> dict[str, Any]:
        """The parameters of a trial that a file has, `trial`, with the point; it may be one of an earlier pool."""

    def holds(self, point: Point) -> bool:
        """Whether the current space or pool has points with these values."""

    def without_gaps(self, row: Params) -> Params:
        """A row of a table with the values that its cells mean, without the empty cells of inactive parameters."""

    def index(self, point: Point, row: Params) -> int | None:
        """The row of the pool with this point; None for a space, a partial point, and arms that were removed."""
        return None

    def as_named(self, index: int | None, params: Params) -> int | None:
        """A row of the pool, or that of its twins, rows with equal values, which `params` names; None for a space."""
        return None

    def naming(self, trial: Trial, is_present: bool) -> Params:
        """What names the row of a trial, of the present pool or an earlier one; empty if nothing does."""
        return {}

    def is_other_row(self, trial: Trial, is_present: bool, params: Params) -> bool:
        """Whether `params` names another row than that of a trial with the same values; see `naming`."""
        return False

    def name(self, trial: Trial) -> Hashable | None:
        """What a trial's row has in common with no other row, in all pools; None if rows have no names."""
        return None

    def without_trials(
        self, rows: Sequence[int | None], used: Iterable[int | None], earlier: Iterable[Trial]
    ) -> list[int | None]:
        """Rows of the pool with the same values as `rows`, which have no trial as far as there are any.

        Trials have the rows that are `used`, and those with the names of trials of `earlier` pools.
        """
        return list(rows)

    def stored(self, point: Point) -> dict[str, Any]:
        """The parameters of a point, or of a partial point, as JSON values."""

    def restored(self, rows: Sequence[Params], is_part: bool) -> list[Point]:
        """The inverse of `stored`, for complete or partial points; raises the errors of `points`."""


@dataclass(frozen=True)
class SpaceConversion(Conversion):
    """See `Conversion`."""

    space: Space

    def points(self, rows: Sequence[Params]) -> list[Point]:
        """See `Conversion`."""
        return list(self.space.internal(rows))

    def told(self, rows: Sequence[Params], running: Iterable[Entry]) -> list[Point]:
        """See `Conversion`."""
        return meant_points(self.points(rows), (entry.point for entry in running), self.space)

    def fixed(self, params: Params, argument: str) -> Point:
        """See `Conversion`."""
        return self.space.fixed(params, argument)

    def params(self, point: Point, index: int | None) -> dict[str, Any]:
        """See `Conversion`."""
        return self.space.external([point])[0]

    def recorded(self, point: Point, trial: Trial) -> dict[str, Any]:
        """See `Conversion`."""
        return self.params(point, None)

    def holds(self, point: Point) -> bool:
        """See `Conversion`."""
        params = self.space.external([point])[0]
        if len(params) < len(point):
            return False
        try:
            self.space.fixed(params)
        except ArgumentError:
            return False
        return True

    def without_gaps(self, row: Params) -> Params:
        """See `Conversion`."""
        parameters, conditions = self.space.parameters, self.space.conditions
        cells = {name: _meant(parameters[name], cell) if name in parameters else cell for name, cell in row.items()}
        empty = {name for name, cell in cells.items() if name in conditions and is_missing(cell)}
        gaps = {name for name in empty if parameters[name].locate(cells[name]) is None}
        if empty - gaps:  # None is a choice of these, if they are active
            with contextlib.suppress(ArgumentError):  # a wrong value of a switch is refused with the other values
                gaps |= empty - set(self.space.active(cells))
        return {name: cell for name, cell in cells.items() if name not in gaps}

    def stored(self, point: Point) -> dict[str, Any]:
        """See `Conversion`."""
        return self.params(point, None)

    def restored(self, rows: Sequence[Params], is_part: bool) -> list[Point]:
        """See `Conversion`."""
        return [self.space.fixed(row) for row in rows] if is_part else self.points(rows)


def _meant(parameter: Parameter, cell: Any) -> Any:
    """The value that a cell of a data frame stands for, as far as pandas has changed the types of a column.

    In a column of text None becomes NaN, and whole numbers beside empty cells become floats.
    """
    if not isinstance(parameter, Categorical | Ordinal) or parameter.locate(cell) is not None:
        return cell
    if is_missing(cell):
        return cell if parameter.locate(None) is None else None
    equal = [choice for choice in parameter.listed if is_real(choice) and is_real(cell) and choice == cell]
    return equal[0] if len(equal) == 1 else cell


@dataclass(frozen=True)
class PoolConversion:
    """See `Conversion`."""

    pool: Arms

    def points(self, rows: Sequence[Params]) -> list[Point]:
        """See `Conversion`."""
        places = places_of(rows)
        for i, row in zip(places, rows, strict=True):
            if not isinstance(row, Mapping):
                raise ArgumentTypeError(f"params: expected a dict, got {with_hint(row)}{in_row(i)}.")
        return [self.pool.internal(row, i) for i, row in zip(places, rows, strict=True)]

    def told(self, rows: Sequence[Params], running: Iterable[Entry]) -> list[Point]:
        """See `Conversion`."""
        points = self.points(rows)
        if not points:
            return points
        X, known = self.pool.encode(points), {frozenset(entry.point.items()) for entry in running}
        there = set(row_keys(self.pool.X[torch.from_numpy(self.pool.some_rows_of(X))]))
        out = []
        for key, point in zip(row_keys(X), points, strict=True):
            row = None if key in there or frozenset(point.items()) in known else self.pool.rounded_from(point)
            out.append(point if row is None else row)
        return out

    def fixed(self, params: Params, argument: str) -> Point:
        """See `Conversion`."""
        return self.pool.fixed(params, argument)

    def params(self, point: Point, index: int | None) -> dict[str, Any]:
        """See `Conversion`."""
        return dict(self.pool.params_of(point) if index is None else self.pool.decode(index))

    def label(self, index: int | None, point: Point | None = None) -> Hashable | None:
        """See `Conversion`."""
        return self.pool.name(index, point)

    def labels(self, params: Params) -> dict[str, Any]:
        """See `Conversion`."""
        labels = {name: as_python(params[name]) for name in self.pool.label_names if name in params}
        if not all(is_hashable(label) for label in labels.values()):
            raise ValueError("labels of parts that are none")
        return labels

    def recorded(self, point: Point, trial: Trial) -> dict[str, Any]:
        """See `Conversion`."""
        row, is_here = trial.index, False
        if self.pool.label_names and row is not None:
            is_here = row < len(self.pool) and self.pool.point(row) == point
        return self.params(point, row if is_here else None) | self.labels(trial.params)

    def holds(self, point: Point) -> bool:
        """See `Conversion`."""
        return bool(self.pool.rows_like(point))

    def without_gaps(self, row: Params) -> Params:
        """See `Conversion`."""
        return row

    def index(self, point: Point, row: Params) -> int | None:
        """See `Conversion`."""
        if len(point) < len(self.pool.names):
            return None
        rows = self.pool.each_at(self.pool.encode([point])[0])
        given = self.pool.row_named(row)
        if given is not None and given in rows:
            return given
        return self.as_named(next(iter(rows), None), row)

    def as_named(self, index: int | None, params: Params) -> int | None:
        """See `Conversion`."""
        return None if index is None else self.pool.as_named(index, params)

    def naming(self, trial: Trial, is_present: bool) -> Params:
        """See `Conversion`."""
        if is_present and trial.index is not None:
            return {"index": trial.index}
        column = self.pool.pool.id_column
        return self.labels(trial.params) if column is None or trial.label is None else {column: trial.label}

    def is_other_row(self, trial: Trial, is_present: bool, params: Params) -> bool:
        """See `Conversion`."""
        if is_present:
            return self.as_named(trial.index, params) != trial.index
        row, own = self.pool.row_named(params), self.name(trial)
        return row is not None and own is not None and self._name_of_row(row) != own

    def without_trials(
        self, rows: Sequence[int | None], used: Iterable[int | None], earlier: Iterable[Trial]
    ) -> list[int | None]:
        """See `Conversion`."""
        asked = [row for row in rows if row is not None]
        names = {self.name(trial) for trial in earlier} - {None} if self.pool.may_have_twins else set()
        rows_used = set(used)

        def is_used(row: int) -> bool:
            return row in rows_used or (bool(names) and self._name_of_row(row) in names)

        return [*self.pool.without_trials(asked, is_used)]

    def name(self, trial: Trial) -> Hashable | None:
        """See `Conversion`."""
        return frozenset(trial.params.items()) if self.pool.label_names else trial.label

    def _name_of_row(self, row: int) -> Hashable | None:
        return self.name(Trial(0, self.pool.decode(row), label=self.label(row)))

    def stored(self, point: Point) -> dict[str, Any]:
        """See `Conversion`; text stands for itself, other objects by their numbers."""
        params = self.pool.values_of(point)
        if self.pool.objects is None or not params or isinstance(params["arm"], str):
            return params
        return {"arm": {"object": int(point["arm"])}}

    def restored(self, rows: Sequence[Params], is_part: bool) -> list[Point]:
        """See `Conversion`."""
        if self.pool.objects is not None:
            rows = [{name: self._object(given) for name, given in row.items()} for row in rows]
        if self.pool.label_names:  # trials of earlier pools may have labels that are gone
            rows = [{name: given for name, given in row.items() if name not in self.pool.label_names} for row in rows]
        return [self.pool.part(row) for row in rows] if is_part else self.points(rows)

    def _object(self, given: Any) -> Any:
        """The object of the pool for a value of `stored`."""
        if isinstance(given, str):
            return given
        objects = self.pool.objects or []
        number = given.get("object") if isinstance(given, dict) else None
        if not isinstance(number, int) or not 0 <= number < len(objects):
            raise ArgumentError(f"arm: expected one of {len(objects)} objects, got {given!r}.")
        return objects[number]


def conversion_of(candidates: Space | Arms) -> Conversion:
    """The conversion for a space or pool."""
    return SpaceConversion(candidates) if isinstance(candidates, Space) else PoolConversion(candidates)
