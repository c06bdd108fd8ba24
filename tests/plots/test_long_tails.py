"""Columns of a pool with long tails have axes that are compressed as the model's columns are."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bkbopt as bo
from bkbopt import plots
from tests.searched import tailed_searched


@pytest.fixture(scope="module")
def opt() -> bo.Optimizer:
    return tailed_searched()


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
