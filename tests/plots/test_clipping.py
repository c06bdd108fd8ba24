"""The level to which very bad values are clipped, in pictures other than slices."""

from collections.abc import Callable

import numpy as np
import pytest

import bkbopt as bo

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.axes import Axes

from bkbopt import plots
from bkbopt.analysis import run_data
from bkbopt.plots import clipping


def steep(sign: float = 1.0, *, bad: bool = True) -> bo.Optimizer:
    """Many values near the optimum, and some very bad ones; `sign` -1 is to maximise."""
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, direction="minimize" if sign > 0.0 else "maximize", seed=0)
    near = 0.2 + 0.2 * np.random.default_rng(0).random((30, 2))
    far = [(0.9, 0.9), (0.1, 0.9), (0.9, 0.2), (0.6, 0.6)] if bad else []
    points = [{"x": float(x), "y": float(y)} for x, y in (*near, *far)]
    opt.tell(points, [sign * float(np.exp(5.0 * (abs(p["x"] - 0.3) + abs(p["y"] - 0.3)))) for p in points])
    return opt


def named(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def heights(ax: Axes) -> list[float]:
    return [float(np.asarray(line.get_ydata())[0]) for line in ax.get_lines() if len(np.asarray(line.get_ydata())) == 2]


SURFACES: dict[str, Callable[[bo.Optimizer], Axes]] = {
    "contour": lambda opt: plots.posterior_contour(opt, "x", "y", n_grid=10),
    "dependence": lambda opt: plots.partial_dependence(opt, "x", "y", n_samples=8),
}


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("draw", SURFACES.values(), ids=SURFACES)
def test_a_surface_names_the_level_and_its_colour_bar_has_a_line_there(
    draw: Callable[[bo.Optimizer], Axes], sign: float
) -> None:
    opt = steep(sign)
    ax = draw(opt)
    assert f"worse values clipped at {opt.clipping_level:.4g}" in named(ax)
    (bar,) = (other for other in ax.figure.axes if other is not ax)
    low, high = bar.get_ylim()
    assert heights(bar) == [opt.clipping_level] * (2 * int(low <= opt.clipping_level <= high))


@pytest.mark.parametrize("draw", SURFACES.values(), ids=SURFACES)
def test_a_surface_without_clipped_values_names_no_level(draw: Callable[[bo.Optimizer], Axes]) -> None:
    opt = steep(bad=False)
    assert np.isfinite(opt.clipping_level)
    assert not [label for label in named(draw(opt)) if "clipped" in label]


def test_a_contour_of_standard_deviations_has_no_level_of_values() -> None:
    ax = plots.posterior_contour(steep(), "x", "y", what="std", n_grid=10)
    assert not [label for label in named(ax) if "clipped" in label]


def test_a_level_outside_of_the_colour_bar_is_not_named() -> None:
    opt = steep()
    ax = plots.posterior_contour(opt, "x", "y", n_grid=10)
    for line in [*ax.get_lines()]:
        line.remove()
    bar = ax.figure.colorbar(ax.collections[0], ax=ax)
    bar.ax.set_ylim(0.0, opt.clipping_level / 2.0)
    clipping.mark_level(ax, bar, opt, run_data.told(opt))
    assert heights(bar.ax) == []
    assert not ax.get_lines()


def test_a_curve_of_dependence_has_a_line_at_the_level_if_it_comes_there_and_names_it_otherwise() -> None:
    opt = steep()
    ax = plots.partial_dependence(opt, "x", n_samples=32)
    low, high = ax.get_ylim()
    is_within = low <= opt.clipping_level <= high
    assert heights(ax) == [opt.clipping_level] * int(is_within)
    assert [label for label in named(ax) if "clipped" in label] == [
        "worse values clipped here" if is_within else f"worse values clipped at {opt.clipping_level:.4g}"
    ]
    ax.set_ylim(0.0, opt.clipping_level / 2.0)
    clipping.note_level(ax, opt, run_data.told(opt))
    assert ax.get_ylim()[1] == opt.clipping_level / 2.0
    assert ax.get_lines()[-1].get_label() == f"worse values clipped at {opt.clipping_level:.4g}"


def test_the_title_of_all_pairs_names_the_level() -> None:
    def title(opt: bo.Optimizer) -> str:
        return plots.pairwise_dependence(opt, n_samples=4).get_suptitle()

    opt = steep()
    assert f"worse values clipped at {opt.clipping_level:.4g}" in title(opt)
    assert "clipped" not in title(steep(bad=False))
