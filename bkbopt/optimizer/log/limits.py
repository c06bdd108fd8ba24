"""Limits of measured quantities: the outcome constraints of an optimizer.

| symbol         | meaning                                                                            | unit        |
| -------------- | ---------------------------------------------------------------------------------- | ----------- |
| value          | a measured value of a quantity                                                     | that of it  |
| low, high      | the values between which a trial is feasible                                       | that of it  |
| excess         | value - high, and low - value: feasible if <= 0, which is how the search sees it   | that of it  |

A quantity with two finite limits has two excesses. The module imports neither torch nor NumPy.
"""

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "FREE",
    "PLAIN",
    "Limit",
    "Limits",
    "SharedLimits",
    "Side",
    "excesses",
    "intervals_of",
    "limits_of",
    "sides_of",
    "stored",
    "texts",
]


@dataclass(frozen=True, slots=True)
class Side:
    """One finite limit of a quantity.

    Attributes:
        key: the name of its excess in the search.
        sign: 1 for an upper limit, -1 for a lower one.
        bound: the limit.
    """

    key: str
    sign: float
    bound: float

    def excess(self, value: float) -> float:
        """By how much a value is beyond the limit: at most 0 if it is not. It is finite for a finite value."""
        most = sys.float_info.max
        return max(-most, min(self.sign * (value - self.bound), most))

    def value(self, excess: Any) -> Any:
        """The inverse of `excess`, also of arrays."""
        return self.sign * excess + self.bound


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits of a quantity: a trial is feasible if `low <= value <= high`.

    The default is that of a constraint without limits of its own, which is told as an excess.
    """

    low: float = -math.inf
    high: float = 0.0

    def holds(self, value: float) -> bool:
        """Whether a value is feasible."""
        return self.low <= value <= self.high

    @property
    def pair(self) -> tuple[float | None, float | None]:
        """The limits, with None for infinite ones."""
        low, high = (bound if math.isfinite(bound) else None for bound in (self.low, self.high))
        return low, high

    def text(self, name: str) -> str:
        """The constraint as text: the name alone, if it has no limits of its own."""
        low, high = map(_short, (self.low, self.high))
        if self == Limit():
            return name
        if math.isinf(self.low):
            return name if math.isinf(self.high) else f"{name} <= {high}"
        return f"{name} >= {low}" if math.isinf(self.high) else f"{low} <= {name} <= {high}"

    def sides(self, name: str) -> Iterator[Side]:
        """The finite limits."""
        is_pair = math.isfinite(self.low) and math.isfinite(self.high)
        if math.isfinite(self.low):
            yield Side(f"{name} (low)" if is_pair else name, -1.0, self.low)
        if math.isfinite(self.high):
            yield Side(f"{name} (high)" if is_pair else name, 1.0, self.high)


#: Limits by name of the quantity.
Limits = Mapping[str, Limit]


class SharedLimits(Mapping[str, Limit]):
    """The limits that an optimizer and all its trials have in common; programs that have a trial cannot change them."""

    __slots__ = ("_limits",)

    def __init__(self, limits: Limits) -> None:
        self._limits = dict(limits)

    def __getitem__(self, name: str) -> Limit:
        return self._limits[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._limits)

    def __len__(self) -> int:
        return len(self._limits)

    def __repr__(self) -> str:
        return repr(self._limits)


#: The limits of a quantity that was a constraint once.
FREE = Limit(-math.inf, math.inf)
#: The limits of a constraint without any of its own.
PLAIN = Limit()


def _short(number: float) -> str:
    """A number that reads back as the same one, without a needless fraction."""
    return repr(number).removesuffix(".0")


def sides_of(limits: Limits) -> dict[str, tuple[Side, ...]]:
    """The finite limits of all quantities, by name."""
    return {name: tuple(limit.sides(name)) for name, limit in limits.items()}


def intervals_of(limits: Limits) -> tuple[tuple[str, str], ...]:
    """The keys of both sides of the quantities with two finite limits."""
    return tuple((sides[0].key, sides[1].key) for sides in sides_of(limits).values() if len(sides) > 1)


def excesses(limits: Limits, values: Mapping[str, float]) -> dict[str, float]:
    """The excesses of measured values, by the names that they have in the search."""
    found = ((limits.get(name, PLAIN).sides(name), value) for name, value in values.items())
    return {side.key: side.excess(value) for sides, value in found for side in sides}


def stored(limits: Limits) -> list[Any]:
    """What a log keeps: the name alone for a plain constraint, and else the name with both limits."""
    return [name if limit == PLAIN else [name, *limit.pair] for name, limit in limits.items()]


def limits_of(kept: Any) -> dict[str, Limit]:
    """The limits that `stored` has kept.

    Raises:
        ValueError, TypeError: something else.
    """
    out: dict[str, Limit] = {}
    if not isinstance(kept, list | tuple):
        raise TypeError(f"constraints as {type(kept).__name__}")
    for entry in kept:
        name, limit = (entry, PLAIN) if isinstance(entry, str) else (entry[0], _read(*entry[1:]))
        if not isinstance(name, str) or name in out:
            raise ValueError("constraints that are not distinct names")
        out[name] = limit
    return out


def texts(kept: Any) -> tuple[str, ...]:
    """What `stored` has kept, as text; raises the errors of `limits_of`."""
    return tuple(limit.text(name) for name, limit in limits_of(kept).items())


def _read(low: Any, high: Any) -> Limit:
    bounds = (-math.inf if low is None else low, math.inf if high is None else high)
    are_numbers = all(type(bound) is float for bound in bounds)
    if not (are_numbers and bounds[0] <= bounds[1] and bounds[0] < math.inf and bounds[1] > -math.inf):
        raise ValueError("limits that are no numbers in order")
    return Limit(*bounds)
