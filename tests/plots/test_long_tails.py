"""Columns of a pool with long tails have axes that are compressed as the model's columns are."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bkbopt as bo
from bkbopt import plots
from bkbopt.analysis.coordinates import coordinates_of


@pytest.fixture(scope="module")
def opt() -> bo.Optimizer:
    X = np.random.default_rng(0).standard_normal((500, 2))
    X[:, 0] = np.exp(2.0 * X[:, 0])
    X[3, 1] = -9999.0
    opt = bo.Optimizer(bo.Pool(X), seed=0)
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, float(abs(trial.params["x1"])))
    return opt


def test_values_of_an_axis_are_evenly_spaced_for_the_model(opt: bo.Optimizer) -> None:
    for dimension in coordinates_of(opt).dimensions(50):
        # The smallest and the largest raw value are those of the pool; between them a value is rounded.
        np.testing.assert_allclose(dimension.codes(dimension.values), np.linspace(0.0, 1.0, 50), atol=1e-12)


def test_codes_are_the_encoded_columns(opt: bo.Optimizer) -> None:
    assert opt.pool is not None
    first, second = coordinates_of(opt).dimensions(50)
    X, rows = opt.pool.X[np.arange(20)], [opt.pool.decode(row) for row in range(20)]
    assert first.codes([row["x0"] for row in rows]).tolist() == X[:, 0].tolist()
    assert second.codes([row["x1"] for row in rows]).tolist() == X[:, 1].tolist()


@pytest.mark.parametrize("name", ["x0", "x1"])
def test_ticks_are_round_numbers_along_the_whole_axis(name: str, opt: bo.Optimizer) -> None:
    ax = plots.posterior_slice(opt, name, n_grid=40)
    low, high = ax.get_xlim()
    ticks = [tick for tick in ax.get_xticks() if low <= tick <= high]
    places = ax.transData.transform([(tick, 0.0) for tick in ticks])[:, 0]
    width = ax.get_window_extent().width
    assert len(ticks) >= 4
    assert np.diff(places).max() < 0.5 * width
    assert all(len(f"{tick:.12g}".lstrip("-").rstrip("0").replace(".", "").lstrip("0")) <= 2 for tick in ticks)
    plt.close(ax.get_figure(root=True))
