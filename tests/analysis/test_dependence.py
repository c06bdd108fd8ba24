"""Partial dependence."""

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import analysis, errors
from bkbopt.analysis.coordinates import coordinates_of


def test_partial_dependence_is_the_average_of_predict_over_the_rest(mixed: bo.Optimizer) -> None:
    rest = mixed.space.decode(coordinates_of(mixed).sampled(16))  # type: ignore[union-attr]
    found = analysis.partial_dependence(mixed, "layers", n_samples=16)
    curves = np.array([mixed.predict([{**p, "layers": n} for p in rest])[0] for n in range(1, 7)])
    assert found.values == {"layers": (1, 2, 3, 4, 5, 6)}
    np.testing.assert_allclose(found.mean, curves.mean(axis=1), rtol=0, atol=1e-9)
    np.testing.assert_allclose([found.low, found.high], np.quantile(curves, [0.1, 0.9], axis=1), rtol=0, atol=1e-9)


def test_partial_dependence_over_a_pair_is_that_average_too(mixed: bo.Optimizer) -> None:
    rest = mixed.space.decode(coordinates_of(mixed).sampled(8))  # type: ignore[union-attr]
    found = analysis.partial_dependence(mixed, "kind", "layers", n_samples=8)
    assert found.values == {"kind": ("adam", "sgd", "rmsprop"), "layers": (1, 2, 3, 4, 5, 6)}
    assert found.mean.shape == found.low.shape == found.high.shape == (6, 3)
    for i, j, kind in ((0, 0, "adam"), (4, 1, "sgd"), (5, 2, "rmsprop")):
        values = mixed.predict([{**p, "layers": i + 1, "kind": kind} for p in rest])[0]
        assert found.mean[i, j] == pytest.approx(values.mean(), abs=1e-9)
        ends = np.quantile(values, [0.1, 0.9])
        np.testing.assert_allclose([found.low[i, j], found.high[i, j]], ends, rtol=0, atol=1e-9)


def test_the_number_of_points_along_a_continuum_is_that_of_the_call(mixed: bo.Optimizer) -> None:
    rates = analysis.partial_dependence(mixed, "rate", n_samples=2, n_grid=5).values["rate"]
    np.testing.assert_allclose(rates, [1e-4, 1e-3, 1e-2, 1e-1, 1.0])
    found = analysis.partial_dependence(mixed, "rate", "drop", n_samples=2, n_grid=3)
    assert found.mean.shape == (3, 3)
    assert analysis.partial_dependence(mixed, "rate", n_samples=2).mean.shape == (60,)
    with pytest.raises(errors.ArgumentError, match="n_grid: expected a whole number >= 1, got 0"):
        analysis.partial_dependence(mixed, "rate", n_grid=0)


def test_over_columns_of_a_pool_it_is_the_average_over_its_arms(arms: bo.Optimizer) -> None:
    found = analysis.partial_dependence(arms, "x0", n_samples=60, n_grid=4)
    assert arms.pool is not None
    rows = [arms.pool.decode(row) for row in range(60)]
    for place in (0, -1):  # the smallest and the largest value of the pool
        X = arms.encode([{**row, "x0": found.values["x0"][place]} for row in rows])
        assert found.mean[place] == pytest.approx(arms.predict_encoded(X)[0].mean(), abs=1e-9)


@pytest.fixture(scope="module")
def branched() -> bo.Optimizer:
    space = {
        "model": ["svm", "gp"],
        "gamma": bo.Float(0.0, 1.0, when={"model": "svm"}),
        "degree": bo.Int(1, 4, when={"model": "gp"}),
    }
    opt = bo.Optimizer(space, seed=0)
    points = [{"model": "svm", "gamma": i / 7} for i in range(8)] + [{"model": "gp", "degree": i} for i in range(1, 5)]
    opt.tell(points, [p["gamma"] if "gamma" in p else 3.0 + float(p["degree"]) for p in points])
    return opt


def test_combinations_that_do_not_exist_have_no_average(branched: bo.Optimizer) -> None:
    found = analysis.partial_dependence(branched, "model", "gamma", n_samples=4, n_grid=3)
    for part in (found.mean, found.low, found.high):
        assert np.isnan(part[:, 1]).all()
        assert np.isfinite(part[:, 0]).all()


def test_another_branch_is_that_of_at(branched: bo.Optimizer) -> None:
    with pytest.raises(errors.ArgumentError, match="x: expected a parameter that is active at the recommended point"):
        analysis.partial_dependence(branched, "degree")
    found = analysis.partial_dependence(branched, "degree", at={"model": "gp"}, n_samples=4)
    assert found.values == {"degree": (1, 2, 3, 4)}
    with pytest.raises(errors.ArgumentError, match="at: expected switches among"):
        analysis.partial_dependence(branched, "gamma", at={"gamma": 0.5})
