"""A product pool, encoded: rows are combinations of entries of several lists, computed when they are read.

A point has the columns of all parts, as in a pool that lists the rows. So observations stay valid when parts change,
and points that are not rows can be told. A row is looked up by the entry of each part.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Params, Point, set_fields
from bkbopt.spaces.columns import Columns, Tails, columns_of, sampled_rows
from bkbopt.spaces.parts import Part, Product, error_of_part
from bkbopt.spaces.points import in_row
from bkbopt.spaces.pool import Pool
from bkbopt.spaces.rounding import only_row_like, spans_of
from bkbopt.spaces.rows import LISTED_LIMIT, Combinations, ProductRows
from bkbopt.spaces.text_columns import check_names, note_many_choices
from bkbopt.spaces.values import with_hint

__all__ = ["ProductPool"]


@dataclass(frozen=True, eq=False, repr=False)
class ProductPool(Arms):
    """A product pool as encoded points; see `Arms`.

    Args:
        pool: the product.
        scale: whether numeric columns are scaled to [0, 1] by the first pool's range, long tails compressed.
        like: an earlier pool; its encoding is kept.

    Attributes:
        X: (A, d) the encoded rows; `X[rows]` computes them.
        table: (A, d) their raw values.

    Example:
        >>> import bkbopt as bo
        >>> opt = bo.Optimizer(bo.Pool.product({"acid": ["HCl", "HF"], "dose": [1.0, 2.0, 3.0]}))
        >>> opt.pool.decode(4), opt.pool.row_of(("HF", 2.0)), opt.pool.X[4]
        ({'acid': 'HF', 'dose': 2.0}, 4, tensor([1.0000, 0.5000], dtype=torch.float64))
    """

    pool: Pool
    _: KW_ONLY
    scale: bool
    like: InitVar[Arms | None] = None
    X: ProductRows = field(init=False, repr=False)
    table: ProductRows = field(init=False, repr=False)
    columns: Columns = field(init=False, repr=False)
    objects: None = None

    def __post_init__(self, like: Arms | None) -> None:
        """Encode the parts."""
        parts: tuple[Part, ...] = self.pool.arms.parts
        if like is None:
            for part in parts:
                try:
                    check_names(part.undeclared, len(part))
                except ArgumentError as error:
                    raise error_of_part(part.name, error) from None
            for part in parts:
                own = {f"{part.name}.{name}": values for name, values in part.undeclared.items()}
                note_many_choices(own, len(part))
            columns = _joined(parts, scale=self.scale)
        else:
            assert like.columns is not None
            parts, columns = _after(parts, like)
        X = []
        for part, first in zip(parts, _firsts(parts), strict=True):
            X.append(columns.scaled(part.table, first))
            try:
                columns.check_reach(X[-1])
            except ArgumentError as error:
                raise error_of_part(part.name, error) from None
        set_fields(self, pool=Pool(Product(parts, self.pool.arms.feasible)), columns=columns, X=ProductRows(tuple(X)))
        set_fields(self, table=ProductRows(tuple(part.table for part in parts)))

    @property
    def parts(self) -> tuple[Part, ...]:
        """The lists."""
        product: Product = self.pool.arms
        return product.parts

    @property
    def feasible(self) -> Callable[[Params], bool] | None:
        """See `Arms`."""
        product: Product = self.pool.arms
        return product.feasible

    @property
    def is_listed(self) -> bool:
        """See `Arms`."""
        return len(self) <= LISTED_LIMIT

    def replaced(self, pool: Pool) -> "ProductPool":
        """Other parts in the same encoding; raises as the class does."""
        if not isinstance(pool.arms, Product):
            raise ArgumentTypeError(f"pool: expected a product as before, got {type(pool.arms).__name__}.")
        return ProductPool(pool, scale=self.scale, like=self)

    def with_columns(self, columns: Columns) -> "ProductPool":
        """The same rows in another encoding of their columns; raises as the class does."""
        earlier = ProductPool(self.pool, scale=self.scale)
        set_fields(earlier, columns=columns)
        return earlier.replaced(self.pool)

    @property
    def label_names(self) -> tuple[str, ...]:
        """See `Arms`."""
        return tuple(part.name for part in self.parts if part.labels is not None)

    # -- points and parameters ---------------------------------------------------------------------------------------

    def point(self, row: int) -> dict[str, float]:
        """See `Arms`."""
        point: dict[str, float] = {}
        for part, entry in zip(self.parts, self.table.entries_of(row), strict=True):
            point.update(zip(part.names, part.rows[entry], strict=True))
        return point

    def internal(self, params: Params, i: int | None = None) -> dict[str, float]:
        """The point of {"index": row}, of a label or all columns for each part, or of both; see `Arms`."""
        if not isinstance(params, Mapping):
            raise ArgumentTypeError(f"params: expected a dict, got {with_hint(params)}{in_row(i)}.")
        if set(params) == {"index"}:
            return self.point(self._checked_row(params["index"]))
        point = self.part(params, "params" if i is None else f"params: row {i}")
        for part in self.parts:
            missing = [name for name in part.names if name not in point]
            if missing:
                names = dict.fromkeys((part.name, missing[0]))  # one name, where the part is a list without labels
                raise ArgumentError(
                    "params: expected each part's label, or all of its columns, got no "
                    f"{' and no '.join(map(repr, names))}{in_row(i)}."
                )
        return {name: point[name] for name in self.names}

    def part(self, params: Params, argument: str = "fixed") -> dict[str, float]:
        """Values of some columns in internal form; a part's label stands for all of its columns."""
        self._check_names(params, argument)
        point: dict[str, float] = {}
        for part in self.parts:
            if part.labels is not None and part.name in params:
                entry = part.labelled(params[part.name], f"{argument}: {part.name!r}")
                point |= dict(zip(part.names, part.rows[entry], strict=True))
        for name in params:
            if name in self.names:
                value = self._internal(name, params[name], argument)
                if point.setdefault(name, value) != value:
                    raise ArgumentError(
                        f"{argument}: expected the {name!r} that its part's label stands for, got {params[name]!r}; "
                        "leave one of the two out."
                    )
        return point

    def _check_names(self, params: Params, argument: str) -> None:
        """Refuse names that belong to no part."""
        known = {*self.names, *(part.name for part in self.parts)}
        unknown = [name for name in params if name not in known]
        if unknown:
            names = ", ".join(repr(part.name) for part in self.parts)
            raise ArgumentError(
                f"{argument}: expected parts among {names}, or columns among {self.names}, got {unknown[0]!r}."
            )

    def raw(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """See `Arms`."""
        return self.table[torch.from_numpy(rows)].numpy()

    def decode(self, row: int) -> dict[str, Any]:
        """The parameters in a row of the pool: labels and descriptors."""
        return self._with_labels(self.values_of(self.point(row)), self.table.entries_of(row))

    def params_of(self, point: Point) -> dict[str, Any]:
        """See `Arms`; the labels are those of the first entries with these values, if there are any."""
        entries = [
            next(iter(part.valued([point[name] for name in part.names])), None)
            if all(name in point for name in part.names)
            else None
            for part in self.parts
        ]
        return self._with_labels(self.values_of(point), entries)

    def _with_labels(self, values: Mapping[str, Any], entries: Sequence[int | None]) -> dict[str, Any]:
        """Values of columns; the label of a part's entry, if there is one, precedes them."""
        params: dict[str, Any] = {}
        for part, entry in zip(self.parts, entries, strict=True):
            if part.labels is not None and entry is not None:
                params[part.name] = part.labels[entry]
            params |= {name: values[name] for name in part.names if name in values}
        return params

    # -- rows --------------------------------------------------------------------------------------------------------

    def _is_constant(self) -> Iterable[bool]:
        return torch.cat([part.table.amin(0) == part.table.amax(0) for part in self.parts]).tolist()

    def raw_blocks(self) -> Iterator[NDArray[np.float64]]:
        """See `Arms`; of products that are listed."""
        yield self.table[:].numpy()

    def rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """See `Arms`."""
        found = [np.zeros(0, dtype=np.int64)]
        for choices in self.entries_at(X):
            if all(choices):
                found.append(self.X.combined([np.array(entries) for entries in choices]))
        return np.concatenate(found)

    def each_at(self, x: Tensor) -> Combinations:
        """See `Arms`."""
        return self.X.combinations(self.entries_at(x[None])[0])

    def some_rows_of(self, X: Tensor) -> NDArray[np.int64]:
        """See `Arms`; the first row of each point."""
        each = (next(iter(self.X.combinations(choices)), None) for choices in self.entries_at(X))
        return np.array([row for row in each if row is not None], dtype=np.int64)

    def entries_at(self, X: Tensor) -> list[list[Sequence[int]]]:
        """For each of the points `X (n, d)`, the entries of each part that have its columns, ascending."""
        return [
            [entries.get(key, ()) for entries, key in zip(self._entries, row, strict=True)]
            for row in zip(*map(row_keys, X.tensor_split(self.X.firsts[1:], dim=1)), strict=True)
        ]

    @cached_property
    def _entries(self) -> list[dict[bytes, list[int]]]:
        """For each part, its entries by the keys of their encoded columns."""
        out: list[dict[bytes, list[int]]] = []
        for table in self.X.tables:
            entries: dict[bytes, list[int]] = {}
            for entry, key in enumerate(row_keys(table)):
                entries.setdefault(key, []).append(entry)
            out.append(entries)
        return out

    def values_in(self, j: int) -> NDArray[np.float64]:
        """See `Arms`."""
        p = int(np.searchsorted(self.table.firsts, j, "right")) - 1
        return np.unique(self.table.tables[p][:, j - self.table.firsts[p]].numpy())

    def some_rows(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """See `Arms`."""
        return super().some_rows(n, rng) if self.is_listed else np.unique(rng.integers(len(self), size=n))

    def entries_like(self, point: Point) -> tuple[Tensor, ...]:
        """For each part the entries with the given values of some columns, in internal form."""
        return tuple(part.matching(point) for part in self.parts)

    def rows_like(self, point: Point) -> list[int]:
        """See `Arms`."""
        choices = [entries[:2].tolist() for entries in self.entries_like(point)]
        return [*itertools.islice(self.X.combinations(choices), 2)]

    def matching(self, point: Point) -> Tensor:
        """See `Arms`; of products that are listed."""
        out = torch.zeros(len(self), dtype=torch.bool)
        out[torch.from_numpy(self.X.combined([entries.numpy() for entries in self.entries_like(point)]))] = True
        return out

    def rounded_from(self, point: Point) -> dict[str, float] | None:
        """See `Arms`; the entry of each part is looked for, so that the product may be of any size."""
        out: dict[str, float] = {}
        for part in self.parts:
            if any(name not in point for name in part.names):
                return None
            table, values = part.table.numpy(), np.array([point[name] for name in part.names])
            entry = only_row_like(table, values, spans_of(table.min(0), table.max(0), part.columns.kinds))
            if entry is None:
                return None
            out |= dict(zip(part.names, entry.tolist(), strict=True))
        return out

    def row_named(self, params: Params) -> int | None:
        """The row with the number, or with the labels of all parts, that `params` gives; None if it gives neither."""
        if all(part.name in params for part in self.parts):
            return self._row_labelled([params[part.name] for part in self.parts])
        return super().row_named(params)

    def as_named(self, row: int, params: Params) -> int:
        """See `Arms`; so it is for the label of each part."""
        entries = list(self.table.entries_of(row))
        for p, part in enumerate(self.parts):
            if part.labels is not None and part.name in params:
                named = part.labelled(params[part.name], repr(part.name))
                entries[p] = named if part.rows[named] == part.rows[entries[p]] else entries[p]
        return super().as_named(int(self.X.numbers(torch.tensor([entries]))[0]), params)

    def label(self, row: int) -> Hashable:
        """The labels of a row's entries, one for each part."""
        params = self.decode(row)
        return tuple(params[part.name] for part in self.parts)

    def rows_named(self, labels: Sequence[Any]) -> list[int]:
        """Rows by number, or by the labels of their entries: tuples in the order of the parts.

        Raises:
            ArgumentError: no such row, or several.
        """
        return [self._row_named(label) for label in labels]

    def _row_named(self, label: Any) -> int:
        if not isinstance(label, tuple | list):
            return self._checked_row(label, "rows")
        row = self._row_labelled(label) if len(label) == len(self.parts) else None
        if row is None:
            names = ", ".join(part.name for part in self.parts)
            raise ArgumentError(
                f"rows: expected row numbers, or labels ({names}) of the parts' entries, got {label!r}."
            )
        return row

    def _row_labelled(self, labels: Sequence[Any]) -> int | None:
        """The row with these labels, one for each part; None if a list lacks the value."""
        entries = []
        for part, label in zip(self.parts, labels, strict=True):
            if part.labels is not None:
                found = [part.labelled(label, "rows")]
            else:
                found = part.valued([part.columns.internal(0, label, "rows")])
            if not found:
                return None
            entries.append(found[0])
        return int(self.X.numbers(torch.tensor([entries]))[0])


def _firsts(parts: Sequence[Part]) -> list[int]:
    """The first column of each part."""
    return [0, *np.cumsum([len(part.names) for part in parts])[:-1].tolist()]


def _joined(parts: Sequence[Part], *, scale: bool) -> Columns:
    """The columns of all parts, scaled."""
    found, tails = list[Columns](), dict[int, Tails]()
    for part, first in zip(parts, _firsts(parts), strict=True):
        limits = part.table.min(0).values, part.table.max(0).values
        sample = part.table[torch.from_numpy(sampled_rows(len(part)))] if scale else None
        try:
            own = columns_of(part.names, part.columns.kinds, part.columns.choices, limits, sample)
        except ArgumentError as error:
            raise error_of_part(part.name, error) from error
        found.append(own)
        tails.update({first + j: own_tails for j, own_tails in own.tails.items()})
    return Columns(
        tuple(name for part in parts for name in part.names),
        tuple(kind for part in parts for kind in part.columns.kinds),
        torch.cat([columns.low for columns in found]),
        torch.cat([columns.width for columns in found]),
        _choices(parts),
        tails,
    )


def _choices(parts: Sequence[Part]) -> dict[int, tuple[Any, ...]]:
    firsts = _firsts(parts)
    return {
        first + j: values
        for part, first in zip(parts, firsts, strict=True)
        for j, values in part.columns.choices.items()
    }


def _after(parts: Sequence[Part], like: Arms) -> tuple[tuple[Part, ...], Columns]:
    """The parts in the encoding of an earlier pool; new choices follow the old ones."""
    known = like.columns
    assert known is not None
    parts = [part.in_order(known.names) for part in parts]
    own = _joined(parts, scale=False)
    if own.names != known.names or set(own.choices) != set(known.choices):
        raise ArgumentError(f"pool: expected parts with the columns of the first pool, {known.names}, got {own.names}.")
    recoded = []
    for part, first in zip(parts, _firsts(parts), strict=True):
        choices = {j: known.choices[first + j] for j in part.columns.choices}
        recoded.append(part.recoded(choices, known.kinds[first : first + len(part.names)]))
    return tuple(recoded), replace(known, choices=_choices(recoded))
