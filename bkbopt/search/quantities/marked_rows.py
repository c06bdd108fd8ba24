"""The data of a modelled quantity, and the marks: the numbers of rows at which hyper-parameters are fitted."""

import math
from dataclasses import dataclass

from torch import Tensor

__all__ = ["GROWTH", "Rows", "last_mark"]

#: Ratio of two marks: the hyper-parameters are fitted again when the number of rows has grown by this factor.
GROWTH = 1.15


@dataclass(frozen=True)
class Rows:
    """The data of a quantity.

    Attributes:
        X: encoded points, (n, d).
        y: values (n,), user's units; NaN for pruned trials; infinite ones are replaced by the worst or best finite one.
        estimates: estimated final values of pruned trials (n,), user's units; NaN if there is none.
        std: known standard deviations of the noise (n,); NaN if it is fitted.
        categorical: columns that hold category codes.
        version: version of the rows; if it changes, the surrogate is built again.
        mark: number of rows at which hyper-parameters are fitted.
    """

    X: Tensor
    y: Tensor
    estimates: Tensor
    std: Tensor
    categorical: tuple[int, ...]
    version: int
    mark: int


def last_mark(n: int, first: int) -> int:
    """The largest mark <= `n`, where the first mark is `first`; 0 if there is none."""
    mark = max(first, 1)
    if n < mark:
        return 0
    while (following := max(mark + 1, math.ceil(GROWTH * mark))) <= n:
        mark = following
    return mark
