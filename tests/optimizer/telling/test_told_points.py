"""The warning about points that were told before."""

import logging

import numpy as np
import pytest

import bkbopt as bo
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
