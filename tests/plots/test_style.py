"""Tick labels: long names, and numbers close to each other."""

import itertools

import numpy as np
import pytest

import bkbopt as bo

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from bkbopt import plots
from bkbopt.plots.style import shortened


def test_long_names_are_shortened_in_the_middle_and_remain_different() -> None:
    names = ["x", "model.encoder.layers.attention.dropout", "a" * 20 + "1" + "b" * 20, "a" * 20 + "2" + "b" * 20]
    assert shortened(names[:2]) == ["x", "model.encod\u2026tion.dropout"]
    assert len(set(shortened(names))) == 4


def test_a_long_name_leaves_room_for_the_bars_of_importances() -> None:
    name = "model.encoder.layers.attention.dropout_probability_of_heads"
    opt = bo.Optimizer({"x": (0.0, 1.0), name: (0.0, 1.0)}, seed=0)
    opt.tell([{"x": 0.1 * i, name: 0.5} for i in range(4)], [0.0, 1.0, 2.0, 3.0])
    ax = plots.importance(opt, n=64)
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
