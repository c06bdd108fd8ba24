"""Outcome constraints as users give them: names, texts such as "viscosity <= 30", or limits by name."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer.log.limits import FREE, Limit, sides_of
from bkbopt.spaces.values import as_float, is_real, shown

__all__ = ["Constraints", "as_limits", "changed"]

#: What users give.
Constraints = str | Sequence[str] | Mapping[str, tuple[float | None, float | None]]

_SIGNS = re.compile(r"(<=|>=|==|!=|<|>|=)")
_FORM = "'name', 'name <= number', 'name >= number' or 'number <= name <= number'"


def as_limits(given: Any) -> dict[str, Limit]:
    """The limits of each quantity, by name.

    Raises:
        ArgumentTypeError: neither text, a list of it, nor a dict.
        ArgumentError: text that is no constraint, limits that no value satisfies, or a quantity twice.
    """
    if isinstance(given, Mapping):
        out = {_plain(name): _of_pair(name, pair) for name, pair in given.items()}
    else:
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
            raise ArgumentTypeError(
                f"constraints: expected names, or text as 'viscosity <= 30', or a dict from names to (low, high), got "
                f"{shown(given)} of type {type(given).__name__}."
            )
        out = {}
        for text in texts:
            name, limit = _of_text(_plain(text))
            out[name] = _both(name, out[name], limit) if name in out else limit
    keys = [side.key for sides in sides_of(out).values() for side in sides]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise ArgumentError(f"constraints: expected no name {twice!r} beside one with two limits; rename it.")
    return out


def changed(current: Mapping[str, Limit], given: Any) -> dict[str, Limit]:
    """The limits that take the place of those of a log, whose other quantities have none from then on."""
    new = as_limits(given)
    return {**new, **{name: FREE for name in current if name not in new}}


def _plain(name: Any) -> Any:
    """Text of a subclass, as members of enumerations are, as text: other forms of it differ from what a log keeps."""
    return str.__str__(name) if isinstance(name, str) else name


def _of_pair(name: Any, pair: Any) -> Limit:
    if not isinstance(name, str):
        raise ArgumentTypeError(f"constraints: expected names as text, got {name!r} of type {type(name).__name__}.")
    is_pair = isinstance(pair, list | tuple) and len(pair) == 2
    if not is_pair or not all(bound is None or is_real(bound) for bound in pair):
        raise ArgumentTypeError(
            f"constraints: expected (low, high) for {name!r}, with None for a limit that it has not, as (None, 30.0), "
            f"got {shown(pair)}."
        )
    low, high = pair
    return _checked(name, -math.inf if low is None else as_float(low), math.inf if high is None else as_float(high))


def _checked(name: str, low: float, high: float) -> Limit:
    if not (low <= high and low < math.inf and high > -math.inf):
        raise ArgumentError(
            f"constraints: expected limits of {name!r} that some value satisfies, got {low!r} and {high!r}."
        )
    return Limit(low, high)


def _of_text(text: str) -> tuple[str, Limit]:
    parts = _SIGNS.split(text)
    if len(parts) == 1:
        return text, Limit()
    signs, cells = parts[1::2], [cell.strip() for cell in parts[::2]]
    strict = next((sign for sign in signs if sign not in ("<=", ">=")), None)
    if strict is not None:
        advice = f" write {strict}=" if strict in "<>" else f" write {_FORM}"
        raise _refused(text, f"{strict!r};{advice}, or for a name with such a sign a dict {{name: (low, high)}}")
    numbers = [_number(cell) for cell in cells]
    names = [cell for cell, number in zip(cells, numbers, strict=True) if number is None]
    if len(names) != 1 or len(cells) > 3 or len(set(signs)) > 1 or (len(cells) == 3 and numbers[1] is not None):
        raise _refused(text, "something else; measured differences, and ratios, are quantities with names of their own")
    at = numbers.index(None)
    is_rising = signs[0] == "<="
    before = [number for number in numbers[:at] if number is not None]
    behind = [number for number in numbers[at + 1 :] if number is not None]
    lows, highs = (before, behind) if is_rising else (behind, before)
    name = names[0][1:-1] if len(names[0]) > 2 and names[0][0] == names[0][-1] == "`" else names[0]
    if not name:
        raise _refused(text, "no name")
    return name, _checked(name, max(lows, default=-math.inf), min(highs, default=math.inf))


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _refused(text: str, got: str) -> ArgumentError:
    return ArgumentError(f"constraints: expected {_FORM}, got {text!r} with {got}.")


def _both(name: str, first: Limit, second: Limit) -> Limit:
    """A lower and an upper limit that are given apart."""
    lower, upper = sorted((first, second), key=lambda limit: math.isinf(limit.low))
    if math.isfinite(lower.high) or math.isfinite(upper.low):
        raise ArgumentError(f"constraints: expected distinct names, got {name!r} twice.")
    return _checked(name, lower.low, upper.high)
