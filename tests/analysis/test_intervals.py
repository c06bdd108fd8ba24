"""Coverage of central intervals, on test points and by leaving out."""

import numpy as np
import pytest
from scipy.special import ndtri

import bkbopt as bo
from bkbopt import analysis, errors
from bkbopt.analysis import intervals
from tests.searched import true_cost


@pytest.mark.parametrize("noisy", [False, True])
def test_coverage_counts_test_values_in_central_intervals(noisy: bool, mixed: bo.Optimizer) -> None:
    space = mixed.space
    assert space is not None
    points = space.decode(space.sample(50, np.random.default_rng(3)))
    y = np.array([true_cost(p) for p in points])
    found = analysis.coverage(mixed, points, y, noisy=noisy)
    mean, std = mixed.predict(points)
    noise = mixed.noise_std if noisy else 0.0
    reach = ndtri(0.5 + 0.5 * found.levels)
    inside = np.abs(y - mean)[:, None] <= reach * np.hypot(std, noise)[:, None]
    np.testing.assert_allclose(found.inside, inside.mean(axis=0))
    assert found.n == 50


def test_without_test_points_the_values_are_those_of_a_cross_validation(mixed: bo.Optimizer) -> None:
    found = analysis.coverage(mixed, n_folds=4)
    scores = np.abs(mixed.cross_validation(n_folds=4))
    inside = scores[:, None] <= ndtri(0.5 + 0.5 * found.levels)
    np.testing.assert_allclose(found.inside, inside.mean(axis=0))
    assert found.n == len(scores) == len(mixed.observed()[1])
    assert (found.low < found.high).all()


def test_arguments_that_do_not_belong_together_are_refused(mixed: bo.Optimizer) -> None:
    with pytest.raises(errors.ArgumentError, match="values: expected both test and values, or neither"):
        analysis.coverage(mixed, [mixed.trials[0].params])
    with pytest.raises(errors.ArgumentError, match="n_folds: expected a whole number >= 2, got 1"):
        analysis.coverage(mixed, n_folds=1)
    with pytest.raises(errors.ArgumentTypeError, match="opt: expected a bkbopt Optimizer, got str"):
        analysis.coverage("opt")  # type: ignore[arg-type]
    alone = bo.Optimizer([(0.0, 1.0)], seed=0)
    alone.tell({"x0": 0.5}, 1.0)
    with pytest.raises(errors.NotReadyError, match="at least two points"):
        analysis.coverage(alone)


@pytest.mark.parametrize("n", [1, 2, 30, 1000, 99_991])
def test_the_band_has_the_quantiles_of_the_binomial_distribution(n: int) -> None:
    binom = pytest.importorskip("scipy.stats").binom
    q = np.array([[0.025], [0.975]])
    found = intervals._binomial_quantile(q, n, intervals.LEVELS)
    assert np.array_equal(found, binom.ppf(q, n, intervals.LEVELS))
