"""One problem that is stated in two ways: the suggestions are the same."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo

BOX = {"x": (-1.0, 2.0), "y": (0.0, 1.0)}


def noise(i: int) -> float:
    return 0.1 * math.sin(100.0 * i * i)


def value(x: float, y: float, i: int) -> float:
    return math.sin(3.0 * x) + (y - 0.6) ** 2 + noise(i)


def asked(space: Any, read: Callable[[Any], tuple[float, ...]], n: int = 14, **options: Any) -> list[tuple[float, ...]]:
    """The points that are asked for, as `read` gives x and y of their parameters, and what else it gives."""
    opt, points = bo.Optimizer(space, seed=3, n_startup_trials=5, **options), []
    for i in range(n):
        trial = opt.ask()
        points.append(read(trial.params))
        opt.tell(trial, value(*points[-1][:2], i))
    return points


def xy(params: Any) -> tuple[float, float]:
    return params["x"], params["y"]


@cache
def asked_of_the_box() -> list[tuple[float, ...]]:
    return asked(BOX, xy)


@cache
def asked_of_the_grid() -> list[tuple[float, ...]]:
    whole = {"x": bo.Int(0, 12), "y": bo.Int(0, 4)}
    return asked(whole, lambda p: (p["x"] / 4 - 1, p["y"] / 4))


@pytest.mark.parametrize(
    ("space", "read"),
    [
        ({"x": (-1024.0, 2048.0), "y": (0.0, 1.0)}, lambda p: (p["x"] / 1024.0, p["y"])),
        ({"b": (-1.0, 2.0), "a": (0.0, 1.0)}, lambda p: (p["b"], p["a"])),
        ([(-1.0, 2.0), (0.0, 1.0)], lambda p: (p["x0"], p["x1"])),
        ({"x": (-1.0, 2.0), "fixed": bo.Int(4, 4, log=True), "only": ["a"], "y": (0.0, 1.0)}, xy),
        ({"k": ["a"], "x": bo.Float(-1.0, 2.0, when={"k": "a"}), "y": (0.0, 1.0)}, xy),
    ],
    ids=["another unit", "other names", "a list", "parameters with one value", "a condition that always holds"],
)
def test_statements_of_a_box(space: Any, read: Callable[[Any], tuple[float, ...]]) -> None:
    assert asked(space, read) == asked_of_the_box()


@pytest.mark.parametrize(
    ("space", "read"),
    [
        ({"x": bo.Float(-1.0, 2.0, step=0.25), "y": bo.Float(0.0, 1.0, step=0.25)}, xy),
        ({"x": bo.Ordinal([i / 4 - 1 for i in range(13)]), "y": bo.Ordinal([0.0, 0.25, 0.5, 0.75, 1.0])}, xy),
        ({"x": bo.Int(3, 63, step=5), "y": range(0, 9, 2)}, lambda p: ((p["x"] - 3) / 20 - 1, p["y"] / 8)),
    ],
    ids=["steps of floats", "ordered values", "steps of whole numbers"],
)
def test_statements_of_a_grid(space: Any, read: Callable[[Any], tuple[float, ...]]) -> None:
    assert asked(space, read) == asked_of_the_grid()


ROWS = np.random.default_rng(7).random((60, 2)) * [3.0, 1.0] - [1.0, 0.0]


def labels(frame: pd.DataFrame) -> list[int]:
    """The rows that are asked for, as in `ROWS`, after past data of ten others."""
    frame = frame.assign(name=[f"m{i}" for i in frame.index])
    opt, asked = bo.Optimizer(bo.Pool(frame, id_column="name"), seed=3, n_startup_trials=5), []
    opt.tell_rows([f"m{i}" for i in range(0, 60, 6)], [value(*ROWS[i], i) for i in range(0, 60, 6)])
    for i in range(10):
        trial = opt.ask()
        asked.append(int(str(trial.label)[1:]))
        opt.tell(trial, value(*ROWS[asked[-1]], i))
    return asked


@cache
def labels_of_the_rows() -> list[int]:
    return labels(pd.DataFrame(ROWS, columns=["x", "y"]))


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(ROWS, columns=["x", "y"])[["y", "x"]],
        pd.DataFrame(-ROWS, columns=["x", "y"]),
        pd.DataFrame(ROWS, columns=["x", "y"]).iloc[::-1],
        pd.DataFrame(ROWS * [1e3, 1e-5] + [7.0, 0.0], columns=["x", "y"]),
    ],
    ids=["columns in another order", "columns mirrored", "rows in another order", "other units"],
)
def test_statements_of_a_pool_after_past_data(table: pd.DataFrame) -> None:
    assert labels(table) == labels_of_the_rows()


def test_a_parameter_that_came_later_with_its_past_value_is_one_that_was_always_there() -> None:
    space, past = {**BOX, "heat": (0.0, 8.0), "kind": ["a", "b"]}, {"heat": 2.0, "kind": "b"}
    late, always = (bo.Optimizer(start, seed=3, n_startup_trials=5) for start in (BOX, space))
    for i in range(8):
        point = {"x": i * 5 % 8 / 3 - 1, "y": i / 8}
        late.tell(point, value(*point.values(), i))
        always.tell({**point, **past}, value(*point.values(), i))
    late.set_space(space, past=past)
    for i in range(5):
        trials = [opt.ask() for opt in (late, always)]
        assert trials[0].params == trials[1].params
        for opt, trial in zip((late, always), trials, strict=True):
            opt.tell(trial, value(*xy(trial.params), i) + trial.params["heat"] / 8)


def test_noise_stated_with_the_surrogate_is_that_told_with_each_value() -> None:
    told, points = bo.Optimizer(BOX, seed=3, n_startup_trials=5), []
    for i in range(14):
        trial = told.ask()
        points.append(xy(trial.params))
        told.tell(trial, value(*points[-1], i), std=0.125)
    stated = asked(BOX, xy, surrogate=bo.BKB(noise=0.125**2))
    np.testing.assert_allclose(stated, points, rtol=0.0, atol=1e-6)  # the noise is the median of equal numbers


def test_a_part_that_is_queued_is_completed_as_one_that_is_fixed() -> None:
    fixed, queued = (bo.Optimizer(BOX, seed=3, n_startup_trials=5) for _ in range(2))
    for i in range(12):
        queued.enqueue({"y": 0.5})
        trials = fixed.ask(fixed={"y": 0.5}), queued.ask()
        assert trials[0].params == trials[1].params
        for opt, trial in zip((fixed, queued), trials, strict=True):
            opt.tell(trial, value(*xy(trial.params), i))


@pytest.mark.parametrize("more", [{"directions": ["minimize"] * 2}, {"constraints": ["c"]}], ids=str)
def test_units_of_several_objectives_and_of_constraints(more: dict[str, Any]) -> None:
    def points(unit: float, other: float) -> list[tuple[float, float]]:
        opt, out = bo.Optimizer(BOX, seed=3, n_startup_trials=5, **more), []
        for i in range(12):
            trial = opt.ask()
            out.append(xy(trial.params))
            first, second = unit * value(*out[-1], i), other * (out[-1][0] - 0.25 + noise(i + 50))
            if "directions" in more:
                opt.tell(trial, [first, second])
            else:
                opt.tell(trial, first, constraints={"c": second})
        return out

    assert points(2.0**40, 2.0**-30) == points(1.0, 1.0)
