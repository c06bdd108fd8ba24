"""Running trials of a space whose numbers come back rounded, as from a table of text."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bkbopt as bo

SPACE = {
    "x": (0.0, 1.0),
    "rate": bo.Float(1e-5, 1.0, log=True),
    "temperature": (20.0, 200.0),
    "kind": ["a", "b"],
    "n": bo.Int(1, 9),
    "depth": bo.Float(0.0, 1.0, when={"kind": "a"}),
}
ROUNDED: dict[str, Callable[[float], float]] = {
    "three digits": lambda v: float(f"{v:.3g}"),
    "four digits": lambda v: float(f"{v:.4g}"),
    "six digits": lambda v: float(f"{v:.6g}"),
    "float32": lambda v: float(np.float32(v)),
    "as it is": lambda v: v,
}


def rounded(params: Any, how: Callable[[float], float]) -> dict[str, Any]:
    return {name: how(value) if isinstance(value, float) else value for name, value in params.items()}


@pytest.mark.parametrize("how", ROUNDED)
def test_points_with_rounded_numbers_complete_the_trials_that_they_are(how: str) -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    asked = opt.ask(24)
    order = np.random.default_rng(0).permutation(24).tolist()
    told = opt.tell([rounded(asked[i].params, ROUNDED[how]) for i in order], [float(i) for i in order])
    assert [trial.id for trial in told] == order
    assert [trial.params for trial in opt.trials] == [trial.params for trial in asked]
    assert [trial.value for trial in opt.trials] == list(range(24))


def test_decimals_are_digits_too() -> None:
    opt = bo.Optimizer([(0.0, 1.0)] * 6, seed=0)
    asked = opt.ask(96)
    opt.tell([rounded(trial.params, lambda v: round(v, 3)) for trial in asked], list(range(96)))
    assert [trial.value for trial in opt.trials] == list(range(96))


@pytest.mark.parametrize(
    "point",
    [{"x": 0.4, "k": 0}, {"x": 0.42, "k": 0}, {"x": 0.4241, "k": 0}, {"x": 0.42, "k": 1}, {"x": 0.424, "k": 1}],
    ids=str,
)
def test_another_point_stays_another_point(point: dict[str, Any]) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "k": [0, 1]}, seed=0)
    opt.enqueue({"x": 0.424242, "k": 0})
    trial = opt.ask()
    told = opt.tell(point, 1.0)
    assert told.params == point
    assert opt.trials[trial.id].state == "RUNNING"


def test_digits_of_numbers_that_are_large_beside_the_range_say_nothing() -> None:
    opt = bo.Optimizer({"x": (1e6, 1e6 + 1.0)}, seed=0)
    opt.enqueue({"x": 1e6 + 0.25})
    opt.ask()
    assert opt.tell({"x": 1e6}, 1.0).id == 1


@pytest.mark.filterwarnings("error")
def test_large_numbers_have_digits_too() -> None:
    opt = bo.Optimizer({"x": (0.0, 1e300), "y": (-1e307, 1e307)}, seed=0)
    asked = opt.ask(8)
    told = opt.tell([rounded(trial.params, ROUNDED["four digits"]) for trial in asked], list(range(8)))
    assert [trial.id for trial in told] == list(range(8))


def test_a_second_value_of_a_rounded_point_is_one_of_the_same_point() -> None:
    opt = bo.Optimizer([(0.0, 1.0)] * 2, seed=0)
    first, second = opt.ask(2)
    row = rounded(first.params, lambda v: round(v, 4))
    told = opt.tell([row, row], [1.0, 2.0])
    assert told[0].id == first.id
    assert told[1].params == first.params
    assert opt.trials[second.id].state == "RUNNING"


def test_of_two_trials_with_the_same_digits_each_is_completed_once() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    for x in (0.12341, 0.12344):
        opt.enqueue({"x": x})
    opt.ask(2)
    opt.tell([{"x": 0.1234}, {"x": 0.1234}], [1.0, 2.0])
    assert [trial.value for trial in opt.trials] == [1.0, 2.0]


def test_a_table_that_seems_to_mean_running_trials_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    opt = bo.Optimizer([(0.0, 1.0)] * 4, seed=0)
    asked = opt.ask(8)
    with caplog.at_level(logging.WARNING, "bkbopt"):
        opt.tell([rounded(trial.params, lambda v: round(v, 2)) for trial in asked], list(range(8)))
    assert "7 of 7 points lie very near to running trials" in caplog.text
    states = [trial.state for trial in opt.trials]
    assert states == ["COMPLETE"] + ["RUNNING"] * 7 + ["COMPLETE"] * 7  # the first point is the centre
    caplog.clear()
    with caplog.at_level(logging.WARNING, "bkbopt"):
        rows = np.random.default_rng(1).random((8, 4))
        opt.tell([{f"x{i}": v for i, v in enumerate(row)} for row in rows], [0.0] * 8)
    assert caplog.text == ""
