"""Ranges of numbers whose codes are logarithmic from one end, though they were given without `log=True`.

| symbol | shape  | units   | meaning                                                             |
| ------ | ------ | ------- | ------------------------------------------------------------------- |
| t      | (n,)   | user's  | distances of values from the stretched end: v - low, or high - v    |
| r      | scalar | user's  | the reach: codes are linear in t below it, and logarithmic above it |
| w      | scalar | -       | log(1 + (high - low) / r)                                           |
| code   | (n,)   | encoded | log(1 + t / r) / w from the lower end, 1 minus that from the upper  |

With r = low it is the scale of `log=True`. The codes of a part of the range, for the same origin of the logarithm, are
an affine function of those of the whole: its reach is r plus its distance from the stretched end.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bkbopt.spaces.parameters import Categorical, Float, Int, Ordinal, Parameter
from bkbopt.spaces.scales import AnyGrid, Array, LogGrid, Positions, Real, Scale

__all__ = ["Stretch", "StretchedAxis", "StretchedFloat", "StretchedInt", "can_be_stretched", "like_part", "stretched"]

#: Numbers of values of the grids that can be stretched: on shorter ones there is little to gain, and on longer ones
#: doubles do not tell all codes apart.
SHORTEST, LONGEST = 100, 1 << 40
#: Widths of the ranges that can be stretched. Values of wider ones overflow, the reach of narrower ones underflows, and
#: matplotlib widens their axes.
NARROWEST, WIDEST = 1e-280, 1e300


@dataclass(frozen=True)
class Stretch:
    """Which end of a range is stretched, and how much.

    Attributes:
        is_low: whether it is the lower end.
        reach: the fraction of the range, next to this end, in which the scale is about linear; beyond it the scale is
            logarithmic in the distance from the end. It is r relative to the width of the range. With 0.0001 each
            decade of distances beyond it has about a quarter of the scale.
    """

    is_low: bool
    reach: float

    @property
    def end(self) -> str:
        """The name of the end."""
        return "low" if self.is_low else "high"

    def of_codes(self, u: Array) -> Array:
        """The codes of values of which `u (n,)` are those on the linear scale."""
        t = u if self.is_low else 1.0 - u
        code = np.log1p(t / self.reach) / np.log1p(1.0 / self.reach)
        return code if self.is_low else 1.0 - code

    def slope(self, u: float) -> float:
        """The derivative of `of_codes`: how much the scale is stretched there."""
        t = u if self.is_low else 1.0 - u
        return float(1.0 / ((t + self.reach) * np.log1p(1.0 / self.reach)))


@dataclass(frozen=True)
class StretchedAxis:
    """The axis of a picture of a range: like `bkbopt.spaces.columns.Tails`, with numbers beyond the end, too.

    Attributes:
        end: the end, user's units.
        reach: r, user's units; negative for an upper end.
    """

    end: float
    reach: float

    @classmethod
    def of(cls, parameter: Float | Int, by: Stretch) -> "StretchedAxis":
        """The axis of a range with a stretched end."""
        reach = by.reach * (parameter.high - parameter.low)
        return cls(parameter.low, reach) if by.is_low else cls(parameter.high, -reach)

    def compressed(self, x: Array) -> Array:
        """Coordinates of values, which increase with them."""
        t = (x - self.end) / self.reach
        return np.copysign(1.0, self.reach) * np.where(t > 0.0, np.log1p(np.maximum(t, 0.0)), t)

    def spread(self, c: Array) -> Array:
        """The values with these coordinates."""
        t = np.copysign(1.0, self.reach) * c
        return self.end + self.reach * np.where(t > 0.0, np.expm1(np.maximum(t, 0.0)), t)


@dataclass(frozen=True)
class _LogFromEnd(Real):
    """The scale; see the module's text."""

    low: float
    high: float
    is_low: bool
    reach: float

    @cached_property
    def width(self) -> float:
        """The constant w."""
        # By the same function as the columns, so that the ends are encoded as exactly 0 and 1.
        return float(np.log1p(np.array([(self.high - self.low) / self.reach]))[0])

    def encoded(self, positions: Array) -> Array:
        t = positions - self.low if self.is_low else self.high - positions
        code = np.log1p(t / self.reach) / self.width
        return code if self.is_low else 1.0 - code

    def _decoded(self, unit: Array) -> Array:
        if self.is_low:
            return self.low + self.reach * np.expm1(unit * self.width)
        # By this formula alone the lower end would be off by roundings, of which its code, 0, has none.
        return np.where(unit == 0.0, self.low, self.high - self.reach * np.expm1((1.0 - unit) * self.width))

    def _change(self, value: Array, code: Array) -> Array:
        t = value - self.low if self.is_low else self.high - value
        return (t + self.reach) * self.width * code


@dataclass(frozen=True)
class _LogGridFromEnd(AnyGrid):
    """The scale of a grid of `n` points; the reach is in steps."""

    n: int
    is_low: bool
    reach: float

    @cached_property
    def _from_end(self) -> LogGrid:
        return LogGrid(self.reach, self.n)

    def encoded(self, positions: Positions) -> Array:
        if self.is_low:
            return self._from_end.encoded(positions)
        return 1.0 - self._from_end.encoded(self.n - 1 - positions)

    def nearest(self, encoded: Array) -> Positions:
        if self.is_low:
            return self._from_end.nearest(encoded)
        return np.asarray(self.n - 1 - self._from_end.nearest(1.0 - encoded))

    def spread(self, unit: Array) -> Positions:
        """See `AnyGrid`; the codes are spread evenly."""
        return self.nearest(unit)


@dataclass(frozen=True, repr=False)
class _Stretched:
    """What stretched parameters have in common.

    Attributes:
        is_low: whether it is the lower end.
        reach: r, user's units.
    """

    is_low: bool = field(default=True, kw_only=True)
    reach: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True, repr=False)
class StretchedFloat(_Stretched, Float):
    """A range of real numbers with a stretched end."""

    @cached_property
    def scale(self) -> Scale:
        """See `ParameterBase`."""
        n = self.n_values
        if n is None:
            return _LogFromEnd(self.low, self.high, self.is_low, self.reach)
        return _LogGridFromEnd(n, self.is_low, self.reach / (self.step or 1.0))


@dataclass(frozen=True, repr=False)
class StretchedInt(_Stretched, Int):
    """A range of whole numbers with a stretched end."""

    @cached_property
    def scale(self) -> AnyGrid:
        """See `ParameterBase`."""
        return _LogGridFromEnd(self.n_values, self.is_low, self.reach / self.step)


def can_be_stretched(parameter: Parameter) -> bool:
    """Whether a parameter is a range of numbers on a linear scale, a continuum or a long one."""
    if isinstance(parameter, Categorical | Ordinal) or parameter.log:
        return False
    if not NARROWEST <= parameter.high - parameter.low <= WIDEST:
        return False
    return parameter.n_values is None or SHORTEST <= parameter.n_values <= LONGEST


def stretched(parameter: Parameter, stretch: Stretch) -> StretchedFloat | StretchedInt:
    """A parameter that can be stretched, with a stretched end."""
    assert isinstance(parameter, Float | Int)
    return _with_reach(parameter, stretch.is_low, stretch.reach * (parameter.high - parameter.low))


def like_part(parameter: Parameter, whole: Parameter) -> Parameter:
    """The parameter on the scale of the one that has the `whole` range, if this is stretched."""
    if not isinstance(whole, StretchedFloat | StretchedInt):
        return parameter
    assert isinstance(parameter, Float | Int)
    away = parameter.low - whole.low if whole.is_low else whole.high - parameter.high
    # The trials of a restart, from which the whole follows, may have narrower ranges than the present one.
    return _with_reach(parameter, whole.is_low, whole.reach + max(away, 0.0))


def _with_reach(parameter: Float | Int, is_low: bool, reach: float) -> StretchedFloat | StretchedInt:
    if isinstance(parameter, Int):
        return StretchedInt(parameter.low, parameter.high, step=parameter.step, is_low=is_low, reach=reach)
    return StretchedFloat(parameter.low, parameter.high, step=parameter.step, is_low=is_low, reach=reach)
