"""The warning about a recommended point whose single value all others contradict."""

import logging

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.optimizer.results import lone_values

LOGGER = "bkbopt.optimizer.results.lone_values"


def a_bowl(n: int, wrong: float = 0.0, surrogate: str = "bkb", deterministic: bool = False) -> bo.Optimizer:
    """An optimizer with `n` values of a noisy bowl, and -`wrong` added to the one at x = 0.9."""
    rng = np.random.default_rng(0)
    opt = bo.Optimizer({"x": (0.0, 1.0)}, surrogate=surrogate, deterministic=deterministic, seed=0)
    x = np.append(np.linspace(0.0, 0.8, n - 1), 0.9)
    y = (x - 0.3) ** 2 + 0.01 * rng.standard_normal(n) - wrong * (x == 0.9)
    opt.tell([{"x": float(at)} for at in x], y.tolist())
    return opt


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


@pytest.mark.parametrize("surrogate", ["bkb", "krr"])
def test_a_single_value_far_better_than_expected_is_noted_once(
    surrogate: str, caplog: pytest.LogCaptureFixture
) -> None:
    opt = a_bowl(30, wrong=3.0, surrogate=surrogate)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert opt.recommend().params["x"] == 0.9
    (text,) = warnings(caplog)
    assert "rests on a single value, -2.6" in text
    assert opt.residuals()[0].score > lone_values.FAR


def test_each_optimizer_notes_a_point_once_also_where_more_is_known_later(caplog: pytest.LogCaptureFixture) -> None:
    first, second = a_bowl(30, wrong=3.0), a_bowl(30, wrong=3.0)
    with caplog.at_level(logging.WARNING):
        for opt, more in ((first, 0.5), (first, 0.6), (second, 0.5)):
            opt.recommend()
            opt.tell({"x": more}, (more - 0.3) ** 2)
            opt.recommend()
    assert len(warnings(caplog)) == 2


def test_a_value_that_was_measured_again_is_not(caplog: pytest.LogCaptureFixture) -> None:
    opt = a_bowl(30, wrong=3.0)
    opt.tell({"x": 0.9}, -2.64)
    with caplog.at_level(logging.WARNING):
        assert opt.recommend().params["x"] == 0.9
    assert not warnings(caplog)


def test_nothing_is_said_of_an_objective_that_is_stated_to_have_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    opt = a_bowl(30, wrong=3.0, deterministic=True)
    with caplog.at_level(logging.WARNING):
        assert opt.recommend().params["x"] == 0.9
    assert not warnings(caplog)


@pytest.mark.parametrize(("n", "wrong"), [(30, 0.0), (lone_values.FEWEST - 1, 3.0)])
def test_expected_values_are_not_and_few_say_nothing(n: int, wrong: float, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        a_bowl(n, wrong).recommend()
    assert not warnings(caplog)


@pytest.mark.parametrize(("wrong", "is_noted"), [(2.0, False), (4.0, True)])
def test_a_step_down_a_steep_function_is_noted_if_it_is_twice_as_far(
    wrong: float, is_noted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    opt, x = bo.Optimizer({"x": (0.0, 1.0)}, seed=0), np.append(np.linspace(0.0, 0.8, 29), 0.9)
    y = -10.0 * x + 0.1 * np.random.default_rng(0).standard_normal(30) - wrong * (x == 0.9)
    opt.tell([{"x": float(at)} for at in x], y.tolist())
    with caplog.at_level(logging.WARNING):
        assert opt.recommend().params["x"] == 0.9
    assert opt.residuals()[0].score > lone_values.FAR
    assert bool(warnings(caplog)) == is_noted


@pytest.mark.parametrize("surrogate", ["exact", "bkb"])
def test_the_best_of_values_without_noise_is_not_noted_for_its_rounding(
    surrogate: str, caplog: pytest.LogCaptureFixture
) -> None:
    for seed in range(4):
        X = np.random.default_rng(seed).random((40, 6))
        opt = bo.Optimizer([(0.0, 1.0)] * 6, surrogate=surrogate, deterministic=True, seed=0)
        opt.tell([{f"x{j}": float(x) for j, x in enumerate(row)} for row in X], np.sin(37.0 * X).sum(1))
        with caplog.at_level(logging.WARNING):
            opt.recommend()
    assert not warnings(caplog)


@pytest.mark.parametrize("surrogate", ["prosnkons", "forks"])
def test_nothing_is_noted_of_the_mean_of_one_pass(surrogate: str, caplog: pytest.LogCaptureFixture) -> None:
    opt = bo.Optimizer([(0.0, 1.0), (0.0, 1.0)], surrogate=surrogate, seed=0)
    with caplog.at_level(logging.WARNING):
        bo.minimize(lambda p: (p["x0"] - 0.3) ** 2 + (p["x1"] - 0.2) ** 2, opt, n_trials=40).recommend()
    assert not warnings(caplog)
