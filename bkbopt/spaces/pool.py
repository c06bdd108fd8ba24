"""A finite pool: rows of an array or a data frame, or objects of any type with a user's kernel.

| symbol | shape  | units   | meaning                                                                |
| ------ | ------ | ------- | ---------------------------------------------------------------------- |
| X      | (A, d) | encoded | the pool: columns scaled to [0, 1] (or as given), categories as codes  |
| A      | -      | -       | number of arms                                                         |

A point is a dict from names of columns to internal values: raw numbers, and the codes of choices. Objects that are not
vectors are numbered in order of appearance; the only column "arm" then holds their numbers, and the kernel looks the
objects up. Equal objects (by ==, where hashable) are the same arm wherever they appear.
"""

import copy
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Params, Point, set_fields
from bkbopt.spaces.checking import check_arms
from bkbopt.spaces.columns import Columns
from bkbopt.spaces.decades import note_decades
from bkbopt.spaces.stored_rows import BLOCK_ROWS, hashes_of
from bkbopt.spaces.tables import (
    as_objects,
    is_numeric_table,
    labels_of,
    read_table,
    selected,
)
from bkbopt.spaces.text_columns import check_names, note_many_choices, undeclared
from bkbopt.spaces.values import as_python, is_hashable, is_real, label_key, rows_by_label

__all__ = ["EncodedPool", "Pool", "as_pool"]


@dataclass(frozen=True)
class Pool:
    """Marks a pool where the argument could also be a search space: `bo.Pool([(0, 1), (2, 3)])`.

    Arrays, data frames and lists are copied into memory. The rows of a NumPy memmap stay in its file. A path names a
    `.npy` file, which is mapped into memory, a Parquet file, or a folder of such files. Parquet files, Arrow tables and
    Dask collections are unpacked into a temporary file. Of all these only 13 bytes a row are kept in memory. A list of
    memmaps, paths (as `pathlib.Path`), tables and collections is one pool with the rows of all of them, in this order.
    Suggestions do not depend on where the rows are stored. Files must not change while they are in use. See the guide
    "Large pools".

    Columns of text and categorical columns are choices without an order. Ordered categoricals of pandas, and ordered
    dictionaries of Arrow, are encoded by the ranks of their categories: neighbours are taken to be alike.

    The index of a data frame is no feature. In memory it names the rows for `tell_rows`. An index that pandas stored in
    a Parquet file or an Arrow table is read only if `columns` or `id_column` names it.

    Args:
        arms: an array or tensor (A, d), a data frame, a list of anything that the surrogate's kernel understands; a
            memmap (A, d), a path, an Arrow table, a Dask array or data frame, or a list of these.
        id_column: a column of a table that names the rows and is not a feature; not one called "index". Its values
            must be distinct: of a data frame all are checked, of rows that are not in memory only those that are looked
            up.
        columns: names of the columns that are features, in their order; None for all. Other columns may have gaps.
        folder: folder for unpacked rows; None for the system's folder for temporary files.
        show_progress_bar: whether passes over the rows that take more than two seconds show a bar on standard error.
        client: a `distributed.Client`: files and Dask collections are then read and searched on the workers of its
            cluster.

    Raises:
        ArgumentError: no rows, missing or infinite values, names of rows that are not distinct, or columns that are not
            there. Of files only the headers are read here, in a folder that of the first file; their rows are checked
            when an optimizer is made.
        ArgumentTypeError: `columns` is no list of names, or columns that are neither numbers nor choices.
        MissingPackageError: pyarrow is needed, and not installed.
        FileNotFoundError: there is no such file or folder.

    Example:
        >>> import bkbopt as bo
        >>> bo.Optimizer(bo.Pool([(0.1, 2.0), (0.7, 1.5), (0.4, 0.9)]), seed=0).ask().params
        {'x0': 0.4, 'x1': 0.9}
        >>> import tempfile
        >>> import numpy as np
        >>> with tempfile.TemporaryFile() as file:
        ...     rows = np.memmap(file, np.float32, "w+", shape=(1000, 3))
        >>> rows[:] = np.random.default_rng(0).random((1000, 3))
        >>> opt = bo.Optimizer(bo.Pool(rows, columns=["x0", "x2"]), seed=0)
        >>> len(opt.pool), opt.ask().index
        (1000, 713)
    """

    arms: Any
    _: KW_ONLY
    id_column: str | None = None
    columns: Sequence[str] | None = None
    folder: str | os.PathLike[str] | None = None
    show_progress_bar: bool = False
    client: Any = None

    def __post_init__(self) -> None:
        """Check the names of columns, and what is known of the arms."""
        if self.columns is not None:
            named = not isinstance(self.columns, str) and isinstance(self.columns, Sequence)
            if not (named and all(isinstance(name, str) for name in self.columns)):
                raise ArgumentTypeError(f"columns: expected a list of names, got {self.columns!r}.")
            set_fields(self, columns=tuple(self.columns))
        check_arms(self)

    def __repr__(self) -> str:
        """The type of the arms, and the options that were given."""
        options = [f for f in fields(self) if f.name != "arms" and getattr(self, f.name) != f.default]
        named = [f"{f.name}={getattr(self, f.name)!r}" for f in options]
        return f"Pool({', '.join([type(self.arms).__name__, *named])})"

    @classmethod
    def product(cls, parts: Mapping[str, Any], *, feasible: Callable[[Params], bool] | None = None) -> "Pool":
        """A combinatorial library: all combinations of one entry of each part. The combinations are not listed.

        The parameters of a row are, for each part, the label of its entry under the part's name and the descriptors
        under "part.column"; the label of a list's entry is its value. Rows are numbered with the last part changing
        fastest. Products of up to 1,000,000 rows are searched exactly, like a list of the same rows. For larger
        products a suggestion is the best row that a search over the parts finds.

        Args:
            parts: by name, each a data frame of descriptors, `Pool(frame, id_column=...)` where a column names its
                entries, an array (n, d), or a list of numbers or of choices.
            feasible: a constraint on the parameters of a row; rows are checked before they are proposed. It holds for
                all later calls of the optimizer. A log does not store it: pass it again when the log is opened.

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


def as_pool(given: Any, id_column: str | None = None) -> Pool:
    """The pool that is given, or one of the given arms, which are checked when they are encoded."""
    if isinstance(given, Pool):
        return given
    pool = object.__new__(Pool)
    set_fields(pool, **{f.name: f.default for f in fields(Pool)} | {"arms": given, "id_column": id_column})
    return pool


@dataclass(frozen=True, eq=False, repr=False)
class EncodedPool(Arms):
    """A pool in memory as encoded points; it never changes.

    Args:
        pool: the arms; copied.
        scale: whether numeric columns are scaled to [0, 1] by the first pool's range, long tails compressed.
        has_kernel: whether the user gave a kernel; lists of objects need one.
        like: an earlier pool; its encoding and its numbers of objects are kept.
        kept: columns that were choices in an earlier pool, if that is not given.

    Attributes:
        X: (A, d) the arms, encoded.
        table: (A, d) their raw values: of columns that are not numeric the codes, of objects the numbers.
        columns: how `table` is encoded as `X`; None for objects.
        objects: all objects of this pool and the earlier ones, in order of appearance; None for arrays and data frames.

    Raises:
        ArgumentError: an empty pool, the wrong shape, NaN or infinite rows, or other columns than those of `like`.
        ArgumentTypeError: something that is no pool.
    """

    pool: Pool
    _: KW_ONLY
    scale: bool
    has_kernel: bool
    like: InitVar[Arms | None] = None
    kept: InitVar[Collection[str]] = ()
    X: Tensor = field(init=False, repr=False)
    table: Tensor = field(init=False, repr=False)
    columns: Columns | None = field(init=False, repr=False, default=None)
    objects: list[object] | None = field(init=False, repr=False, default=None)
    _numbers: dict[object, int] = field(init=False, repr=False, default_factory=dict)
    _labels: list[Hashable] | None = field(init=False, repr=False, default=None)

    def __post_init__(self, like: Arms | None, kept: Collection[str]) -> None:
        """Encode the arms."""
        arms = self.pool.arms
        of_objects = isinstance(arms, Sequence) and not is_numeric_table(arms) if like is None else like.columns is None
        if of_objects and not self.has_kernel:
            dicts = all(isinstance(arm, Mapping) for arm in arms)
            advice = "since these are dicts, pandas.DataFrame(rows)" if dicts else "for choices, the space {name: list}"
            if not dicts and not any(isinstance(arm, str | bool) for arm in arms):
                advice = "for a search space, a dict such as {name: (low, high), other: [choices]}"
            if all(map(is_real, arms)):
                advice = "since these are numbers, [[v] for v in numbers], a pool with one column"
            raise ArgumentTypeError(
                "pool: expected rows of numbers, got a list of other objects and no kernel for them; pass "
                f"surrogate=bo.BKB(kernel=k, noise=...) with k(list_a, list_b) -> matrix, or, {advice}."
            )
        if of_objects:
            assert like is None or isinstance(like, EncodedPool)
            self._number_objects(as_objects(arms), like)
            return
        id_column = self.pool.id_column
        if id_column is None and like is not None and hasattr(arms, "iloc"):
            id_column = like.pool.id_column if like.pool.id_column in [str(c) for c in arms.columns] else None
        labels = labels_of(arms, id_column)
        if self.pool.columns is not None:
            arms = selected(arms, self.pool.columns, id_column)
        known = None if like is None else like.columns
        if known is not None and hasattr(arms, "columns"):
            arms = _in_order(arms, known.names, id_column)
        columns, table = read_table(arms, known, id_column, scale=self.scale, kept=kept)
        if known is None:
            own = {name: values for name, values in undeclared(arms, columns).items() if name not in kept}
            check_names(own, len(table))
            note_many_choices(own, len(table))
            if self.scale and not self.has_kernel:  # logs are opened as if there were one
                note_decades(columns, table)
        rows = arms.copy() if hasattr(arms, "iloc") else table
        X = columns.scaled(table)
        columns.check_reach(X)
        set_fields(self, pool=as_pool(rows, id_column), columns=columns, table=table, X=X)
        set_fields(self, _labels=labels)

    def _number_objects(self, arms: Sequence[Any], like: "EncodedPool | None") -> None:
        """Number the objects; new ones follow those of the earlier pool."""
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
        set_fields(self, pool=as_pool(list(arms)), objects=objects, _numbers=numbers, table=table, X=table)

    def replaced(self, pool: Pool) -> "EncodedPool":
        """Other arms in the same encoding; raises as the class does."""
        return EncodedPool(pool, scale=self.scale, has_kernel=self.has_kernel, like=self)

    def with_columns(self, columns: Columns) -> "EncodedPool":
        """The same arms in another encoding of their columns; raises as the class does."""
        earlier = copy.copy(self)
        set_fields(earlier, columns=columns)
        return EncodedPool(self.pool, scale=self.scale, has_kernel=self.has_kernel, like=earlier)

    # -- points and parameters ---------------------------------------------------------------------------------------

    def raw(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """See `Arms`."""
        return self.table.numpy()[rows]

    def decode(self, row: int) -> dict[str, Any]:
        """See `Arms`."""
        arms = self.pool.arms
        if self.columns is None or not hasattr(arms, "iloc"):
            return super().decode(row)
        at = {str(column): j for j, column in enumerate(arms.columns)}
        return {name: as_python(arms.iat[row, at[name]]) for name in self.names}

    # -- rows --------------------------------------------------------------------------------------------------------

    def rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """See `Arms`."""
        hashes, rows = self._index
        own = hashes_of(X)
        low = hashes.searchsorted(own, "left")
        n = hashes.searchsorted(own, "right") - low
        # The i-th of n[j] rows of point j is at low[j] + i.
        found = rows[np.arange(n.sum()) + (low + n - n.cumsum()).repeat(n)]
        point = np.arange(len(n)).repeat(n)
        return found[(self.X.numpy()[found] == X.numpy()[point]).all(1)]

    def matching(self, point: Point) -> Tensor:
        """See `Arms`."""
        out = torch.ones(len(self), dtype=torch.bool)
        for name, number in point.items():
            out &= self.table[:, self.names.index(name)] == number
        return out

    def label(self, row: int) -> Hashable:
        """See `Arms`."""
        return row if self._labels is None else self._labels[row]

    def rows_named(self, labels: Sequence[Any]) -> list[int]:
        """See `Arms`."""
        found = [(name, self._rows_of_labels.get(label_key(name), [])) for name in map(as_python, labels)]
        return [self._labelled(name, rows, self._labels or ()) for name, rows in found]

    def raw_blocks(self) -> Iterator[NDArray[np.float64]]:
        """See `Arms`."""
        yield self.table.numpy()

    def _is_constant(self) -> Iterable[bool]:
        constant: list[bool] = (self.table.amin(0) == self.table.amax(0)).tolist()
        return constant

    @cached_property
    def may_have_twins(self) -> bool:
        """See `Arms`."""
        hashes, _ = self._index
        return bool((hashes[1:] == hashes[:-1]).any())

    @cached_property
    def _index(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The hashes of all encoded rows, sorted, and the rows that have them."""
        hashes = np.concatenate([hashes_of(X) for X in self.X.split(BLOCK_ROWS)])
        rows = np.argsort(hashes)
        return hashes[rows], rows

    @cached_property
    def _rows_of_labels(self) -> dict[object, list[int]]:
        return rows_by_label(self._labels or ())

    def _internal(self, name: str, value: Any, where: str) -> float:
        """See `Arms`."""
        if self.columns is not None:
            return super()._internal(name, value, where)
        number = self._numbers.get(_key(value))
        if number is None:
            raise ArgumentError(
                f"{where}: expected an object that is or was in the pool, got {value!r}; add it with set_pool."
            )
        return float(number)


def _in_order(frame: Any, names: Sequence[str], id_column: str | None) -> Any:
    """A data frame with its columns in the order of `names`; unchanged if it has others."""
    wanted = [*names, *([] if id_column is None else [id_column])]
    return selected(frame, names, id_column) if sorted(map(str, frame.columns)) == sorted(wanted) else frame


def _key(arm: object) -> object:
    """A key that is equal for objects that are the same arm; objects that are not hashable are compared by identity."""
    return arm if is_hashable(arm) else ("identity", id(arm))
