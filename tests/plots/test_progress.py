"""Values over trials, and the recommendation after each of them."""

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import errors

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.axes import Axes

from bkbopt import plots
from bkbopt.analysis import recommended_so_far
from bkbopt.analysis.run_data import failures, told
from bkbopt.plots import progress


def test_under_noisy_constraints_and_in_a_smaller_space_the_curve_ends_at_the_recommended_point() -> None:
    rng = np.random.default_rng(0)
    opt = bo.Optimizer([(0.0, 1.0)], constraints=["heat"], seed=0)
    x = rng.random(30)
    heat = {"heat": 0.4 - x + 0.3 * rng.standard_normal(30)}
    opt.tell([{"x0": each} for each in x.tolist()], x + 0.05 * rng.standard_normal(30), constraints=heat)
    for low in (0.0, 0.7):
        opt.set_space([(low, 1.0)])
        lines = {str(line.get_label()): line for line in plots.convergence(opt, recommended=opt).get_lines()}
        assert np.asarray(lines["recommended"].get_ydata())[-1] == opt.recommend().mean


def drawn_by(ax: Axes) -> dict[str, np.ndarray]:
    """The points (n, 2) of the lines with a marker alone, by marker."""
    lines = [line for line in ax.get_lines() if line.get_linestyle() == "None" and line.get_marker() != "None"]
    return {str(line.get_marker()): np.asarray(line.get_xydata()) for line in lines}


def test_values_far_from_the_best_are_triangles_that_point_out_of_the_axes() -> None:
    opt = bo.Optimizer([(0.0, 1.0)], n_startup_trials=20, seed=0)
    y = [1e6, 5.0, 4.0, 3.0, 2.0, 1.0, 4.5, 3.5, 2.5, 1.5]
    opt.tell([{"x0": i / 10} for i in range(len(y))], y)
    ax = progress.draw_progress(opt, value_name="loss")
    dots = next(line for line in ax.get_lines() if str(line.get_label()).startswith("values"))
    assert dots.get_label() == "values"
    np.testing.assert_array_equal(dots.get_ydata(), y[1:])
    top = 1.0 + progress.REACH * (np.quantile(y, 0.75) - 1.0)
    assert ax.get_ylim()[1] == pytest.approx(top + 0.04 * (top - 1.0))
    np.testing.assert_array_equal(drawn_by(ax)["^"], [[1.0, ax.get_ylim()[1]]])
    assert ax.get_ylabel() == "loss"


def test_infeasible_values_better_than_the_best_are_hollow_triangles_below_it() -> None:
    opt = bo.Optimizer([(0.0, 1.0)], constraints=["heat"], n_startup_trials=20, seed=0)
    y = [2.0, -7.0, -3.0, 1.5, 1.0, 1.2, 1.4, 1.6, 1.8, 1.9, 2.1, 1.7]
    heat = [1.0 if v < 0.0 or i == 3 else -1.0 for i, v in enumerate(y)]
    opt.tell([{"x0": i / 20} for i in range(len(y))], y, constraints={"heat": heat})
    ax = progress.draw_progress(opt)
    found = drawn_by(ax)
    assert ax.get_ylim()[0] < 1.0
    np.testing.assert_array_equal(found["v"], [[2.0, ax.get_ylim()[0]], [3.0, ax.get_ylim()[0]]])
    np.testing.assert_array_equal(found["x"], [[4.0, 1.5]])
    (triangles,) = (line for line in ax.get_lines() if line.get_marker() == "v")
    assert (triangles.get_fillstyle(), triangles.get_label()) == ("none", "infeasible, beyond the axis")


def test_a_few_values_are_all_drawn_where_they_are() -> None:
    opt = bo.Optimizer([(0.0, 1.0)], seed=0)
    opt.tell([{"x0": 0.1}, {"x0": 0.5}, {"x0": 0.9}], [0.26, 0.5, 0.19])
    ax = progress.draw_progress(opt)
    assert {marker: points.tolist() for marker, points in drawn_by(ax).items()} == {
        "o": [[1.0, 0.26], [2.0, 0.5], [3.0, 0.19]]
    }
    assert ax.get_ylim()[1] > 0.5


def test_a_single_terrible_one_of_a_few_values_is_beyond_the_axis() -> None:
    opt = bo.Optimizer([(0.0, 1.0)], seed=0)
    opt.tell([{"x0": x} for x in (0.1, 0.3, 0.5, 0.7, 0.9)], [0.26, 0.5, 0.19, 1e10, 0.3])
    ax = progress.draw_progress(opt)
    assert 0.5 < ax.get_ylim()[1] < 10.0
    assert [points.tolist() for marker, points in drawn_by(ax).items() if marker == "^"] == [[[4.0, ax.get_ylim()[1]]]]


def test_recommendations_are_drawn_once_there_is_a_model(line: bo.Optimizer) -> None:
    opt = bo.Optimizer([(0.0, 1.0)], constraints=["heat"], seed=0)
    opt.tell([{"x0": 0.1}, {"x0": 0.4}], [1.0, 1.0], constraints={"heat": [1.0, 0.0]})
    ax = progress.draw_progress(opt)
    labels = [str(label.get_text()) for label in ax.get_legend().get_texts()]  # type: ignore[union-attr]
    assert labels == ["best value told", "values", "infeasible"]
    assert progress.draw_progress(line).containers  # the recommended value with its two standard deviations


def test_values_that_are_left_out_of_the_fit_are_marked() -> None:
    rng = np.random.default_rng(0)
    opt = bo.Optimizer([(0.0, 1.0)], seed=0)
    xs = np.linspace(0.0, 1.0, 40)
    opt.tell([{"x0": x} for x in xs], (xs - 0.4) ** 2 + 0.02 * rng.standard_normal(40) + 0.5 * (np.arange(40) == 25))
    assert [trial.id for trial in opt.outliers] == [25]
    lines = {str(artist.get_label()): artist for artist in progress.draw_progress(opt).get_lines()}
    assert np.asarray(lines["left out of the fit"].get_xdata()).tolist() == [26]


def test_outliers_do_not_stretch_the_axes_and_are_no_best_values() -> None:
    rng = np.random.default_rng(0)
    opt = bo.Optimizer([(0.0, 1.0)], seed=0)
    xs = np.linspace(0.0, 1.0, 40)
    values = (xs - 0.4) ** 2 + 0.02 * rng.standard_normal(40) - 30.0 * (np.arange(40) == 25)
    opt.tell([{"x0": x} for x in xs], values)
    assert [trial.id for trial in opt.outliers] == [25]
    ax = plots.convergence(opt)
    best = np.asarray(ax.get_lines()[0].get_ydata())
    assert best[-1] == np.delete(values, 25).min()
    assert ax.get_ylabel() == "best value so far, outliers aside"
    for ax in (progress.draw_progress(opt), plots.posterior_slice(opt)):
        low, high = ax.get_ylim()
        assert -1.0 < low < high < 2.0
    assert "outliers, beyond the axis" in [text.get_text() for text in ax.get_legend().get_texts()]  # type: ignore[union-attr]
    heights = np.concatenate([np.asarray(drawn.get_offsets())[:, 1] for drawn in ax.collections])
    assert heights.min() >= low


def test_an_overview_of_what_was_never_asked_has_no_empty_panel() -> None:
    two = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    two.tell([{"x": i / 11, "y": (5 * i % 12) / 11} for i in range(12)], [float(i) for i in range(12)])
    slice_ = plots.overview(two).axes[3]
    assert (slice_.get_xlabel(), slice_.get_ylabel()) == ("x", "value")
    one = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    one.tell([{"x": i / 11} for i in range(12)], [float(i) for i in range(12)])
    *_, last = plots.overview(one).axes
    spec = last.get_subplotspec()
    assert spec is not None
    assert (list(spec.rowspan), list(spec.colspan)) == ([1], [0, 1])


def test_an_overview_of_many_parameters_has_the_largest_importances_and_says_so() -> None:
    for n, title in ((14, ""), (17, "the largest 14 of 17")):
        opt = bo.Optimizer({f"x{j:02d}": (0.0, 1.0) for j in range(n)}, seed=0)
        points = np.random.default_rng(0).random((12, n))
        opt.tell([dict(zip(opt.space.names, row, strict=True)) for row in points.tolist()], points[:, 3].tolist())  # type: ignore[union-attr]
        bars = plots.overview(opt).axes[1]
        assert len(bars.get_yticklabels()) == 14
        assert bars.get_yticklabels()[-1].get_text() == "x03"
        assert bars.get_title() == title


def test_an_overview_has_the_values_and_what_would_have_been_recommended(line: bo.Optimizer) -> None:
    ax = plots.overview(line).axes[0]
    drawn = {str(artist.get_label()): artist for artist in ax.get_lines()}
    np.testing.assert_array_equal(drawn["recommended"].get_ydata(), recommended_so_far(line))
    (dots,) = (artist for label, artist in drawn.items() if label.startswith("values"))
    assert len(np.asarray(dots.get_ydata())) == 14
    assert ax.get_ylabel() == "value"


def test_an_optimizer_as_recommended_gives_its_recommendations(line: bo.Optimizer) -> None:
    ax = plots.convergence({"ours": line}, recommended={"ours": line})
    drawn = {str(artist.get_label()): artist for artist in ax.get_lines()}
    np.testing.assert_array_equal(drawn["ours, recommended"].get_ydata(), recommended_so_far(line))
    with pytest.raises(errors.ArgumentError, match="recommended: expected noise-free values, got an optimizer"):
        plots.regret(line, 0.0, recommended=line)


def test_the_axis_of_evaluations_says_how_many_have_failed() -> None:
    opt = bo.Optimizer([(0.0, 1.0)], seed=0)
    opt.tell([{"x0": v} for v in (0.1, 0.4, 0.6, 0.9)], [1.0, float("nan"), 2.0, float("inf")], invalid="fail")
    assert plots.overview(opt).axes[0].get_xlabel() == "evaluations with a value (and 2 failed)"


def test_a_lost_trial_is_not_among_those_that_have_failed() -> None:
    opt = bo.Optimizer([(0.0, 1.0)], seed=0)
    opt.tell([{"x0": v} for v in (0.1, 0.4, 0.6)], [1.0, float("nan"), 2.0], invalid="fail")
    lost = opt.ask()
    opt.recover(enqueue=True)
    assert [trial.id for trial in opt.lost_trials] == [lost.id]
    assert plots.overview(opt).axes[0].get_xlabel() == "evaluations with a value (and 1 failed)"
    assert [trial.id for trial in failures(opt, told(opt))[0]] == [1]


def test_penalties_are_named_apart_from_failed_trials() -> None:
    opt = bo.Optimizer([(0.0, 1.0)], seed=0)
    xs = np.linspace(0.0, 1.0, 12)
    values = [1e10 if x > 0.7 else float("nan") if x < 0.15 else (x - 0.4) ** 2 for x in xs]
    opt.tell([{"x0": float(x)} for x in xs], values, invalid="fail")
    assert len(opt.penalties) == 4
    assert progress.draw_progress(opt).get_xlabel() == "evaluations with a value (and 2 failed, 4 penalties)"
    assert plots.convergence(opt).get_xlabel() == "evaluations (2 failed trials, 4 penalties left out)"


def test_the_axis_of_a_curve_says_that_failed_trials_are_left_out(line: bo.Optimizer, mixed: bo.Optimizer) -> None:
    assert plots.convergence(line).get_xlabel() == "evaluations"
    assert plots.convergence(mixed).get_xlabel() == "evaluations (1 failed trial left out)"
    assert plots.regret(mixed, 0.0).get_xlabel() == "evaluations (1 failed trial left out)"
