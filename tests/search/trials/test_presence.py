"""Which parameters the trials have, compared with a look at all trials."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bkbopt.search.trials.evaluations import Point
from bkbopt.search.trials.presence import MAX_SWITCH_VALUES, Presence

KEYS = ("a", "b", "c")
VALUES = st.sampled_from([0.0, 1.0, 2.0])
POINTS = st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES), max_size=12)


def presence(points: list[Point]) -> Presence:
    out = Presence()
    for point in points:
        out.add(point)
    return out


@given(POINTS)
def test_the_patterns_of_each_value_are_those_of_the_trials_with_it(points: list[Point]) -> None:
    found = presence(points)
    assert set(found.patterns) == {frozenset(point) for point in points}
    for key in KEYS:
        values = {point.get(key) for point in points}
        assert found.patterns_by_value(key) == {
            value: {frozenset(point) for point in points if point.get(key) == value} for value in values
        }


@given(POINTS)
def test_trials_are_conditional_if_one_lacks_what_another_has(points: list[Point]) -> None:
    every = {key for point in points for key in point}
    assert presence(points).is_conditional == any(key not in point for key in every for point in points)


@given(POINTS, POINTS, st.lists(st.sampled_from([("a",), ("a", "b"), ()]), min_size=2, max_size=3))
def test_combinations_of_values_are_counted_whatever_was_counted_before(
    first: list[Point], later: list[Point], keys: list[tuple[str, ...]]
) -> None:
    found = presence(first)
    for one in keys:
        found.settings(one)
    for point in later:
        found.add(point)
    counts = Counter(tuple(point.get(key) for key in keys[-1]) for point in first + later)
    assert list(found.settings(keys[-1]).items()) == list(counts.items())


def test_a_parameter_of_many_values_is_no_switch() -> None:
    found = presence([{"n": float(i)} for i in range(MAX_SWITCH_VALUES)])
    assert found.patterns_by_value("n") is not None
    found.add({"m": 0.0})  # its absence is one more value
    assert found.patterns_by_value("n") is None
