"""Which parameters the trials have: what the branches of a conditional space are inferred from.

It is updated trial by trial. What is read of it takes time by the number of different patterns and values, and not by
that of trials, as long as combinations of the same parameters are counted.
"""

from collections import Counter
from collections.abc import Sequence

from bkbopt.search.trials.evaluations import Point

__all__ = ["MAX_SWITCH_VALUES", "Pattern", "Presence"]

#: A parameter with more distinct values in the trials than this is not a switch; its absence counts as a value.
MAX_SWITCH_VALUES = 24

#: The keys of the parameters that a trial has.
Pattern = frozenset[str]
#: Keys of parameters, the number of trials looked at, and how many of them have each combination of values.
Counted = tuple[tuple[str, ...], int, Counter[tuple[float | None, ...]]]


class Presence:
    """The parameters of trials, and the values of those that may be switches."""

    def __init__(self) -> None:
        self._points: list[Point] = []
        #: The patterns of all trials, and for each key and each of its values (None if absent) those of the trials
        #: with it; None in place of the values if there are too many for a switch.
        self._patterns: dict[Pattern, Pattern] = {}
        self._by_value: dict[str, dict[float | None, set[Pattern]] | None] = {}
        self._settings: Counted = ((), 0, Counter())

    def add(self, point: Point) -> None:
        """Add a trial."""
        pattern = frozenset(point)
        if pattern not in self._patterns:
            for key in pattern - self._by_value.keys():
                self._by_value[key] = {None: set(self._patterns)} if self._patterns else {}
        # Equal patterns are one object: sets compare long ones by identity.
        pattern = self._patterns.setdefault(pattern, pattern)
        for key, values in self._by_value.items():
            if values is not None:
                values.setdefault(point.get(key), set()).add(pattern)
                if len(values) > MAX_SWITCH_VALUES:
                    self._by_value[key] = None
        self._points.append(point)

    @property
    def latest(self) -> Point:
        """The point of the latest trial."""
        return self._points[-1]

    @property
    def is_conditional(self) -> bool:
        """Whether some trial lacks a parameter that another has."""
        return len(self._patterns) > 1

    @property
    def patterns(self) -> Sequence[Pattern]:
        """The distinct patterns of the trials."""
        return tuple(self._patterns)

    def patterns_by_value(self, key: str) -> dict[float | None, set[Pattern]] | None:
        """The patterns of the trials with each value of a parameter, None if absent.

        It is None if the parameter has too many values for a switch. A key without trials is absent in all.
        """
        return self._by_value.get(key, {None: set(self._patterns)} if self._patterns else {})

    def settings(self, keys: Sequence[str]) -> Counter[tuple[float | None, ...]]:
        """Numbers of trials with each combination of values of the parameters, None for absent ones.

        The combinations are in the order of their first trials. For the keys of the last call only new trials are
        counted.
        """
        counted, n, counts = self._settings
        self._settings = (), 0, Counter()  # an interrupted count is begun again
        if counted != tuple(keys):
            counted, n, counts = tuple(keys), 0, Counter()
        for point in self._points[n:]:
            counts[tuple(point.get(key) for key in counted)] += 1
        self._settings = counted, len(self._points), counts
        return counts.copy()
