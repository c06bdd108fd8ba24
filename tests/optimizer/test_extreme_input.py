"""Extreme but valid input works: units, outliers, types of numbers, bounds, seeds."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from tests.optimizer.bad_calls import INF, OK, SPACE
from tests.sweeps import sweep


@pytest.mark.parametrize(
    ("unit", "surrogate"),
    [
        (1.7e308, "bkb"),
        (1e-310, "exact"),
        *(pytest.param(unit, "bkb", marks=pytest.mark.slow) for unit in (1e300, 1e-300, 1e-310)),
        *(pytest.param(unit, "exact", marks=pytest.mark.slow) for unit in (1e300, 1e-300, 1.7e308)),
    ],
)
@pytest.mark.usefixtures("few_draws")
def test_extreme_units_are_survived(unit: float, surrogate: str) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=4, surrogate=surrogate)
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, (trial.params["x"] - 0.3) ** 2 * unit)
    rec = opt.recommend()
    assert rec.params["x"] == pytest.approx(0.3, abs=0.1)
    assert math.isfinite(rec.mean)
    assert 0.0 <= rec.std < INF
    assert math.isfinite(opt.regret_certificate().bound)
    assert np.isfinite(opt.predict([{"x": 0.9}])).all()


@pytest.mark.parametrize(("value", "acquisition"), sweep([0.0, 5.0, -1e300, 5e-324], ["ucb", "logei", "thompson"]))
def test_constant_values_are_survived(value: float, acquisition: str) -> None:
    opt = bo.Optimizer(SPACE, seed=0, n_startup_trials=3, acquisition=acquisition)
    for _ in range(8):
        opt.tell(opt.ask(), value)
    assert opt.recommend().mean == pytest.approx(value, rel=1e-6, abs=1e-12)
    assert len({tuple(t.params.values()) for t in opt.trials}) == 8


@pytest.mark.parametrize(
    ("surrogate", "outlier"),
    [
        ("bkb", 1e300),
        ("exact", -1e300),
        *(pytest.param("bkb", outlier, marks=pytest.mark.slow) for outlier in (1e9, -1e9, -1e300)),
        *(pytest.param("exact", outlier, marks=pytest.mark.slow) for outlier in (1e9, -1e9, 1e300)),
    ],
)
def test_an_outlier_is_survived_when_it_comes_and_later(surrogate: str, outlier: float) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=4, surrogate=surrogate)
    for i in range(16):
        trial = opt.ask()
        assert math.isfinite(trial.params["x"])
        opt.tell(trial, outlier if i == 9 else (trial.params["x"] - 0.3) ** 2)
        rec = opt.recommend()
        assert math.isfinite(rec.mean)
        assert 0.0 <= rec.std < INF
    if outlier > 0.0:  # one terrible value does not hide where the good ones are
        assert opt.recommend().params["x"] == pytest.approx(0.3, abs=0.15)


def test_values_of_two_magnitudes_are_survived() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=4)
    for i in range(30):
        trial = opt.ask()
        opt.tell(trial, trial.params["x"] * (1e300 if i % 2 else 1e-300))
    recommended = opt.recommend()
    assert recommended.params["x"] < 0.05  # the minimum of both is at zero
    assert abs(recommended.mean) < 1e290


@pytest.mark.parametrize(
    "value", [np.float32(0.5), np.int8(1), np.array(0.5), np.array([0.5]), torch.tensor(0.5), [0.5], 1]
)
def test_any_real_scalar_is_a_value(value: Any) -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    assert opt.tell(opt.ask(), value).value == float(np.asarray(value).reshape(()))
    assert type(opt.trials[0].value) is float


def test_gradients_do_not_leak_in_with_a_value() -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    assert opt.tell(opt.ask(), torch.tensor(0.5, requires_grad=True)).value == 0.5
    opt.tell([OK, OK], torch.tensor([0.5, 1.0], requires_grad=True))
    opt.ask()


def test_zero_width_bounds_fix_a_value_and_wide_ones_work() -> None:
    opt = bo.Optimizer({"x": (2.0, 2.0), "y": (0.0, 1e308), "z": (-1e-308, 1e-308)}, seed=0, n_startup_trials=3)
    for _ in range(8):
        trial = opt.ask()
        assert trial.params["x"] == 2.0
        assert 0.0 <= trial.params["y"] <= 1e308
        opt.tell(trial, trial.params["y"] / 1e308)
    assert opt.recommend().params["y"] < 0.5e308


def test_huge_seed_is_exact() -> None:
    a, b = (bo.Optimizer(SPACE, seed=s).ask(2)[1].params for s in (2**70, 2**70 + 1))
    assert a != b


def test_fractions_are_numbers_in_params() -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    assert opt.tell(OK | {"x": Fraction(1, 2)}, 1.0).params["x"] == 0.5
