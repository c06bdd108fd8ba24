"""Partial dependence."""

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import errors

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.figure import Figure

from bkbopt import analysis, plots
from tests.plots.panels import panels_of


def test_pictures_of_dependence_have_its_numbers(mixed: bo.Optimizer) -> None:
    ax, found = (of.partial_dependence(mixed, "layers", n_samples=16) for of in (plots, analysis))
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), found.mean)
    ends = np.array([segment[:, 1] for segment in ax.collections[0].get_segments()])
    np.testing.assert_array_equal(ends.T, [found.low, found.high])
    ax, found = (of.partial_dependence(mixed, "kind", "layers", n_samples=8) for of in (plots, analysis))
    np.testing.assert_array_equal(np.reshape(ax.collections[0].get_array(), (6, 3)), found.mean)


def test_pairs_of_many_parameters_are_those_of_the_most_important_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bkbopt.plots.dependence.MOST_NAMES", 2)
    opt = bo.Optimizer(dict.fromkeys("abc", (0.0, 1.0)), seed=0)
    X = np.random.default_rng(0).random((12, 3))
    opt.tell([dict(zip("abc", row, strict=True)) for row in X.tolist()], X @ [3.0, 0.01, 2.0])
    axes = panels_of(plots.pairwise_dependence(opt, n_samples=4))
    assert axes.shape == (2, 2)
    assert [axes[i, i].get_xlabel() for i in range(2)] == ["a", "c"]


def test_pairwise_dependence_fills_the_lower_triangle(mixed: bo.Optimizer) -> None:
    names = ["rate", "kind", "layers"]
    figure = Figure()
    assert plots.pairwise_dependence(mixed, names, figure=figure, n_samples=4) is figure
    axes = panels_of(figure)
    assert axes.shape == (3, 3)
    for i in range(3):
        for j in range(3):
            assert (axes[i, j] is None) == (j > i)
            if j <= i:
                assert axes[i, j].figure is figure
                assert axes[i, j].get_xlabel() == names[j]
            if j < i:
                assert axes[i, j].get_ylabel() == names[i]


def test_pairs_that_are_refused_leave_the_figure_empty(mixed: bo.Optimizer) -> None:
    figure = Figure()
    for names in (["rate", "fixed"], ["rate", "kind", "rate"]):
        with pytest.raises(errors.ArgumentError):
            plots.pairwise_dependence(mixed, names, figure=figure)
    assert not figure.get_children()[1:]  # the background is the only child


def test_the_title_of_a_single_panel_ends_within_the_figure() -> None:
    figure = plots.pairwise_dependence(bo.minimize(lambda p: p["x"], {"x": (0.0, 1.0)}, 3, seed=0))
    figure.canvas.draw()
    assert figure._suptitle is not None
    title = figure._suptitle.get_window_extent()
    assert 0.0 < title.x0 < title.x1 < figure.bbox.width


def test_marks_of_neighbouring_numbers_do_not_overlap() -> None:
    opt = bo.Optimizer({"depth": bo.Int(1, 12), "x": (0.0, 1.0)}, seed=0)
    opt.tell([{"depth": 3, "x": 0.2}, {"depth": 11, "x": 0.7}], [1.0, 0.0])
    for columns in (1, 4):
        ax = plots.partial_dependence(opt, "depth", ax=Figure().add_subplot(1, columns, 1))
        apart = np.diff(ax.transData.transform([(1, 0.0), (2, 0.0)])[:, 0]).item() * 72.0 / ax.figure.dpi
        assert ax.get_lines()[0].get_markersize() <= apart
