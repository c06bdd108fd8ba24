"""Residuals: what a value is when all others predict it, and the trial whose value is wrong comes first."""

import math
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import errors
from tests.sweeps import slow_but

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def fixed(**options: Any) -> bo.Optimizer:
    surrogate = bo.ExactGP(bo.kernels.rbf(1, lengthscale=0.2), 0.01)
    return bo.Optimizer([(0.0, 1.0)], surrogate=surrogate, fit=False, seed=0, **options)


def bump(params: Any) -> float:
    return float(-10.0 * np.exp(-((params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2) / 0.08))


def steep(params: Any) -> float:
    return float(20.0 * (params["x"] - 0.4) ** 2 + 40.0 * (params["y"] - 0.7) ** 2)


def test_a_residual_is_that_of_an_optimizer_without_the_trial() -> None:
    points, values = [{"x0": x} for x in (0.1, 0.3, 0.35, 0.8)], [1.0, 0.4, 2.0, 0.5]
    opt = fixed()
    opt.tell(points, values)
    found = opt.residuals()
    assert sorted(residual.id for residual in found) == [0, 1, 2, 3]
    for residual in found:
        others = fixed()
        rest = [i for i in range(4) if i != residual.id]
        others.tell([points[i] for i in rest], [values[i] for i in rest])
        mean, std = (float(part[0]) for part in others.predict(points[residual.id]))
        assert residual.value == values[residual.id]
        assert residual.mean == pytest.approx(mean, abs=1e-9)
        assert residual.std == pytest.approx(math.hypot(std, 0.1), rel=1e-9)
        assert residual.score == pytest.approx((mean - residual.value) / residual.std, abs=1e-9)  # smaller is better
    scores = [abs(residual.score) for residual in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("surrogate", ["exact", "bkb"])
def test_residuals_of_values_without_noise_are_those_of_kriging(surrogate: str) -> None:
    """With the precision matrix P of the values, a residual is (P v)_i / P_ii, and its variance 1 / P_ii."""
    rng = np.random.default_rng(3)
    X = rng.random((40, 6))
    y = np.sin(37.0 * X).sum(1) + np.cos(50.0 * X[:, 0] * X[:, 1])
    opt = bo.Optimizer([(0.0, 1.0)] * 6, surrogate=surrogate, deterministic=True, seed=0)
    opt.tell([{f"x{j}": float(x) for j, x in enumerate(row)} for row in X], y)
    model, quantity = opt.surrogate, opt._core.designer.trained().objectives[0]
    assert len(model.inducing) == 40
    P = np.linalg.inv(model.kernel(model.observations.X, model.observations.X).numpy() + model.noise * np.eye(40))
    scores = (P @ quantity.measured.numpy()) / np.diag(P) ** 0.5
    found = {residual.id: residual.score for residual in opt.residuals()}
    # The values are far apart, so that P is known to 1e-14. BKB has lam P v, lam = 1e-8, as a difference of values and
    # predictions: rounding errors of 1e-16 to 1e-15 of the values, in each of them, are 1e-8 to 1e-7 of a score.
    assert np.linalg.cond(P) < 100.0
    assert model.noise == 1e-8
    error = np.array([found[i] for i in range(40)]) - scores
    assert np.abs(error).max() < 1e-6 * np.abs(scores).max()
    if surrogate == "exact":
        assert [found[i] for i in range(40)] == pytest.approx(scores, rel=1e-11, abs=1e-11)


def test_a_score_is_positive_where_a_value_is_better_than_expected() -> None:
    for direction, sign in (("minimize", -1.0), ("maximize", 1.0)):
        opt = fixed(direction=direction)
        opt.tell([{"x0": 0.1}, {"x0": 0.12}, {"x0": 0.14}], [0.0, 3.0, 0.0])
        assert opt.residuals()[0].score * sign > 0.0
        assert opt.residuals()[0].id == 1


def test_a_known_noise_makes_a_value_less_surprising() -> None:
    scores = []
    for std in (0.1, 2.0):
        opt = fixed()
        opt.tell([{"x0": 0.1}, {"x0": 0.12}, {"x0": 0.14}], [0.0, 3.0, 0.0], std=[0.1, std, 0.1])
        (own,) = (residual for residual in opt.residuals() if residual.id == 1)
        scores.append(abs(own.score))
    assert scores[1] < 2.0 < scores[0]


def test_the_second_objective_has_residuals_of_its_own() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize"] * 2, seed=0)
    xs = np.linspace(0.0, 1.0, 20)
    opt.tell([{"x": float(x)} for x in xs], [[float(x), float(x**2) + 3.0 * (i == 12)] for i, x in enumerate(xs)])
    assert opt.residuals(1)[0].id == 12
    assert opt.residuals(1)[0].value == pytest.approx(float(xs[12] ** 2) + 3.0)
    assert abs(opt.residuals(0)[0].score) < 3.5
    with pytest.raises(errors.ArgumentError, match="objective: expected a number below 2, got 2"):
        opt.residuals(2)


def test_failed_and_running_trials_have_no_residual_and_trials_in_another_order_keep_their_ids() -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    trials = opt.ask(6)
    opt.fail(trials[0])
    for number in (4, 2, 3):
        opt.tell(trials[number], bump(trials[number].params))
    found = {residual.id: residual.value for residual in opt.residuals()}
    assert found == {number: bump(trials[number].params) for number in (2, 3, 4)}


def test_residuals_need_a_value_and_change_nothing() -> None:
    with pytest.raises(errors.NotReadyError, match="residuals: expected at least one value"):
        bo.Optimizer(SPACE, seed=0).residuals()
    read, left = (bo.minimize(bump, SPACE, n_trials=12, seed=0) for _ in range(2))
    read.residuals()
    assert dict(read.ask().params) == dict(left.ask().params)


@pytest.mark.parametrize("seed", slow_but([0], range(12)))
@pytest.mark.parametrize(("f", "noise"), [(bump, 0.5), (steep, 0.5)])
def test_a_value_that_is_wrong_by_ten_deviations_comes_first(f: Any, noise: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    opt = bo.Optimizer(SPACE, seed=seed)
    for number in range(30):
        trial = opt.ask()
        opt.tell(trial, f(trial.params) + noise * (rng.standard_normal() - 10.0 * (number == 15)))
    first, second, *_ = opt.residuals()
    assert first.id == 15
    assert first.score > max(3.0, 1.2 * abs(second.score))


@pytest.mark.parametrize("wrong", [5.0, 1e300])
def test_the_residual_of_an_outlier_of_any_size_has_the_noise_of_the_other_values(wrong: float) -> None:
    opt = bo.Optimizer([(0.0, 1.0)], seed=0)
    opt.tell([{"x0": i / 40} for i in range(40)], [wrong if i == 7 else 1.0 for i in range(40)])
    (worst, *others) = opt.residuals()
    assert [trial.id for trial in opt.outliers] == [worst.id] == [7]
    # The others are equal, so that the fitted noise is at its lower limit.
    assert worst.std == pytest.approx(others[-1].std, rel=0.1)


def test_residuals_of_a_learner_of_one_pass_are_those_of_its_predictions() -> None:
    surrogate = bo.LearnerSurrogate(bo.kernels.rbf(1, lengthscale=0.2), 0.01, learner="kons")
    opt = bo.Optimizer([(0.0, 1.0)], surrogate=surrogate, fit=False, seed=0)
    points, values = [{"x0": x} for x in (0.1, 0.3, 0.35, 0.8)], [1.0, 0.4, 2.0, 0.5]
    opt.tell(points, values)
    means, stds = opt.predict(points)
    for residual in opt.residuals():
        mean, std = means[residual.id], math.hypot(stds[residual.id], 0.1)
        assert (residual.mean, residual.std) == pytest.approx((mean, std))
        assert residual.score == pytest.approx((mean - residual.value) / std)
