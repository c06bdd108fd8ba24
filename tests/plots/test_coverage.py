"""Pictures of calibration."""

import numpy as np
import pytest

import bkbopt as bo

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")


from matplotlib.figure import Figure

from bkbopt import analysis, plots
from tests.searched import true_cost


@pytest.mark.parametrize("noisy", [False, True])
def test_a_picture_has_the_coverage_in_percent(noisy: bool, mixed: bo.Optimizer) -> None:
    space = mixed.space
    assert space is not None
    points = space.decode(space.sample(50, np.random.default_rng(3)))
    y = [true_cost(p) for p in points]
    found, line = (
        analysis.coverage(mixed, points, y, noisy=noisy),
        plots.calibration(mixed, points, y, noisy=noisy).get_lines()[-1],
    )
    np.testing.assert_array_equal(line.get_xdata(), 100.0 * found.levels)
    np.testing.assert_array_equal(line.get_ydata(), 100.0 * found.inside)
    assert line.get_label() == "50 test values"


def test_the_legend_says_that_values_are_predicted_from_others(mixed: bo.Optimizer) -> None:
    n = len(mixed.observed()[1])
    assert plots.calibration(mixed).get_lines()[-1].get_label() == f"{n} values, each predicted from others"


@pytest.mark.parametrize("inches", [(3.2, 3.0), (4.0, 3.0), (5.2, 5.2)])
def test_the_notes_in_its_corners_are_inside_of_the_axes_and_off_the_diagonal(inches: tuple[float, float]) -> None:
    figure = Figure(figsize=inches, layout="constrained")
    ax = plots.calibration(bo.minimize(lambda p: p["x"] ** 2, {"x": (0.0, 1.0)}, 12, seed=0), ax=figure.add_subplot())
    figure.draw_without_rendering()
    frame = ax.get_window_extent()
    for note in ax.texts:
        corners = note.get_window_extent().corners()
        assert all(frame.contains(*corner) for corner in corners)
        x, y = ax.transData.inverted().transform(corners).T
        assert (y > x).all() or (y < x).all()


def test_a_line_at_one_hundred_percent_is_not_hidden_by_the_frame() -> None:
    ax = plots.calibration(bo.minimize(lambda p: 3.0, {"x": (0.0, 1.0)}, 12, seed=0))
    line = ax.get_lines()[-1]
    assert set(line.get_ydata()) == {100.0}
    assert ax.get_ylim()[1] > 100.0
