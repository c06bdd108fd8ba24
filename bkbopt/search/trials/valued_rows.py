"""The rows of one quantity: the trials that have a value of it, in the order of their completion."""

import math
from array import array
from dataclasses import dataclass, field

from bkbopt.search.trials.curves import Curve, FinalValues

__all__ = ["ValuedRows"]

NO_CURVE: Curve = {}


@dataclass
class ValuedRows:
    """Values of one quantity, row by row: index of the trial, value, known standard deviation, intermediate values."""

    sign: float = 1.0
    rows: "array[int]" = field(default_factory=lambda: array("q"))
    y: "array[float]" = field(default_factory=lambda: array("d"))
    std: "array[float]" = field(default_factory=lambda: array("d"))
    curves: list[Curve] = field(default_factory=list)
    pruned: list[int] = field(default_factory=list)
    _estimated: tuple[int, FinalValues, "array[float]"] | None = field(default=None)

    def append(self, row: int, y: float, std: float = math.nan, curve: Curve = NO_CURVE) -> None:
        """Add a row; `y` is NaN for a pruned trial."""
        if math.isnan(y):
            self.pruned.append(len(self.y))
        self.rows.append(row)
        self.y.append(y)
        self.std.append(std)
        self.curves.append(curve)

    def estimates(self, mark: int) -> "array[float]":
        """Estimated final values of the pruned trials, from the rows up to the mark."""
        if self._estimated is None or self._estimated[0] != mark:
            known = FinalValues(self.sign, self.curves[:mark], self.y[:mark])
            self._estimated = mark, known, array("d")
        _, known, estimates = self._estimated
        estimates.extend(known(self.curves[row]) for row in self.pruned[len(estimates) :])
        return estimates
