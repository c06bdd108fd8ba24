"""Argument checks for numbers and names."""

import math

import numpy as np

from bkbopt.errors import ArgumentError, ArgumentTypeError

__all__ = ["LARGEST_SIZE", "check_choice", "check_count", "check_flag", "check_number", "check_size"]

#: Largest size that is accepted: floats represent all integers up to here exactly, and 64-bit products have room.
LARGEST_SIZE = 2**53


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """`value`, which must be one of `allowed`; `ArgumentError` otherwise."""
    if value not in allowed:
        raise ArgumentError(f"{name}: expected one of {allowed}, got {value!r}.")
    return value


def check_flag(name: str, value: object) -> bool:
    """`value`, which must be True or False; `ArgumentTypeError` otherwise."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentTypeError(f"{name}: expected True or False, got {value!r} of type {type(value).__name__}.")
    return bool(value)


def check_number(name: str, value: object, low: float, what: str, *, strict: bool = False) -> float:
    """`value` as a finite float >= `low` (> `low` if `strict`).

    Raises:
        ArgumentTypeError: not a real number.
        ArgumentError: out of range.
    """
    # `__float__` alone does not tell: arrays and NumPy's booleans and complex numbers have one too.
    no_number = isinstance(value, bool | np.bool_ | complex | np.complexfloating | str)
    if no_number or getattr(value, "ndim", 0) != 0 or not hasattr(value, "__float__"):
        raise ArgumentTypeError(f"{name}: expected {what}, got {value!r} of type {type(value).__name__}.")
    try:
        number = float(value)
    except OverflowError:  # an integer of more than 308 digits
        number = math.inf
    if not math.isfinite(number) or number < low or (strict and number == low):
        raise ArgumentError(f"{name}: expected {what}, got {value!r}.")
    return number


def check_count(name: str, value: object, low: int = 1, what: str | None = None) -> int:
    """`value` as a whole number >= `low`; floats such as 3.0 are accepted. The errors are those of `check_number`."""
    what = what or f"a whole number >= {low}"
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= low:
        return int(value)  # of any size
    number = check_number(name, value, float(low), what)
    if number != int(number):
        raise ArgumentError(f"{name}: expected {what}, got {value!r}.")
    return int(number)


def check_size(name: str, value: object) -> int:
    """`check_count` with the upper limit 2^53, for sizes that are stored in 64 bits (budgets of terms or rows)."""
    size = check_count(name, value)
    if size > LARGEST_SIZE:
        raise ArgumentError(f"{name}: expected a whole number from 1 to 2^53, got a larger one.")
    return size
