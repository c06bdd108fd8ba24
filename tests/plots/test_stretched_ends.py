"""Ranges with a stretched end have axes on the scale on which they are searched."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import bkbopt as bo
from bkbopt import plots
from bkbopt.plots.stretched_ticks import stretched_ticks
from bkbopt.spaces.stretched import Stretch, StretchedAxis
from tests.plots.panels import panels_of
from tests.searched import stretched_told


@pytest.fixture(scope="module")
def opt() -> bo.Optimizer:
    return stretched_told()


@pytest.mark.parametrize("name", ["rate", "momentum"])
def test_the_axis_shows_the_end_at_full_width(name: str, opt: bo.Optimizer) -> None:
    ax = plots.posterior_slice(opt, name, n_grid=40)
    assert ax.get_xscale() == "function"
    low, high = ax.get_xlim()
    ticks = [tick for tick in ax.get_xticks() if low <= tick <= high]
    places = ax.transAxes.inverted().transform(ax.transData.transform([(tick, 0.0) for tick in ticks]))[:, 0]
    assert len(ticks) >= 4
    assert np.diff(places).max() < 0.5
    best = 10.0**-2.5 if name == "rate" else 0.99
    (at,) = ax.transAxes.inverted().transform(ax.transData.transform([(best, 0.0)]))[:, 0]
    assert 0.2 < at < 0.8  # on a linear axis it is within a hundredth of the end
    plt.close(ax.figure)


def test_pictures_of_two_parameters_have_both_axes(opt: bo.Optimizer) -> None:
    ax = plots.posterior_contour(opt, "rate", "momentum", n_grid=15)
    assert (ax.get_xscale(), ax.get_yscale()) == ("function", "function")
    plt.close(ax.figure)


def labels_of(ax: Axes, which: str) -> list[str]:
    """The tick labels of a drawn axis, of which none touches the next one."""
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    labels = ax.get_xticklabels() if which == "x" else ax.get_yticklabels()
    boxes = [label.get_window_extent(canvas.get_renderer()) for label in labels]
    pairs = itertools.pairwise(boxes)
    assert all(a.x1 < b.x0 if which == "x" else a.y1 < b.y0 for a, b in pairs)
    return [label.get_text() for label in labels]


def test_ticks_are_powers_of_ten_from_the_end_and_all_have_labels(opt: bo.Optimizer) -> None:
    ax = plots.posterior_contour(opt, "rate", "momentum", n_grid=15)
    assert labels_of(ax, "x") == ["1e-06", "0.001", "0.01", "0.1", "1"]
    assert labels_of(ax, "y") == ["0", "0.9", "0.99", "0.999", "0.9999"]
    panels = panels_of(plots.pairwise_dependence(opt, ["rate", "momentum"], n_samples=4))
    assert labels_of(panels[1, 0], "x") == ["1e-06", "0.01", "0.1", "1"]
    assert labels_of(panels[1, 1], "x") == ["0", "0.9", "0.99", "0.9999"]


def ticks(parameter: bo.Float | bo.Int, by: Stretch, *, share: float) -> list[str]:
    """Labels of ticks that are not closer than a share of the axis."""
    axis, low, high = StretchedAxis.of(parameter, by), float(parameter.low), float(parameter.high)
    first, last = axis.compressed(np.array([low, high]))

    def fit(a: float, _: str, b: float, __: str) -> bool:
        return bool(np.diff(axis.compressed(np.array([a, b])))[0] >= share * (last - first))

    return stretched_ticks(axis, low, high, fit, whole=isinstance(parameter, bo.Int))[1]


@pytest.mark.parametrize(
    ("parameter", "by", "share", "expected"),
    [
        (bo.Int(1, 100_000), Stretch(is_low=True, reach=1e-4), 0.1, ["1", "100", "1000", "10000", "100000"]),
        (bo.Int(1, 100_000), Stretch(is_low=True, reach=1e-4), 0.3, ["1", "1000", "100000"]),
        (bo.Int(1, 500), Stretch(is_low=True, reach=1e-2), 0.08, ["1", "5", "10", "20", "50", "100", "200", "500"]),
        (bo.Float(5.0, 6.0), Stretch(is_low=True, reach=1e-2), 0.1, ["5", "5.01", "5.05", "5.1", "5.5", "6"]),
        (
            bo.Float(0.0, 0.3),
            Stretch(is_low=True, reach=1e-2),
            0.05,
            ["0", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.3"],
        ),
        (bo.Float(0.0, 0.09), Stretch(is_low=False, reach=1e-2), 0.15, ["0", "0.08", "0.089", "0.09"]),
        (bo.Float(-1.0, 0.0), Stretch(is_low=False, reach=1e-2), 0.1, ["-1", "-0.5", "-0.1", "-0.05", "-0.01", "0"]),
        (bo.Float(0.0, 1.0), Stretch(is_low=True, reach=1e-2), 0.18, ["0", "0.1", "1"]),
        (bo.Float(0.0, 1.0), Stretch(is_low=True, reach=1e-2), 0.1, ["0", "0.01", "0.05", "0.1", "0.5", "1"]),
        (bo.Float(1e16, 1e16 + 8.0), Stretch(is_low=True, reach=1e-2), 0.1, ["1e+16", "1e+16"]),
    ],
)
def test_ticks_of_a_range_are_round_from_the_stretched_end(
    parameter: bo.Float | bo.Int, by: Stretch, share: float, expected: list[str]
) -> None:
    assert ticks(parameter, by, share=share) == expected
