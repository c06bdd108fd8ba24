"""Attributes of trials: what users keep with a trial beside its values, as JSON; the search does not read them.

The module imports neither torch nor NumPy.
"""

import contextlib
import math
from collections.abc import Mapping
from typing import Any

from bkbopt.errors import ArgumentError, ArgumentTypeError

__all__ = ["as_attrs", "as_number", "checked_attrs", "is_simple", "plain_of", "storable_attrs"]

#: What an attribute is, for messages.
KINDS = "numbers, flags, text, None, and lists and dicts of these"
#: Objects of this form stand for NaN and infinities in a log, see `log_schema.to_json`.
WORDS = tuple({"float": word} for word in ("nan", "inf", "-inf"))
#: Largest depth of lists and dicts.
DEPTH = 50
#: Largest number of bits of a whole number: any Python writes and reads those of 640 decimal digits, JSON's form.
MOST_BITS = 2048


def is_simple(value: object) -> bool:
    """Whether a value is a number, a flag or text; arrays, which may be large, are not converted to see it."""
    return getattr(value, "shape", ()) == () and isinstance(plain_of(value), bool | int | float | str)


def as_number(value: object) -> float | None:
    """An attribute as a finite number; None if it is none, or one that doubles do not have."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def plain_of(value: Any) -> Any:
    """Numbers and arrays of NumPy and torch as Python's; all else, classes too, as it is."""
    return value.tolist() if callable(getattr(value, "tolist", None)) and not isinstance(value, type) else value


def as_attrs(given: Any) -> Mapping[Any, Any]:
    """Attributes by name, which are not checked; None is no attributes, and else an `ArgumentTypeError` is raised."""
    if not isinstance(given, Mapping | None):
        raise ArgumentTypeError(f"user_attrs: expected a dict of attributes by name, got {type(given).__name__}.")
    return given or {}


def checked_attrs(given: Any) -> dict[str, Any]:
    """Attributes by name as a log stores them; None is no attributes.

    Raises:
        ArgumentTypeError: no dict, a name that is no text, or something that JSON does not have.
        ArgumentError: text that is not valid Unicode, lists that are nested too deeply, a whole number that is too
            large.
    """
    return {_name(name): _stored(value, name, DEPTH) for name, value in as_attrs(given).items()}


def storable_attrs(given: Mapping[Any, Any]) -> dict[str, Any]:
    """The attributes that a log can store, of those that another tool keeps; the others are left out."""
    kept: dict[str, Any] = {}
    for name, value in given.items():
        with contextlib.suppress(ArgumentError, ArgumentTypeError):
            kept |= checked_attrs({name: value})
    return kept


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise ArgumentTypeError(f"user_attrs: expected names that are text, got {name!r}.")
    return _text(name)


def _text(text: str) -> str:
    text = str.__str__(text)  # of subclasses, as members of enumerations are, the text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"user_attrs: expected text that is valid Unicode, got {text[:200]!r}.") from None
    return text


def _stored(value: Any, name: str, depth: int) -> Any:
    value = plain_of(value)
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ArgumentError(
            f"user_attrs: expected whole numbers of at most {MOST_BITS} bits, got {value.bit_length()} for {name!r}; "
            "pass its text."
        )
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)  # of subclasses the number
    if isinstance(value, list | tuple | Mapping) and not depth:
        raise ArgumentError(f"user_attrs: expected at most {DEPTH} lists and dicts in each other for {name!r}.")
    if isinstance(value, list | tuple):
        return [_stored(item, name, depth - 1) for item in value]
    if isinstance(value, Mapping):
        items = {_name(key): _stored(item, name, depth - 1) for key, item in value.items()}
        if items not in WORDS:
            return items
    advice = "pass its text, as str(...)"
    raise ArgumentTypeError(f"user_attrs: expected {KINDS}, got {type(value).__name__} for {name!r}; {advice}.")
