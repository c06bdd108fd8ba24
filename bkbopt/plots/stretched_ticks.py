"""Ticks of axes with a stretched end: powers of ten, or 1, 2 and 5 times these, of the distance from a round number.

| symbol | shape  | units  | meaning                                                                              |
| ------ | ------ | ------ | ------------------------------------------------------------------------------------ |
| anchor | scalar | user's | the roundest number within the reach of the stretched end: 1 for 0.9999, 0 for 1e-6  |
| tick   | scalar | user's | an end; or anchor + m 10^k from a lower end, anchor - m 10^k from an upper one,      |
|        |        |        | rounded to a multiple of 10^k                                                        |
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

from bkbopt.spaces.stretched import StretchedAxis

__all__ = ["stretched_ticks"]

#: Numbers of ticks below which there are some between the powers of ten, if there is room.
LEAST = 5
#: Which digits these have, in the order in which they are tried.
BETWEEN = ((1, 2, 5), (1, 5), (1, 2))


def stretched_ticks(
    axis: StretchedAxis,
    low: float,
    high: float,
    fit: Callable[[float, str, float, str], bool],
    *,
    whole: bool = False,
) -> tuple[list[float], list[str]]:
    """Ticks of an axis from `low` to `high`, with their labels, of which none covers another one.

    Both ends are labelled; next to them a power of ten may be left out.

    Args:
        axis: the axis.
        low: its lower limit, user's units.
        high: its upper limit, user's units.
        fit: `fit(tick, label, other, label)` tells whether two labels have room beside each other.
        whole: whether the values are whole numbers.
    """
    ends = [(end, f"{end:.12g}" if whole else f"{end:g}") for end in (low, high)]

    def apart(a: tuple[float, str], b: tuple[float, str]) -> bool:
        return fit(*a, *b)

    def inner(digits: Sequence[int], every: int) -> list[tuple[float, str]]:
        found = sorted(_between(axis, low, high, digits, every))
        kept = [(tick, text) for tick, text in found if not whole or tick == round(tick)]
        known = {text for _, text in ends}  # in a tiny range of large numbers all are alike
        return [one for one in kept if one[1] not in known and apart(ends[0], one) and apart(one, ends[1])]

    def is_free(ticks: Iterable[tuple[float, str]]) -> bool:
        return all(apart(a, b) for a, b in itertools.pairwise(ticks))

    every = next(n for n in itertools.count(1) if is_free(inner((1,), n)))
    ticks = inner((1,), every)
    if every == 1 and len(ticks) + 2 < LEAST:
        ticks = next((more for some in BETWEEN if is_free(more := inner(some, 1))), ticks)
    chosen = [ends[0], *ticks, ends[1]]
    return [tick for tick, _ in chosen], [text for _, text in chosen]


def _between(
    axis: StretchedAxis, low: float, high: float, digits: Sequence[int], every: int
) -> Iterable[tuple[float, str]]:
    """Ticks strictly between the limits, at every so many powers of ten from the largest one on, with their labels."""
    side, reach = math.copysign(1.0, axis.reach), abs(axis.reach)
    anchor = _round_near(axis.end, reach, high - low)
    top, bottom = (math.floor(math.log10(length)) for length in (high - low, reach))
    for k in range(top + 1, bottom - 1, -every):
        for m in digits:
            tick = round(anchor + side * m * 10.0**k, max(-k, 0))
            if low < tick < high and abs(tick - axis.end) > 0.5 * reach:
                yield tick, f"{tick:.12g}"


def _round_near(end: float, reach: float, width: float) -> float:
    """The roundest number that is not farther than the reach from the end."""
    k, last = math.ceil(math.log10(max(abs(end), width))) + 1, math.floor(math.log10(reach))
    while k > last and abs(round(end / 10.0**k) * 10.0**k - end) > reach:
        k -= 1
    return round(round(end / 10.0**k) * 10.0**k, max(-k, 0))
