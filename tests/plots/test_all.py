"""Properties of every picture: the given Axes, legends, no side effects."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bkbopt as bo
from bkbopt import errors

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib import rc_context, rcParamsDefault
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from bkbopt import plots
from bkbopt.plots.progress import draw_progress

ROOT = Path(__file__).resolve().parents[2]
#: Every picture, on Axes or None.
ON_MIXED: dict[str, Callable[[bo.Optimizer, Axes | None], Axes]] = {
    "convergence": lambda opt, ax: plots.convergence({"one": opt, "other": [[2.0, 1.0], [3.0, 2.5]]}, ax=ax),
    "regret": lambda opt, ax: plots.regret(opt, 0.0, ax=ax, truth=lambda p: 1.0 + p["layers"]),
    "slice": lambda opt, ax: plots.posterior_slice(opt, "rate", ax=ax),
    "slice of choices": lambda opt, ax: plots.posterior_slice(opt, "kind", ax=ax),
    "contour": lambda opt, ax: plots.posterior_contour(opt, "rate", "drop", ax=ax),
    "cells": lambda opt, ax: plots.posterior_contour(opt, "kind", "layers", ax=ax, what="std"),
    "dependence": lambda opt, ax: plots.partial_dependence(opt, "rate", ax=ax),
    "dependence of a pair": lambda opt, ax: plots.partial_dependence(opt, "rate", "kind", ax=ax, n_samples=8),
    "importance": lambda opt, ax: plots.importance(opt, ax=ax, n_samples=64),
    "complexity": lambda opt, ax: plots.complexity(opt, ax=ax),
    "time": lambda opt, ax: plots.ask_time(opt, ax=ax),
    "calibration": lambda opt, ax: plots.calibration(opt, ax=ax),
}
#: Every picture of several Axes.
ON_FIGURE: dict[str, Callable[..., Figure]] = {
    "overview": plots.overview,
    "dependence of pairs": functools.partial(plots.pairwise_dependence, names=["rate", "kind"], n_samples=4),
}
#: Every picture that names a value, with that name.
LABELLED: dict[str, Callable[[bo.Optimizer, str], Any]] = {
    "convergence": lambda opt, name: plots.convergence(opt, value_name=name).figure,
    "regret": lambda opt, name: plots.regret(opt, 0.0, value_name=name).figure,
    "progress": lambda opt, name: draw_progress(opt, value_name=name).figure,
    "slice": lambda opt, name: plots.posterior_slice(opt, "rate", value_name=name).figure,
    "contour": lambda opt, name: plots.posterior_contour(opt, "rate", "drop", value_name=name).figure,
    "dependence": lambda opt, name: plots.partial_dependence(opt, "rate", value_name=name).figure,
    "dependence of pairs": lambda opt, name: plots.pairwise_dependence(
        opt, ["rate", "kind"], n_samples=4, value_name=name
    ),
    "arms": lambda opt, name: plots.pool_ucb(opt, "x0", "x1", value_name=name).figure,
    "overview": lambda opt, name: plots.overview(opt, value_names=name),
}


@pytest.mark.parametrize("name", ON_MIXED)
def test_a_picture_returns_the_axes_it_was_given_and_names_its_axes(name: str, mixed: bo.Optimizer) -> None:
    figure = Figure()
    ax = figure.add_subplot()
    assert ON_MIXED[name](mixed, ax) is ax
    assert ax.figure is figure
    assert ax.get_xlabel()
    assert ax.get_ylabel() or name == "importance"  # whose rows bear the names
    assert ax.has_data()


@pytest.mark.parametrize("name", ON_FIGURE)
def test_a_picture_of_several_axes_returns_the_figure_or_subfigure_that_it_was_given(
    name: str, mixed: bo.Optimizer
) -> None:
    draw, figure = ON_FIGURE[name], Figure(figsize=(24.0, 9.0), layout="constrained")
    assert draw(mixed, figure=figure) is figure
    new = draw(mixed)
    assert [ax.get_xlabel() for ax in figure.axes] == [ax.get_xlabel() for ax in new.axes]
    left, right = Figure(figsize=(24.0, 9.0), layout="constrained").subfigures(1, 2)
    assert draw(mixed, figure=right) is right
    assert len(right.axes) == len(new.axes)
    assert not left.axes
    with pytest.raises(errors.ArgumentTypeError, match="figure: expected a matplotlib figure or None, got Axes"):
        draw(mixed, figure=new.axes[0])


@pytest.mark.parametrize("name", ON_MIXED)
@pytest.mark.parametrize("style", [{}, {"font.size": 16.0}, {"axes.labelsize": 18.0, "xtick.major.pad": 11.0}])
def test_a_legend_covers_no_data_and_lies_within_the_figure(style: Any, name: str, mixed: bo.Optimizer) -> None:
    with rc_context({**rcParamsDefault, **style}):  # other libraries may have set a style
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


def test_what_is_drawn_on_the_background_has_the_colour_of_text(line: bo.Optimizer) -> None:
    with rc_context({"text.color": "white", "axes.facecolor": "black"}):
        drawn = plots.posterior_slice(line, "x").collections
        third = plots.convergence({"a": [1.0, 0.5], "b": [2.0, 1.0], "c": [3.0, 1.5]}).get_lines()[2]
    (points,) = (some for some in drawn if str(some.get_label()).startswith("values told"))
    assert points.get_facecolor()[0].tolist() == [1.0, 1.0, 1.0, 1.0]
    assert third.get_color() == "#ffffff"


def test_long_names_of_choices_leave_the_legend_below_them(run: Callable[..., bo.Optimizer]) -> None:
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


@pytest.mark.parametrize("name", LABELLED)
def test_dollar_signs_in_the_name_of_a_value_are_literal(name: str, mixed: bo.Optimizer, arms: bo.Optimizer) -> None:
    figure = LABELLED[name](arms if name == "arms" else mixed, "a $50% of $ \\b")
    FigureCanvasAgg(figure).draw()  # matplotlib reads mathematics, and refuses this one, when it draws
    assert any("a $50% of $ \\b" in text.get_text() for text in figure.findobj(Text) if isinstance(text, Text))


def test_drawing_changes_nothing_that_the_optimizer_does(mixed: bo.Optimizer, tmp_path: Path) -> None:
    mixed.save(tmp_path / "before")
    for draw in ON_MIXED.values():
        draw(mixed, None)
    plots.overview(mixed)
    mixed.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


@pytest.mark.slow
def test_pyplot_is_not_even_imported_and_no_setting_changes() -> None:
    code = """
import sys
import bkbopt as bo, bkbopt.plots as plots
assert "matplotlib" not in sys.modules
import matplotlib
before = matplotlib.rcParams.copy()
known = bo.ExactGP(bo.kernels.matern52(2), 0.01)
space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
opt = bo.minimize(lambda p: p["x"] + p["y"], space, 7, surrogate=known, fit=False, n_startup_trials=6, seed=0)
plots.overview(opt).savefig(sys.argv[1])
plots.pairwise_dependence(opt, n_samples=4)
plots.calibration(opt, n_folds=3)
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


def test_a_notebook_finds_a_picture_in_the_figure_as_large_as_the_figure(line: bo.Optimizer) -> None:
    figure = plots.convergence(line).figure
    assert isinstance(figure, Figure)
    png = figure._repr_png_()  # type: ignore[attr-defined]  # what IPython asks of an object
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    size = [int.from_bytes(png[16 + 4 * i : 20 + 4 * i], "big") for i in range(2)]
    # Some versions of Matplotlib round a side to pixels, others cut a part of a pixel off.
    assert size in ([round(side) for side in figure.bbox.size], [int(side) for side in figure.bbox.size])


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
        plots.convergence(line, ax=Figure())  # type: ignore[arg-type]


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
    opt = bo.Optimizer({"x": (0.0, 1.0), "kind": ["a", "b"]}, seed=0)
    for i in range(3):
        opt.tell(opt.ask(), float(i))
    figure = plots.overview(opt)
    assert "time of an ask (ms)" in [ax.get_ylabel() for ax in figure.axes]
