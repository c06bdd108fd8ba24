"""Rows of numbers that stay in files, or in the caller's memory, and are read in blocks.

| symbol | shape  | units   | meaning                                                   |
| ------ | ------ | ------- | --------------------------------------------------------- |
| table  | (A, d) | user's  | raw values; of columns that are not numeric the codes     |
| X      | (A, d) | encoded | numeric columns scaled to [0, 1] (or as given), and codes |
| A      | -      | -       | number of rows of all parts                               |

Blocks are float64 whatever the type of the arrays. They are encoded by the formula of pools in memory
(`columns.Columns`), so the encoded rows equal those of such a pool to the last bit.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt._support.progress import bar
from bkbopt.spaces.columns import Columns
from bkbopt.spaces.tables import check_whole, missing_value

if TYPE_CHECKING:
    from bkbopt.spaces.remote import RemotePart

__all__ = [
    "BLOCK_ROWS",
    "EncodedRows",
    "Labels",
    "StoredPart",
    "StoredRows",
    "hashes_of",
    "short_hashes_of",
]

#: Rows that are read at once: with ten columns five megabytes of float64.
BLOCK_ROWS = 1 << 16

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Labels(Protocol):
    """The labels of the rows of a part."""

    def __getitem__(self, row: int) -> Hashable:
        """The label of a row."""

    def rows_of(self, names: Sequence[Hashable]) -> list[tuple[Hashable, int]]:
        """Label and row, for each row that has one of the labels `names`, in order of the rows."""


@dataclass(frozen=True, eq=False)
class StoredPart:
    """A read-only array of rows, and the results of a pass over it.

    Args:
        array: real numbers (n, at least d), of columns that are not numeric the codes.
        names: of the d columns.
        kinds: numpy's letter for the type of each, see `columns.Columns`.
        selected: which columns of the array these are; None for all.
        choices: the values of each column that is not numeric, in the order of their codes here.
        labels: of the rows; None if rows have numbers only.
        source: identifies the data; a part with the same source is not read again.
    """

    array: NDArray[Any]
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    selected: tuple[int, ...] | None = None
    choices: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    labels: Labels | None = None
    source: Hashable = None

    def __len__(self) -> int:
        return len(self.array)

    def read(self, rows: slice | Ints) -> Floats:
        """The raw values of some rows, a new array (n, d)."""
        # A slice of a memmap is a memmap, which costs more to make than to read.
        values = np.asarray(self.array[rows])
        values = values if self.selected is None else values[:, list(self.selected)]
        return values.astype(np.float64)

    def hashes(self, columns: Columns, codes: Mapping[int, Floats]) -> NDArray[np.uint32]:
        """A hash of each encoded row, (n,), equal for equal rows; see `short_hashes_of`."""
        out, start = np.empty(len(self), dtype=np.uint32), 0
        with bar(len(self), "rows indexed") as done:
            for X in EncodedRows(StoredRows((self,), (codes,)), columns).split(BLOCK_ROWS):
                out[start : start + len(X)] = short_hashes_of(X)
                start += len(X)
                done(len(X))
        return out

    @cached_property
    def limits(self) -> tuple[Floats, Floats]:
        """The smallest and the largest value of each column, (d,) both, from one pass.

        Raises:
            ArgumentError: NaN, an infinite value, or a whole number that doubles do not represent.
        """
        low, high = np.full(len(self.names), np.inf), np.full(len(self.names), -np.inf)
        with bar(len(self), "columns") as seen:
            for start in range(0, len(self), BLOCK_ROWS):
                values = self.read(slice(start, start + BLOCK_ROWS))
                least, largest = values.min(0), values.max(0)
                if not (np.isfinite(least).all() and np.isfinite(largest).all()):  # both are NaN if one value is
                    row, j = np.argwhere(~np.isfinite(values))[0].tolist()
                    raise missing_value(self.names[j], start + row, str(values[row, j]))
                if self.array.dtype.kind in "iu":
                    self._check_whole(slice(start, start + BLOCK_ROWS))
                low, high = np.minimum(low, least), np.maximum(high, largest)
                seen(len(values))
        return low, high

    def _check_whole(self, rows: slice) -> None:
        values = self.array[rows]
        for j, name in zip(self.selected or range(len(self.names)), self.names, strict=True):
            check_whole(name, np.asarray(values[:, j]))


@dataclass(frozen=True, eq=False)
class StoredRows:
    """The rows of several parts, one part after the other, read in blocks.

    Args:
        parts: at least one, all with the same columns.
        codes: for each part, by column, the pool's codes in the order of the part's own, (n_choices,).
    """

    parts: "tuple[StoredPart | RemotePart, ...]"
    codes: tuple[Mapping[int, Floats], ...]

    @cached_property
    def starts(self) -> Ints:
        """The first row of each part, and the number of rows in all."""
        return np.cumsum([0, *map(len, self.parts)], dtype=np.int64)

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return len(self.parts[0].names)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def only(self, number: int) -> "StoredRows":
        """The rows of one part."""
        return StoredRows((self.parts[number],), (self.codes[number],))

    def block(self, start: int, stop: int) -> Floats:
        """The raw values of the rows from `start` to before `stop`, a new array (stop - start, d)."""
        first = int(np.searchsorted(self.starts, start, "right")) - 1
        last = int(np.searchsorted(self.starts, stop, "left"))
        pieces = [
            self._read(number, slice(max(start - at, 0), stop - at))
            for number, at in enumerate(self.starts[first:last].tolist(), first)
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty((0, self.dim)), *pieces])

    def take(self, rows: Ints) -> Floats:
        """The raw values of the given `rows (n,)`, in any order, a new array (n, d)."""
        if len(self.parts) == 1:
            return self._read(0, rows)
        out = np.empty((len(rows), self.dim))
        owner = np.searchsorted(self.starts, rows, "right") - 1
        for number in np.unique(owner).tolist():
            mine = owner == number
            out[mine] = self._read(number, rows[mine] - self.starts[number])
        return out

    def _read(self, number: int, rows: slice | Ints) -> Floats:
        values = self.parts[number].read(rows)
        for j, codes in self.codes[number].items():
            values[:, j] = codes[values[:, j].astype(np.int64)]
        return values


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Encoded rows that are read on demand; indexed like the tensor `X (A, d)` of a pool in memory.

    Args:
        rows: the raw ones.
        columns: how they become encoded.
    """

    rows: StoredRows
    columns: Columns
    device: ClassVar[torch.device] = torch.device("cpu")

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """(A, d)."""
        return len(self.rows), self.rows.dim

    def __getitem__(self, rows: Any, /) -> Tensor:
        """One row by its number, (d,), or the rows of a slice, an array or a tensor of numbers, (n, d)."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            return self.columns.scaled(torch.from_numpy(self.rows.block(start, max(start, stop))))[::step]
        if isinstance(rows, int | np.integer):
            return self[np.array([rows])][0]
        return self.columns.scaled(torch.from_numpy(self.rows.take(np.asarray(rows, dtype=np.int64))))

    def split(self, size: int, /) -> Iterator[Tensor]:
        """All rows in blocks `(<= size, d)`, in order; several of them are read at once."""
        many = size * max(BLOCK_ROWS // size, 1)
        for start in range(0, len(self), many):
            yield from self[start : start + many].split(size)


def hashes_of(X: Tensor) -> NDArray[np.uint64]:
    """A hash of each row of `X (n, d)`, equal for equal rows; 0.0 and -0.0 are equal.

    The sum of the columns' own hashes, those of SplitMix64, each from another start: few operations for one row, too.
    """
    words: NDArray[np.uint64] = np.ascontiguousarray((X + 0.0).numpy()).view(np.uint64)
    words += np.uint64(0x9E3779B97F4A7C15) * np.arange(1, words.shape[1] + 1, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words ^= words >> np.uint64(shift)
        words *= np.uint64(factor)  # odd: a product modulo 2^64 loses nothing
    words ^= words >> np.uint64(31)
    return words.sum(1, dtype=np.uint64)


def short_hashes_of(X: Tensor) -> NDArray[np.uint32]:
    """The upper halves of `hashes_of`, whose bits are mixed better."""
    return (hashes_of(X) >> np.uint64(32)).astype(np.uint32)
