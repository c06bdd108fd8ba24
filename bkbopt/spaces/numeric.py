"""Numeric parameters: which numbers are allowed, and at which position each of them lies.

Positions are those of `bkbopt.spaces.scales`: on a continuum the value, else the number of the grid point.
"""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from bkbopt.errors import ArgumentError
from bkbopt.spaces.base import Kind, ParameterBase, checked_when, set_fields
from bkbopt.spaces.scales import AnyGrid, Continuum, Grid, LogGrid, Scale
from bkbopt.spaces.values import as_float, as_python, as_whole, checked_flag, checked_float, checked_whole, is_real

__all__ = ["Float", "Int"]

# A grid point k survives k / (n - 1) * (n - 1) with an error below 1/4 up to the first limit. On a log scale the error
# of expm1(log1p(k / low)) is about 3 high (1 + log(high / low)) 2^-52, which the second limit keeps below 1/4.
_MAX_GRID = 2**50
_MAX_LOG_INT = 2**48
_MAX_WHOLE = 2**53  # doubles represent all whole numbers up to here
_GRID_TOLERANCE = 1e-8  # in steps; what Optuna allows
_ROUNDED = 1e-12  # relative to bounds and to the range: by less a bound is off after a logarithm and back, or a sum


class _Number(ParameterBase):
    """The common base of `Float` and `Int`."""

    low: float
    high: float
    log: bool
    step: float | None
    #: What a value is, for messages.
    _what: ClassVar[str]

    @property
    def expected(self) -> str:
        """See `ParameterBase`."""
        if self.low == self.high:
            return f"the fixed value {self.low!r}"
        grid = "" if self.step == type(self).step else f" that is {self.low!r} plus a multiple of {self.step!r}"
        return f"{self._what} in [{self.low!r}, {self.high!r}]{grid}"

    @property
    def first(self) -> float:
        """See `ParameterBase`."""
        return self.low

    def column_key(self, name: str) -> str:
        """See `ParameterBase`."""
        return f"{name} ({self.kind}, log)" if self.log else f"{name} ({self.kind})"


@dataclass(frozen=True, repr=False)
class Float(_Number):
    """A real number in [low, high].

    With `log` the range is searched evenly in log(value). With `step` only low, low + step, low + 2 step, ... count,
    and `high` is lowered to the last of them (computed in decimal, so that steps of 0.1 end where they seem to).
    `low == high` fixes the value.

    Args:
        low: the lowest value.
        high: the highest value.
        log: whether to search evenly in the logarithm.
        step: between allowed values.
        when: values of other parameters under which this one is there, as {"model": "svm"} or {"model": ["svm", "gp"]};
            of several names all must hold. A parameter that others are conditional on is discrete, and may be
            conditional itself.

    Raises:
        ArgumentTypeError: a bound or step is no real number (a bool is none), or `log` is no bool.
        ArgumentError: bounds reversed, not finite or too far apart for doubles; `log` with low <= 0 or with a step;
            a step that is not positive, larger than the range, or too fine for doubles of that size.

    Example:
        >>> import bkbopt as bo
        >>> bo.Float(0.0, 1.0, step=0.3)
        Float(low=0.0, high=0.9, log=False, step=0.3)
    """

    low: float
    high: float
    _: KW_ONLY
    log: bool = False
    step: float | None = None
    when: Mapping[str, Any] | None = field(default=None, hash=False)
    kind: ClassVar[Kind] = "float"
    _what = "a number"

    def __post_init__(self) -> None:
        low, high = checked_float("low", self.low), checked_float("high", self.high)
        step = None if self.step is None else checked_float("step", self.step)
        set_fields(self, low=low, high=high, step=step, log=checked_flag("log", self.log), when=checked_when(self.when))
        _check_bounds(low, high, log=self.log)
        if math.isinf(high - low) or (self.log and math.isinf(high / low)):
            what = "high / low" if self.log else "high - low"
            raise ArgumentError(f"expected bounds whose {what} is finite, got low={low!r}, high={high!r}")
        if step is None:
            return
        if self.log:
            raise ArgumentError(f"expected log=True or a step, not both, got step={step!r}: leave one out")
        _check_positive(step)
        _check_reach(low, high, step, self._n_steps)
        if low < high and step < 16 * self._ulp:
            raise ArgumentError(f"expected a step that doubles near {high!r} can follow, got {step!r}: leave step out")
        set_fields(self, high=self.value(self._n_steps))

    @property
    def n_values(self) -> int | None:
        """See `ParameterBase`."""
        if self.low == self.high:
            return 1
        return None if self.step is None else self._n_steps + 1

    @cached_property
    def scale(self) -> Scale:
        """See `ParameterBase`."""
        return Continuum(self.low, self.high, self.log) if self.step is None else Grid(self._n_steps + 1)

    def locate(self, value: object) -> float | int | None:
        """See `ParameterBase`."""
        value = as_python(value)
        if not is_real(value):
            return None
        number = as_float(value)
        if not math.isfinite(number):
            return None
        if self.step is None:
            bound = min(max(number, self.low), self.high)
            size = abs(bound) if self.log else max(abs(self.low), abs(self.high))
            return bound if abs(number - bound) <= _ROUNDED * min(size, self.high - self.low) else None
        nearest = round((number - self.low) / self.step)
        # Far from zero the sum low + k step, done in doubles, is off by more than the tolerance.
        slack = max(_GRID_TOLERANCE * self.step, 4 * self._ulp)
        on_grid = 0 <= nearest <= self._n_steps and abs(number - self.value(nearest)) <= slack
        return nearest if on_grid else None

    def value(self, position: float) -> float:
        """See `ParameterBase`."""
        if self.step is None:
            return float(position)
        low, step, unit = self._decimal
        return (low + int(position) * step) / unit  # whole numbers: one correctly rounded division

    def external(self, number: float) -> float:
        """See `ParameterBase`."""
        return float(number)

    @cached_property
    def _decimal(self) -> tuple[int, int, int]:
        """Whole numbers a, b, c with low = a / c and step = b / c as they are written in decimal."""
        low, step = Fraction(repr(self.low)), Fraction(repr(self.step))
        unit = math.lcm(low.denominator, step.denominator)
        return int(low * unit), int(step * unit), unit

    @cached_property
    def _n_steps(self) -> int:
        low, step, unit = self._decimal
        n = int((Fraction(repr(self.high)) * unit - low) // step)
        # The double nearest to the point after that may still be within bounds.
        return n + (as_float(Fraction(low + (n + 1) * step, unit)) <= self.high)

    @property
    def _ulp(self) -> float:
        return math.ulp(max(abs(self.low), abs(self.high)))


@dataclass(frozen=True, repr=False)
class Int(_Number):
    """A whole number in [low, high], in steps of `step` from low; `high` is lowered to the last step.

    With `log` the range is searched evenly in log(value). `low == high` fixes the value. Doubles must represent all
    values, as they do up to 2^53, and beyond if all are multiples of a power of two.

    Args:
        low: the lowest value.
        high: the highest value.
        log: whether to search evenly in the logarithm.
        step: between allowed values.
        when: see `Float`.

    Raises:
        ArgumentTypeError: a bound or step is no number (a bool is none), or `log` is no bool.
        ArgumentError: a bound or step that is not whole; bounds reversed or too far apart for doubles; `log` with
            low < 1 or with a step other than 1; a step that is not positive, or larger than the range.

    Example:
        >>> import bkbopt as bo
        >>> bo.Int(1, 10, step=4).high
        9
    """

    low: int
    high: int
    _: KW_ONLY
    log: bool = False
    step: int = 1
    when: Mapping[str, Any] | None = field(default=None, hash=False)
    kind: ClassVar[Kind] = "int"
    _what = "a whole number"

    def __post_init__(self) -> None:
        low, high = checked_whole("low", self.low), checked_whole("high", self.high)
        step = checked_whole("step", self.step)
        set_fields(self, low=low, high=high, step=step, log=checked_flag("log", self.log), when=checked_when(self.when))
        _check_bounds(low, high, log=self.log)
        _check_positive(step)
        _check_reach(low, high, step, (high - low) // step)
        set_fields(self, high=high - (high - low) % step)
        if self.log and step != 1:
            raise ArgumentError(f"expected step 1 with log=True, got {step!r}: leave one out")
        too_fine = self.log and high * (1 + math.log(high) - math.log(low)) > _MAX_LOG_INT
        if (too_fine and low < high) or (high - low) // step >= _MAX_GRID or not self._is_exact:
            raise ArgumentError(
                f"expected whole numbers that doubles can tell apart, got {self!r}: use a larger step, a Float, or the "
                "difference from low"
            )

    @property
    def _is_exact(self) -> bool:
        """Whether doubles represent all values: multiples of a power of two up to 2^53 times that power."""
        common = self.low if self.low == self.high else math.gcd(self.low, self.step)
        return max(abs(self.low), abs(self.high)) <= _MAX_WHOLE * (common & -common or 1)

    @property
    def n_values(self) -> int:
        """See `ParameterBase`."""
        return (self.high - self.low) // self.step + 1

    @cached_property
    def scale(self) -> AnyGrid:
        """See `ParameterBase`."""
        return LogGrid(self.low, self.n_values) if self.log else Grid(self.n_values)

    def locate(self, value: object) -> float | int | None:
        """See `ParameterBase`."""
        number = as_whole(as_python(value))
        if number is None or not self.low <= number <= self.high:
            return None
        position, rest = divmod(number - self.low, self.step)
        return position if rest == 0 else None

    def value(self, position: float) -> int:
        """See `ParameterBase`."""
        return self.low + int(position) * self.step

    def external(self, number: float) -> int:
        """See `ParameterBase`."""
        return int(number)


def _check_bounds(low: float, high: float, *, log: bool) -> None:
    if low > high:
        raise ArgumentError(f"expected low <= high, got low={low!r}, high={high!r}: swap them")
    if log and low <= 0:
        raise ArgumentError(f"low: expected a positive number with log=True, got {low!r}")


def _check_positive(step: float) -> None:
    if step <= 0:
        raise ArgumentError(f"step: expected a positive number, got {step!r}")


def _check_reach(low: float, high: float, step: float, n_steps: int) -> None:
    if low < high and n_steps == 0:
        raise ArgumentError(f"step: expected at most high - low = {high - low!r}, got {step!r}")
