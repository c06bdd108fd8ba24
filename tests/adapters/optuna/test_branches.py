"""Branches of a conditional space, read off the values of trials."""

from bkbopt.adapters.optuna.branches import Branch, branches_of

# "a" decides over "x", "b" over "y".
ROWS = [{"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 0.0, "x": 0.5}, {"a": 2.0, "b": 2.0}, {"a": 2.0, "b": 3.0, "y": 1.0}]
KEYS = ["a", "b", "x", "y"]


def test_a_setting_outside_of_the_ranges_is_no_branch() -> None:
    branches = branches_of(ROWS, KEYS, {"a": [0.0, 1.0, 2.0], "b": [2.0, 3.0]}, 32)
    assert [branch.setting for branch in branches] == [{"a": 2.0, "b": 2.0}, {"a": 2.0, "b": 3.0}]
    assert [branch.free for branch in branches] == [(), ("y",)]


def test_ranges_that_leave_no_setting_that_was_seen_leave_one_branch_of_all() -> None:
    branches = branches_of(ROWS, KEYS, {"a": [0.0, 1.0], "b": [2.0, 3.0]}, 32)
    assert branches == [Branch({}, tuple(KEYS), (0, 1, 2, 3))]
