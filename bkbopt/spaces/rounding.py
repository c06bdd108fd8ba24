"""Rows of a pool that are told with rounded numbers, as after a file of text or a conversion to float32.

| symbol | shape  | units  | meaning                                               |
| ------ | ------ | ------ | ----------------------------------------------------- |
| rows   | (n, d) | user's | raw values; of columns that are not numeric the codes |
| values | (d,)   | user's | a point that is none of the rows                      |

Numbers agree if they have the same six significant digits or the same six decimals, and differ by little of the
column's range: of a column of large numbers with a small range, such as times, six digits say nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_ROWS", "RowIndex", "only_row_like", "spans_of"]

#: Pools with more rows have no index: it takes 16 bytes a row.
MOST_ROWS = 1_000_000
#: Half a unit of the sixth digit, as a share of the number.
DIGITS = 5e-6
#: Numbers of decimals to which numbers may have been rounded.
DECIMALS = range(6, 13)
#: Largest difference, as a share of the column's range.
SHARE = 1e-4
#: Rows by which the column of the index is chosen.
SAMPLED = 1 << 16

Floats = NDArray[np.float64]


@np.errstate(over="ignore")
def spans_of(low: Floats, high: Floats, kinds: Sequence[str]) -> Floats:
    """The largest differences of numbers that may agree, (d,), of columns from `low` to `high`; 0 of whole numbers."""
    spans = np.where(high > low, SHARE * (high - low), np.inf)
    return np.where(np.array(list(kinds)) == "f", spans, 0.0)


@np.errstate(over="ignore")
def only_row_like(rows: Floats, values: Floats, spans: Floats) -> Floats | None:
    """The row that `values` are rounded from; None if there is none, or rows of different values are."""
    gaps = np.abs(rows - values)
    agree = gaps <= DIGITS * np.abs(rows)
    for decimals in DECIMALS:
        agree |= np.round(rows, decimals) == values
    found = rows[(agree & (gaps <= spans)).all(1)]
    return found[0] if len(found) and bool((found == found[0]).all()) else None


class RowIndex:
    """Finds the rows near a point without a pass over the pool, by one column, in order.

    Args:
        blocks: the raw rows, in order.
        kinds: numpy's letter for the type of each column, see `tables.Columns`.
    """

    def __init__(self, blocks: Iterable[NDArray[Any]], kinds: Sequence[str]) -> None:
        lows: list[Floats] = []
        highs: list[Floats] = []
        values: list[Floats] = []
        for block in blocks:
            if not values:
                self.column = int(np.argmax([len(np.unique(column)) for column in block[:SAMPLED].T]))
            lows.append(block.min(0))
            highs.append(block.max(0))
            values.append(block[:, self.column].copy())
        self.spans = spans_of(np.min(lows, axis=0), np.max(highs, axis=0), kinds)
        column = np.concatenate(values)
        self._order = np.argsort(column, kind="stable")
        self._values = column[self._order]

    def near(self, values: Floats) -> NDArray[np.int64]:
        """The rows whose number in the column of the index may agree with that of `values`."""
        value, span = values[self.column], self.spans[self.column]
        first, last = (
            np.searchsorted(self._values, value - span, "left"),
            np.searchsorted(self._values, value + span, "right"),
        )
        return self._order[first:last]
