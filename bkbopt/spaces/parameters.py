"""The parameters of a search space: which values are allowed, and at which position each of them lies.

Positions are those of `bkbopt.spaces.scales`: on a continuum the value, else the number of the grid point or choice.
"""

import math
import numbers
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.scales import Codes, Continuum, Grid, LogGrid, Scale

__all__ = ["Categorical", "Float", "Int", "Parameter", "as_python", "shown"]

# A grid point k survives k / (n - 1) * (n - 1) with an error below 1/4 up to the first limit. On a log scale the error
# of expm1(log1p(k / low)) is about 3 high (1 + log(high / low)) 2^-52, which the second limit keeps below 1/4.
_MAX_GRID = 2**50
_MAX_LOG_INT = 2**48
_GRID_TOLERANCE = 1e-8  # in steps; what Optuna allows
_shortened = reprlib.Repr()
_shortened.maxstring = _shortened.maxother = 80


def shown(value: object) -> str:
    """Show `value` in an error message: its repr, shortened."""
    if isinstance(value, int) and value.bit_length() > 1023:  # Python may refuse to write it in decimal
        return f"a whole number of {value.bit_length()} bits"
    return _shortened.repr(value)


@dataclass(frozen=True)
class Float:
    """A real number in [low, high].

    With `log` the range is searched evenly in log(value). With `step` only low, low + step, low + 2 step, ... count,
    and `high` is lowered to the last of them (computed in decimal, so that steps of 0.1 end where they seem to).
    `low == high` fixes the value.

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

    def __post_init__(self) -> None:
        low, high = _float("low", self.low), _float("high", self.high)
        step = None if self.step is None else _float("step", self.step)
        _set(self, low=low, high=high, step=step, log=_flag("log", self.log))
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
        _set(self, high=self.value(self._n_steps))

    @property
    def n_values(self) -> int | None:
        """Number of values: None on a continuum, 1 if the parameter is fixed."""
        if self.low == self.high:
            return 1
        return None if self.step is None else self._n_steps + 1

    @property
    def expected(self) -> str:
        """What a value has to be, in words."""
        if self.low == self.high:
            return f"the fixed value {self.low!r}"
        grid = "" if self.step is None else f" that is {self.low!r} plus a multiple of {self.step!r}"
        return f"a number in [{self.low!r}, {self.high!r}]{grid}"

    @cached_property
    def scale(self) -> Scale:
        """The geometry of the encoded column; of no use if the parameter is fixed."""
        return Continuum(self.low, self.high, self.log) if self.step is None else Grid(self._n_steps + 1)

    def locate(self, value: object) -> float | int | None:
        """Return the position of a value; None if the value is not allowed."""
        if not _is_real(value):
            return None
        number = _as_float(value)
        if not math.isfinite(number):
            return None
        if self.step is None:
            return number if self.low <= number <= self.high else None
        nearest = round((number - self.low) / self.step)
        # Far from zero the sum low + k step, done in doubles, is off by more than the tolerance.
        slack = max(_GRID_TOLERANCE * self.step, 4 * self._ulp)
        on_grid = 0 <= nearest <= self._n_steps and abs(number - self.value(nearest)) <= slack
        return nearest if on_grid else None

    def value(self, position: float) -> float:
        """Return the value at a position."""
        if self.step is None:
            return float(position)
        low, step, unit = self._decimal
        return (low + int(position) * step) / unit  # whole numbers: one correctly rounded division

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
        return n + (_as_float(Fraction(low + (n + 1) * step, unit)) <= self.high)

    @property
    def _ulp(self) -> float:
        return math.ulp(max(abs(self.low), abs(self.high)))


@dataclass(frozen=True)
class Int:
    """A whole number in [low, high], in steps of `step` from low; `high` is lowered to the last step.

    With `log` the range is searched evenly in log(value). `low == high` fixes the value. Values are exact Python
    integers of any size; only the number of steps is limited.

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

    def __post_init__(self) -> None:
        low, high, step = _whole("low", self.low), _whole("high", self.high), _whole("step", self.step)
        _set(self, low=low, high=high, step=step, log=_flag("log", self.log))
        _check_bounds(low, high, log=self.log)
        _check_positive(step)
        _check_reach(low, high, step, (high - low) // step)
        _set(self, high=high - (high - low) % step)
        if self.log and step != 1:
            raise ArgumentError(f"expected step 1 with log=True, got {step!r}: leave one out")
        too_fine = self.log and high * (1 + math.log(high) - math.log(low)) > _MAX_LOG_INT
        if (too_fine and low < high) or (high - low) // step >= _MAX_GRID:
            raise ArgumentError(
                f"expected whole numbers that doubles can tell apart, got {self!r}: use a larger step or a Float"
            )

    @property
    def n_values(self) -> int | None:
        """Number of values: None on a continuum, 1 if the parameter is fixed."""
        return (self.high - self.low) // self.step + 1

    @property
    def expected(self) -> str:
        """What a value has to be, in words."""
        if self.low == self.high:
            return f"the fixed value {self.low!r}"
        grid = "" if self.step == 1 else f" that is {self.low!r} plus a multiple of {self.step!r}"
        return f"a whole number in [{self.low!r}, {self.high!r}]{grid}"

    @cached_property
    def scale(self) -> Scale:
        """The geometry of the encoded column; of no use if the parameter is fixed."""
        n = (self.high - self.low) // self.step + 1
        return LogGrid(self.low, n) if self.log else Grid(n)

    def locate(self, value: object) -> float | int | None:
        """Return the position of a value; None if the value is not allowed."""
        number = _as_whole(value)
        if number is None or not self.low <= number <= self.high:
            return None
        position, rest = divmod(number - self.low, self.step)
        return position if rest == 0 else None

    def value(self, position: float) -> int:
        """Return the value at a position."""
        return self.low + int(position) * self.step


@dataclass(frozen=True, eq=False)
class Categorical:
    """One of several choices without an order among them.

    Choices may be any objects. Two are the same if they have the same type and compare equal, so 1, 1.0 and True are
    three choices; NaN is the same as NaN; objects that compare element by element (arrays) are the same only if they
    are one object. Numpy's numbers, bools and strings become Python's. The order is kept; a set is sorted by repr.
    A single choice fixes the value.

    Raises:
        ArgumentTypeError: `choices` is no collection (a string and a mapping count as none).
        ArgumentError: no choices, or the same one twice.

    Example:
        >>> import bkbopt as bo
        >>> bo.Categorical(["relu", "tanh"]).n_values
        2
    """

    choices: Sequence[Any]
    _places: dict[object, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.choices, Iterable) or isinstance(self.choices, (str, bytes, Mapping)):
            raise ArgumentTypeError(f"choices: expected a list of values, got {shown(self.choices)}")
        given: Iterable[Any] = self.choices
        if isinstance(given, (set, frozenset)):  # else the order could change from one process to the next
            given = sorted(given, key=lambda choice: (type(choice).__name__, repr(choice)))
        _set(self, choices=tuple(map(as_python, given)))
        _set(self, _places=_places(self.choices))
        if not self.choices:
            raise ArgumentError("choices: expected at least one value, got none")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Categorical):
            return NotImplemented
        return len(self.choices) == len(other.choices) and all(map(_same, self.choices, other.choices))

    def __hash__(self) -> int:
        return hash((Categorical, len(self.choices)))  # choices need not be hashable

    @property
    def n_values(self) -> int | None:
        """Number of values: None on a continuum, 1 if the parameter is fixed."""
        return len(self.choices)

    @property
    def expected(self) -> str:
        """What a value has to be, in words."""
        if len(self.choices) == 1:
            return f"the fixed value {shown(self.choices[0])}"
        more = ", ..." if len(self.choices) > 10 else ""
        return f"one of {', '.join(map(shown, self.choices[:10]))}{more} (of the same type)"

    @cached_property
    def scale(self) -> Scale:
        """The geometry of the encoded column; of no use if the parameter is fixed."""
        return Codes(len(self.choices))

    def locate(self, value: object) -> float | int | None:
        """Return the position of a value; None if the value is not allowed."""
        value = as_python(value)
        key = _identity(value)
        if _is_hashable(key):
            return self._places.get(key)
        return next((place for place, choice in enumerate(self.choices) if _same(choice, value)), None)

    def value(self, position: float) -> Any:
        """Return the value at a position."""
        return self.choices[int(position)]


Parameter = Float | Int | Categorical


def _set(instance: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def _is_real(value: object) -> bool:
    if type(value) is float or type(value) is int:  # the usual case, without the slow look at abstract classes
        return True
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond the largest double
        return math.inf if value > 0 else -math.inf


def _as_whole(value: Any) -> int | None:
    if not _is_real(value):
        return None
    is_whole = isinstance(value, numbers.Integral) or (abs(value) < math.inf and value == math.floor(value))
    return int(value) if is_whole else None


def as_python(value: Any) -> Any:
    """Turn numpy's scalars into Python's; anything else stays what it is."""
    return value.item() if isinstance(value, (np.bool_, np.integer, np.floating, np.str_)) else value


def _identity(choice: object) -> tuple[type, object]:
    """Return what two choices have in common exactly if they are the same."""
    is_nan = isinstance(choice, float) and math.isnan(choice)
    return type(choice), "nan" if is_nan else choice


def _places(choices: Sequence[object]) -> dict[object, int]:
    """Number the hashable choices, after a look for duplicates among all of them."""
    places: dict[object, int] = {}
    for place, choice in enumerate(choices):
        key = _identity(choice)
        hashable = _is_hashable(key)
        if key in places if hashable else any(_same(choice, earlier) for earlier in choices[:place]):
            raise ArgumentError(f"choices: expected distinct values, got {shown(choice)} twice")
        if hashable:
            places[key] = place
    return places


def _same(left: object, right: object) -> bool:
    try:
        return _identity(left) == _identity(right)
    except ValueError:  # arrays: their comparison has no single truth value
        return False


def _is_hashable(key: object) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _require_real(name: str, value: object) -> None:
    if not _is_real(value):
        raise ArgumentTypeError(f"{name}: expected a number, got {shown(value)} of type {type(value).__name__}")


def _float(name: str, value: object) -> float:
    _require_real(name, value)
    number = _as_float(value)
    if not math.isfinite(number):
        raise ArgumentError(f"{name}: expected a finite number, got {shown(value)}")
    return number


def _whole(name: str, value: object) -> int:
    _require_real(name, value)
    number = _as_whole(value)
    if number is None:
        raise ArgumentError(f"{name}: expected a whole number, got {shown(value)}")
    if number.bit_length() > 1023:
        raise ArgumentError(f"{name}: expected a whole number within the range of doubles, got {shown(number)}")
    return number


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(f"{name}: expected True or False, got {shown(value)}")
    return bool(value)


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
