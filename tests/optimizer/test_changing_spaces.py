"""Spaces that change during a run: the past stays in the model."""

import logging

import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError
from tests.optimizer.spaces_to_ask import BOX, optimizer, run


def test_moved_range_is_kept_to_and_the_past_stays_in_the_model() -> None:
    opt = optimizer({"x": (0.0, 1.0)})
    run(opt, 12, lambda p: (p["x"] - 1.4) ** 2)
    before = opt.predict({"x": 0.5})
    opt.set_space({"x": (0.5, 2.0)})
    assert opt.space is not None
    assert opt.space.names == ("x",)
    # Another scale of the same data: the same function but for the fit.
    assert opt.predict({"x": 0.5})[0] == pytest.approx(before[0], abs=0.02)
    assert opt.surrogate.observations.total == 12
    run(opt, 12, lambda p: (p["x"] - 1.4) ** 2)
    assert all(0.5 <= t.params["x"] <= 2.0 for t in opt.trials[12:])
    assert opt.recommend().params["x"] == pytest.approx(1.4, abs=0.05)
    assert len(opt.trials) == 24
    with pytest.raises(ArgumentError, match=r"\[0.5, 2.0\]"):
        opt.tell({"x": 0.25}, 1.0)


def test_recommendation_belongs_to_the_space_as_it_is_now() -> None:
    opt = optimizer()
    run(opt, 12)
    narrow = {"x": (0.6, 1.0), "y": (-2.0, 2.0)}
    opt.set_space(narrow)
    inside = [t for t in opt.trials if t.params["x"] >= 0.6]
    assert inside
    assert opt.recommend().params in [t.params for t in inside]
    assert opt.best_trial.params["x"] < 0.6  # the best that was ever told
    opt.set_space({"x": (5.0, 6.0), "y": (-2.0, 2.0)})
    assert opt.recommend().params in [t.params for t in opt.trials]  # none is inside: the best of all


def test_new_and_dropped_parameters_keep_the_past() -> None:
    opt = optimizer()
    run(opt, 10)
    opt.set_space({"x": (0.0, 1.0), "batch": bo.Ordinal([1, 2, 4])})
    assert opt.surrogate.observations.total == 10
    run(opt, 8, lambda p: (p["x"] - 0.3) ** 2 + 0.1 * p["batch"])
    assert all(set(t.params) == {"x", "batch"} for t in opt.trials[10:])
    assert set(opt.trials[0].params) == {"x", "y"}
    assert set(opt.recommend().params) == {"x", "batch"}
    assert opt.recommend().params["x"] == pytest.approx(0.3, abs=0.1)


def test_running_trials_of_the_old_space_can_still_be_told() -> None:
    opt = optimizer()
    run(opt, 6)
    trial = opt.ask()
    opt.set_space({"x": (2.0, 3.0), "z": ["a", "b"]})
    assert opt.tell(trial, 1.0).params == trial.params
    assert set(opt.ask().params) == {"x", "z"}


def test_same_space_set_again_changes_nothing() -> None:
    a, b = optimizer(), optimizer()
    for opt in (a, b):
        run(opt, 9)
    b.set_space(dict(BOX))
    assert a.recommend() == b.recommend()
    assert [t.params for t in a.ask(3)] == [t.params for t in b.ask(3)]


def test_space_that_became_conditional_keeps_the_past() -> None:
    opt = optimizer({"kind": ["a", "b"], "x": (0.0, 1.0)})
    run(opt, 10, lambda p: (p["x"] - 0.3) ** 2 + (p["kind"] == "b"))
    opt.set_space({"kind": ["a", "b"], "x": bo.Float(0.0, 1.0, when={"kind": "a"})})
    run(opt, 6, lambda p: (p["x"] - 0.3) ** 2 if "x" in p else 1.0)
    assert opt.recommend().params["kind"] == "a"


@pytest.mark.parametrize("space", [{"x": (0.0, 1.0)}, {**BOX, "z": (0.0, 1.0)}, dict(reversed(BOX.items()))])
def test_parameters_are_those_of_a_kernel_that_was_given(space: dict[str, object]) -> None:
    surrogate = bo.BKB(bo.kernels.matern52(2, 0.3), noise=0.01)
    opt, same = (optimizer(surrogate=surrogate) for _ in range(2))
    for one in (opt, same):
        run(one, 6)
    with pytest.raises(ArgumentError, match="for which the surrogate's kernel was given"):
        opt.set_space(space)
    assert opt.ask().params == same.ask().params
    opt.set_space({"x": (0.0, 2.0), "y": (-2.0, 2.0)})  # the same columns
    assert set(opt.ask().params) == {"x", "y"}


def test_a_value_that_the_model_has_to_assume_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    opt = optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    with caplog.at_level(logging.WARNING, "bkbopt"):
        opt.set_space({"x": (0.0, 1.0)})  # nothing was evaluated
        opt.tell({"x": 0.5}, 1.0)
        opt.set_space({"x": (0.0, 2.0), "heat": (0.0, 1.0)}, past={"heat": 0.25})
        opt.set_space({"x": 0.5, "heat": (0.0, 1.0), "cold": 3.0})
        assert caplog.text == ""
        opt.set_space({"heat": (0.0, 1.0), "kind": ["a", "b"]})
    assert "earlier trials are taken to have had the middle of the range, or the first choice, of ['kin" in caplog.text
    assert "past={'kind': value}" in caplog.text
    assert "later trials" not in caplog.text  # x and cold had one value
    caplog.clear()
    with caplog.at_level(logging.WARNING, "bkbopt"):
        opt.set_space({"kind": ["a", "b"]})
    assert "later trials are taken to have the middle of the former range, or the first choice, of ['h" in caplog.text
    assert "set_space({'heat': value, ...})" in caplog.text
