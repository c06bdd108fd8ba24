"""Pictures show what the optimizer says, on the Axes given, and leave no trace elsewhere."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import ndtri

import bkbopt as bo
from bkbopt import errors

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from bkbopt import plots
from bkbopt.plots import coverage, dimensions

ROOT = Path(__file__).resolve().parents[1]
MIXED = {
    "rate": bo.Float(1e-4, 1.0, log=True),
    "layers": bo.Int(1, 6),
    "kind": ["adam", "sgd", "rmsprop"],
    "drop": (0.0, 0.6),
    "fixed": 7,
}


def cost(params: Mapping[str, Any]) -> float:
    """Smooth in the logarithm of the rate, a step between two kinds; `drop` does nothing."""
    return (np.log10(params["rate"]) + 2.0) ** 2 + 0.1 * params["layers"] + (params["kind"] == "sgd")


def run(space: Any, f: Callable[[Any], float], n: int, **options: Any) -> bo.Optimizer:
    rng = np.random.default_rng(0)
    options = {"seed": 0, "n_startup_trials": 8} | options
    return bo.minimize(lambda p: f(p) + 0.1 * rng.standard_normal(), space, n, **options)


@pytest.fixture(scope="module")
def line() -> bo.Optimizer:
    return run({"x": (0.0, 2.0)}, lambda p: float(np.sin(5.0 * p["x"])), 14)


@pytest.fixture(scope="module")
def mixed() -> bo.Optimizer:
    opt = run(MIXED, cost, 16)
    opt.fail(opt.ask())
    return opt


@pytest.fixture(scope="module")
def arms() -> bo.Optimizer:
    """A pool in which larger is better; one arm has been measured twice, one is running."""
    rows = np.random.default_rng(1).random((60, 3)) * [1.0, 10.0, 100.0]
    opt = run(rows, lambda p: float(p["x0"] - 0.01 * p["x2"]), 14, direction="maximize")
    opt.tell({"index": opt.trials[0].index}, 0.1)
    opt.ask()
    return opt


#: Every picture, on Axes or None.
ON_MIXED: dict[str, Callable[[bo.Optimizer, Axes | None], Axes]] = {
    "convergence": lambda opt, ax: plots.convergence({"one": opt, "other": [[2.0, 1.0], [3.0, 2.5]]}, ax),
    "regret": lambda opt, ax: plots.regret(opt, 0.0, ax, truth=cost),
    "slice": lambda opt, ax: plots.posterior_slice(opt, "rate", ax),
    "slice of choices": lambda opt, ax: plots.posterior_slice(opt, "kind", ax),
    "contour": lambda opt, ax: plots.posterior_contour(opt, "rate", "drop", ax),
    "cells": lambda opt, ax: plots.posterior_contour(opt, "kind", "layers", ax, what="std"),
    "dependence": lambda opt, ax: plots.partial_dependence(opt, "rate", None, ax),
    "dependence of a pair": lambda opt, ax: plots.partial_dependence(opt, "rate", "kind", ax, n_samples=8),
    "importance": lambda opt, ax: plots.importance(opt, ax, n=64),
    "complexity": plots.complexity,
    "time": plots.ask_time,
    "calibration": lambda opt, ax: plots.calibration(opt, ax=ax),
}


def scattered(ax: Axes) -> list[np.ndarray]:
    """Places of the points of each scatter that is not empty, (n, 2)."""
    found = [np.asarray(c.get_offsets()) for c in ax.collections if isinstance(c, PathCollection)]
    return [places for places in found if len(places)]


def band_of(ax: Axes) -> tuple[float, float]:
    """Lowest and highest point of the first filled band."""
    y = ax.collections[0].get_paths()[0].vertices[:, 1]
    return float(y.min()), float(y.max())


# -- all pictures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ON_MIXED)
def test_a_picture_returns_the_axes_it_was_given_and_names_its_axes(name: str, mixed: bo.Optimizer) -> None:
    figure = Figure()
    ax = figure.add_subplot()
    assert ON_MIXED[name](mixed, ax) is ax
    assert ax.figure is figure
    assert ax.get_xlabel()
    assert ax.get_ylabel() or name == "importance"  # whose rows bear the names
    assert ax.has_data()


@pytest.mark.parametrize("name", ON_MIXED)
def test_a_legend_covers_no_data_and_lies_within_the_figure(name: str, mixed: bo.Optimizer) -> None:
    ax = ON_MIXED[name](mixed, None)
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    legend = ax.get_legend()
    assert (legend is None) == (name == "dependence of a pair")
    if legend is not None:
        box = legend.get_window_extent(canvas.get_renderer())
        assert box.y1 <= ax.xaxis.label.get_window_extent(canvas.get_renderer()).y0 + 2.0  # pixels
        assert box.y0 >= 0.0
        assert box.x0 >= 0.0
        assert box.x1 <= figure.bbox.x1


def test_long_names_of_choices_leave_the_legend_below_them() -> None:
    names = [f"quite a long name {i}" for i in range(5)]
    opt = run({"kind": names, "x": (0.0, 1.0)}, lambda p: p["x"], 8)
    ax = plots.posterior_slice(opt, "kind")
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    legend, labels = ax.get_legend(), ax.get_xticklabels()
    assert legend is not None
    top = legend.get_window_extent(canvas.get_renderer()).y1
    assert all(label.get_window_extent(canvas.get_renderer()).y0 > top for label in labels)


def test_drawing_changes_nothing_that_the_optimizer_does(mixed: bo.Optimizer, tmp_path: Path) -> None:
    mixed.save(tmp_path / "before")
    for draw in ON_MIXED.values():
        draw(mixed, None)
    plots.overview(mixed)
    mixed.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


def test_pyplot_is_not_even_imported_and_no_setting_changes() -> None:
    code = """
import sys
import bkbopt as bo, bkbopt.plots as plots
assert "matplotlib" not in sys.modules
import matplotlib
before = matplotlib.rcParams.copy()
opt = bo.minimize(lambda p: p["x"] + p["y"], {"x": (0, 1), "y": (0, 1)}, 10, n_startup_trials=6, seed=0)
plots.overview(opt).savefig(sys.argv[1])
plots.pairwise_dependence(opt, n_samples=4)
plots.calibration(opt, folds=3)
assert "matplotlib.pyplot" not in sys.modules
assert matplotlib.rcParams == before
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "/dev/null" if sys.platform != "win32" else "NUL"],
        cwd=ROOT,
        env={**os.environ, "MPLBACKEND": "Agg"},  # it would be looked for, and set, at the first picture
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_without_matplotlib_the_error_names_the_extra(line: bo.Optimizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(errors.MissingPackageError, match=r"bkbopt\[plots\]"):
        plots.convergence(line)


def test_what_is_no_optimizer_and_what_are_no_axes_is_refused(line: bo.Optimizer) -> None:
    draw: list[Callable[..., Any]] = [plots.posterior_slice, plots.importance, plots.complexity, plots.calibration]
    for function in [*draw, plots.partial_dependence, plots.overview, plots.pairwise_dependence]:
        with pytest.raises(errors.ArgumentTypeError, match="opt: expected a bkbopt Optimizer, got str"):
            function("opt")
    with pytest.raises(errors.ArgumentTypeError, match="ax: expected matplotlib Axes"):
        plots.convergence(line, Figure())  # type: ignore[arg-type]


def test_an_optimizer_without_values_is_refused() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    opt.ask()
    refused: list[Callable[[], Any]] = [
        lambda: plots.convergence(opt),
        lambda: plots.posterior_slice(opt, "x"),
        lambda: plots.posterior_contour(opt, "x", "y"),
        lambda: plots.partial_dependence(opt, "x"),
        lambda: plots.importance(opt),
        lambda: plots.calibration(opt),
        lambda: plots.complexity(opt),
        lambda: plots.overview(opt),
    ]
    for draw in refused:
        with pytest.raises(errors.NotReadyError):
            draw()


def test_a_model_that_is_not_in_use_yet_can_be_drawn() -> None:
    opt = bo.Optimizer(MIXED, seed=0)
    for i in range(3):
        opt.tell(opt.ask(), float(i))
    figure = plots.overview(opt)
    assert "time of an ask (ms)" in [ax.get_ylabel() for ax in figure.axes]


# -- runs --------------------------------------------------------------------------------------------------------------


def test_convergence_is_the_running_best_and_ends_at_the_recommendation(line: bo.Optimizer) -> None:
    ax = plots.convergence(line, value_name="loss (nats)")
    values = [t.value for t in line.trials]
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), np.minimum.accumulate(values))
    np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), np.arange(1, len(values) + 1))
    choice = line.recommend()
    assert ax.containers[0][0].get_ydata() == pytest.approx([choice.mean], abs=0)
    assert ax.get_ylabel() == "best loss (nats) so far"


def test_convergence_takes_values_in_the_order_in_which_they_were_told() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    first, second = opt.ask(2)
    opt.tell(second, 5.0)
    opt.tell(first, 3.0)
    np.testing.assert_array_equal(plots.convergence(opt).get_lines()[0].get_ydata(), [5.0, 3.0])


def test_convergence_over_seeds_has_median_and_quartiles_of_the_shortest_length() -> None:
    rows = np.random.default_rng(0).random((5, 9))
    runs = [*rows[:4], [*rows[4].tolist(), 0.0]]
    ax = plots.convergence({"a": runs}, direction="maximize")
    best = np.maximum.accumulate(rows, axis=1)
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), np.median(best, axis=0), rtol=1e-14)
    low, high = np.quantile(best, [0.25, 0.75], axis=0)
    assert band_of(ax) == pytest.approx((low.min(), high.max()), rel=1e-14)
    legend = ax.get_legend()
    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == ["a (n = 5)", "median and quartiles"]


def test_convergence_by_standard_errors_and_answers_as_they_are() -> None:
    rows = np.array([[3.0, 1.0, 2.0], [5.0, 2.0, 4.0]])
    ax = plots.convergence({"a": rows}, best=False, band="standard error", t=[10, 20, 40])
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), rows.mean(axis=0))
    np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), [10, 20, 40])
    error = rows.std(axis=0, ddof=1) / 2**0.5
    assert band_of(ax)[1] == pytest.approx((rows.mean(axis=0) + 2 * error).max())


def test_failed_evaluations_are_nan_and_improve_nothing() -> None:
    ax = plots.convergence([np.nan, 2.0, np.nan, 1.0])
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [np.nan, 2.0, 2.0, 1.0])
    ax = plots.regret([np.nan, 2.0, np.nan, 1.0], 0.5, kind="average")
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [0.0, 1.5, 1.5, 1.0])


def test_recommended_values_are_a_second_line_of_the_same_colour() -> None:
    ax = plots.convergence({"a": [3.0, 1.0], "b": [2.0, 2.0]}, recommended={"b": [2.5, 1.5]})
    lines = {line.get_label(): line for line in ax.get_lines()}
    np.testing.assert_array_equal(lines["b, recommended"].get_ydata(), [2.5, 1.5])
    assert lines["b, recommended"].get_color() == lines["b"].get_color() != lines["a"].get_color()


def test_regret_by_the_truth_is_that_of_the_points_asked(mixed: bo.Optimizer) -> None:
    true = np.array([cost(t.params) for t in mixed.trials if t.state == "COMPLETE"]) - 0.1
    drawn = {
        kind: plots.regret(mixed, 0.1, kind=kind, truth=cost)  # type: ignore[arg-type]
        for kind in ("simple", "average", "cumulative")
    }
    np.testing.assert_allclose(drawn["simple"].get_lines()[0].get_ydata(), np.minimum.accumulate(true))
    np.testing.assert_allclose(drawn["cumulative"].get_lines()[0].get_ydata(), np.cumsum(true))
    average = np.cumsum(true) / np.arange(1, len(true) + 1)
    np.testing.assert_allclose(drawn["average"].get_lines()[0].get_ydata(), average)
    assert [ax.get_yscale() for ax in drawn.values()] == ["log", "log", "linear"]


def test_regret_when_maximising_is_what_is_missing_and_linear_where_luck_makes_it_negative() -> None:
    ax = plots.regret([1.0, 4.0, 2.0], 3.0, direction="maximize", recommended=[1.0, 1.0, 2.5])
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [2.0, -1.0, -1.0])
    np.testing.assert_array_equal(ax.get_lines()[1].get_ydata(), [2.0, 2.0, 0.5])
    assert ax.get_yscale() == "linear"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plots.convergence("abc"), errors.ArgumentTypeError, "runs: expected an optimizer"),
        (lambda: plots.convergence(3.0), errors.ArgumentTypeError, "runs: .* got float"),
        (lambda: plots.convergence([]), errors.ArgumentError, "empty list"),
        (lambda: plots.convergence({}), errors.ArgumentError, "empty dict"),
        (lambda: plots.convergence(["a", "b"]), errors.ArgumentTypeError, "expected numbers"),
        (lambda: plots.convergence([1.0, np.inf]), errors.ArgumentError, "expected finite values"),
        (lambda: plots.convergence([1.0], direction="up"), errors.ArgumentError, "direction: .* got .'up'"),
        (lambda: plots.convergence([1.0], band="sd"), errors.ArgumentError, "band: expected"),  # type: ignore[arg-type]
        (lambda: plots.convergence([1.0, 2.0], t=[1]), errors.ArgumentError, "t: expected 2 numbers"),
        (lambda: plots.convergence({"a": [1.0]}, recommended={"b": [1.0]}), errors.ArgumentError, "recommended: "),
        (lambda: plots.regret([1.0], float("nan")), errors.ArgumentError, "optimum: expected a finite number"),
        (lambda: plots.regret([1.0], 0.0, kind="best"), errors.ArgumentError, "kind: "),  # type: ignore[arg-type]
        (lambda: plots.regret([1.0], 0.0, truth=3), errors.ArgumentTypeError, "truth: "),  # type: ignore[arg-type]
        (lambda: plots.ask_time([1.0, -1.0]), errors.ArgumentError, "times: expected positive"),
        (lambda: plots.ask_time("abc"), errors.ArgumentTypeError, "times: "),  # type: ignore[arg-type]
    ],
)
def test_refused_runs_are_named(call: Callable[[], Axes], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_optimizers_of_two_directions_have_no_common_picture(line: bo.Optimizer, arms: bo.Optimizer) -> None:
    with pytest.raises(errors.ArgumentError, match="the same for all runs"):
        plots.convergence({"a": line, "b": arms})


# -- the posterior -----------------------------------------------------------------------------------------------------


def test_a_slice_is_what_predict_says_with_the_data_on_it(line: bo.Optimizer) -> None:
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


def test_a_slice_through_another_point_has_no_star_and_fades_what_is_off_it(mixed: bo.Optimizer) -> None:
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
    for alpha, trial in zip(opacity, mixed.trials, strict=False):
        pair = mixed.domain.encode([trial.params, {**params, "rate": trial.params["rate"]}])
        near = float(kernel(pair[:1], pair[1:])[0, 0] / kernel.diag(pair[:1])[0])
        assert alpha == pytest.approx(max(near, 0.1), abs=1e-9)  # the kernel's distances are good to 1e-8 at zero


def test_a_slice_over_choices_has_a_bar_for_each_in_order(mixed: bo.Optimizer) -> None:
    ax = plots.posterior_slice(mixed, "kind")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["adam", "sgd", "rmsprop"]
    mean, _ = mixed.predict([{**mixed.recommend().params, "kind": k} for k in ("adam", "sgd", "rmsprop")])
    np.testing.assert_allclose(ax.containers[0][0].get_ydata(), mean, rtol=0, atol=1e-12)


def test_contours_and_cells_are_what_predict_says(mixed: bo.Optimizer) -> None:
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
    ax = plots.posterior_contour(mixed, "rate", "drop", n=9)
    rates = np.geomspace(1e-4, 1.0, 9)
    grid = [{**mixed.recommend().params, "rate": float(r), "drop": d} for d in np.linspace(0, 0.6, 9) for r in rates]
    mean = mixed.predict([{**p, "rate": min(p["rate"], 1.0)} for p in grid])[0]
    drawn = ax.collections[0]
    assert drawn.zmin == pytest.approx(mean.min(), abs=1e-9)  # type: ignore[attr-defined]
    assert drawn.zmax == pytest.approx(mean.max(), abs=1e-9)  # type: ignore[attr-defined]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")


def test_slices_of_a_pool_run_over_the_range_of_its_column(arms: bo.Optimizer) -> None:
    ax = plots.posterior_slice(arms, "x1")
    column = [p["x1"] for p in (arms.domain.describe(x)[0] for x in arms.domain.X)]  # type: ignore[union-attr]
    assert ax.get_xlim() == pytest.approx((min(column), max(column)), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (plots.posterior_slice, errors.ArgumentError, "x: expected one of the parameters"),
        (lambda o: plots.posterior_slice(o, "fixed"), errors.ArgumentError, "that vary, got 'fixed'"),
        (lambda o: plots.posterior_slice(o, "rate", at={"no": 1}), errors.ArgumentError, r"at: .*'no'"),
        (lambda o: plots.posterior_slice(o, "rate", at={"drop": 9.0}), errors.ArgumentError, "'drop'"),
        (lambda o: plots.posterior_slice(o, "rate", at=3), errors.ArgumentTypeError, "at: expected a dict"),
        (lambda o: plots.posterior_slice(o, "rate", width=-1.0), errors.ArgumentError, "width: "),
        (lambda o: plots.posterior_contour(o, "rate", "rate"), errors.ArgumentError, "y: expected another"),
        (lambda o: plots.posterior_contour(o, "rate", "kind", what="x"), errors.ArgumentError, "what: "),
        (lambda o: plots.partial_dependence(o, "rate", "rate"), errors.ArgumentError, "y: expected another"),
        (lambda o: plots.partial_dependence(o, "nope"), errors.ArgumentError, "got 'nope'"),
        (lambda o: plots.partial_dependence(o, "rate", n_samples=0), errors.ArgumentError, "n_samples: "),
        (lambda o: plots.pairwise_dependence(o, ["fixed"]), errors.ArgumentError, "names: "),
        (lambda o: plots.calibration(o, [{}]), errors.ArgumentError, "only one of both"),
        (lambda o: plots.calibration(o, [], []), errors.ArgumentError, "test: expected at least one"),
        (lambda o: plots.calibration(o, folds=1), errors.ArgumentError, "folds: "),
        (lambda o: plots.pool_ucb(o, "rate", "drop"), errors.ArgumentError, "expected an optimizer over a pool"),
    ],
)
def test_refused_arguments_are_named(
    call: Callable[[Any], Axes], error: type[Exception], message: str, mixed: bo.Optimizer
) -> None:
    with pytest.raises(error, match=message):
        call(mixed)


# -- dependence and importance -----------------------------------------------------------------------------------------


def test_partial_dependence_is_the_average_of_predict_over_the_rest(mixed: bo.Optimizer) -> None:
    rest = mixed.domain.space.decode(dimensions.sampled(mixed, 16))  # type: ignore[union-attr]
    ax = plots.partial_dependence(mixed, "layers", n_samples=16)
    curves = np.array([mixed.predict([{**p, "layers": n} for p in rest])[0] for n in range(1, 7)])
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), curves.mean(axis=1), rtol=0, atol=1e-9)
    ends = np.array([segment[:, 1] for segment in ax.collections[0].get_segments()])  # type: ignore[attr-defined]
    np.testing.assert_allclose(ends.T, np.quantile(curves, [0.1, 0.9], axis=1), rtol=0, atol=1e-9)


def test_partial_dependence_over_a_pair_is_that_average_too(mixed: bo.Optimizer) -> None:
    rest = mixed.domain.space.decode(dimensions.sampled(mixed, 8))  # type: ignore[union-attr]
    ax = plots.partial_dependence(mixed, "kind", "layers", n_samples=8)
    cells = np.reshape(ax.collections[0].get_array(), (6, 3))
    for i, j, kind in ((0, 0, "adam"), (4, 1, "sgd"), (5, 2, "rmsprop")):
        mean = mixed.predict([{**p, "layers": i + 1, "kind": kind} for p in rest])[0].mean()
        assert cells[i, j] == pytest.approx(mean, abs=1e-9)


def test_pairwise_dependence_fills_the_lower_triangle(mixed: bo.Optimizer) -> None:
    names = ["rate", "kind", "layers"]
    figure = Figure()
    axes = plots.pairwise_dependence(mixed, names, figure, n_samples=4)
    assert axes.shape == (3, 3)
    for i in range(3):
        for j in range(3):
            assert (axes[i, j] is None) == (j > i)
            if j <= i:
                assert axes[i, j].figure is figure
                assert axes[i, j].get_xlabel() == names[j]
            if j < i:
                assert axes[i, j].get_ylabel() == names[i]


def learned(f: Callable[[np.ndarray], np.ndarray]) -> bo.Optimizer:
    """An optimizer whose mean is a function of [0, 1]^3 that it knows almost exactly."""
    X = torch.quasirandom.SobolEngine(3, scramble=True, seed=1).draw(80, dtype=torch.float64).numpy()
    surrogate = bo.ExactGP(bo.kernels.rbf(3, lengthscale=1.0, outputscale=10.0), noise=1e-6)
    opt = bo.Optimizer([(0.0, 1.0)] * 3, seed=0, surrogate=surrogate, fit=False)
    opt.tell([{f"x{j}": float(v) for j, v in enumerate(x)} for x in X], f(X))
    return opt


def test_shares_of_a_sum_are_the_terms_shares_of_its_variance() -> None:
    shares = plots.variance_shares(learned(lambda X: 3.0 * X[:, 0] + X[:, 1]))
    # The variances of the terms are as 9 to 1; a sample of 2048 is good to about 1 / sqrt(2048).
    assert [s.first for s in shares.values()] == pytest.approx([0.9, 0.1, 0.0], abs=0.02)
    assert [s.total for s in shares.values()] == pytest.approx([0.9, 0.1, 0.0], abs=0.02)


def test_a_pure_interaction_counts_for_both_and_for_neither_alone() -> None:
    shares = plots.variance_shares(learned(lambda X: (X[:, 0] - 0.5) * (X[:, 1] - 0.5)))
    assert [s.first for s in shares.values()] == pytest.approx([0.0, 0.0, 0.0], abs=0.04)
    assert [s.total for s in shares.values()] == pytest.approx([1.0, 1.0, 0.0], abs=0.04)


def test_shares_in_a_mixed_space_agree_with_averages_taken_by_hand(mixed: bo.Optimizer) -> None:
    space = mixed.domain.space  # type: ignore[union-attr]
    base = space.sample(400, np.random.default_rng(5))
    f = mixed.predict(space.decode(base))[0]
    averages = [
        np.mean(mixed.predict([{**p, "kind": k} for p in space.decode(base)])[0]) for k in ("adam", "sgd", "rmsprop")
    ]
    # 400 points give the variance to some 7 %.
    assert plots.variance_shares(mixed)["kind"].first == pytest.approx(np.var(averages) / np.var(f), abs=0.05)


def test_a_flat_mean_has_no_important_parameter() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    for _ in range(4):
        opt.tell(opt.ask(), 3.0)
    assert set(plots.variance_shares(opt).values()) == {plots.Share(0.0, 0.0)}


def test_importance_draws_the_shares_largest_on_top(mixed: bo.Optimizer) -> None:
    shares = plots.variance_shares(mixed, n=256)
    ax = plots.importance(mixed, n=256)
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert names == sorted(shares, key=lambda name: shares[name].total)
    first, rest = ax.containers
    for name, bar, more in zip(names, first, rest, strict=True):
        assert bar.get_width() == pytest.approx(100 * shares[name].first)
        assert bar.get_width() + more.get_width() == pytest.approx(100 * shares[name].total)
    assert "fixed" not in names


# -- cost and calibration ----------------------------------------------------------------------------------------------


def test_complexity_is_that_of_the_diagnostics(mixed: bo.Optimizer) -> None:
    used = [d for d in mixed.diagnostics if d.m is not None]
    m, dimension = plots.complexity(mixed).get_lines()
    np.testing.assert_array_equal(m.get_xdata(), [d.t for d in used])
    np.testing.assert_array_equal(m.get_ydata(), [d.m for d in used])
    np.testing.assert_array_equal(dimension.get_ydata(), [d.effective_dimension for d in used])


def test_ask_time_is_that_of_the_diagnostics_or_of_any_list(mixed: bo.Optimizer) -> None:
    seconds = [d.ask_seconds for d in mixed.diagnostics]
    for given in (mixed, seconds):
        dots = plots.ask_time(given).get_lines()[0]
        np.testing.assert_allclose(dots.get_ydata(), 1e3 * np.array(seconds), rtol=1e-12)


@pytest.mark.parametrize("noisy", [False, True])
def test_calibration_counts_test_values_in_central_intervals(noisy: bool, mixed: bo.Optimizer) -> None:
    space = mixed.domain.space  # type: ignore[union-attr]
    points = space.decode(space.sample(50, np.random.default_rng(3)))
    y = np.array([cost(p) for p in points])
    ax = plots.calibration(mixed, points, y, noisy=noisy)
    mean, std = mixed.predict(points)
    noise = mixed._modelling.scaler.width(mixed.surrogate.noise**0.5) if noisy else 0.0
    reach = ndtri(0.5 + 0.5 * coverage.LEVELS)
    inside = np.abs(y - mean)[:, None] <= reach * np.hypot(std, noise)[:, None]
    np.testing.assert_allclose(ax.get_lines()[-1].get_ydata(), 100 * inside.mean(axis=0))
    assert ax.get_lines()[-1].get_label() == "50 test values"


def test_leaving_out_one_by_one_agrees_with_the_closed_form_of_the_exact_gp() -> None:
    rng = np.random.default_rng(0)
    X, noise = np.sort(rng.random(9)), 0.04
    y = np.sin(6 * X) + 0.2 * rng.standard_normal(9)
    kernel = bo.kernels.rbf(1, lengthscale=0.3)
    opt = bo.Optimizer([(0.0, 1.0)], surrogate=bo.ExactGP(kernel, noise), fit=False, seed=0)
    opt.tell([{"x0": float(x)} for x in X], y)
    inverse = np.linalg.inv(np.exp(-0.5 * ((X[:, None] - X) / 0.3) ** 2) + noise * np.eye(9))
    # Rasmussen and Williams 2006, Eq. 5.12: the error is [K^-1 y]_i / [K^-1]_ii, its variance 1 / [K^-1]_ii.
    expected = np.abs(inverse @ y) / np.sqrt(np.diag(inverse))
    np.testing.assert_allclose(coverage._left_out(opt, 9), expected, rtol=1e-9)


def test_repeats_of_a_point_are_left_out_together() -> None:
    opt = bo.Optimizer([(0.0, 1.0)], surrogate=bo.ExactGP(bo.kernels.rbf(1, lengthscale=1e-3), 1e-2), fit=False, seed=0)
    opt.tell([{"x0": 0.2}, {"x0": 0.2}, {"x0": 0.8}], [3.0, 3.0, 1.0])
    # The other point says nothing at this lengthscale: the prior remains, with mean 0 and variance 1.
    np.testing.assert_allclose(coverage._left_out(opt, 10), np.array([3.0, 3.0, 1.0]) / 1.01**0.5, rtol=1e-9)
    alone = bo.Optimizer([(0.0, 1.0)], seed=0)
    alone.tell({"x0": 0.5}, 1.0)
    with pytest.raises(errors.NotReadyError, match="two different points"):
        plots.calibration(alone)


# -- pools -------------------------------------------------------------------------------------------------------------


def test_a_pool_is_coloured_by_its_upper_bound(arms: bo.Optimizer) -> None:
    ax = plots.pool_ucb(arms, "x0", "x1", beta=2.0)
    mean, std = arms.predict([{"index": i} for i in range(60)])
    rows = np.array([[p["x0"], p["x1"]] for p in (arms.domain.describe(x)[0] for x in arms.domain.X)])  # type: ignore[union-attr]
    every, evaluated, star = scattered(ax)
    drawn = {
        tuple(np.round(place, 9)): v for place, v in zip(every, np.asarray(ax.collections[0].get_array()), strict=True)
    }
    for place, bound in zip(rows, mean + 2.0 * std, strict=True):
        assert drawn[tuple(np.round(place, 9))] == pytest.approx(bound, abs=1e-9)
    indices = sorted({t.index for t in arms.trials if t.state == "COMPLETE"})  # type: ignore[type-var]
    np.testing.assert_allclose(evaluated, rows[indices])
    np.testing.assert_allclose(star[0], rows[arms.recommend().index])


def test_a_pool_that_is_minimised_is_coloured_by_its_lower_bound_at_the_beta_in_use() -> None:
    rows = np.random.default_rng(0).random((30, 2))
    opt = run(rows, lambda p: p["x0"], 10)
    ax = plots.pool_ucb(opt, rows[:, 1], "x0")
    mean, std = opt.predict([{"index": i} for i in range(30)])
    bound = mean - opt.regret_certificate().beta * std
    np.testing.assert_allclose(np.sort(np.asarray(ax.collections[0].get_array())), np.sort(bound), rtol=0, atol=1e-9)
    figure = ax.get_figure(root=True)
    assert figure is not None
    assert figure.axes[1].get_ylabel().startswith("lower confidence bound of value")


def test_pools_with_choices_and_pools_of_objects_have_what_fits_them() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": np.linspace(1.0, 5.0, 20), "shape": ["round", "square"] * 10})
    opt = run(frame, lambda p: p["size"] + (p["shape"] == "round"), 9)
    assert [t.get_text() for t in plots.posterior_slice(opt, "shape").get_xticklabels()] == ["round", "square"]
    assert set(plots.variance_shares(opt, n=64)) == {"size", "shape"}
    with pytest.raises(errors.ArgumentError, match=r"numeric column of \['size'\], got 'shape'"):
        plots.pool_ucb(opt, "size", "shape")
    with pytest.raises(errors.ArgumentError, match="y: expected 20 finite coordinates"):
        plots.pool_ucb(opt, "size", [1.0, 2.0])
    with pytest.raises(errors.ArgumentTypeError, match="y: expected a column's name or numbers"):
        plots.pool_ucb(opt, "size", ["a"] * 20)

    def near(A: list[str], B: list[str]) -> np.ndarray:
        return np.exp(-0.5 * np.subtract.outer([float(len(a)) for a in A], [float(len(b)) for b in B]) ** 2)

    words = ["a", "bb", "ccc", "dddd", "eeeee"]
    named = run(words, lambda p: float(len(p["arm"])), 8, n_startup_trials=4, surrogate=bo.BKB(kernel=near))
    with pytest.raises(errors.ArgumentError, match="pool of objects"):
        plots.posterior_slice(named, "arm")
    assert len(scattered(plots.pool_ucb(named, [1, 2, 3, 4, 5], [0, 0, 1, 1, 2]))[0]) == 5
    assert "values inside (%)" in [ax.get_ylabel() for ax in plots.overview(named).axes]


def test_arms_that_have_gone_are_not_drawn_as_evaluated(arms: bo.Optimizer) -> None:
    rows = np.random.default_rng(0).random((20, 2))
    opt = run(rows, lambda p: p["x0"], 10)
    opt.set_pool(rows[10:])
    here = {t.index - 10 for t in opt.trials if t.index is not None and t.index >= 10}
    shown = [points for points in scattered(plots.pool_ucb(opt, "x0", "x1")) if len(points) not in (1, 10)]
    expected = {tuple(row) for row in np.round(rows[10:][sorted(here)], 9).tolist()}
    assert {tuple(row) for points in shown for row in np.round(points, 9).tolist()} <= expected
