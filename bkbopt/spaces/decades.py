"""A warning of numeric columns of a pool that span decades, whose logarithms may be meant."""

import logging

import numpy as np
from torch import Tensor

from bkbopt.spaces.columns import Columns

__all__ = ["note_decades"]

logger = logging.getLogger(__name__)

#: Ratio of the quartiles of positive numbers from which on their logarithms are likely to be meant: that of numbers
#: that are spread evenly over three decades. Counts and sizes, as those of households or words, have two to eight.
WIDE = 30.0
#: About so many rows are looked at.
LOOKED_AT = 10_000


def note_decades(columns: Columns, table: Tensor) -> None:
    """Log a warning for each numeric column of positive numbers whose middle half spans decades.

    On a linear scale nearly all of them are at the low end, where the search does not tell them apart.

    Args:
        columns: the columns.
        table: their raw values, (n, d).
    """
    some = table[:: max(1, len(table) // LOOKED_AT)].numpy()
    for j, (name, numbers) in enumerate(zip(columns.names, some.T, strict=True)):
        low, high = np.quantile(numbers, [0.25, 0.75])
        if j not in columns.choices and numbers.min() > 0.0 and high >= WIDE * low:
            logger.warning(
                "pool: half of column %r is between %.2g and %.2g, and it is searched on a linear scale; if its order "
                "of magnitude is what matters, give its logarithm in its place.",
                name,
                low,
                high,
            )
