"""Cross-validation: values of groups of points, predicted from those of the others."""

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import errors


def test_leaving_out_one_by_one_agrees_with_the_closed_form_of_the_exact_gp() -> None:
    rng = np.random.default_rng(0)
    X, noise = np.sort(rng.random(9)), 0.04
    y = np.sin(6 * X) + 0.2 * rng.standard_normal(9)
    kernel = bo.kernels.rbf(1, lengthscale=0.3)
    opt = bo.Optimizer([(0.0, 1.0)], surrogate=bo.ExactGP(kernel, noise), fit=False, seed=0)
    opt.tell([{"x0": float(x)} for x in X], y)
    inverse = np.linalg.inv(np.exp(-0.5 * ((X[:, None] - X) / 0.3) ** 2) + noise * np.eye(9))
    # Rasmussen and Williams 2006, Eq. 5.12: the error is [K^-1 y]_i / [K^-1]_ii, its variance 1 / [K^-1]_ii.
    expected = np.abs(inverse @ y) / np.sqrt(np.diag(inverse))
    np.testing.assert_allclose(np.abs(opt.cross_validation(n_folds=9)), expected, rtol=1e-9)


def test_repeats_of_a_point_are_left_out_together() -> None:
    opt = bo.Optimizer([(0.0, 1.0)], surrogate=bo.ExactGP(bo.kernels.rbf(1, lengthscale=1e-3), 1e-2), fit=False, seed=0)
    opt.tell([{"x0": 0.2}, {"x0": 0.2}, {"x0": 0.8}], [3.0, 3.0, 1.0])
    # The other point says nothing at this lengthscale: the prior remains, with mean 0 and variance 1.
    np.testing.assert_allclose(opt.cross_validation(), -np.array([3.0, 3.0, 1.0]) / 1.01**0.5, rtol=1e-9)
    alone = bo.Optimizer([(0.0, 1.0)], seed=0)
    alone.tell({"x0": 0.5}, 1.0)
    with pytest.raises(errors.NotReadyError, match="at least two points"):
        alone.cross_validation()


def test_the_number_is_positive_where_a_value_is_better_than_expected() -> None:
    for direction, sign in (("minimize", -1.0), ("maximize", 1.0)):
        opt = bo.Optimizer([(0.0, 1.0)], direction=direction, seed=0)  # type: ignore[arg-type]
        opt.tell([{"x0": i / 11} for i in range(12)], [sign * (i == 7) for i in range(12)])
        assert opt.cross_validation(n_folds=12).argmax() == 7


def test_values_are_those_that_count_in_the_order_of_completion() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    trials = opt.ask(9)
    opt.fail(trials[0])
    for number in (4, 2, 3, 8, 6, 7):
        opt.tell(trials[number], 10.0 * (number == 2) + trials[number].params["x"])
    scores = opt.cross_validation(n_folds=6)
    assert len(scores) == 6
    assert scores.argmin() == 1


def test_the_objective_is_one_of_several() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions={"loss": "minimize", "power": "maximize"}, seed=0)
    opt.tell([{"x": i / 11} for i in range(12)], [{"loss": i / 11, "power": float(i == 7)} for i in range(12)])
    np.testing.assert_array_equal(opt.cross_validation("power"), opt.cross_validation(1))
    assert opt.cross_validation("power", n_folds=12).argmax() == 7
    with pytest.raises(errors.ArgumentError, match="objective: expected a number below 2, got 2"):
        opt.cross_validation(2)


def test_it_needs_values_and_changes_nothing() -> None:
    with pytest.raises(errors.NotReadyError, match="cross_validation: expected at least one value"):
        bo.Optimizer({"x": (0.0, 1.0)}, seed=0).cross_validation()
    read, left = (bo.minimize(lambda p: p["x"] ** 2, {"x": (0.0, 1.0)}, n_trials=12, seed=0) for _ in range(2))
    with pytest.raises(errors.ArgumentError, match="n_folds: expected a whole number >= 2, got 1"):
        read.cross_validation(n_folds=1)
    read.cross_validation()
    assert dict(read.ask().params) == dict(left.ask().params)
