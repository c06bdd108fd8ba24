"""Dimensions as axes of a picture: scales, ticks and names."""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bkbopt._support.showing import LONGEST, shortened
from bkbopt.analysis.dimensions import Dimension
from bkbopt.plots.stretched_ticks import stretched_ticks
from bkbopt.plots.style import below_axis, text_size
from bkbopt.spaces.stretched import StretchedAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["dress", "room_below", "spacing", "tick_whole"]

#: Logarithmic axes that span less than this factor have ticks between the powers of ten.
SHORT = 300.0
#: Width of a letter of tick labels, in points (1/72 inch). This and the other distances are for text of 10 points.
LETTER = 6.4
#: Height of a line of tick labels, in points.
LINE = 12.0
#: Angle of tick labels that are too long for a horizontal axis, in degrees.
SLANT = 25
#: Points of an axis with long tails from one tick to the next.
APART = 45.0
#: Points of an axis's length for one letter of a choice's name, so that its labels leave room for the axes.
PART = 10.0
#: Characters of a choice's name that a narrow panel shows.
SHORTEST = 12


def dress(dimension: Dimension, ax: "Axes", which: Literal["x", "y"]) -> None:
    """Set name, scale, range and ticks of an axis to those of this dimension."""
    set_label, set_scale, set_ticks, set_limits = (
        (ax.set_xlabel, ax.set_xscale, ax.set_xticks, ax.set_xlim)
        if which == "x"
        else (ax.set_ylabel, ax.set_yscale, ax.set_yticks, ax.set_ylim)
    )
    axis = ax.xaxis if which == "x" else ax.yaxis
    set_label(dimension.label, parse_math=False)  # dollar signs in names are literal
    if dimension.log:
        set_scale("log")
        span = dimension.values[-1] / dimension.values[0]
        if dimension.is_continuum and span < SHORT:
            _tick_plainly(axis, span)
    elif dimension.compression is not None:
        set_scale("function", functions=(dimension.compression.compressed, dimension.compression.spread))
    if dimension.listed is not None:
        shown, angle = _spread(dimension, ax, which)
        slant: Any = {"rotation": angle, "ha": "right" if angle == SLANT else "center"} if angle else {}
        set_ticks(range(len(dimension.values)), shown, parse_math=False, **slant)
    elif not dimension.is_continuum:
        set_ticks(dimension.place(dimension.values), _numbers(dimension, ax, which, dimension.values))
        if dimension.log:
            set_ticks([], minor=True)
    elif dimension.stretched is not None:
        set_ticks(*_from_end(dimension, ax, which, dimension.stretched))
    elif dimension.compression is not None:
        ticks = _spaced(dimension, max(int(_text_room(ax, which) / APART), 2))
        set_ticks(ticks, _numbers(dimension, ax, which, ticks))
    elif not dimension.log and all(isinstance(value, int) for value in dimension.values):
        tick_whole(axis)
    set_limits(*dimension.limits())


def room_below(dimension: Dimension, ax: "Axes") -> float:
    """Height of tick labels and name below a horizontal axis, in points (1/72 inch)."""
    names, angle = _spread(dimension, ax, "x") if dimension.listed is not None else ([""], 0)
    return below_axis() + math.sin(math.radians(angle)) * 0.6 * text_size("xtick.labelsize") * max(map(len, names))


def _spread(dimension: Dimension, ax: "Axes", which: Literal["x", "y"]) -> tuple[list[str], int]:
    """The choices as tick labels that do not touch, and their angle; labels without room are empty."""
    most = min(max(int(_text_room(ax, "x") / PART), SHORTEST), LONGEST)  # on both axes names take width from it
    names = shortened(map(str, dimension.values), most)
    step = _text_room(ax, which) / len(names)
    angle = _angle(names, step) if which == "x" else 0
    every = math.ceil(LINE / step) if which == "y" or angle == 90 else 1
    return [name if i % every == 0 else "" for i, name in enumerate(names)], angle


def _angle(names: list[str], step: float) -> int:
    """Degrees by which labels are turned that are so many points apart."""
    widest = max(((len(a) + len(b)) / 2 + 1.0 for a, b in itertools.pairwise(names)), default=0.0)
    if LETTER * widest <= step and sum(len(name) + 2 for name in names) <= 50:
        return 0
    line = 0.75 * LINE if max(map(len, names)) <= 4 else LINE  # a few letters hardly reach the next label
    return SLANT if step * math.sin(math.radians(SLANT)) >= line else 90


def _spaced(dimension: Dimension, n: int) -> list[float]:
    """About `n` round numbers, nearly evenly spaced along the axis."""
    low, high = dimension.limits()
    first, last = dimension.linear(np.array([low, high]))
    values = dimension.places(np.linspace(first, last, n + 1))
    gaps = np.diff(values)
    digit = 10.0 ** np.floor(np.log10(np.minimum(np.append(gaps, gaps[-1]), np.append(gaps[0], gaps))))
    ticks = np.round(values / digit)
    ticks[0], ticks[-1] = np.ceil(low / digit[0]), np.floor(high / digit[-1])
    return [float(tick) for tick in np.unique(ticks * digit)]


def _from_end(
    dimension: Dimension, ax: "Axes", which: Literal["x", "y"], axis: StretchedAxis
) -> tuple[list[float], list[str]]:
    """Round ticks of an axis with a stretched end, and their labels, which do not touch."""
    (low, high), length = dimension.limits(), _text_room(ax, which)
    first, last = dimension.linear(np.array([low, high]))

    def fit(a: float, text: str, b: float, other: str) -> bool:
        at = dimension.linear(np.array([a, b])) * length / (last - first)
        taken = 0.5 * LETTER * (len(text) + len(other)) + 4.0 if which == "x" else LINE + 4.0
        return bool(at[1] - at[0] >= taken)

    whole = all(isinstance(value, int) for value in dimension.values)
    return stretched_ticks(axis, low, high, fit, whole=whole)


def _numbers(dimension: Dimension, ax: "Axes", which: Literal["x", "y"], values: Sequence[float]) -> list[str]:
    """Numbers as tick labels; empty where one would cover the one before."""
    length = _text_room(ax, which)
    low, high = dimension.linear(np.array(dimension.limits()))
    texts = [f"{value:g}" for value in values]
    # One half width for all of them, so that of equal steps every second or every third has a label.
    half = 0.5 * LETTER * max(map(len, texts)) if which == "x" else 6.0  # points of a letter, and of a line
    end, labels = -np.inf, []
    for text, at in zip(texts, (dimension.linear(dimension.place(values)) - low) / (high - low), strict=True):
        fits = at * length - half >= end
        labels.append(text if fits else "")
        end = at * length + half + 4.0 if fits else end
    return labels


def spacing(dimension: Dimension, ax: "Axes") -> float:
    """Smallest distance of two values along a horizontal axis, in points (1/72 inch)."""
    low, high = dimension.linear(np.array(dimension.limits()))
    at = dimension.linear(dimension.place(dimension.values))
    return float(np.diff(at).min(initial=high - low) / (high - low)) * _length(ax, "x")


def _text_room(ax: "Axes", which: Literal["x", "y"]) -> float:
    """Length of an axis in tenths of the size of its tick labels."""
    return _length(ax, which) * 10.0 / text_size("xtick.labelsize" if which == "x" else "ytick.labelsize")


def _length(ax: "Axes", which: Literal["x", "y"]) -> float:
    """Length of an axis in points (1/72 inch), as long as colour bars leave it."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    share, inches = (
        (ax.get_position().width, figure.get_figwidth())
        if which == "x"
        else (ax.get_position().height, figure.get_figheight())
    )
    return 72.0 * 0.8 * share * float(inches)


def _tick_plainly(axis: "Axis", span: float) -> None:
    """Ticks at 1, 2 and 5 times the powers of ten, written without powers; at even steps if `span` is below five."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    # From 1 to 1.5 there would be one; even steps of a wide span would crowd at its end.
    even = MaxNLocator("auto", steps=[1, 2, 5, 10])
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)) if span >= 5.0 else even)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def tick_whole(axis: "Axis") -> None:
    """Ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
