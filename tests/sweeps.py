"""Combinations of options: the fast suite runs a few, `make test-all` runs all."""

from collections.abc import Collection, Iterable
from itertools import combinations, product
from typing import Any

import pytest

__all__ = ["slow_but", "sweep"]


def sweep(*options: Iterable[object], together: int = 1) -> list[Any]:
    """All combinations of the values of two or more options, for `parametrize`; slow but for a few.

    Each of the few is the one that meets the most of what none before it met, until every value of each option had its
    turn, or with `together=2` every pair of values of two options.
    """
    values = [list(option) for option in options]
    groups = list(combinations(range(len(values)), together))
    places = list(product(*(range(len(own)) for own in values)))
    meets = [{(group, tuple(place[i] for i in group)) for group in groups} for place in places]
    left, fast = set().union(*meets), set()
    while left:
        best = max(range(len(meets)), key=lambda i: len(meets[i] & left))
        fast.add(best)
        left -= meets[best]
    combos = product(*values)
    return [pytest.param(*combo, marks=() if i in fast else pytest.mark.slow) for i, combo in enumerate(combos)]


def slow_but(fast: Collection[object], values: Iterable[object]) -> list[Any]:
    """The values of one option, slow but for those in `fast`."""
    return [pytest.param(value, marks=() if value in fast else pytest.mark.slow) for value in values]
