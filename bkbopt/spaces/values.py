"""Values as users write them: shown in messages, compared as choices, and checked as bounds."""

import math
import numbers
import reprlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bkbopt.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "as_float",
    "as_python",
    "as_whole",
    "checked_flag",
    "checked_float",
    "checked_whole",
    "identity",
    "is_hashable",
    "is_missing",
    "is_real",
    "label_key",
    "places_of",
    "rows_by_label",
    "same",
    "shown",
    "with_hint",
]

_shortened = reprlib.Repr()
_shortened.maxstring = _shortened.maxother = 80


def shown(value: object) -> str:
    """Show `value` in an error message: its repr, shortened."""
    if isinstance(value, int) and value.bit_length() > 1023:  # Python may refuse to write it in decimal
        return f"a whole number of {value.bit_length()} bits"
    return _shortened.repr(value)


def is_real(value: object) -> bool:
    """Whether a value is a real number; a bool is none, nor is a duration, which NumPy counts among the integers."""
    if type(value) is float or type(value) is int:  # the usual case, without the slow look at abstract classes
        return True
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_, np.timedelta64))


def with_hint(value: object, shown_as: str | None = None) -> str:
    """A value that is no dict of parameters, for messages: its type by default; of some what to pass instead."""
    name = type(value).__name__
    if isinstance(getattr(value, "params", None), Mapping):
        return f"a {name} (pass its params)"
    if hasattr(value, "iloc"):
        return f"a {name} (pass dict(row) of a row)"
    return name if shown_as is None else shown_as


def as_float(value: Any) -> float:
    """The nearest double of a real number, infinite beyond the largest."""
    try:
        return float(value)
    except OverflowError:  # a whole number beyond the largest double
        return math.inf if value > 0 else -math.inf


def as_whole(value: Any) -> int | None:
    """The whole number that a value is, whole floats included; None if it is none."""
    if not is_real(value):
        return None
    is_whole = isinstance(value, numbers.Integral) or (abs(value) < math.inf and value == math.floor(value))
    return int(value) if is_whole else None


def as_python(value: Any) -> Any:
    """Turn numpy's scalars, and arrays and tensors without dimensions, into Python's; anything else stays as it is.

    A masked number becomes NaN: the number below the mask is no data. All NaN are one object, with which containers
    are equal.
    """
    if isinstance(value, np.generic):
        is_plain = isinstance(value, (np.bool_, np.integer, np.floating, np.str_))
    else:
        is_plain = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
        if is_plain and np.ma.is_masked(value):
            return math.nan
    value = value.item() if is_plain else value
    return math.nan if type(value) is float and math.isnan(value) else value


def identity(choice: object) -> tuple[type, object]:
    """Return a key that two choices share exactly if they are the same."""
    is_nan = isinstance(choice, float) and math.isnan(choice)
    return type(choice), "nan" if is_nan else choice


def places_of(argument: str, choices: Sequence[object]) -> dict[object, int]:
    """Number the hashable choices; duplicates among all choices are refused."""
    places: dict[object, int] = {}
    for place, choice in enumerate(choices):
        key = identity(choice)
        hashable = is_hashable(key)
        if key in places if hashable else any(same(choice, earlier) for earlier in choices[:place]):
            raise ArgumentError(f"{argument}: expected distinct values, got {shown(choice)} twice")
        if hashable:
            places[key] = place
    return places


def same(left: object, right: object) -> bool:
    """Whether two choices are one: of the same type and equal, or both NaN."""
    try:
        return identity(left) == identity(right)
    except ValueError:  # arrays: their comparison has no single truth value
        return False


def is_missing(value: object) -> bool:
    """Whether a value of a table is missing: None, NaN, or one of pandas' markers (recognised by name)."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def is_hashable(key: object) -> bool:
    """Whether a value can be the key of a dict."""
    try:
        hash(key)
    except TypeError:
        return False
    return True


def label_key(label: object) -> tuple[bool, object] | None:
    """A key that two labels share only if they are the same; True and 1 are two. None for one that cannot be a key."""
    return (isinstance(label, bool), label) if is_hashable(label) else None


def rows_by_label(labels: Iterable[Hashable]) -> dict[object, list[int]]:
    """The rows that have each label, by `label_key`."""
    rows: dict[object, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label_key(label), []).append(row)
    return rows


def _require_real(name: str, value: object) -> None:
    if not is_real(value):
        raise ArgumentTypeError(f"{name}: expected a number, got {shown(value)} of type {type(value).__name__}")


def checked_float(name: str, value: object) -> float:
    """A bound or step as a finite float; refuses anything else."""
    _require_real(name, value)
    number = as_float(value)
    if not math.isfinite(number):
        raise ArgumentError(f"{name}: expected a finite number, got {shown(value)}")
    return number


def checked_whole(name: str, value: object) -> int:
    """A bound or step as a whole number within the range of doubles; refuses anything else."""
    _require_real(name, value)
    number = as_whole(value)
    if number is None:
        raise ArgumentError(f"{name}: expected a whole number, got {shown(value)}")
    if number.bit_length() > 1023:
        raise ArgumentError(f"{name}: expected a whole number within the range of doubles, got {shown(number)}")
    return number


def checked_flag(name: str, value: object) -> bool:
    """A flag as a bool; refuses anything else."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(f"{name}: expected True or False, got {shown(value)}")
    return bool(value)
