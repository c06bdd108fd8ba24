"""The scales on which the columns of a search space are encoded.

A scale has the geometry only: how *positions* become encoded numbers and back, a whole column at once. A position is
the value itself on a continuum, and the number of the grid point or of the choice, from 0, everywhere else.

The encoding of a grid point must be the same to the last bit wherever it is computed. An array library may round
logarithms differently with the layout of the array. So all of them are computed by numpy, on fresh contiguous arrays.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["AnyGrid", "Array", "Codes", "Continuum", "Grid", "LogGrid", "Positions", "Real", "Scale", "Scales"]

Array = NDArray[np.float64]
Positions = NDArray[Any]  # float64 on a continuum, int64 on a grid


def _within_one(encoded: Array) -> Array:
    """Numbers clipped to [0, 1]; `np.clip` is the same, and takes five times as long for a few."""
    return np.minimum(np.maximum(encoded, 0.0), 1.0)


class Scale(ABC):
    """Geometry of one column; all arrays are (n,)."""

    @abstractmethod
    def encoded(self, positions: Positions) -> Array:
        """Encode positions."""

    @abstractmethod
    def nearest(self, encoded: Array) -> Positions:
        """Give the feasible position nearest to each number, as distances are on the encoded scale."""


class Real(Scale):
    """The positions of real numbers, by a scale that is a function of the value."""

    #: Bounds: numbers, or a row (d,) of them for arrays (n, d).
    low: float | Array
    high: float | Array

    @abstractmethod
    def _decoded(self, unit: Array) -> Array:
        """The values with these codes, up to rounding."""

    @abstractmethod
    def _change(self, value: Array, code: Array) -> Array:
        """By how much a value changes with its code, to first order."""

    def nearest(self, encoded: Array) -> Positions:
        """See `Scale`."""
        unit = _within_one(encoded)
        # The inverse is off by a few roundings. A Newton step, and steps to the next double, make the value one that
        # encodes to `unit` again wherever there is one near, so that codes do not drift when decoded time after time.
        value = self._within(unit, self._decoded(unit))
        error = unit - self.encoded(value)
        if not error.any():
            return value
        value = self._within(unit, value + self._change(value, error))
        for _ in range(2):
            error = unit - self.encoded(value)
            other = self._within(unit, np.nextafter(value, np.copysign(np.inf, error)))
            value = np.where(np.abs(unit - self.encoded(other)) < np.abs(error), other, value)
        return value

    def _within(self, unit: Array, value: Array) -> Array:
        return np.minimum(np.maximum(np.where(unit == 1.0, self.high, value), self.low), self.high)


class _Interval(Real):
    """Real numbers whose codes are even in the value or in its logarithm."""

    log: bool

    @property
    @abstractmethod
    def width(self) -> float | Array:
        """What the code 1 stands for, before it is divided by this: a difference of values or logarithms."""

    def encoded(self, positions: Positions) -> Array:
        offset = positions - self.low
        return self._log1p(offset) / self.width if self.log else offset / self.width

    def _decoded(self, unit: Array) -> Array:
        exponent = unit * self.width
        if not self.log:
            return self.low + exponent
        with np.errstate(over="ignore"):  # past the largest double only to be clipped
            return np.asarray(self.low + self.low * np.expm1(exponent))

    def _change(self, value: Array, code: Array) -> Array:
        exponent = code * self.width
        return exponent * value if self.log else exponent

    def _log1p(self, offset: Array) -> Array:
        return np.log1p(offset / self.low)  # log(value / low), but accurate also where value is close to low


@dataclass(frozen=True)
class Continuum(_Interval):
    """An interval, mapped to [0, 1] evenly in the value or in its logarithm."""

    low: float
    high: float
    log: bool

    @cached_property
    def width(self) -> float:
        """See `_Interval`."""
        return float(self._log1p(np.array([self.high - self.low]))[0]) if self.log else self.high - self.low


@dataclass(frozen=True, eq=False)
class _Intervals(_Interval):
    """Several intervals, each mapped to [0, 1] evenly in the value: a column of arrays (n, d) each."""

    low: Array
    high: Array
    log = False

    @cached_property
    def width(self) -> Array:
        """The widths of the intervals, (d,)."""
        return self.high - self.low


class AnyGrid(Scale):
    """The positions of a grid."""

    #: Number of positions: a whole number, or a row (d,) of them for arrays (n, d).
    n: Any

    @abstractmethod
    def spread(self, unit: Array) -> Positions:
        """Map [0, 1] onto all positions so that uniform numbers give the scale's natural distribution."""


class _Even(AnyGrid):
    """The positions of a grid whose codes are evenly spaced: grid point k of n is encoded as k / width."""

    @property
    @abstractmethod
    def width(self) -> float | Array:
        """The position that the code 1 stands for."""

    def encoded(self, positions: Positions) -> Array:
        return np.asarray(positions / self.width)

    def nearest(self, encoded: Array) -> Positions:
        inside = np.minimum(np.maximum(encoded, 0.0), (self.n - 1) / self.width)
        return np.rint(inside * self.width).astype(np.int64)

    def spread(self, unit: Array) -> Positions:
        return np.minimum(np.maximum(np.floor(unit * self.n), 0), self.n - 1).astype(np.int64)


@dataclass(frozen=True)
class Grid(_Even):
    """Equal steps: grid point k of n is encoded as k / (n - 1)."""

    n: int

    @property
    def width(self) -> float:
        """See `_Even`."""
        return self.n - 1.0


@dataclass(frozen=True)
class Codes(_Even):
    """Unordered choices: choice k is encoded as k."""

    n: int
    width = 1.0


@dataclass(frozen=True, eq=False)
class _EvenGrids(_Even):
    """Several such grids: a column of arrays (n, d) each."""

    n: Array
    widths: Array

    @property
    def width(self) -> Array:
        return self.widths


@dataclass(frozen=True)
class LogGrid(AnyGrid):
    """The whole numbers low, ..., low + n - 1; grid point k is encoded as log(1 + k / low), scaled to end at 1."""

    low: int | float
    n: int

    def encoded(self, positions: Positions) -> Array:
        """See `Scale`."""
        return np.log1p(positions / np.float64(self.low)) / self.width

    def nearest(self, encoded: Array) -> Positions:
        """See `Scale`."""
        unit = _within_one(encoded)
        below = np.floor(self.low * np.expm1(unit * self.width)).astype(np.int64)
        below = np.minimum(np.maximum(below, 0), self.n - 2)
        above_is_nearer = self.encoded(below + 1) - unit < unit - self.encoded(below)
        return np.asarray(below + above_is_nearer)

    def spread(self, unit: Array) -> Positions:
        """See `AnyGrid`."""
        start = self.low - 0.5  # each number has the half steps on both sides, as in Optuna
        value = start * np.exp(unit * math.log((self.low + self.n - 0.5) / start))
        return np.clip(np.floor(value + 0.5).astype(np.int64) - self.low, 0, self.n - 1)

    @cached_property
    def width(self) -> float:
        """What the code 1 stands for, before it is divided by this: a difference of logarithms."""
        # By the same function as the columns, so that the last point is encoded as exactly 1.
        return float(np.log1p(np.array([self.n - 1]) / np.float64(self.low))[0])


@dataclass(frozen=True, eq=False)
class Scales:
    """The scales of all columns of a table of codes (n, d)."""

    columns: tuple[Scale, ...]

    def nearest(self, A: Array) -> list[Positions]:
        """The feasible position nearest to each number, (n,) for each column; even intervals are done at once."""
        columns, intervals = self._even_intervals
        even = dict(zip(columns, intervals.nearest(A[:, columns]).T, strict=True)) if columns else {}
        return [even[j] if j in even else scale.nearest(A[:, j]) for j, scale in enumerate(self.columns)]

    def canonical(self, A: Array) -> Array:
        """The codes of the nearest positions, (n, d)."""
        out, positions = np.empty_like(A), self.nearest(A)
        for j, scale in enumerate(self.columns):
            out[:, j] = scale.encoded(positions[j])
        return out

    def snapped(self, A: Array) -> Array:
        """The codes on the grids that are nearest to `A (n, d)`, and the others clipped to [0, 1]."""
        out, (columns, grids) = _within_one(A), self._even_grids
        if columns:
            out[:, columns] = grids.encoded(grids.nearest(A[:, columns]))
        for j, scale in self._uneven_grids:
            out[:, j] = scale.encoded(scale.nearest(A[:, j]))
        return out

    def spread(self, U: Array) -> Array:
        """Codes of points of the unit cube `U (n, d)`, see `_Even.spread`; intervals are taken as they are."""
        out, (columns, grids) = _within_one(U), self._even_grids
        if columns:
            out[:, columns] = grids.encoded(grids.spread(out[:, columns]))
        for j, scale in self._uneven_grids:
            out[:, j] = scale.encoded(scale.spread(out[:, j]))
        return out

    @cached_property
    def gridded(self) -> list[tuple[int, AnyGrid]]:
        """The scales with a limited number of positions, with their columns."""
        return [(j, scale) for j, scale in enumerate(self.columns) if isinstance(scale, AnyGrid)]

    @cached_property
    def _even_grids(self) -> tuple[list[int], _EvenGrids]:
        found = [(j, scale) for j, scale in self.gridded if isinstance(scale, _Even)]
        n, widths = (np.array([getattr(scale, name) for _, scale in found]) for name in ("n", "width"))
        return [j for j, _ in found], _EvenGrids(n, widths)

    @cached_property
    def _uneven_grids(self) -> list[tuple[int, AnyGrid]]:
        return [(j, scale) for j, scale in self.gridded if not isinstance(scale, _Even)]

    @cached_property
    def _even_intervals(self) -> tuple[list[int], _Intervals]:
        found = [(j, scale) for j, scale in enumerate(self.columns) if isinstance(scale, Continuum) and not scale.log]
        low, high = (np.array([getattr(scale, end) for _, scale in found]) for end in ("low", "high"))
        return [j for j, _ in found], _Intervals(low, high)
