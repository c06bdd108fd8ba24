"""A finite pool: rows of an array or a data frame, or any objects with a kernel of the user's.

| symbol | shape  | units   | meaning                                                                |
| ------ | ------ | ------- | ---------------------------------------------------------------------- |
| X      | (A, d) | encoded | the pool: columns scaled to [0, 1] (or as given), categories as codes  |
| A      | -      | -       | number of arms                                                         |

A point is a dict from names of columns to internal values: raw numbers, and the codes of choices. Objects that are not
vectors are numbered in order of appearance; the only column "arm" then holds their numbers, and the kernel looks the
objects up. Equal objects (by ==, where hashable) are the same arm wherever they appear.
"""

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.base import set_fields
from bkbopt.spaces.rows import RowSource
from bkbopt.spaces.tables import FARTHEST, Columns, as_objects, is_numeric_table, labels_of, read_table
from bkbopt.spaces.values import as_python, is_hashable

__all__ = ["EncodedPool", "Pool"]

Point = Mapping[str, float]
Params = Mapping[str, Any]


@dataclass(frozen=True)
class Pool:
    """Says that something is a pool, where it could be taken for a search space: `bo.Pool([(0, 1), (2, 3)])`.

    Args:
        arms: an array or tensor (A, d), a data frame, or a list of anything that the surrogate's kernel understands.
        id_column: a column of the data frame that names the rows, and is no feature of theirs.

    Example:
        >>> import bkbopt as bo
        >>> bo.Optimizer(bo.Pool([(0.1, 2.0), (0.7, 1.5), (0.4, 0.9)]), seed=0).ask().params
        {'x0': 0.4, 'x1': 0.9}
    """

    arms: Any
    _: KW_ONLY
    id_column: str | None = None

    @classmethod
    def product(cls, parts: Mapping[str, Any], *, feasible: Callable[[Params], bool] | None = None) -> "Pool":
        """A combinatorial library: all combinations of one entry of each part, which are never listed.

        The parameters of a row are the labels of its entries under the parts' names, and their descriptors as
        "part.column"; those of a list are its values. Rows are numbered with the last part changing fastest. Products
        of up to 1,000,000 rows are searched exactly, as the same rows in a list; of larger ones a suggestion is the
        best row that a search over the parts finds.

        Args:
            parts: by name, each a data frame of descriptors, `Pool(frame, id_column=...)` where a column names its
                entries, an array (n, d), or a list of numbers or of choices.
            feasible: a constraint on the parameters of a row; rows are checked before they are proposed. It belongs to
                the optimizer from then on, and a log does not hold it: pass it again at opening.

        Raises:
            ArgumentError: no parts, names that clash, 2^63 rows or more, or a part that is no pool.
            ArgumentTypeError: anything else.

        Example:
            >>> import bkbopt as bo
            >>> pool = bo.Pool.product({"solvent": ["water", "oil"], "dose": [0.1, 0.2, 0.5], "x": range(1000)})
            >>> trial = bo.Optimizer(pool, seed=0).ask()
            >>> trial.index, trial.params
            (4282, {'solvent': 'oil', 'dose': 0.2, 'x': 282})
        """
        from bkbopt.spaces.parts import Product

        return cls(Product.of(parts, feasible))


@dataclass(frozen=True, eq=False)
class EncodedPool:
    """A pool as encoded points; it never changes.

    Args:
        pool: the arms; copied.
        scale: whether numeric columns are scaled to [0, 1] by the first pool's range.
        has_kernel: whether the user gave a kernel; lists of objects need one.
        like: an earlier pool whose encoding and numbers of objects are kept.

    Attributes:
        X: (A, d) the arms, encoded; a tensor, but for products.
        table: (A, d) their raw values: of columns that are not numeric the codes, of objects the numbers.
        columns: how the one becomes the other; None for objects.
        objects: all that were ever in the pool, in order of appearance; None for arrays and data frames.

    Raises:
        ArgumentError: an empty pool, the wrong shape, NaN or infinite rows, or other columns than those of `like`.
        ArgumentTypeError: something that is no pool.
    """

    pool: Pool
    _: KW_ONLY
    scale: bool
    has_kernel: bool
    like: InitVar["EncodedPool | None"] = None
    X: RowSource = field(init=False, repr=False)
    table: RowSource = field(init=False, repr=False)
    columns: Columns | None = field(init=False, repr=False, default=None)
    objects: list[object] | None = field(init=False, repr=False, default=None)
    _numbers: dict[object, int] = field(init=False, repr=False, default_factory=dict)
    _labels: list[Hashable] | None = field(init=False, repr=False, default=None)

    def __post_init__(self, like: "EncodedPool | None") -> None:
        """Encode the arms."""
        arms = self.pool.arms
        of_objects = isinstance(arms, Sequence) and not is_numeric_table(arms) if like is None else like.columns is None
        if of_objects and not self.has_kernel:
            raise ArgumentTypeError(
                "pool: expected rows of numbers, got a list of other objects and no kernel for them; pass "
                "surrogate=bo.BKB(kernel=k, noise=...) with k(list_a, list_b) -> matrix."
            )
        if of_objects:
            self._number_objects(as_objects(arms), like)
            return
        id_column = self.pool.id_column
        if id_column is None and like is not None and hasattr(arms, "iloc"):
            id_column = like.pool.id_column if like.pool.id_column in [str(c) for c in arms.columns] else None
        labels = labels_of(arms, id_column)
        columns, table = read_table(arms, None if like is None else like.columns, id_column, scale=self.scale)
        kept = arms.copy() if hasattr(arms, "iloc") else table
        X = columns.scaled(table)
        if not bool((X.abs() <= FARTHEST).all()):
            raise ArgumentError(
                f"pool: expected columns whose numbers are below {FARTHEST:g} ranges of the first pool, got larger "
                "ones; divide them."
            )
        set_fields(self, pool=Pool(kept, id_column=id_column), columns=columns, table=table, X=X)
        set_fields(self, _labels=labels)

    def _number_objects(self, arms: Sequence[Any], like: "EncodedPool | None") -> None:
        """Number the objects; new ones come behind those of the earlier pool."""
        labels_of(arms, self.pool.id_column)
        objects = [] if like is None else list(like.objects or ())
        numbers = {} if like is None else dict(like._numbers)
        rows = []
        for arm in arms:
            key = _key(arm)
            if key not in numbers:
                numbers[key] = len(objects)
                objects.append(arm)
            rows.append(numbers[key])
        table = torch.tensor(rows, dtype=torch.float64).reshape(-1, 1)
        set_fields(self, pool=Pool(list(arms)), objects=objects, _numbers=numbers, table=table, X=table)

    def __len__(self) -> int:
        """Number of arms A."""
        return len(self.X)

    def __deepcopy__(self, memo: dict[int, Any]) -> "EncodedPool":
        """The pool itself: it never changes."""
        return self

    def replaced(self, pool: Pool) -> "EncodedPool":
        """Other arms in the same encoding; raises as the class does."""
        return EncodedPool(pool, scale=self.scale, has_kernel=self.has_kernel, like=self)

    def with_columns(self, columns: Columns) -> "EncodedPool":
        """The same arms in another encoding of their columns; raises as the class does."""
        earlier = copy.copy(self)
        set_fields(earlier, columns=columns)
        return EncodedPool(self.pool, scale=self.scale, has_kernel=self.has_kernel, like=earlier)

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return self.X.shape[1]

    @property
    def categorical(self) -> tuple[int, ...]:
        """Columns that hold the codes of choices."""
        return () if self.columns is None else tuple(self.columns.choices)

    @property
    def feasible(self) -> Callable[[Params], bool] | None:
        """The constraint on parameters that came with the pool, as with a product."""
        return None

    @property
    def is_listed(self) -> bool:
        """Whether a search sees every arm, so that its choice is exact: all pools but large products."""
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return ("arm",) if self.columns is None else self.columns.names

    # -- points and parameters ---------------------------------------------------------------------------------------

    def internal(self, params: Params, i: int = 0) -> dict[str, float]:
        """The point of an arm's parameters: all columns of a row, of the pool or not, or {"index": row of the pool}.

        Args:
            params: the parameters.
            i: their place among others, for messages.

        Raises:
            ArgumentTypeError: no dict.
            ArgumentError: other keys than the columns, no such row, choice or object, or no finite number.
        """
        if not isinstance(params, Mapping):
            raise ArgumentTypeError(f"params: expected a dict, got {type(params).__name__} in row {i}.")
        if set(params) == {"index"}:
            return self.point(self._checked_row(params["index"]))
        if set(params) != set(self.names):
            expected = f"the columns {self.names}" if self.columns is not None else '{"arm": object} or {"index": row}'
            raise ArgumentError(f"params: expected {expected}, got {tuple(params)} in row {i}.")
        return {name: self._internal(name, params[name], f"params: row {i}") for name in self.names}

    def fixed(self, params: Params, argument: str = "fixed") -> dict[str, float]:
        """Values of some columns, in internal form, that arms of the pool have; messages name the `argument`.

        Raises:
            ArgumentTypeError: no dict.
            ArgumentError: an unknown column, or no arm of the pool has these values.
        """
        if not isinstance(params, Mapping):
            raise ArgumentTypeError(f"{argument}: expected a dict, got {type(params).__name__}.")
        if set(params) == {"index"}:
            return self.point(self._checked_row(params["index"]))
        point = self.part(params, argument)
        if not self.rows_like(point):
            raise ArgumentError(f"{argument}: expected values that an arm of the pool has, got {dict(params)!r}.")
        return point

    def part(self, params: Params, argument: str = "fixed") -> dict[str, float]:
        """Values of some columns in internal form, which need not be those of an arm; raises as `fixed` does."""
        unknown = [name for name in params if name not in self.names]
        if unknown:
            raise ArgumentError(f"{argument}: expected columns among {self.names}, got {unknown[0]!r}.")
        return {name: self._internal(name, params[name], argument) for name in self.names if name in params}

    def point(self, row: int) -> dict[str, float]:
        """The point in a row of the pool."""
        return dict(zip(self.names, self.table[row].tolist(), strict=True))

    def encode(self, points: Sequence[Point]) -> Tensor:
        """Encoded points `(n, d)`."""
        names = self.names
        rows = np.array([[point[name] for name in names] for point in points], dtype=np.float64)
        table = torch.from_numpy(rows.reshape(len(points), self.dim))
        return table if self.columns is None else self.columns.scaled(table)

    def decode(self, row: int) -> dict[str, Any]:
        """The parameters in a row of the pool, as they were given."""
        arms = self.pool.arms
        if self.columns is None or not hasattr(arms, "iloc"):
            return self.params_of(self.point(row))
        at = {str(column): j for j, column in enumerate(arms.columns)}
        return {name: as_python(arms.iat[row, at[name]]) for name in self.names}

    def params_of(self, point: Point) -> dict[str, Any]:
        """The parameters of a point, whether it is in the pool or not; of part of a point, those that it has."""
        return self.values_of(point)

    def values_of(self, point: Point) -> dict[str, Any]:
        """The columns' values at a point, or at part of one, from which `internal` makes it in any pool with them."""
        if self.columns is None:
            assert self.objects is not None
            return {"arm": self.objects[int(point["arm"])]} if point else {}
        return {name: self.columns.external(j, point[name]) for j, name in enumerate(self.names) if name in point}

    # -- rows --------------------------------------------------------------------------------------------------------

    def rows_at(self, x: Tensor) -> list[int]:
        """Rows of the pool that are the encoded point `x (d,)`, in order."""
        return sorted(self.rows_of(x[None]).tolist())

    def rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """Rows of the pool that are one of the encoded points `X (n, d)`, in any order."""
        hashes, rows = self._index
        own = _hashes(X)
        low, high = np.searchsorted(hashes, own, "left"), np.searchsorted(hashes, own, "right")
        n = high - low
        # The i-th of n[j] rows of point j is at low[j] + i.
        point = np.repeat(np.arange(len(n)), n)
        found = rows[np.arange(len(point)) - np.repeat(np.cumsum(n) - n, n) + low[point]]
        return found[(self.X[:].numpy()[found] == X.numpy()[point]).all(1)]

    def values_in(self, j: int) -> NDArray[np.float64]:
        """The raw values of column j, each once and in order."""
        return np.unique(self.table[:][:, j].numpy())

    def some_rows(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Random rows, at most `n`, each once."""
        return rng.permutation(len(self))[:n]

    def rows_like(self, point: Point) -> list[int]:
        """Rows of the pool that have the given values of some columns, in internal form: the first two at most."""
        return torch.nonzero(self.matching(point))[:2, 0].tolist()

    def row_named(self, params: Params) -> int | None:
        """The row that parameters name by its number; None where they describe it."""
        return int(params["index"]) if set(params) == {"index"} else None

    def matching(self, point: Point) -> Tensor:
        """Which arms have the given values of some columns, `(A,)`; in internal form."""
        out = torch.ones(len(self), dtype=torch.bool)
        for name, number in point.items():
            out &= self.table[:][:, self.names.index(name)] == number
        return out

    def label(self, row: int) -> Hashable:
        """What names a row: its value in `id_column`, its label in the data frame, or its number."""
        return row if self._labels is None else self._labels[row]

    def row_of(self, label: Any) -> int:
        """The row that a label names; a row number will do where labels are not whole numbers themselves.

        Raises:
            ArgumentError: no such row, or several.
        """
        label = as_python(label)
        rows = self._rows_of_labels.get((isinstance(label, bool), label), []) if is_hashable(label) else []
        if len(rows) > 1:
            raise ArgumentError(
                f"rows: expected labels that name one row, got {label!r}, which names the rows {rows}; "
                'tell {"index": row} instead.'
            )
        if rows:
            return rows[0]
        if self._labels is not None and (not isinstance(label, int) or all(isinstance(v, int) for v in self._labels)):
            few = ", ".join(map(repr, self._labels[:5]))
            raise ArgumentError(f"rows: expected labels of the pool's rows ({few}, ...), got {label!r}.")
        return self._checked_row(label)

    @cached_property
    def _index(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The hashes of all encoded rows, sorted, and the rows that have them."""
        hashes = _hashes(self.X[:])
        rows = np.argsort(hashes, kind="stable")
        return hashes[rows], rows

    @cached_property
    def _rows_of_labels(self) -> dict[tuple[bool, Hashable], list[int]]:
        """The rows of each label; True and 1 are equal, but two labels."""
        rows: dict[tuple[bool, Hashable], list[int]] = {}
        for row, label in enumerate(self._labels or ()):
            rows.setdefault((isinstance(label, bool), label), []).append(row)
        return rows

    def _internal(self, name: str, value: Any, where: str) -> float:
        """One value in internal form."""
        if self.columns is not None:
            return self.columns.internal(self.names.index(name), value, where)
        number = self._numbers.get(_key(value))
        if number is None:
            raise ArgumentError(
                f"{where}: expected an object that is or was in the pool, got {value!r}; add it with set_pool."
            )
        return float(number)

    def _checked_row(self, row: Any) -> int:
        if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < len(self):
            raise ArgumentError(f"index: expected a row number from 0 to {len(self) - 1}, got {row!r}.")
        return int(row)


def _key(arm: object) -> object:
    """What objects that are the same arm have in common; those that are not hashable are recognised by identity."""
    return arm if is_hashable(arm) else ("identity", id(arm))


def _hashes(X: Tensor) -> NDArray[np.uint64]:
    """A number for each row of `X (n, d)` that is the same for equal rows, 0.0 and -0.0 alike."""
    words = np.ascontiguousarray((X + 0.0).numpy()).view(np.uint64)
    out = np.zeros(len(words), dtype=np.uint64)
    for column in words.T:
        out = (out ^ column) * np.uint64(0x9E3779B97F4A7C15)  # odd: a product modulo 2^64 loses nothing
        out ^= out >> np.uint64(29)
    return out
