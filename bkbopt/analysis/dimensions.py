"""Dimensions: parameters of a space, or columns of a pool, with values along them.

| symbol | shape  | units   | meaning                                                                  |
| ------ | ------ | ------- | ------------------------------------------------------------------------ |
| values | (n,)   | user's  | values along a dimension                                                 |
| place  | (n,)   | axis    | coordinate on the axis: a number itself, other values by their index     |
| code   | (n,)   | -       | (place - low) / width, with log(place) on a log axis, c(place) on one with|
|        |        |         | long tails (`bkbopt.spaces.columns`)                                     |
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bkbopt._support.showing import shortened
from bkbopt.spaces.columns import Tails
from bkbopt.spaces.space import Categorical, Ordinal
from bkbopt.spaces.stretched import StretchedAxis

__all__ = ["FEW", "Dimension"]

#: A numeric parameter with at most this many values is taken value by value, not as a continuum.
FEW = 12


@dataclass(frozen=True)
class Dimension:
    """One parameter as an axis.

    Attributes:
        name: its name.
        column: its column in the coordinates of `bkbopt.analysis.coordinates`.
        values: the values along it, in order, user's units.
        low: see the table.
        width: see the table.
        listed: the parameter if it lists its values; None for numbers.
        log: whether the axis is logarithmic.
        is_continuum: whether it is a continuum: a continuous parameter, or one with many values.
        label: its name at an axis, where a long one is shortened.
        tails: the compression of the axis, if the column has long tails.
        stretched: the axis, if an end of it is stretched; codes are linear all the same.
    """

    name: str
    column: int
    values: tuple[Any, ...]
    low: float
    width: float
    listed: Categorical | Ordinal | None = None
    log: bool = False
    is_continuum: bool = True
    label: str = ""
    tails: Tails | None = None
    stretched: StretchedAxis | None = None

    @classmethod
    def labelled(cls, found: Sequence["Dimension"]) -> list["Dimension"]:
        """Dimensions with labels, all of which are different."""
        labels = shortened(dimension.name for dimension in found)
        return [replace(dimension, label=label) for dimension, label in zip(found, labels, strict=True)]

    def place(self, values: Iterable[Any]) -> np.ndarray:
        """Coordinates of values on the axis, (n,); NaN for None, and for values that are not on the axis."""
        found = [_number(v) if self.listed is None else self.listed.locate(v) for v in values]
        return np.array([np.nan if v is None else float(v) for v in found])

    def visible(self, values: Iterable[Any]) -> np.ndarray:
        """A mask (n,) of the values within the limits of the axis."""
        low, high = self.limits()
        slack = 1e-9 * (high - low)
        place = self.place(values)
        return (place >= low - slack) & (place <= high + slack)  # false for NaN

    def codes(self, values: Iterable[Any]) -> np.ndarray:
        """Codes of values, (n,); NaN for values that are not on the axis."""
        with np.errstate(invalid="ignore", divide="ignore"):
            place = self.place(values)
            return ((place if self.stretched is not None else self.linear(place)) - self.low) / self.width

    @property
    def compression(self) -> Tails | StretchedAxis | None:
        """The compression of the axis, neither linear nor logarithmic; None if there is none."""
        return self.stretched or self.tails

    def linear(self, place: np.ndarray) -> np.ndarray:
        """Coordinates on the axis, (n,), on the scale on which its values are evenly spaced."""
        if self.compression is not None:
            return self.compression.compressed(place)
        return np.log(place) if self.log else place

    def places(self, linear: np.ndarray) -> np.ndarray:
        """The inverse of `linear`."""
        if self.compression is not None:
            return self.compression.spread(linear)
        return np.exp(linear) if self.log else linear

    def edges(self) -> np.ndarray:
        """Bounds of the cells around the values, as coordinates on the axis, (n + 1,)."""
        at = self.linear(self.place(self.values))
        middle = 0.5 * (at[1:] + at[:-1])
        edges = np.concatenate([[1.5 * at[0] - 0.5 * at[1]], middle, [1.5 * at[-1] - 0.5 * at[-2]]])
        return self.places(edges)

    def limits(self) -> tuple[float, float]:
        """Limits of the axis: those of the range, and half a step more if it is not a continuum."""
        bounds = self.place(self.values) if self.is_continuum else self.edges()
        return float(bounds[0]), float(bounds[-1])


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float | np.number | np.bool_) else None
