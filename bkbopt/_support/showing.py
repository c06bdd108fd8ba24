"""Texts for people: objects as the calls that make them, numbers with their standard deviations."""

import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

__all__ = ["LONGEST", "shortened", "shown_call", "shown_record", "with_deviation"]

#: Most digits of a number.
DIGITS = 6
#: Characters of a name as a label.
LONGEST = 24


def shown_call(kind: type, arguments: Mapping[str, object]) -> str:
    """The constructor's call, with the `arguments` that differ from its defaults; others than its own are left out.

    Example:
        >>> from bkbopt._support.showing import shown_call
        >>> shown_call(complex, {})
        'complex()'
    """
    parameters = inspect.signature(kind).parameters
    given = {name: value for name, value in arguments.items() if name in parameters}
    # Some values, such as arrays, have no single truth when compared: their texts are.
    texts = [f"{name}={value!r}" for name, value in given.items() if repr(value) != repr(parameters[name].default)]
    return f"{kind.__name__}({', '.join(texts)})"


def shown_record(record: Any) -> str:
    """A dataclass without the fields that are None, or empty tuples and mappings; times are as in ISO 8601.

    Example:
        >>> from dataclasses import dataclass
        >>> from bkbopt._support.showing import shown_record
        >>> @dataclass
        ... class Point:
        ...     x: float
        ...     label: str | None = None
        >>> shown_record(Point(0.5)), shown_record(Point(0.5, "a"))
        ('Point(x=0.5)', "Point(x=0.5, label='a')")
    """
    shown = ((field.name, getattr(record, field.name)) for field in fields(record) if field.repr)
    texts = (f"{name}={_text(value)}" for name, value in shown if not (value is None or _is_empty(value)))
    return f"{type(record).__name__}({', '.join(texts)})"


def _is_empty(value: object) -> bool:
    return isinstance(value, tuple | Mapping) and not value


def _text(value: object) -> str:
    return value.isoformat(" ") if isinstance(value, datetime) else repr(value)


def with_deviation(mean: float, sd: float) -> str:
    """A number with its standard deviation, which has two digits; the number has its places, and six digits at most.

    Example:
        >>> from bkbopt._support.showing import with_deviation
        >>> with_deviation(84.6924, 0.362)
        '84.69 \u00b1 0.36'
    """
    shown = float(f"{sd:.2g}")
    places = 1 - math.floor(math.log10(shown)) if 0.0 < shown < math.inf else DIGITS + 1
    if abs(places) <= DIGITS and abs(mean) < 10.0**DIGITS:
        text = f"{round(mean, places) + 0.0:.{max(places, 0)}f}"  # no negative zero
        if sum(letter.isdigit() for letter in text.lstrip("-0.")) <= DIGITS:
            return f"{text} \u00b1 {shown:.{max(places, 0)}f}"
    return f"{mean:.{DIGITS}g} \u00b1 {shown:.{DIGITS}g}"


def shortened(names: Iterable[str], most: int = LONGEST) -> list[str]:
    """Names as labels: an ellipsis stands for the middle of a long one; different names remain different."""
    full = list(names)
    while True:
        tail = most // 2
        short = [name if len(name) <= most else f"{name[: most - tail - 1]}\u2026{name[-tail:]}" for name in full]
        if len(set(short)) == len(set(full)):
            return short
        most += 4
