"""Inducing points, effective dimension and time."""

import numpy as np
import pytest

import bkbopt as bo

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from bkbopt import plots
from bkbopt.plots.style import log_ticks


def test_complexity_is_that_of_the_diagnostics(mixed: bo.Optimizer) -> None:
    used = [d for d in mixed.diagnostics if d.n_inducing is not None]
    m, dimension = plots.complexity(mixed).get_lines()
    np.testing.assert_array_equal(m.get_xdata(), [d.n_values for d in used])
    np.testing.assert_array_equal(m.get_ydata(), [d.n_inducing for d in used])
    np.testing.assert_array_equal(dimension.get_ydata(), [d.effective_dimension for d in used])


def test_axes_of_complexity_have_ticks_at_whole_numbers(mixed: bo.Optimizer) -> None:
    ax = plots.complexity(mixed)
    for ticks in (ax.get_xticks(), ax.get_yticks()):
        np.testing.assert_array_equal(ticks, np.round(ticks))
        step = int(ticks[1] - ticks[0])
        assert step / 10 ** (len(str(step)) - 1) in (1, 2, 5)


@pytest.mark.parametrize(
    ("most", "labels"),
    [
        (0.009, ["2", "3", "4", "6", "8"]),
        (0.09, ["2", "5", "10", "20", "50"]),
        (9.0, ["1", "10", "100", "1000", "10000"]),
    ],
)
def test_a_logarithmic_axis_is_labelled_by_plain_numbers(most: float, labels: list[str]) -> None:
    ax = plots.ask_time([0.002, most])
    assert isinstance(ax.figure, Figure)
    FigureCanvasAgg(ax.figure).draw()
    ticks = [*ax.get_yticklabels(), *ax.get_yticklabels(minor=True)]
    assert {tick.get_text() for tick in ticks} >= set(labels)


def test_the_labels_of_a_logarithmic_axis_are_in_one_line() -> None:
    figure = Figure()
    ax = figure.add_subplot()
    ax.loglog([100, 1000], [1, 1000])
    log_ticks(ax.xaxis)
    figure.draw_without_rendering()
    ticks = [*ax.get_xticklabels(), *ax.get_xticklabels(minor=True)]
    tops = {round(tick.get_window_extent().y1, 6) for tick in ticks if tick.get_text() in ("100", "200", "500", "1000")}
    assert len(tops) == 1


def test_ask_time_is_that_of_the_diagnostics_or_of_any_list(mixed: bo.Optimizer) -> None:
    seconds = [d.ask_seconds for d in mixed.diagnostics]
    for given in (mixed, seconds):
        dots = plots.ask_time(given).get_lines()[0]
        np.testing.assert_allclose(dots.get_ydata(), 1e3 * np.array(seconds), rtol=1e-12)


def test_the_line_of_ask_times_is_the_median_of_neighbouring_batches() -> None:
    opt = bo.Optimizer({"x": bo.Float(0.0, 1.0)}, seed=0)
    for _ in range(9):
        trials = opt.ask(4)
        opt.tell(trials, [trial.params["x"] for trial in trials])
    ax = plots.ask_time(opt)
    seconds = np.array([d.ask_seconds for d in opt.diagnostics]).reshape(9, 4)
    line = ax.get_lines()[1]
    assert line.get_xdata() == pytest.approx(4.0 * np.arange(9))
    around = [np.median(seconds, axis=1)[max(i - 4, 0) : i + 5] for i in range(9)]
    assert line.get_ydata() == pytest.approx([1e3 * np.median(some) for some in around])


def test_the_line_of_very_many_ask_times_has_some_of_the_medians() -> None:
    seconds = np.random.default_rng(0).uniform(0.01, 0.1, 5_000)
    line = plots.ask_time(list(seconds)).get_lines()[1]
    shown = range(0, 5_000, 5)
    np.testing.assert_array_equal(line.get_xdata(), [i + 1 for i in shown])
    half = 5_000 // 20
    around = [seconds[max(i - half, 0) : i + half + 1] for i in shown]
    assert line.get_ydata() == pytest.approx([1e3 * np.median(some) for some in around])


def test_the_line_of_ask_times_does_not_follow_single_fits() -> None:
    seconds = np.where(np.arange(200) % 5 == 0, 1.0, 0.01) * np.random.default_rng(0).uniform(0.9, 1.1, 200)
    for ask in (0, 199):
        seconds[ask] = 1.0  # also not where it is the first or the last
    line = plots.ask_time(list(seconds)).get_lines()[1]
    assert np.max(line.get_ydata()) < 11.0
