"""Labels of ticks and axes: long names, and numbers close to each other."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from bkbopt import plots
from bkbopt._support.showing import shortened
from tests.plots.panels import panels_of
from tests.sweeps import sweep


@pytest.fixture(autouse=True)
def default_sizes() -> Iterator[None]:
    """Matplotlib's own sizes of labels: Optuna's plots, which other tests draw, set another style for the process."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield


def test_a_long_name_leaves_room_for_the_bars_of_importances() -> None:
    name = "model.encoder.layers.attention.dropout_probability_of_heads"
    opt = bo.Optimizer({"x": (0.0, 1.0), name: (0.0, 1.0)}, seed=0)
    opt.tell([{"x": 0.1 * i, name: 0.5} for i in range(4)], [0.0, 1.0, 2.0, 3.0])
    ax = plots.importance(opt, n_samples=64)
    assert isinstance(ax.figure, Figure)
    FigureCanvasAgg(ax.figure).draw()
    assert ax.get_position().width > 0.5


def test_tick_labels_of_a_few_close_numbers_do_not_overlap() -> None:
    opt = bo.Optimizer(np.random.default_rng(0).random((10, 2)) * 1e-3, seed=0)
    opt.tell_rows(range(6), range(6))
    ax = plots.posterior_slice(opt, "x0")
    assert isinstance(ax.figure, Figure)
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    boxes = [label.get_window_extent(canvas.get_renderer()) for label in ax.get_xticklabels() if label.get_text()]
    assert len(boxes) > 2
    assert len(ax.get_xticks()) == 10
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_tick_labels_of_values_in_narrow_panels_are_slanted() -> None:
    sizes = [16, 32, 64, 128, 256, 1024]
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0), "w": bo.Ordinal(sizes)}, seed=0)
    opt.tell([{"x": 0.1 * i, "y": 0.5, "z": 0.2, "w": 16 * 2**i} for i in range(4)], [0.0, 1.0, 2.0, 3.0])
    last = panels_of(plots.pairwise_dependence(opt, ["x", "y", "z", "w"]))[-1, -1]
    assert [label.get_rotation() for label in last.get_xticklabels()] == [25.0] * 6
    assert [label.get_rotation() for label in plots.posterior_slice(opt, "w").get_xticklabels()] == [0.0] * 6


CHOICES = [f"{letter}: a solvent with a long name" for letter in "abcdefghi"]


def drawn(ax: Axes) -> FigureCanvasAgg:
    """The canvas of the figure of these axes, drawn."""
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas


def gaps_of(ax: Axes, which: str, canvas: FigureCanvasAgg) -> list[float]:
    """The distances between neighbouring lines of tick labels on a drawn canvas, in heights of a line."""
    labels = [label for label in (ax.get_xticklabels if which == "x" else ax.get_yticklabels)() if label.get_text()]
    places = [ax.transData.transform(label.get_position())[0 if which == "x" else 1] for label in labels]
    slope = np.sin(np.radians(labels[0].get_rotation())) if which == "x" else 1.0
    for label in labels:
        label.set_rotation(0.0)
    height = max(label.get_window_extent(canvas.get_renderer()).height for label in labels)
    return [float(slope * (b - a) / height) for a, b in itertools.pairwise(places)]


@pytest.mark.parametrize(("k", "numbers"), [(4, 1), pytest.param(6, 3, marks=pytest.mark.slow), (9, 3)])
def test_long_names_of_choices_do_not_touch_in_narrow_panels(k: int, numbers: int) -> None:
    opt = bo.Optimizer({"kind": CHOICES[:k]} | {f"x{i}": (0.0, 1.0) for i in range(numbers)}, seed=0)
    for i in range(5):
        opt.tell(opt.ask(), float(i))
    names = [*(f"x{i}" for i in range(numbers)), "kind"]
    axes = panels_of(plots.pairwise_dependence(opt, names, n_samples=4))
    canvas = drawn(axes[0, 0])
    assert min(gaps_of(axes[-1, -1], "x", canvas)) > 1.0
    assert min(gaps_of(axes[-1, 0], "y", canvas)) > 1.0


def test_long_names_of_choices_leave_half_of_the_figure_to_two_panels() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "kind": CHOICES[:4]}, seed=0)
    for i in range(5):
        opt.tell(opt.ask(), float(i))
    axes = panels_of(plots.pairwise_dependence(opt, ["x", "kind"], n_samples=4))
    labels_of(axes[1, 0])
    assert axes[1, 1].get_position().width > 0.25


@pytest.fixture(scope="module")
def many_choices() -> bo.Optimizer:
    """Five trials of two parameters with 45 choices each."""
    many = [f"{letter} {i}" for letter in CHOICES for i in range(5)]
    opt = bo.Optimizer({"x": (0.0, 1.0), "kind": many, "other": many}, seed=0)
    for i in range(5):
        opt.tell(opt.ask(), float(i))
    return opt


@pytest.mark.parametrize(
    ("plot", "names"),
    sweep(
        [plots.posterior_contour, plots.posterior_slice, plots.partial_dependence],
        [["kind", "x"], ["kind", "other"], ["x", "kind"]],
    ),
)
def test_labels_of_values_fit_beside_many_choices(
    plot: Callable[..., Axes], names: list[str], many_choices: bo.Optimizer
) -> None:
    name = "yield of the reaction in percent"
    ax = plot(many_choices, *names[: 1 if plot is plots.posterior_slice else 2], value_name=name)
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    label = figure.axes[-1].yaxis.label
    assert "in percent" in " ".join(label.get_text().split())
    low, high = label.get_window_extent(canvas.get_renderer()).intervaly
    assert low >= 0.0
    assert high <= figure.bbox.height


def test_names_of_very_many_choices_are_left_out_where_there_is_no_room() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0), "kind": [*CHOICES, *(c + " 2" for c in CHOICES)]}, seed=0)
    for i in range(5):
        opt.tell(opt.ask(), float(i))
    axes = panels_of(plots.pairwise_dependence(opt, ["x", "y", "kind"], n_samples=4))
    canvas = drawn(axes[0, 0])
    for ax, labels in ((axes[2, 0], axes[2, 0].get_yticklabels()), (axes[2, 2], axes[2, 2].get_xticklabels())):
        assert len(labels) == 18
        assert 6 <= sum(bool(label.get_text()) for label in labels) < 18
        assert min(gaps_of(ax, "y" if ax is axes[2, 0] else "x", canvas)) > 1.0


LONG = "model.encoder.layers.attention.dropout_probability_of_heads"
VALUE = "validation cross-entropy of the ensemble with label smoothing (nats per token of the held-out corpus)"


def labels_of(ax: Axes) -> list[str]:
    """The axis labels of a figure, drawn and found to be within it."""
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    texts = [text for own in figure.axes for text in (own.xaxis.label, own.yaxis.label) if text.get_text()]
    for text in texts:
        box = text.get_window_extent(canvas.get_renderer())
        assert box.x0 >= 0.0
        assert box.x1 <= figure.bbox.x1
        assert box.y0 >= 0.0
        assert box.y1 <= figure.bbox.y1
    return [text.get_text() for text in texts]


def named(names: tuple[str, str], **options: Any) -> bo.Optimizer:
    opt = bo.Optimizer(dict.fromkeys(names, (0.0, 1.0)), seed=0, **options)
    points = np.random.default_rng(0).random((6, 2)).tolist()
    values: Any = [[float(i), -float(i)] if "directions" in options else float(i) for i in range(6)]
    opt.tell([dict(zip(names, point, strict=True)) for point in points], values)
    return opt


def test_long_names_of_parameters_and_values_are_shortened_at_the_axes_of_all_plots() -> None:
    opt = named((LONG + "1", LONG + "2"))
    across, up = shortened([LONG + "1", LONG + "2"])
    assert across != up
    value = VALUE[:8]
    for draw, names in (
        (lambda: plots.posterior_slice(opt, LONG + "1", value_name=VALUE), [across]),
        (lambda: plots.posterior_contour(opt, LONG + "1", LONG + "2", value_name=VALUE), [across, up]),
        (lambda: plots.partial_dependence(opt, LONG + "1", n_samples=8, value_name=VALUE), [across]),
        (lambda: plots.partial_dependence(opt, LONG + "1", LONG + "2", n_samples=8, value_name=VALUE), [across, up]),
        (lambda: plots.convergence(opt, value_name=VALUE), []),
        (lambda: plots.regret(opt, 0.0, value_name=VALUE), []),
        (lambda: plots.pairwise_dependence(opt, n_samples=8, value_name=VALUE).axes[0], [across]),
    ):
        found = labels_of(draw())
        assert found[: len(names)] == names
        assert any(value in label and "\u2026" in label for label in found)


def test_the_name_of_a_value_ends_within_the_figure_in_an_overview() -> None:
    figure = plots.overview(named(("x", "y")), value_names=VALUE)
    assert labels_of(figure.axes[0])[1] == f"{VALUE[:19]}\u2026{VALUE[-20:]}"


def test_long_names_are_shortened_in_pictures_of_pools_and_fronts() -> None:
    rows = pd.DataFrame(np.random.default_rng(0).random((10, 2)), columns=[LONG + "1", LONG + "2"])
    opt = bo.Optimizer(rows, seed=0)
    opt.tell_rows(range(6), range(6))
    found = labels_of(plots.pool_ucb(opt, LONG + "1", LONG + "2", value_name=VALUE))
    assert found[:2] == shortened([LONG + "1", LONG + "2"])
    both = named(("x", "y"), directions=["minimize", "minimize"])
    found = labels_of(plots.pareto(both, value_names=(VALUE, VALUE + "?")))
    assert len(set(found)) == 2
    assert all("\u2026" in label and label.endswith("(minimize)") for label in found)


def test_short_names_are_whole() -> None:
    opt = named(("learning rate", "dropout"))
    ax = plots.posterior_contour(opt, "learning rate", "dropout", value_name="validation loss (nats per token)")
    assert labels_of(ax) == ["learning rate", "dropout", "posterior mean of validation loss (nats per token)"]
