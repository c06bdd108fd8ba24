"""A pool whose rows stay where they are stored, in files or unpacked into one; its methods are those of any pool.

| symbol | shape  | units   | meaning                                                                |
| ------ | ------ | ------- | ---------------------------------------------------------------------- |
| X      | (A, d) | encoded | the pool: columns scaled to [0, 1] (or as given), categories as codes  |
| A      | -      | -       | number of arms                                                         |
| hash   | (A,)   | -       | 32 bits of an encoded row: all that is kept of each row, 4 bytes       |

Each point that is told or proposed is looked up once among the rows. An index by value would take 16 bytes a row.
Instead, one pass over the hashes finds the rows of any number of points, and the results are stored.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt._support.latest import Latest
from bkbopt._support.progress import bars
from bkbopt._support.row_keys import row_keys
from bkbopt.errors import ArgumentError
from bkbopt.spaces.arms import Arms, index_is_reserved
from bkbopt.spaces.base import Point
from bkbopt.spaces.columns import RANKED, Columns, choices_after, columns_of, sampled_rows
from bkbopt.spaces.parts import Product
from bkbopt.spaces.pool import EncodedPool, Pool
from bkbopt.spaces.product_pool import ProductPool
from bkbopt.spaces.remote import RemotePart
from bkbopt.spaces.sources import Parts, is_stored, parts_of
from bkbopt.spaces.stored_rows import BLOCK_ROWS, EncodedRows, Ints, StoredPart, StoredRows, short_hashes_of
from bkbopt.spaces.values import as_python, is_hashable, label_key

__all__ = ["StoredPool", "encoded_pool"]


def encoded_pool(
    pool: Pool, *, scale: bool, has_kernel: bool, like: Arms | None = None, kept: Collection[str] = ()
) -> Arms:
    """Encode a pool: in memory, or with rows that stay where they are stored.

    Args:
        pool: the arms.
        scale: whether numeric columns are scaled to [0, 1] by the first pool's range, long tails compressed.
        has_kernel: whether the user gave a kernel; lists of objects need one.
        like: an earlier pool; its encoding is kept.
        kept: columns that were choices in an earlier pool, if that is not given; their values may all differ.

    Raises:
        ArgumentError, ArgumentTypeError: no pool, one whose columns differ from those of `like`, or a column "index"
            that could not be told from row numbers.
        MissingPackageError: pyarrow is needed, and not installed.
        FileNotFoundError: there is no such file.
    """
    if isinstance(pool.arms, Product) or isinstance(like, ProductPool):
        return ProductPool(pool, scale=scale) if like is None else like.replaced(pool)
    if pool.id_column == "index":
        raise index_is_reserved("id_column", "a column of another name")
    if like is not None and like.columns is not None:
        kept = like.columns.choice_names
    arms = _encoded(pool, scale, has_kernel, like, kept)
    if arms.names == ("index",):
        raise index_is_reserved("pool", "another name of the only column")
    return arms


def _encoded(pool: Pool, scale: bool, has_kernel: bool, like: Arms | None, kept: Collection[str]) -> Arms:
    """See `encoded_pool`; of pools that are no products."""
    of_objects = like is not None and like.columns is None
    if of_objects or not is_stored(pool.arms):
        if isinstance(like, EncodedPool):
            return like.replaced(pool)
        return EncodedPool(pool, scale=scale, has_kernel=has_kernel, like=like, kept=kept)
    if like is not None and pool.id_column is None and not isinstance(pool.arms, np.ndarray):
        pool = replace(pool, id_column=like.pool.id_column, client=pool.client or like.pool.client)
    with bars(pool.show_progress_bar):
        if isinstance(like, StoredPool):
            return like.replaced(pool)
        parts = parts_of(pool, kept=kept, order=() if like is None else like.names)
        return StoredPool.of(parts, pool, scale, None if like is None else like.columns)


@dataclass(frozen=True, eq=False, repr=False)
class StoredPool(Arms):
    """A pool whose rows are read when they are needed; it never changes. See `Arms` and `encoded_pool`.

    Attributes:
        pool: its parts, and how it was given.
        scale: whether numeric columns are scaled.
        rows: the raw rows.
        columns: how they become encoded.
        X: the encoded rows.
    """

    pool: Pool
    scale: bool
    _: KW_ONLY
    rows: StoredRows
    columns: Columns
    X: EncodedRows
    objects: None = None
    _found: dict[bytes, Ints] = field(init=False, repr=False, default_factory=dict)
    _matched: Latest[Tensor] = field(init=False, repr=False, default_factory=Latest)

    @classmethod
    def of(cls, parts: Parts, given: Pool, scale: bool, known: Columns | None) -> "StoredPool":
        """The pool of some parts, in the encoding of an earlier pool if there is one.

        Raises:
            ArgumentError: parts of different columns, or others than the `known` ones; NaN or infinite values.
        """
        choices = _choices(parts, known)
        first = parts[0]
        low = torch.from_numpy(np.min([part.limits[0] for part in parts], axis=0))
        high = torch.from_numpy(np.max([part.limits[1] for part in parts], axis=0))
        rows = StoredRows(tuple(parts), tuple(_codes(part, choices) for part in parts))
        if known is None:
            sample = torch.from_numpy(rows.take(sampled_rows(len(rows)))) if scale else None
            columns = columns_of(first.names, first.kinds, choices, (low, high), sample)
        else:
            columns = known.extended(first.names, choices)
        numeric = [j for j in range(len(first.names)) if j not in choices]
        columns.check_reach(columns.scaled(torch.stack([low, high]))[:, numeric])
        pool = replace(given, arms=parts)
        return cls(pool, scale, rows=rows, columns=columns, X=EncodedRows(rows, columns))

    def replaced(self, pool: Pool) -> "StoredPool":
        """See `Arms`."""
        parts = parts_of(pool, self.pool.arms, self.columns.choice_names, self.names)
        return StoredPool.of(parts, pool, self.scale, self.columns)

    def with_columns(self, columns: Columns) -> "StoredPool":
        """See `Arms`."""
        return StoredPool.of(self.pool.arms, self.pool, self.scale, columns)

    def _is_constant(self) -> Iterable[bool]:
        for j, _ in enumerate(self.names):
            ends = [(part, end[j]) for part in self.rows.parts for end in part.limits]
            # Each part has numbers of its own for the choices.
            yield len({part.choices[j][int(end)] if j in part.choices else end for part, end in ends}) == 1

    # -- points and parameters ---------------------------------------------------------------------------------------

    def raw_blocks(self) -> Iterator[NDArray[np.float64]]:
        """See `Arms`."""
        for start in range(0, len(self), BLOCK_ROWS):
            yield self.rows.block(start, min(start + BLOCK_ROWS, len(self)))

    def raw(self, rows: Ints) -> NDArray[np.float64]:
        """See `Arms`."""
        return self.rows.take(rows)

    # -- rows --------------------------------------------------------------------------------------------------------

    def rows_of(self, X: Tensor) -> Ints:
        """See `Arms`."""
        keys = row_keys(X)
        new = [i for i, key in enumerate(keys) if key not in self._found]
        if new:
            self._found.update(self._search(X[new], [keys[i] for i in new]))
        return np.concatenate([np.zeros(0, dtype=np.int64), *(self._found[key] for key in dict.fromkeys(keys))])

    def _search(self, X: Tensor, keys: Sequence[bytes]) -> dict[bytes, Ints]:
        """The rows of each of the points `X (n, d)`, by their keys."""
        from bkbopt.spaces._loops import rows_with

        found = rows_with(self._hashes, np.unique(short_hashes_of(X)))
        rows: dict[bytes, list[int]] = {key: [] for key in keys}
        for some in np.split(found, range(BLOCK_ROWS, len(found), BLOCK_ROWS)):
            for row, key in zip(some.tolist(), row_keys(self.X[some]), strict=True):
                if key in rows:
                    rows[key].append(row)
        return {key: np.array(mine, dtype=np.int64) for key, mine in rows.items()}

    @cached_property
    def _hashes(self) -> NDArray[np.uint32]:
        with bars(self.pool.show_progress_bar):
            parts = zip(self.rows.parts, self.rows.codes, strict=True)
            return np.concatenate([part.hashes(self.columns, codes) for part, codes in parts])

    def matching(self, point: Point) -> Tensor:
        """See `Arms`."""
        return self._matched.of(frozenset(point.items()), lambda: self._matching(point)).clone()

    def _matching(self, point: Point) -> Tensor:
        out = torch.ones(len(self), dtype=torch.bool)
        if not point:
            return out
        if set(point) == set(self.names):
            rows = self.rows_of(self.encode([point]))
            return out.zero_().index_fill_(0, torch.from_numpy(rows), True)
        at = [self.names.index(name) for name in point]
        values, start = np.array(list(point.values())), 0
        for block in self.raw_blocks():
            out[start : start + len(block)] = torch.from_numpy((block[:, at] == values).all(1))
            start += len(block)
        return out

    def label(self, row: int) -> Hashable:
        """See `Arms`."""
        number, part = self._owner(row)
        return row if part.labels is None else part.labels[number]

    def _owner(self, row: int) -> tuple[int, StoredPart | RemotePart]:
        at = int(np.searchsorted(self.rows.starts, row, "right")) - 1
        return row - int(self.rows.starts[at]), self.rows.parts[at]

    def rows_named(self, labels: Sequence[Any]) -> list[int]:
        """See `Arms`."""
        names = list(map(as_python, labels))
        parts = zip(self.rows.parts, self.rows.starts.tolist(), strict=False)
        labelled = [(part.labels, start) for part, start in parts if part.labels is not None]
        rows: dict[object, list[int]] = {}
        for own, start in labelled:
            for name, row in own.rows_of([name for name in names if is_hashable(name)]):
                rows.setdefault(label_key(name), []).append(start + row)
        found = [rows.get(label_key(name), []) for name in names]
        known = [self.label(0)] if labelled and not all(found) else []
        return [self._labelled(name, mine, known) for name, mine in zip(names, found, strict=True)]


def _choices(parts: Parts, known: Columns | None) -> dict[int, tuple[Any, ...]]:
    """The choices of all parts, after the known ones; parts whose columns differ from the first's are refused."""
    first = parts[0]
    for part in parts:
        if part.names != first.names or set(part.choices) != set(first.choices):
            raise ArgumentError(f"pool: expected parts with the columns {first.names}, all alike, got {part.names}.")
    kinds = first.kinds if known is None else known.kinds
    every = {} if known is None else dict(known.choices)
    for part in parts:
        for j, own in part.choices.items():
            ranked, ordered = kinds[j] == RANKED, part.kinds[j] == RANKED
            every[j] = choices_after(part.names[j], every.get(j, ()), own, ranked=ranked, ordered=ordered)
    return {j: every[j] for j in first.choices}


def _codes(part: StoredPart | RemotePart, choices: dict[int, tuple[Any, ...]]) -> dict[int, NDArray[np.float64]]:
    """For each column of choices that this part numbers differently: the pool's codes in the order of the part's."""
    out = {}
    for j, values in choices.items():
        if part.choices[j] != values[: len(part.choices[j])]:
            place = {value: float(code) for code, value in enumerate(values)}
            out[j] = np.array([place[value] for value in part.choices[j]])
    return out
