"""Matrices whose rows need not be in memory, and the rows of a product of tables.

| symbol  | shape    | units | meaning                                                                 |
| ------- | -------- | ----- | ----------------------------------------------------------------------- |
| P       | -        | -     | number of parts                                                         |
| n_p     | -        | -     | entries of part p                                                       |
| T_p     | (n_p, .) | -     | the table of part p                                                     |
| A       | -        | -     | number of rows, the product of all n_p                                  |
| e       | (n, P)   | -     | entries of rows, one a part                                             |
| stride  | (P,)     | -     | rows from one entry of a part to the next: the product of all n_q, q > p |

Row e_1 stride_1 + ... + e_P stride_P is T_1[e_1], ..., T_P[e_P], side by side: the last part changes fastest.
"""

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.errors import ArgumentError

__all__ = ["LISTED_LIMIT", "Combinations", "ProductRows", "RowSource"]

#: Products of up to this many rows are searched exactly: the bounds take 24 bytes a row, and a pass over a million
#: rows takes some seconds. Longer slices of rows are refused.
LISTED_LIMIT = 1_000_000


class RowSource(Protocol):
    """A matrix whose rows are read on demand; a tensor is one."""

    def __len__(self) -> int:
        """Number of rows."""

    def __getitem__(self, key: int | slice | Tensor, /) -> Tensor:
        """One row, or some."""

    @property
    def shape(self) -> Sequence[int]:
        """Rows and columns."""

    @property
    def device(self) -> torch.device:
        """The device of rows that are read."""


@dataclass(frozen=True, eq=False)
class ProductRows:
    """The rows of a product of `tables` T_p, computed on demand; see the module's table.

    Example:
        >>> import torch
        >>> from bkbopt.spaces.rows import ProductRows
        >>> rows = ProductRows((torch.tensor([[1.0], [2.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0], [9.0, 0.0]])))
        >>> len(rows), rows[4]
        (6, tensor([2., 7., 8.]))
        >>> rows.entries(torch.tensor([4])), rows.numbers(torch.tensor([[1, 1]]))
        (tensor([[1, 1]]), tensor([4]))
    """

    tables: tuple[Tensor, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Entries of each part, n_p."""
        return tuple(len(table) for table in self.tables)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """See the module's table."""
        return tuple(math.prod(self.sizes[p + 1 :]) for p in range(len(self.sizes)))

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """The first column of each part."""
        return tuple(int(first) for first in np.cumsum([0, *(table.shape[1] for table in self.tables[:-1])]))

    def __len__(self) -> int:
        return math.prod(self.sizes)

    @property
    def shape(self) -> tuple[int, int]:
        """See `RowSource`."""
        return len(self), sum(table.shape[1] for table in self.tables)

    @property
    def device(self) -> torch.device:
        """See `RowSource`."""
        return self.tables[0].device

    def __getitem__(self, key: Any, /) -> Tensor:
        """One row by its number, (d,), or the rows of a slice, a list, an array or a tensor of numbers, (n, d).

        Raises:
            ArgumentError: a slice of more than `LISTED_LIMIT` rows.
            IndexError: no such row, as for a tensor.
        """
        if isinstance(key, int | np.integer):
            return self[torch.tensor([int(key)])][0]
        if isinstance(key, slice):
            rows = range(len(self))[key]
            if len(rows) > LISTED_LIMIT:
                raise ArgumentError(
                    f"pool: expected at most {LISTED_LIMIT:,} rows to be listed, got a product of {len(self):,}; "
                    "take some of them, as pool.X[rows] with a tensor of row numbers."
                )
            key = torch.arange(rows.start, rows.stop, rows.step)
        numbers = torch.as_tensor(key, dtype=torch.int64)
        if len(numbers) and not -len(self) <= int(numbers.min()) <= int(numbers.max()) < len(self):
            # Entries are remainders, so that other numbers would be those of other rows.
            raise IndexError(f"rows: expected numbers from 0 to {len(self) - 1}, got {numbers.tolist()[:5]}.")
        return self.at(self.entries(numbers))

    def entries_of(self, row: int) -> list[int]:
        """Entries of one row, P of them."""
        return [row // stride % n for stride, n in zip(self.strides, self.sizes, strict=True)]

    def entries(self, rows: Tensor) -> Tensor:
        """Entries `(n, P)` of the rows `(n,)`."""
        return torch.stack([rows // stride % n for stride, n in zip(self.strides, self.sizes, strict=True)], 1)

    def numbers(self, entries: Tensor) -> Tensor:
        """The rows `(n,)` of entries `(n, P)`."""
        return (entries * torch.tensor(self.strides)).sum(1)

    def at(self, entries: Tensor) -> Tensor:
        """The rows of entries `(n, P)`."""
        return torch.cat([table[e] for table, e in zip(self.tables, entries.unbind(1), strict=True)], 1)

    def combinations(self, choices: Sequence[Sequence[int]]) -> "Combinations":
        """The rows whose entry of part p is in `choices[p]`, ascending, for all p, computed when they are read."""
        return Combinations(self, tuple(choices))

    def combined(self, choices: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """The rows whose entry of part p is in `choices[p]`, for all p, in the order of the choices."""
        rows = np.zeros(1, dtype=np.int64)
        for stride, entries in zip(self.strides, choices, strict=True):
            rows = (rows[:, None] + np.asarray(entries, dtype=np.int64) * stride).ravel()
        return rows


@dataclass(frozen=True, eq=False)
class Combinations(Collection[int]):
    """The numbers of rows with one of some entries of each part, in order; none of them is kept.

    Equal entries of several parts have so many combinations that these could not be listed.

    Attributes:
        X: the rows.
        choices: of each part entries, ascending.

    Example:
        >>> import torch
        >>> from bkbopt.spaces.rows import ProductRows
        >>> rows = ProductRows((torch.zeros(2, 1), torch.zeros(3, 1))).combinations([[0, 1], [2]])
        >>> list(rows), len(rows), 4 in rows
        ([2, 5], 2, False)
    """

    X: ProductRows
    choices: tuple[Sequence[int], ...]

    def __len__(self) -> int:
        return math.prod(map(len, self.choices))

    def __iter__(self) -> Iterator[int]:
        for entries in itertools.product(*self.choices):
            yield sum(e * stride for e, stride in zip(entries, self.X.strides, strict=True))

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, int):
            return False
        return all(e in own for e, own in zip(self.X.entries_of(row), self.choices, strict=True))
