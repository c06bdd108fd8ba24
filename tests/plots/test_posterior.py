"""Slices and contours of the posterior."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import errors

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from bkbopt import plots
from bkbopt.plots.feasible import FAILING, INFEASIBLE


def test_a_slice_is_what_predict_says_with_the_data_on_it(
    line: bo.Optimizer, scattered: Callable[[Axes], list[np.ndarray]], band_of: Callable[[Axes], tuple[float, float]]
) -> None:
    ax = plots.posterior_slice(line, width=1.5)
    curve = ax.get_lines()[0]
    x = np.asarray(curve.get_xdata())
    mean, std = line.predict([{"x": float(v)} for v in x])
    np.testing.assert_allclose(curve.get_ydata(), mean, rtol=0, atol=1e-12)
    assert band_of(ax) == pytest.approx(((mean - 1.5 * std).min(), (mean + 1.5 * std).max()), abs=1e-12)
    data, inducing, star = scattered(ax)
    np.testing.assert_array_equal(data, [(t.params["x"], t.value) for t in line.trials])
    assert len(inducing) == len(line.surrogate.inducing)
    assert set(inducing[:, 0]) <= set(data[:, 0])
    assert star.tolist() == [[line.recommend().params["x"], line.recommend().mean]]
    assert ax.get_xlim() == (0.0, 2.0)


def test_a_slice_through_another_point_has_no_star_and_fades_what_is_off_it(
    mixed: bo.Optimizer, scattered: Callable[[Axes], list[np.ndarray]]
) -> None:
    at = {"kind": "sgd", "drop": 0.3}
    ax = plots.posterior_slice(mixed, "rate", at=at)
    assert ax.get_xscale() == "log"
    params = {**mixed.recommend().params, **at}
    x = np.asarray(ax.get_lines()[0].get_xdata())
    np.testing.assert_allclose(
        ax.get_lines()[0].get_ydata(), mixed.predict([{**params, "rate": float(v)} for v in x])[0], rtol=0, atol=1e-12
    )
    assert len(scattered(ax)) == 2
    dots = next(c for c in ax.collections if isinstance(c, PathCollection))
    opacity = np.asarray(dots.get_facecolor())[:, 3]
    kernel = mixed.surrogate.kernel
    told = [trial for trial in mixed.trials if trial.values]
    extent = np.ptp([trial.values for trial in told])
    for alpha, trial in zip(opacity, told, strict=True):
        points = [trial.params, {**params, "rate": trial.params["rate"]}]
        pair, (mean, std) = mixed.encode(points), mixed.predict(points)
        near = float(kernel(pair[:1], pair[1:])[0, 0] / kernel.diag(pair[:1])[0])
        width = mixed.noise_std**2 + std[1] ** 2 + (0.02 * extent) ** 2
        near *= np.exp(-0.5 * (mean[0] - mean[1]) ** 2 / width)
        assert alpha == pytest.approx(max(near, 0.15), abs=1e-7)  # the kernel's distances are good to 1e-8 at zero


def test_labels_of_a_logarithmic_parameter_with_a_small_span_do_not_touch() -> None:
    space = {"x": bo.Int(500, 4000, log=True)}
    ax = plots.posterior_slice(bo.minimize(lambda p: p["x"], space, 12, seed=0), "x")
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.set_size_inches(4.8, 4.0)
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
    shown = [box for box in boxes if ax.bbox.x0 - 1 <= 0.5 * (box.x0 + box.x1) <= ax.bbox.x1 + 1]
    assert len(shown) >= 2
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(shown))


def test_a_short_logarithmic_axis_has_more_than_one_tick() -> None:
    ax = plots.posterior_slice(bo.minimize(lambda p: p["x"], {"x": bo.Float(1.0, 1.5, log=True)}, 3, seed=0))
    assert ax.get_xscale() == "log"
    assert sum(1.0 <= tick <= 1.5 for tick in ax.get_xticks()) > 2


def test_points_along_a_trend_are_faint_and_those_along_a_parameter_without_effect_are_not() -> None:
    kernel = bo.kernels.rbf(3, lengthscale=[0.3, 20.0, 200.0])  # all points are correlated along the last two
    opt = bo.Optimizer([(0.0, 1.0)] * 3, surrogate=bo.ExactGP(kernel, 1e-4), fit=False, seed=0)
    rows = np.random.default_rng(0).random((40, 3))
    rows[0] = 0.3, 0.5, 0.9
    opt.tell([{f"x{j}": float(v) for j, v in enumerate(row)} for row in rows], 0.2 * rows[:, 0] + rows[:, 1])
    at = {"x1": 0.5, "x2": 0.0}
    dots = next(c for c in plots.posterior_slice(opt, "x0", at=at).collections if isinstance(c, PathCollection))
    opacity, off = np.asarray(dots.get_facecolor())[:, 3], np.abs(rows[:, 1] - 0.5)
    assert (opacity[off > 0.2] == 0.15).all()
    assert opacity[0] > 0.9


def test_running_trials_near_the_slice_are_diamonds() -> None:
    opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], {"x": (0.0, 1.0), "y": (0.0, 1.0)}, 12, seed=0)
    best = opt.recommend().params
    for draw in (lambda: plots.posterior_slice(opt, "x"), lambda: plots.posterior_contour(opt, "x", "y", n_grid=8)):
        assert "running" not in {str(line.get_label()) for line in draw().get_lines()}
    opt.enqueue({"x": 0.9, "y": best["y"]})
    opt.ask()
    (diamond,) = (line for line in plots.posterior_slice(opt, "x").get_lines() if line.get_label() == "running")
    assert np.asarray(diamond.get_xdata()).tolist() == [0.9]
    contour = plots.posterior_contour(opt, "x", "y", n_grid=8)
    (diamond,) = (line for line in contour.get_lines() if line.get_label() == "running")
    assert np.column_stack([diamond.get_xdata(), diamond.get_ydata()]).tolist() == [[0.9, best["y"]]]
    opt.set_space({"x": (0.0, 0.5), "y": (0.0, 1.0)})
    assert "running" not in {str(line.get_label()) for line in plots.posterior_slice(opt, "x").get_lines()}


def test_values_far_off_the_slice_do_not_flatten_the_band() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "z": (0.0, 1.0)}, surrogate=bo.BKB(bo.kernels.rbf(2, 0.2), 0.01), fit=False)
    rows = [(i / 20, 0.0) for i in range(21)] + [(0.3, 1.0), (0.6, 0.95)]
    values = [np.sin(6.0 * x) + 100.0 * (z > 0.5) for x, z in rows]
    opt.tell([{"x": x, "z": z} for x, z in rows], values)
    ax = plots.posterior_slice(opt, "x", at={"z": 0.0})
    dots = next(c for c in ax.collections if isinstance(c, PathCollection))
    heights = np.asarray(dots.get_offsets())[:, 1]
    np.testing.assert_array_equal(heights[:21], values[:21])
    assert heights[21] == heights[22] == heights.max()
    assert 2.0 < heights.max() < ax.get_ylim()[1] < 5.0
    labels = [text.get_text() for text in ax.get_legend().get_texts()]  # type: ignore[union-attr]
    assert {"values told (faint: off slice)", "beyond the axis"} <= set(labels)
    (tip,) = {tuple(path.vertices[path.vertices[:, 1].argmax()]) for path in dots.get_paths()[21:]}
    assert tip[0] == 0.0  # of a triangle that points up
    assert [len(path.vertices) for path in dots.get_paths()] == [len(dots.get_paths()[0].vertices)] * 21 + [4] * 2


def test_the_legend_of_a_slice_has_two_columns_and_leaves_room_to_the_axes() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "z": (0.0, 1.0)}, constraints=["heat"], seed=0)
    rng = np.random.default_rng(0)
    rows = [{"x": float(x), "z": float(z)} for x, z in rng.random((30, 2))]
    values = [np.exp(4.0 * abs(p["x"] - 0.5)) + 40.0 * p["z"] for p in rows]
    opt.tell(rows, values, constraints={"heat": [0.3 - p["x"] for p in rows]})
    opt.fail(opt.ask())
    ax = plots.posterior_slice(opt, "x")
    legend = ax.get_legend()
    assert legend is not None
    assert legend._ncols >= 2  # type: ignore[attr-defined]
    ax.figure.canvas.draw()
    assert ax.get_position().height > 0.6


def steep(x: float) -> float:
    return float(np.exp(6.0 * abs(x - 0.3)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_slice_shows_to_which_level_the_values_beyond_its_band_are_clipped(sign: float) -> None:
    direction = "minimize" if sign > 0.0 else "maximize"
    opt = bo.Optimizer({"x": (0.0, 1.0)}, direction=direction, seed=0)
    xs = [*np.linspace(0.2, 0.4, 30), 0.6, 0.8, 1.0]
    opt.tell([{"x": float(x)} for x in xs], [sign * steep(x) for x in xs])
    ax = plots.posterior_slice(opt)
    (line,) = (line for line in ax.get_lines() if line.get_label() == "worse values clipped here")
    level = float(np.asarray(line.get_ydata())[0])
    assert level == opt.clipping_level
    assert steep(0.4) < sign * level < steep(1.0)
    assert sign * opt.predict({"x": 1.0})[0][0] == pytest.approx(sign * level, rel=0.2)  # and not 66
    labels = [text.get_text() for text in ax.get_legend().get_texts()]  # type: ignore[union-attr]
    assert "worse values clipped here" in labels


def test_a_slice_without_clipped_values_has_no_level_of_clipping() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    opt.tell([{"x": x / 10} for x in range(11)], [x / 10 for x in range(11)])
    ax = plots.posterior_slice(opt)
    assert np.isfinite(opt.clipping_level)
    assert [line.get_label() for line in ax.get_lines()] == ["posterior mean"]


@pytest.mark.parametrize(("n", "size"), [(20, 16.0), (200, 8.0), (1000, 4.0)])
def test_many_points_are_drawn_smaller_so_that_the_band_shows(n: int, size: float) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, surrogate=bo.BKB(bo.kernels.rbf(1), 0.1), fit=False, seed=0)
    opt.tell([{"x": i / n} for i in range(n)], [0.0] * n)
    dots = next(c for c in plots.posterior_slice(opt).collections if isinstance(c, PathCollection))
    assert dots.get_sizes().tolist() == [size]


def test_a_slice_over_choices_has_a_bar_for_each_in_order(mixed: bo.Optimizer) -> None:
    ax = plots.posterior_slice(mixed, "kind")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["adam", "sgd", "rmsprop"]
    mean, _ = mixed.predict([{**mixed.recommend().params, "kind": k} for k in ("adam", "sgd", "rmsprop")])
    np.testing.assert_allclose(ax.containers[0][0].get_ydata(), mean, rtol=0, atol=1e-12)


def test_ticks_of_many_whole_numbers_are_whole() -> None:
    opt = bo.Optimizer({"depth": bo.Int(1, 20), "x": (0.0, 1.0)}, seed=0)
    opt.tell([{"depth": 3, "x": 0.2}, {"depth": 17, "x": 0.7}], [1.0, 0.0])
    for ticks in (
        plots.posterior_slice(opt, "depth").get_xticks(),
        plots.posterior_contour(opt, "x", "depth").get_yticks(),
    ):
        assert (ticks == np.round(ticks)).all()


def test_of_numbers_that_would_touch_every_second_or_third_has_a_label() -> None:
    opt = bo.Optimizer({"depth": bo.Int(1, 12), "x": (0.0, 1.0)}, seed=0)
    opt.tell([{"depth": 3, "x": 0.2}, {"depth": 11, "x": 0.7}], [1.0, 0.0])
    for columns in range(1, 8):
        figure = Figure()
        ax = plots.posterior_slice(opt, "depth", ax=figure.add_subplot(1, columns, 1))
        shown = [i for i, label in enumerate(ax.get_xticklabels()) if label.get_text()]
        assert len(set(np.diff(shown))) <= 1
        assert len(shown) == 12 or columns > 1


def test_contours_and_cells_are_what_predict_says(
    mixed: bo.Optimizer, scattered: Callable[[Axes], list[np.ndarray]]
) -> None:
    ax = plots.posterior_contour(mixed, "kind", "layers", what="std", value_name="loss (nats)")
    choice = dict(mixed.recommend().params)
    kinds = ("adam", "sgd", "rmsprop")
    grid = [{**choice, "kind": kind, "layers": n} for n in range(1, 7) for kind in kinds]
    mesh = next(c for c in ax.collections if not isinstance(c, PathCollection))
    np.testing.assert_allclose(np.ravel(mesh.get_array()), mixed.predict(grid)[1], rtol=0, atol=1e-12)
    figure = ax.get_figure(root=True)
    assert figure is not None
    assert [a.get_ylabel() for a in figure.axes] == ["layers", "posterior sd of loss (nats)"]
    complete = [t for t in mixed.trials if t.state == "COMPLETE"]
    places = np.array([[kinds.index(t.params["kind"]), t.params["layers"]] for t in complete])
    assert any(np.array_equal(points, places) for points in scattered(ax))


def test_contours_of_two_continua_lie_between_the_extremes_of_predict(mixed: bo.Optimizer) -> None:
    ax = plots.posterior_contour(mixed, "rate", "drop", n_grid=9)
    rates = np.geomspace(1e-4, 1.0, 9)
    grid = [{**mixed.recommend().params, "rate": float(r), "drop": d} for d in np.linspace(0, 0.6, 9) for r in rates]
    mean = mixed.predict([{**p, "rate": min(p["rate"], 1.0)} for p in grid])[0]
    drawn = ax.collections[0]
    assert drawn.zmin == pytest.approx(mean.min(), abs=1e-9)  # type: ignore[attr-defined]
    assert drawn.zmax == pytest.approx(mean.max(), abs=1e-9)  # type: ignore[attr-defined]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")


def test_slices_of_a_pool_run_over_the_range_of_its_column(arms: bo.Optimizer) -> None:
    ax = plots.posterior_slice(arms, "x1")
    column = [p["x1"] for p in map(arms.pool.decode, range(60))]  # type: ignore[union-attr]
    assert ax.get_xlim() == pytest.approx((min(column), max(column)), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            plots.posterior_slice,
            errors.ArgumentError,
            "x: expected one of the parameters .* that vary, got none; name it by x=, in the shell by --x",
        ),
        (lambda o: plots.posterior_slice(o, "fixed"), errors.ArgumentError, "that vary, got 'fixed'"),
        (lambda o: plots.posterior_slice(o, "rate", at={"no": 1}), errors.ArgumentError, r"at: .*'no'"),
        (lambda o: plots.posterior_slice(o, "rate", at={"drop": 9.0}), errors.ArgumentError, "'drop'"),
        (lambda o: plots.posterior_slice(o, "rate", at=3), errors.ArgumentTypeError, "at: expected a dict"),
        (lambda o: plots.posterior_slice(o, "rate", width=-1.0), errors.ArgumentError, "width: "),
        (
            lambda o: plots.posterior_slice(o, "rate", n_grid=0),
            errors.ArgumentError,
            "n_grid: expected a whole number >= 1",
        ),
        (
            lambda o: plots.posterior_contour(o, "rate", "kind", n_grid=0),
            errors.ArgumentError,
            "n_grid: expected a whole number",
        ),
        (lambda o: plots.posterior_contour(o, "rate", "rate"), errors.ArgumentError, "y: expected another"),
        (lambda o: plots.posterior_contour(o, "rate", "kind", what="x"), errors.ArgumentError, "what: "),
        (lambda o: plots.partial_dependence(o, "rate", "rate"), errors.ArgumentError, "y: expected another"),
        (lambda o: plots.partial_dependence(o, "nope"), errors.ArgumentError, "got 'nope'"),
        (lambda o: plots.partial_dependence(o, "rate", n_samples=0), errors.ArgumentError, "n_samples: "),
        (lambda o: plots.pairwise_dependence(o, ["fixed"]), errors.ArgumentError, "names: "),
        (lambda o: plots.calibration(o, [{}]), errors.ArgumentError, "got only one of them"),
        (lambda o: plots.calibration(o, [], []), errors.ArgumentError, "test: expected at least one"),
        (lambda o: plots.calibration(o, 5, [1.0]), errors.ArgumentTypeError, "test: expected parameters of points"),
        (lambda o: plots.calibration(o, n_folds=1), errors.ArgumentError, "n_folds: "),
        (lambda o: plots.pool_ucb(o, "rate", "drop"), errors.ArgumentError, "expected an optimizer over a pool"),
    ],
)
def test_refused_arguments_are_named(
    call: Callable[[Any], Axes], error: type[Exception], message: str, mixed: bo.Optimizer
) -> None:
    with pytest.raises(error, match=message):
        call(mixed)


CONSTRAINED = {"x": (0.0, 1.0), "y": (0.0, 1.0), "kind": bo.Categorical(["a", "b", "c"])}


@pytest.fixture(scope="module")
def constrained() -> bo.Optimizer:
    """The constraint holds below a curve, which is lower for one of the kinds; the best point is on it."""
    opt = bo.Optimizer(CONSTRAINED, constraints=["c"], seed=0, deterministic=True)
    for trial in opt.ask(20):
        p = trial.params
        limit = p["y"] - 0.7 + (p["x"] - 0.6) ** 2 + 0.3 * (p["kind"] == "c")
        opt.tell(trial, (p["x"] - 0.3) ** 2 + (p["y"] - 0.8) ** 2, constraints={"c": limit})
    return opt


def labelled(ax: Axes) -> list[str]:
    return [str(label) for label in ax.get_legend_handles_labels()[1]]


def test_a_slice_hatches_what_is_probably_infeasible(constrained: bo.Optimizer) -> None:
    ax = plots.posterior_slice(constrained, "y")
    (span,) = ax.patches
    low, high = span.get_extents().transformed(ax.transData.inverted()).intervalx
    y = np.linspace(0.0, 1.0, 200)
    params = [{**constrained.recommend().params, "y": float(v)} for v in y]
    infeasible = y[constrained.feasibility(params) < 0.5]
    # The span ends half-way between two of the 200 values, or at the end of the axis.
    assert low == pytest.approx(infeasible[0], abs=0.003)
    assert high == pytest.approx(infeasible[-1], abs=0.003)
    assert INFEASIBLE in labelled(ax)


@pytest.mark.parametrize("pair", [("x", "y"), ("kind", "y")], ids=["two continua", "cells"])
def test_a_contour_marks_infeasible_trials_and_regions(
    constrained: bo.Optimizer, scattered: Callable[[Axes], list[np.ndarray]], pair: tuple[str, str]
) -> None:
    ax = plots.posterior_contour(constrained, *pair)
    *_, feasible, infeasible, _star = scattered(ax)
    expected = [trial.params["y"] for trial in constrained.trials if not trial.is_feasible]
    np.testing.assert_allclose(sorted(infeasible[:, 1]), sorted(expected), rtol=0, atol=0)
    assert len(feasible) + len(infeasible) == len(constrained.trials)
    assert {INFEASIBLE, "values told (faint: off slice)", "infeasible"} <= set(labelled(ax))


def test_cells_are_hatched_where_the_constraints_probably_do_not_hold(constrained: bo.Optimizer) -> None:
    ax = plots.posterior_contour(constrained, "kind", "y", n_grid=30)
    hatched = [c.get_paths()[0].get_extents() for c in ax.collections if c.get_hatch() and len(c.get_paths())]
    best, y = constrained.recommend().params, np.linspace(0.0, 1.0, 90)  # three times n beside a choice
    for place, kind in enumerate("abc"):
        odds = constrained.feasibility([{**best, "kind": kind, "y": float(v)} for v in y])
        (box,) = [box for box in hatched if box.x0 < place < box.x1]
        assert box.y0 == pytest.approx(y[odds < 0.5][0] - 0.5 * y[1], abs=1e-9)  # the lower edge of its cell


@pytest.mark.parametrize("told", [True, False], ids=["holding everywhere", "without a value"])
def test_without_an_infeasible_area_nothing_is_hatched(told: bool) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, constraints=["c"], seed=0)
    for trial in opt.ask(12):
        opt.tell(trial, trial.params["x"], constraints={"c": -1.0} if told else None)
    for ax in (plots.posterior_slice(opt, "x"), plots.posterior_contour(opt, "x", "y")):
        assert not any("infeasible" in label for label in labelled(ax))
        assert not any(artist.get_hatch() for artist in (*ax.patches, *ax.collections) if artist is not ax.patch)


@pytest.fixture
def failing() -> bo.Optimizer:
    """Right of x = 1/2 trials fail; one of these was lost, and has a value since. One is far from the slice."""
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0, deterministic=True)
    points = [{"x": x / 8, "y": y / 4} for x in range(5) for y in range(5)]
    opt.tell(points, [p["x"] + 2.0 * p["y"] ** 2 for p in points])
    for x, y in ((0.75, 0.0), (1.0, 0.0), (0.75, 1.0), (0.25, 0.1)):
        opt.enqueue({"x": x, "y": y})
        opt.fail(opt.ask())
    opt.tell({"x": 0.25, "y": 0.1}, 0.27)
    return opt


def crosses(ax: Axes) -> list[list[float]]:
    (marks,) = (line for line in ax.get_lines() if line.get_label() == "failed")
    return np.asarray(marks.get_xydata()).tolist()


def test_failed_trials_near_a_slice_are_crosses_at_its_upper_edge(failing: bo.Optimizer) -> None:
    assert crosses(plots.posterior_slice(failing, "x")) == [[0.75, 0.97], [1.0, 0.97]]


def test_failed_trials_are_crosses_on_a_contour(failing: bo.Optimizer) -> None:
    assert crosses(plots.posterior_contour(failing, "x", "y")) == [[0.75, 0.0], [1.0, 0.0], [0.75, 1.0]]


def test_failed_trials_of_an_earlier_space_are_not_drawn(failing: bo.Optimizer) -> None:
    failing.set_space({"x": (0.0, 0.8), "y": (0.0, 1.0)})
    assert crosses(plots.posterior_slice(failing, "x")) == [[0.75, 0.97]]
    failing.set_space({"x": (0.0, 0.7), "y": (0.0, 1.0)})
    assert "failed" not in labelled(plots.posterior_slice(failing, "x"))


def with_an_edge(*, constrained: bool) -> bo.Optimizer:
    """Trials fail right of x = 0.6; a constraint, if there is one, holds below y = 0.5."""
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, constraints=["c"] if constrained else [], seed=0)
    for i in range(7):
        for j in range(7):
            opt.enqueue({"x": i / 6, "y": j / 6})
            limits = {"c": j / 6 - 0.5} if constrained else None
            opt.fail(opt.ask()) if i > 3 else opt.tell(opt.ask(), i + j, constraints=limits)
    return opt


def test_a_slice_hatches_where_trials_probably_fail() -> None:
    opt = with_an_edge(constrained=False)
    ax = plots.posterior_slice(opt, "x")
    (span,) = ax.patches
    low, high = span.get_extents().transformed(ax.transData.inverted()).intervalx
    x = np.linspace(0.0, 1.0, 200)
    failing = x[opt.success_probability([{**opt.recommend().params, "x": float(v)} for v in x]) < 0.5]
    # As for constraints above.
    assert low == pytest.approx(failing[0], abs=0.003)
    assert high == pytest.approx(failing[-1], abs=0.003)
    assert 0.5 < low < 4 / 6  # between the last column that succeeds and the first that fails
    assert FAILING in labelled(ax)


def test_with_constraints_and_failures_the_key_names_both() -> None:
    opt = with_an_edge(constrained=True)
    (key,) = [label for label in labelled(plots.posterior_contour(opt, "x", "y", n_grid=20)) if "probably" in label]
    assert key == "probably infeasible, or fails"
