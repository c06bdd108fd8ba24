"""The common base of pools, whether their rows are in memory or not: points, parameters and rows of arms.

A point is a dict from names of columns to internal values: raw numbers, and the codes of choices.
"""

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.base import Params, Point
from bkbopt.spaces.columns import Columns
from bkbopt.spaces.points import in_row, name_faults
from bkbopt.spaces.rounding import MOST_ROWS, RowIndex, only_row_like
from bkbopt.spaces.rows import RowSource
from bkbopt.spaces.values import as_python, with_hint

if TYPE_CHECKING:
    from bkbopt.spaces.pool import Pool

__all__ = ["Arms", "index_is_reserved"]

#: Largest number of columns that `repr` names.
SHOWN = 6


class Arms(ABC):
    """A pool as encoded points; it never changes.

    Attributes:
        pool: the arms as they were given.
        scale: whether numeric columns are scaled to [0, 1] by the first pool's range, long tails compressed.
        X: the encoded arms (A, d): a tensor, or an object that is read by row or by block.
        columns: how raw values are encoded; None for objects.
        objects: all objects of this pool and the earlier ones, in order of appearance; None for arrays and tables.
    """

    pool: "Pool"
    scale: bool
    X: RowSource
    columns: Columns | None
    objects: list[object] | None

    @abstractmethod
    def raw_blocks(self) -> Iterator[NDArray[np.float64]]:
        """The raw values of all rows in blocks `(n, d)`, in order: of choices the codes, of objects the numbers."""

    def column(self, j: int) -> NDArray[np.float64]:
        """The raw values of a column, (A,)."""
        return np.concatenate([block[:, j] for block in self.raw_blocks()])

    @abstractmethod
    def replaced(self, pool: "Pool") -> "Arms":
        """Other arms of the same kind in the same encoding; raises as the class does."""

    @abstractmethod
    def with_columns(self, columns: Columns) -> "Arms":
        """The same arms in another encoding of their columns; raises as the class does."""

    @abstractmethod
    def raw(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The raw values of `rows (n,)`, (n, d)."""

    def point(self, row: int) -> dict[str, float]:
        """The point in a row of the pool."""
        return dict(zip(self.names, self.raw(np.array([row]))[0].tolist(), strict=True))

    def decode(self, row: int) -> dict[str, Any]:
        """The parameters in a row of the pool, as they were given."""
        return self.params_of(self.point(row))

    @abstractmethod
    def rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """Rows of the pool that are one of the encoded points `X (n, d)`, in any order."""

    @abstractmethod
    def matching(self, point: Point) -> Tensor:
        """Which arms have the given values of some columns, `(A,)`; in internal form."""

    @abstractmethod
    def label(self, row: int) -> Hashable:
        """The label of a row: its value in `id_column`, its label in the data frame, or its number."""

    @abstractmethod
    def rows_named(self, labels: Sequence[Any]) -> list[int]:
        """The row with each label; a row number works as well where labels are not whole numbers.

        Raises:
            ArgumentError: no such row, or several; a label in a data frame's index that is the number of another row.
        """

    @abstractmethod
    def _is_constant(self) -> Iterable[bool]:
        """Whether all rows have the same value, for each column."""

    def __repr__(self) -> str:
        names = ", ".join(map(str, [*self.names[:SHOWN], "..."] if len(self.names) > SHOWN else self.names))
        named = "" if self.pool.id_column is None else f", rows named by {self.pool.id_column!r}"
        return f"<pool of {len(self)} rows: {self.dim} column{'s' * (self.dim != 1)} ({names}){named}>"

    def __len__(self) -> int:
        """Number of arms A."""
        return len(self.X)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Arms":
        """The pool itself: it never changes."""
        return self

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return self.X.shape[1]

    @property
    def categorical(self) -> tuple[int, ...]:
        """Columns that hold the codes of choices without an order."""
        return () if self.columns is None else tuple(self.columns.unordered)

    @property
    def n_codes(self) -> Mapping[int, int]:
        """Number of the choices of each such column; of objects, of the objects."""
        if self.columns is None:
            return {0: len(self.objects or ())}
        return {j: len(values) for j, values in self.columns.unordered.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return ("arm",) if self.columns is None else self.columns.names

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels among the parameters, which are no columns: of a product's parts that have labels."""
        return ()

    @cached_property
    def constant(self) -> Mapping[str, float]:
        """The value, in internal form, of each column that has one value in all rows."""
        if self.columns is None:
            return {}
        return {name: self.point(0)[name] for name, one in zip(self.names, self._is_constant(), strict=True) if one}

    @property
    def feasible(self) -> Callable[[Params], bool] | None:
        """The constraint on parameters that was given with the pool, as for a product."""
        return None

    @property
    def is_listed(self) -> bool:
        """Whether a search compares all arms, so that its choice is exact: true but for large products."""
        return True

    @cached_property
    def fingerprint(self) -> str:
        """A text that two pools share exactly if their raw values are the same."""
        digest = hashlib.blake2b(digest_size=16)
        for block in self.raw_blocks():
            digest.update(np.ascontiguousarray(block, dtype="<f8").data)
        return digest.hexdigest()

    # -- points and parameters ---------------------------------------------------------------------------------------

    def internal(self, params: Params, i: int | None = None) -> dict[str, float]:
        """The point of an arm's parameters: all columns of a row, of the pool or not, or {"index": row of the pool}.

        Where a column names the rows, {its name: a label} is a row as well, also with the columns of this row.

        Args:
            params: the parameters.
            i: their place among others, for messages; None if there is only one.

        Raises:
            ArgumentTypeError: no dict.
            ArgumentError: other keys than the columns, no such row, choice or object, or no finite number.
        """
        if not isinstance(params, Mapping):
            raise ArgumentTypeError(f"params: expected a dict, got {with_hint(params)}{in_row(i)}.")
        row = self._row_given(params)
        if row is not None:
            return self.point(row)
        if set(params) != set(self.names):
            expected = f"the columns {self.names}" if self.columns is not None else '{"arm": object} or {"index": row}'
            name, hint = self.pool.id_column, ""
            missing, unknown = set(self.names) - set(params), set(params) - {name, *self.names}
            if name in params:
                hint = f"; the name of a row is enough: pass only {name!r}, of a data frame by columns=[{name!r}]"
            raise ArgumentError(f"params: expected {expected}{in_row(i)}, got {name_faults(unknown, missing)}{hint}.")
        argument = "params" if i is None else f"params: row {i}"
        return {name: self._internal(name, params[name], argument) for name in self.names}

    def fixed(self, params: Params, argument: str = "fixed") -> dict[str, float]:
        """Values of some columns, in internal form, that arms of the pool have; messages name the `argument`.

        Raises:
            ArgumentTypeError: no dict.
            ArgumentError: an unknown column, no arm of the pool has these values, or {"index": value} where a column
                has this name, too.
        """
        if not isinstance(params, Mapping):
            raise ArgumentTypeError(f"{argument}: expected a dict, got {with_hint(params)}.")
        if set(params) == {"index"} and "index" in self.names:
            raise index_is_reserved(argument, "a row number or values of a column, not one that could be both")
        row = self._row_given(params)
        if row is not None:
            return self.point(row)
        point = self.part(params, argument)
        if not self.rows_like(point):
            raise ArgumentError(f"{argument}: expected values that an arm of the pool has, got {dict(params)!r}.")
        return point

    def part(self, params: Params, argument: str = "fixed") -> dict[str, float]:
        """Values of some columns in internal form, which need not be those of an arm; raises as `fixed` does."""
        unknown = [name for name in params if name not in self.names]
        if unknown:
            row = f", or {self.pool.id_column!r} alone" if self.pool.id_column is not None else ""
            raise ArgumentError(f"{argument}: expected columns among {self.names}{row}, got {unknown[0]!r}.")
        return {name: self._internal(name, params[name], argument) for name in self.names if name in params}

    def encode(self, points: Sequence[Point]) -> Tensor:
        """Encoded points `(n, d)`."""
        names = self.names
        rows = np.array([[point[name] for name in names] for point in points], dtype=np.float64)
        table = torch.from_numpy(rows.reshape(len(points), self.dim))
        return table if self.columns is None else self.columns.scaled(table)

    def params_of(self, point: Point) -> dict[str, Any]:
        """The parameters of a point, which need not be in the pool, or of part of a point."""
        return self.values_of(point)

    def values_of(self, point: Point) -> dict[str, Any]:
        """The columns' values at a point or part of one; `internal` reads them back in any pool with these columns."""
        if self.columns is None:
            assert self.objects is not None
            return {"arm": self.objects[int(point["arm"])]} if point else {}
        return {name: self.columns.external(j, point[name]) for j, name in enumerate(self.names) if name in point}

    # -- rows --------------------------------------------------------------------------------------------------------

    @property
    def may_have_twins(self) -> bool:
        """Whether several rows may have the same values; False only where it is known."""
        return True

    def without_trials(self, rows: Sequence[int], is_used: Callable[[int], bool]) -> list[int]:
        """The rows; of those that are used, or twice in `rows`, twins that are not, if there are any.

        Twins are rows with the same values.
        """
        if not self.may_have_twins:
            return list(rows)
        out, seen = [], set[int]()
        for row in rows:
            is_taken = row in seen or is_used(row)
            unused = (twin for twin in self.each_at(self.X[row]) if twin not in seen and not is_used(twin))
            out.append(next(unused, row) if is_taken else row)
            seen.add(out[-1])
        return out

    def rows_at(self, x: Tensor) -> list[int]:
        """Rows of the pool that are the encoded point `x (d,)`, in order."""
        return [*self.each_at(x)]

    def each_at(self, x: Tensor) -> Collection[int]:
        """The same; those of a product are computed when they are read, since there may be very many."""
        return sorted(self.rows_of(x[None]).tolist())

    def some_rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """Rows that are one of the encoded points `X (n, d)`, at least one for each point that is in the pool."""
        return self.rows_of(X)

    def rows_like(self, point: Point) -> list[int]:
        """Rows of the pool that have the given values of some columns, in internal form: the first two at most."""
        if not point:
            return [*range(min(len(self), 2))]
        if set(point) != set(self.names):
            return torch.nonzero(self.matching(point))[:2, 0].tolist()
        rows = self.rows_at(self.encode([point])[0])  # without a pass over the pool
        return list(itertools.islice((row for row in rows if self.point(row) == point), 2))

    def rounded_from(self, point: Point) -> dict[str, float] | None:
        """The values of the only row that `point` is rounded from; None without one, and for more than 10^6 rows."""
        if self._near is None or any(name not in point for name in self.names):
            return None
        values = np.array([point[name] for name in self.names])
        row = only_row_like(self.raw(self._near.near(values)), values, self._near.spans)
        return None if row is None else dict(zip(self.names, row.tolist(), strict=True))

    @cached_property
    def _near(self) -> RowIndex | None:
        if self.columns is None or len(self) > MOST_ROWS:
            return None
        return RowIndex(self.raw_blocks(), self.columns.kinds)

    def row_named(self, params: Params) -> int | None:
        """The row whose number or name `params` gives; None if `params` describes the arm."""
        return self._row_given(params)

    def as_named(self, row: int, params: Params) -> int:
        """The row that `params` gives, by number or name, if it has the same values as `row`; otherwise `row`."""
        given = self._row_given(params)
        return given if given is not None and self.point(given) == self.point(row) else row

    def name(self, row: int | None, point: Point | None) -> Hashable | None:
        """The value of `id_column` in a row; None without such a column, and if the row is not at `point`, if given."""
        if row is None or self.pool.id_column is None or not row < len(self):
            return None
        return self.label(row) if point is None or self.point(row) == point else None

    def some_rows(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Random rows, at most `n`, each once."""
        return rng.permutation(len(self))[:n]

    def values_in(self, j: int) -> NDArray[np.float64]:
        """The raw values of column j, each once and in order."""
        return np.unique(self.column(j))

    def row_of(self, label: Any) -> int:
        """The row that a label names; see `rows_named`."""
        return self.rows_named([label])[0]

    def _internal(self, name: str, value: Any, where: str) -> float:
        """One value in internal form; `where` is for messages."""
        assert self.columns is not None
        return self.columns.internal(self.names.index(name), value, where)

    def _row_given(self, params: Params) -> int | None:
        if set(params) == {"index"}:
            return self._checked_row(params["index"])
        name = self.pool.id_column
        if name is None or name not in params or not (len(params) == 1 or set(params) == {name, *self.names}):
            return None
        row = self.row_of(params[name])
        if len(params) > 1:
            self._check_same(row, params)
        return row

    def _check_same(self, row: int, params: Params) -> None:
        """Refuse columns that are not those of the row; numbers may have been rounded, to 1e-4 of a column's range."""
        given = {name: self._internal(name, params[name], "params") for name in self.names}
        here, there = self.encode([given, self.point(row)])
        for name, is_near in zip(self.names, torch.isclose(here, there, rtol=1e-4, atol=1e-4).tolist(), strict=True):
            if not is_near:
                raise ArgumentError(
                    f"params: expected {name} = {self.decode(row)[name]!r}, as in the row {self.label(row)!r}, got "
                    f"{params[name]!r}; correct it, or tell another point without {self.pool.id_column!r}."
                )

    def _labelled(self, label: Any, rows: Sequence[int], known: Sequence[Hashable]) -> int:
        """The row with a label, of the `rows` that have it; without one the row with this number.

        Where the `known` labels, all of the pool's or some, are whole numbers, a number can only be a label.

        Raises:
            ArgumentError: there are several, or the label, which no column gives, is the number of another row; or no
                such row.
        """
        if len(rows) > 1:
            raise ArgumentError(
                f"rows: expected labels that name one row, got {label!r}, which names the rows {list(rows[:5])}; "
                'tell {"index": row} instead.'
            )
        is_number = isinstance(label, int) and not isinstance(label, bool) and 0 <= label < len(self)
        if rows and is_number and label != rows[0] and self.pool.id_column is None:
            raise ArgumentError(
                f"rows: expected labels or row numbers, got {label}, which is the label of row {rows[0]} in the data "
                'frame\'s index and the number of another row; tell {"index": row}, or name the rows by a column '
                "(Pool(id_column=))."
            )
        if rows:
            return rows[0]
        if known and (not isinstance(label, int) or all(isinstance(own, int) for own in known)):
            few = ", ".join(map(repr, known[:5]))
            raise ArgumentError(f"rows: expected labels of the pool's rows ({few}, ...), got {label!r}.")
        return self._checked_row(label, "rows")

    def _checked_row(self, row: Any, argument: str = "index") -> int:
        row = as_python(row)
        if isinstance(row, bool) or not isinstance(row, int) or not 0 <= row < len(self):
            raise ArgumentError(f"{argument}: expected a row number from 0 to {len(self) - 1}, got {row!r}.")
        return int(row)


def index_is_reserved(argument: str, expected: str) -> ArgumentError:
    """The error for a column whose name stands for row numbers."""
    return ArgumentError(
        f'{argument}: expected {expected}, got "index", which is reserved for row numbers; rename the column, as in '
        'frame.rename(columns={"index": "name"}).'
    )
