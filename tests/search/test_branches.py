"""Branches of a conditional space, inferred from the values of trials."""

from bkbopt.search.branches import Branch, Branching
from bkbopt.search.trials.evaluations import Point
from bkbopt.search.trials.presence import Presence

# "a" decides over "x", "b" over "y".
ROWS = [{"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 0.0, "x": 0.5}, {"a": 2.0, "b": 2.0}, {"a": 2.0, "b": 3.0, "y": 1.0}]
KEYS = ["a", "b", "x", "y"]


def presence(rows: list[Point]) -> Presence:
    out = Presence()
    for row in rows:
        out.add(row)
    return out


def test_a_setting_outside_of_the_ranges_is_no_branch() -> None:
    branches = Branching.of(presence(ROWS), KEYS, {"a": [0.0, 1.0, 2.0], "b": [2.0, 3.0]}).branches(32)
    assert [branch.setting for branch in branches] == [{"a": 2.0, "b": 2.0}, {"a": 2.0, "b": 3.0}]
    assert [branch.free for branch in branches] == [(), ("y",)]


def test_ranges_that_leave_no_setting_that_was_seen_leave_one_branch_of_all() -> None:
    branches = Branching.of(presence(ROWS), KEYS, {"a": [0.0, 1.0], "b": [2.0, 3.0]}).branches(32)
    assert branches == [Branch({}, tuple(KEYS), 4)]


def test_a_value_that_a_switch_under_another_never_had_is_a_branch() -> None:
    rows = [{"a": 1.0, "b": 0.0, "x": 0.5}, {"a": 1.0, "b": 1.0}, {"a": 0.0}]
    branches = Branching.of(presence(rows), ["a", "b", "x"], {"a": [0.0, 1.0], "b": [0.0, 1.0, 2.0]}).branches(32)
    assert branches[0] == Branch({"a": 1.0, "b": 2.0}, (), 0)
    assert len(branches) == 4


def test_settings_that_no_trial_combined_are_next_to_those_seen() -> None:
    branching = Branching.of(presence(ROWS), KEYS, {"a": [0.0, 1.0, 2.0], "b": [0.0, 2.0, 3.0]})
    crossed = branching.crossings(branching.seen[0])
    assert branching.seen[0].setting == {"a": 0.0, "b": 0.0}
    settings = [branch.setting for branch in crossed]
    assert settings == [{"a": 2.0, "b": 0.0}, {"a": 0.0, "b": 2.0}, {"a": 0.0, "b": 3.0}]
    assert [branch.free for branch in crossed] == [(), (), ("y",)]


def test_branches_with_fixed_values_may_have_few_trials() -> None:
    rows = [{"a": float(i % 5), **({"x": 0.5} if i % 5 else {"y": 0.5})} for i in range(50)] + [{"a": 5.0, "y": 0.5}]
    branching = Branching.of(presence(rows), ["a", "x", "y"], {"a": [float(i) for i in range(7)]})
    assert [b.setting for b in branching.branches(2, {"a": 5.0})] == [{"a": 5.0}]
    assert [b.setting for b in branching.branches(2, {"a": 6.0})] == [{"a": 6.0}]  # without trials
    assert [b.setting for b in branching.branches(2, {"y": 0.1})] == [{"a": 0.0}, {"a": 5.0}]
    assert [b.setting for b in branching.branches(2, {"a": 1.0, "y": 0.1})] == [{"a": 1.0}]  # no trial has both
