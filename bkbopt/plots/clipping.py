"""The level to which very bad values are clipped before they are modelled, in pictures."""

from typing import TYPE_CHECKING

import numpy as np

from bkbopt.analysis.run_data import Told
from bkbopt.optimizer import Optimizer
from bkbopt.plots.style import GREY, ink
from bkbopt.search.trials.directions import sign_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar

__all__ = ["clipped_at", "draw_level", "in_words", "mark_level", "note_level"]


def clipped_at(opt: Optimizer, values: np.ndarray) -> float | None:
    """The level to which worse values are clipped, user's units; None if none of `values (n,)` is worse."""
    level, sign = opt.clipping_level, sign_of(opt.direction)
    return level if bool((sign * values < sign * level).any()) else None


def in_words(level: float) -> str:
    """The level as an entry of a legend, or part of a title."""
    return f"worse values clipped at {level:.4g}"


def draw_level(ax: "Axes", level: float) -> None:
    """Draw the level on the axis of values."""
    ax.axhline(level, color=GREY, linestyle="--", linewidth=1.2, zorder=2.5, label="worse values clipped here")


def mark_level(ax: "Axes", bar: "Colorbar", opt: Optimizer, data: Told) -> None:
    """Draw the level to which values are clipped, if some are, on the colour bar and name it, if it is within."""
    level = clipped_at(opt, data.y)
    if level is None:
        return
    low, high = bar.ax.get_ylim()
    if low <= level <= high:
        bar.ax.axhline(level, color="white", linewidth=3.0)  # seen on any colour
        bar.ax.axhline(level, color="black", linewidth=1.2)
        ax.plot([], [], color=ink(), linewidth=1.2, label=in_words(level))


def note_level(ax: "Axes", opt: Optimizer, data: Told) -> None:
    """The same for a curve: a line at the level, if it is within the axis of values, which does not grow for it."""
    level = clipped_at(opt, data.y)
    if level is None:
        return
    low, high = ax.get_ylim()
    if low <= level <= high:
        draw_level(ax, level)
    else:
        ax.plot([], [], linestyle="none", label=in_words(level))
