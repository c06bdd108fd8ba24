"""Trials with their values, and what would have been recommended after each."""

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import errors
from bkbopt.analysis import run_data
from bkbopt.analysis.run_data import told


def test_trials_that_are_told_together_keep_their_points_and_their_order() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    first, second, third = opt.ask(3)
    opt.tell([third, first], [1.0, 1.0])
    opt.tell(second, 0.5)
    data = told(opt)
    assert [trial.id for trial in data.trials] == [third.id, first.id, second.id]
    assert data.X[:, 0].tolist() == pytest.approx([trial.params["x"] for trial in data.trials])
    several = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize", "minimize"], seed=0)
    first, second = several.ask(2)
    several.tell([second, first], [[1.0, 4.0], [2.0, 3.0]])
    assert run_data.values_of(several, 0).tolist() == [1.0, 2.0]


def test_what_would_have_been_recommended_is_what_an_optimizer_of_that_time_recommends() -> None:
    def fresh() -> bo.Optimizer:
        surrogate = bo.ExactGP(bo.kernels.rbf(1, lengthscale=0.2), 0.3)
        return bo.Optimizer([(0.0, 1.0)], direction="maximize", surrogate=surrogate, fit=False, seed=0)

    rng = np.random.default_rng(0)
    points = [{"x0": float(x)} for x in rng.random(12)]
    values = np.sin(6.0 * np.array([p["x0"] for p in points])) + 0.5 * rng.standard_normal(12)
    opt = fresh()
    opt.tell(points, values)
    expected, before = [], fresh()
    for point, value in zip(points, values, strict=True):
        before.tell(point, value)
        expected.append(float(opt.predict(before.recommend().params)[0][0]))
    # Twelve values are fewer than the looks, which are close at the beginning: some of the last are skipped.
    found = run_data.recommended_so_far(opt)
    looks = np.unique(np.ceil(12 * np.linspace(0.0, 1.0, run_data.LOOKS + 1)[1:] ** 2).astype(int))
    assert len(looks) > 8
    np.testing.assert_allclose(found[looks - 1], np.array(expected)[looks - 1], rtol=1e-9)  # two orders of learning
    held = [found[looks[looks <= t][-1] - 1] for t in range(1, 13)]
    np.testing.assert_array_equal(found, held)


def test_recommendations_over_trials_have_the_present_posterior_means() -> None:
    surrogate = bo.ExactGP(bo.kernels.rbf(1, lengthscale=0.05), 1.0)
    opt = bo.Optimizer([(0.0, 1.0)], direction="maximize", surrogate=surrogate, fit=False, seed=0)
    opt.tell([{"x0": x} for x in (0.2, 0.8, *[0.2] * 6)], [5.0, 3.0, *[-1.0] * 6])
    lucky, good = opt.predict([{"x0": 0.2}, {"x0": 0.8}])[0]
    assert lucky < 0.0 < good
    found = run_data.recommended_so_far(opt)
    np.testing.assert_allclose(found[[0, 1, 7]], [lucky, lucky, good], rtol=1e-12)


def test_at_the_end_it_is_what_the_optimizer_recommends(mixed: bo.Optimizer, arms: bo.Optimizer) -> None:
    for opt in (mixed, arms):
        assert run_data.recommended_so_far(opt)[-1] == pytest.approx(opt.recommend().mean, rel=1e-9)


def test_of_many_values_the_curve_begins_at_the_first_look() -> None:
    surrogate = bo.BKB(bo.kernels.rbf(1, lengthscale=0.2), 0.1, max_inducing=20)
    opt = bo.Optimizer([(0.0, 1.0)], surrogate=surrogate, fit=False, seed=0)
    x = np.random.default_rng(0).random(900)
    opt.tell([{"x0": each} for each in x.tolist()], np.sin(6.0 * x))
    found = run_data.recommended_so_far(opt)
    assert np.isnan(found).tolist() == [True] * 2 + [False] * 898
    assert found[-1] == opt.recommend().mean


def test_nothing_is_recommended_before_a_trial_is_feasible() -> None:
    opt = bo.Optimizer([(0.0, 1.0)], constraints=["heat"], seed=0)
    opt.tell([{"x0": v} for v in (0.1, 0.4, 0.6, 0.9)], [1.0, 3.0, 2.0, 2.5], constraints={"heat": [1.0, 0.0, -1.0, 0]})
    assert np.isnan(run_data.recommended_so_far(opt)).tolist() == [True, False, False, False]


def test_what_is_no_optimizer_or_has_several_objectives_is_refused() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="opt: expected a bkbopt Optimizer, got str"):
        run_data.recommended_so_far("opt")  # type: ignore[arg-type]
    several = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize", "minimize"], seed=0)
    with pytest.raises(errors.ArgumentError, match="opt: expected an optimizer with a single objective, got one with"):
        run_data.recommended_so_far(several)
