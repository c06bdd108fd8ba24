"""The warning about points that were told before."""

import logging

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError
from bkbopt.optimizer.telling import told_points

RNG = np.random.default_rng(0)
POINTS = [{"x": float(x)} for x in RNG.random(6)]
VALUES = RNG.standard_normal(6).tolist()


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == told_points.__name__]


def optimizer(**options: object) -> bo.Optimizer:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, **options)  # type: ignore[arg-type]
    opt.tell(POINTS, VALUES)
    return opt


def test_a_table_that_is_told_again_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    opt = optimizer()
    with caplog.at_level(logging.WARNING):
        opt.tell(POINTS[1:4], VALUES[1:4])
    (text,) = warned(caplog)
    assert text.startswith("tell: all 3 points equal earlier trials in parameters and values, as where a table is")


def test_new_values_new_points_and_more_repeats_than_before_are_not(caplog: pytest.LogCaptureFixture) -> None:
    opt = optimizer()
    with caplog.at_level(logging.WARNING):
        opt.tell(POINTS[:3], [*VALUES[:2], 0.25])
        opt.tell([*POINTS[:2], {"x": 0.125}], VALUES[:3])
        opt.tell(POINTS[3:5] * 2, VALUES[3:5] * 2)
    assert not warned(caplog)


def test_two_points_and_objectives_without_noise_are_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        optimizer().tell(POINTS[:2], VALUES[:2])
        optimizer(deterministic=True).tell(POINTS, VALUES)
    assert not warned(caplog)


def test_the_search_for_them_is_left_out_where_it_would_take_longer_than_telling(
    caplog: pytest.LogCaptureFixture,
) -> None:
    opt = optimizer()
    more = RNG.random(3 * told_points.COMPARED)
    opt.tell([{"x": float(x)} for x in more], more.tolist())
    with caplog.at_level(logging.WARNING):
        opt.tell(POINTS[:3], VALUES[:3])
        assert not warned(caplog)
        opt.tell(POINTS[:4], VALUES[:4])
    assert len(warned(caplog)) == 1


def test_a_table_that_has_grown_is_told_from_where_it_has(caplog: pytest.LogCaptureFixture) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, constraints=["heat <= 1"], seed=0)
    table = pd.DataFrame({"x": [0.1, 0.1, 0.2], "loss": [1.0, 1.0, 2.0], "heat": [0.5, 0.5, 3.0]})
    more = {"constraints": {"heat": "heat"}, "again": False}
    assert [trial.id for trial in opt.tell(table, "loss", **more)] == [0, 1, 2]
    asked = opt.ask()
    row = {"x": round(asked.params["x"], 4), "loss": 4.0, "heat": 0.0}
    more_rows = [dict(table.iloc[0]), row, {"x": 0.2, "loss": 2.0, "heat": 0.5}]
    grown = pd.concat([table, pd.DataFrame(more_rows)])
    with caplog.at_level(logging.WARNING):
        assert [trial.id for trial in opt.tell(grown, "loss", **more)] == [4, asked.id, 5]
        assert opt.tell(grown, "loss", **more) == []
        assert opt.tell([0, 1], [1.0, 1.0], constraints={"heat": [0.5, 0.5]}, again=False) == []
    assert not caplog.records
    assert len(opt.trials) == 6


def test_again_is_about_many_new_trials() -> None:
    opt = optimizer()
    for call in (
        lambda: opt.tell(POINTS[0], VALUES[0], again=False),
        lambda: opt.tell([0], [1.0], again=False, replace=True),
    ):
        with pytest.raises(ArgumentError, match=r"^again: expected True for a single trial"):
            call()
    assert len(opt.trials) == 6
