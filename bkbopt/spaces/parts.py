"""The parts of a product pool: lists, arrays and data frames, read and named.

| symbol | shape    | units  | meaning                                                         |
| ------ | -------- | ------ | --------------------------------------------------------------- |
| table  | (n_p, .) | user's | raw values of a part; of columns that are not numeric the codes |

The columns of an array or a data frame are named "part.column", the single one of a list "part". An entry's *label* is
its name for the user: the value in a list, the name in `id_column` or in the index of a data frame, the number in an
array.
"""

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.columns import FARTHEST, RANKED, Columns, choices_after
from bkbopt.spaces.tables import (
    check_whole,
    is_numeric_table,
    kind_of,
    labels_of,
    read_table,
    selected,
)
from bkbopt.spaces.text_columns import undeclared
from bkbopt.spaces.values import as_float, as_python, is_hashable, is_missing, label_key, rows_by_label, shown

__all__ = ["Part", "Product", "error_of_part"]

#: Row numbers have to fit into the 64 bits of tensors and log files.
ROWS_LIMIT = 2**63 - 1


def error_of_part(name: str, error: Exception) -> Exception:
    """An error of a pool as that of its part `name`."""
    return type(error)(f"part {name!r}: {str(error).removeprefix('pool: ')}")


@dataclass(frozen=True, eq=False)
class Part:
    """One list of a product.

    Attributes:
        name: of the part.
        columns: of its table, unscaled.
        table: raw values, see the table of symbols.
        labels: of its entries; None for a list, whose values are the labels.
        undeclared: values of the columns of text that are checked in a first pool, see `text_columns.undeclared`.
    """

    name: str
    columns: Columns = field(repr=False)
    table: Tensor = field(repr=False)
    labels: tuple[Hashable, ...] | None = field(repr=False)
    undeclared: Mapping[str, Collection[Any]] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, name: str, given: Any, id_column: str | None = None, features: Sequence[str] | None = None) -> "Part":
        """A part from a list, an array or a data frame; errors name it."""
        try:
            values = _as_list(given)
            if values is not None:
                return cls(name, *_read_list(name, values, _order_of(given)), None)
            labels = labels_of(given, id_column)
            if features is not None:
                given = selected(given, features, id_column)
            columns, table = read_table(given, None, id_column, scale=False)
        except (ArgumentError, ArgumentTypeError) as error:
            raise error_of_part(name, error) from error
        own = undeclared(given, columns)
        columns = replace(columns, names=tuple(f"{name}.{column}" for column in columns.names))
        return cls(name, columns, table, tuple(range(len(table)) if labels is None else labels), own)

    def __len__(self) -> int:
        """Number of entries n_p."""
        return len(self.table)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.columns.names

    @cached_property
    def rows(self) -> list[list[float]]:
        """The table as lists."""
        rows: list[list[float]] = self.table.tolist()
        return rows

    @cached_property
    def _entries_of_labels(self) -> dict[object, list[int]]:
        return rows_by_label(self.labels or ())

    @cached_property
    def _entries_of_values(self) -> dict[tuple[float, ...], list[int]]:
        entries: dict[tuple[float, ...], list[int]] = {}
        for entry, values in enumerate(self.rows):
            entries.setdefault(tuple(values), []).append(entry)
        return entries

    def labelled(self, label: Any, where: str) -> int:
        """The entry with this label; messages begin with `where`.

        Raises:
            ArgumentError: no entry, or several.
        """
        label = as_python(label)
        entries = self._entries_of_labels.get(label_key(label), [])
        if len(entries) != 1:
            few = ", ".join(map(shown, (self.labels or ())[:5]))
            found = f", which names the entries {entries}" if entries else ""
            raise ArgumentError(f"{where}: expected a label of part {self.name!r} ({few}, ...), got {label!r}{found}.")
        return entries[0]

    def valued(self, values: Sequence[float]) -> list[int]:
        """The entries whose columns have these raw values."""
        return self._entries_of_values.get(tuple(values), [])

    def matching(self, point: Mapping[str, float]) -> Tensor:
        """The entries with the given values of some columns, in internal form; columns of other parts are ignored."""
        open_entries = torch.ones(len(self), dtype=torch.bool)
        for j, name in enumerate(self.names):
            if name in point:
                open_entries &= self.table[:, j] == point[name]
        return torch.nonzero(open_entries)[:, 0]

    def in_order(self, names: Sequence[str]) -> "Part":
        """The same part, with its columns in the order in which `names` has them; unchanged if not all are there."""
        at = [self.names.index(name) for name in names if name in self.names]
        if len(at) < len(self.names) or at == sorted(at):
            return self
        columns = Columns(
            tuple(self.names[j] for j in at),
            tuple(self.columns.kinds[j] for j in at),
            self.columns.low[at],
            self.columns.width[at],
            {i: self.columns.choices[j] for i, j in enumerate(at) if j in self.columns.choices},
        )
        return replace(self, columns=columns, table=self.table[:, at])

    def recoded(self, choices: Mapping[int, Sequence[Any]], kinds: Sequence[str]) -> "Part":
        """The same part, with the `choices` of an earlier one of these `kinds` before its own; none is checked again.

        Raises:
            ArgumentError: ordered choices in another order.
        """
        table, every = self.table.clone(), dict(self.columns.choices)
        for j, own in self.columns.choices.items():
            ranked, ordered = kinds[j] == RANKED, self.columns.kinds[j] == RANKED
            every[j] = choices_after(self.names[j], choices[j], own, ranked=ranked, ordered=ordered)
            code = {value: float(i) for i, value in enumerate(every[j])}
            table[:, j] = torch.tensor([code[value] for value in own], dtype=torch.float64)[self.table[:, j].long()]
        return replace(
            self, table=table, columns=replace(self.columns, choices=every, kinds=tuple(kinds)), undeclared={}
        )


@dataclass(frozen=True, eq=False)
class Product:
    """The arms of a product pool.

    Attributes:
        parts: in order; the last one changes fastest from row to row.
        feasible: a constraint on the parameters of a row, or None.
    """

    parts: tuple[Part, ...]
    feasible: Callable[[Mapping[str, Any]], bool] | None = None

    def undoubted(self) -> "Product":
        """The same parts, whose columns were choices in an earlier pool."""
        return replace(self, parts=tuple(replace(part, undeclared={}) for part in self.parts))

    def __post_init__(self) -> None:
        """Check names and size."""
        names = [name for part in self.parts for name in dict.fromkeys([part.name, *part.names])]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ArgumentError(f"parts: expected parts and columns with distinct names, got {twice!r} twice.")
        n_rows = math.prod(map(len, self.parts))
        if n_rows > ROWS_LIMIT:
            raise ArgumentError(f"parts: expected a product of less than 2^63 rows, got {n_rows:.3g}.")

    @classmethod
    def of(cls, parts: Any, feasible: Any) -> "Product":
        """The product of a dict of parts; see `Pool.product`."""
        if not isinstance(parts, Mapping):
            raise ArgumentTypeError(f"parts: expected a dict from names to lists, got {type(parts).__name__}.")
        if not parts:
            raise ArgumentError("parts: expected at least one part, got an empty dict.")
        if feasible is not None and not callable(feasible):
            raise ArgumentTypeError(f"feasible: expected a callable (params) -> bool, got {type(feasible).__name__}.")
        for name in parts:
            if not isinstance(name, str):
                raise ArgumentTypeError(f"parts: expected names of parts, got {shown(name)}.")
            if name == "index":
                raise ArgumentError('parts: expected another name than "index", which is reserved for row numbers.')
        from bkbopt.spaces.pool import Pool

        read = [
            Part.read(name, given.arms, given.id_column, given.columns)
            if isinstance(given, Pool)
            else Part.read(name, given)
            for name, given in parts.items()
        ]
        return cls(tuple(read), feasible)


def _as_list(given: Any) -> list[Any] | None:
    """The values of a plain list; None for tables and other objects."""
    if hasattr(given, "iloc"):
        return None if hasattr(given, "columns") else list(map(as_python, given.tolist()))
    if isinstance(given, np.ndarray | Tensor):
        return list(map(as_python, given.tolist())) if given.ndim == 1 else None
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise ArgumentTypeError(f"expected a list, an array or a data frame, got {type(given).__name__}.")
    return None if len(given) and is_numeric_table(given) else list(map(as_python, given))


def _order_of(given: Any) -> list[Any] | None:
    """The categories of a series that declares their order, or None."""
    return (
        list(map(as_python, given.cat.categories)) if getattr(getattr(given, "dtype", None), "ordered", False) else None
    )


def _read_list(name: str, values: list[Any], order: list[Any] | None = None) -> tuple[Columns, Tensor]:
    """The single column of a list: ranks if there is an order, numbers if all values are numbers, else choices."""
    if not values:
        raise ArgumentError("expected at least one value, got an empty list.")
    for value in values:
        if is_missing(value) or not is_hashable(value):
            raise ArgumentError(f"expected numbers or text, got {shown(value)}; pass rows of descriptors as an array.")
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise ArgumentError(f"expected distinct values, got {shown(twice)} twice.")
    choices: dict[int, tuple[Any, ...]] = {}
    kind = RANKED if order is not None else kind_of(values)
    if order is not None:
        numbers, choices = [float(order.index(value)) for value in values], {0: tuple(order)}
    elif kind is not None:
        numbers = list(map(as_float, values))
        far = next((value for value, number in zip(values, numbers, strict=True) if not abs(number) <= FARTHEST), None)
        if far is not None:
            raise ArgumentError(f"expected finite numbers below {FARTHEST:g}, got {shown(far)}.")
        check_whole(name, (value for value in values if isinstance(value, int)))
    else:
        numbers, choices = list(map(float, range(len(values)))), {0: tuple(values)}
    table = torch.tensor(numbers, dtype=torch.float64)[:, None]
    return Columns((name,), (kind or "O",), torch.zeros(1).double(), torch.ones(1).double(), choices), table
