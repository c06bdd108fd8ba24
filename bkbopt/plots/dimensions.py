"""Dimensions: parameters of a space, or columns of a pool, as axes of a plot.

| symbol | shape  | units   | meaning                                                                  |
| ------ | ------ | ------- | ------------------------------------------------------------------------ |
| values | (n,)   | user's  | values along a dimension                                                 |
| place  | (n,)   | axis    | coordinate on the axis: a number itself, other values by their index     |
| code   | (n,)   | -       | (place - low) / width, with log(place) on a log axis, c(place) on one with|
|        |        |         | long tails (`bkbopt.spaces.columns`)                                     |
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bkbopt.plots.stretched_ticks import stretched_ticks
from bkbopt.plots.style import LONGEST, below_axis, shortened, text_size
from bkbopt.spaces.columns import Tails
from bkbopt.spaces.space import Categorical, Ordinal
from bkbopt.spaces.stretched import StretchedAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["FEW", "Dimension", "tick_whole"]

#: A numeric parameter with at most this many values is drawn value by value, not as a continuum.
FEW = 12
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


@dataclass(frozen=True)
class Dimension:
    """One parameter as an axis.

    Attributes:
        name: its name.
        column: its column in the coordinates of `bkbopt.plots.coordinates`.
        values: its values at which a plot is computed, in order, user's units.
        low: see the table.
        width: see the table.
        listed: the parameter if it lists its values; None for numbers.
        log: whether the axis is logarithmic.
        is_continuum: whether the axis is drawn as a continuum: a continuous parameter, or one with many values.
        label: its name at an axis, where a long one is shortened.
        tails: the compression of the axis, if the column has long tails.
        stretched: the axis, if an end of it is stretched; codes are linear all the same.
    """

    name: str
    column: int
    values: tuple[Any, ...]
    low: float
    width: float
    listed: Categorical | Ordinal | None = None
    log: bool = False
    is_continuum: bool = True
    label: str = ""
    tails: Tails | None = None
    stretched: StretchedAxis | None = None

    @classmethod
    def labelled(cls, found: Sequence["Dimension"]) -> list["Dimension"]:
        """Dimensions with labels, all of which are different."""
        labels = shortened(dimension.name for dimension in found)
        return [replace(dimension, label=label) for dimension, label in zip(found, labels, strict=True)]

    def place(self, values: Iterable[Any]) -> np.ndarray:
        """Coordinates of values on the axis, (n,); NaN for None, and for values that are not on the axis."""
        found = [_number(v) if self.listed is None else self.listed.locate(v) for v in values]
        return np.array([np.nan if v is None else float(v) for v in found])

    def visible(self, values: Iterable[Any]) -> np.ndarray:
        """A mask (n,) of the values within the limits of the axis."""
        low, high = self.limits()
        slack = 1e-9 * (high - low)
        place = self.place(values)
        return (place >= low - slack) & (place <= high + slack)  # false for NaN

    def codes(self, values: Iterable[Any]) -> np.ndarray:
        """Codes of values, (n,); NaN for values that are not on the axis."""
        with np.errstate(invalid="ignore", divide="ignore"):
            place = self.place(values)
            return ((place if self.stretched is not None else self._linear(place)) - self.low) / self.width

    @property
    def _compression(self) -> Tails | StretchedAxis | None:
        return self.stretched or self.tails

    def _linear(self, place: np.ndarray) -> np.ndarray:
        if self._compression is not None:
            return self._compression.compressed(place)
        return np.log(place) if self.log else place

    def _places(self, linear: np.ndarray) -> np.ndarray:
        if self._compression is not None:
            return self._compression.spread(linear)
        return np.exp(linear) if self.log else linear

    def edges(self) -> np.ndarray:
        """Bounds of the cells around the values, as coordinates on the axis, (n + 1,)."""
        at = self._linear(self.place(self.values))
        middle = 0.5 * (at[1:] + at[:-1])
        edges = np.concatenate([[1.5 * at[0] - 0.5 * at[1]], middle, [1.5 * at[-1] - 0.5 * at[-2]]])
        return self._places(edges)

    def dress(self, ax: "Axes", which: Literal["x", "y"]) -> None:
        """Set name, scale, range and ticks of an axis to those of this dimension."""
        set_label, set_scale, set_ticks, set_limits = (
            (ax.set_xlabel, ax.set_xscale, ax.set_xticks, ax.set_xlim)
            if which == "x"
            else (ax.set_ylabel, ax.set_yscale, ax.set_yticks, ax.set_ylim)
        )
        axis = ax.xaxis if which == "x" else ax.yaxis
        set_label(self.label, parse_math=False)  # dollar signs in names are literal
        if self.log:
            set_scale("log")
            span = self.values[-1] / self.values[0]
            if self.is_continuum and span < SHORT:
                _tick_plainly(axis, span)
        elif self._compression is not None:
            set_scale("function", functions=(self._compression.compressed, self._compression.spread))
        if self.listed is not None:
            shown, angle = self._spread(ax, which)
            slant: Any = {"rotation": angle, "ha": "right" if angle == SLANT else "center"} if angle else {}
            set_ticks(range(len(self.values)), shown, parse_math=False, **slant)
        elif not self.is_continuum:
            set_ticks(self.place(self.values), self._numbers(ax, which, self.values))
            if self.log:
                set_ticks([], minor=True)
        elif self.stretched is not None:
            set_ticks(*self._from_end(ax, which, self.stretched))
        elif self._compression is not None:
            ticks = self._spaced(max(int(_text_room(ax, which) / APART), 2))
            set_ticks(ticks, self._numbers(ax, which, ticks))
        elif not self.log and all(isinstance(value, int) for value in self.values):
            tick_whole(axis)
        set_limits(*self.limits())

    def room(self, ax: "Axes") -> float:
        """Height of tick labels and name below a horizontal axis, in points (1/72 inch)."""
        names, angle = self._spread(ax, "x") if self.listed is not None else ([""], 0)
        return below_axis() + math.sin(math.radians(angle)) * 0.6 * text_size("xtick.labelsize") * max(map(len, names))

    def _spread(self, ax: "Axes", which: Literal["x", "y"]) -> tuple[list[str], int]:
        """The choices as tick labels that do not touch, and their angle; labels without room are empty."""
        most = min(max(int(_text_room(ax, "x") / PART), SHORTEST), LONGEST)  # on both axes names take width from it
        names = shortened(map(str, self.values), most)
        step = _text_room(ax, which) / len(names)
        angle = self._angle(names, step) if which == "x" else 0
        every = math.ceil(LINE / step) if which == "y" or angle == 90 else 1
        return [name if i % every == 0 else "" for i, name in enumerate(names)], angle

    def _angle(self, names: list[str], step: float) -> int:
        """Degrees by which labels are turned that are so many points apart."""
        widest = max(((len(a) + len(b)) / 2 + 1.0 for a, b in itertools.pairwise(names)), default=0.0)
        if LETTER * widest <= step and sum(len(name) + 2 for name in names) <= 50:
            return 0
        line = 0.75 * LINE if max(map(len, names)) <= 4 else LINE  # a few letters hardly reach the next label
        return SLANT if step * math.sin(math.radians(SLANT)) >= line else 90

    def _spaced(self, n: int) -> list[float]:
        """About `n` round numbers, nearly evenly spaced along the axis."""
        low, high = self.limits()
        first, last = self._linear(np.array([low, high]))
        values = self._places(np.linspace(first, last, n + 1))
        gaps = np.diff(values)
        digit = 10.0 ** np.floor(np.log10(np.minimum(np.append(gaps, gaps[-1]), np.append(gaps[0], gaps))))
        ticks = np.round(values / digit)
        ticks[0], ticks[-1] = np.ceil(low / digit[0]), np.floor(high / digit[-1])
        return [float(tick) for tick in np.unique(ticks * digit)]

    def _from_end(self, ax: "Axes", which: Literal["x", "y"], axis: StretchedAxis) -> tuple[list[float], list[str]]:
        """Round ticks of an axis with a stretched end, and their labels, which do not touch."""
        (low, high), length = self.limits(), _text_room(ax, which)
        first, last = self._linear(np.array([low, high]))

        def fit(a: float, text: str, b: float, other: str) -> bool:
            at = self._linear(np.array([a, b])) * length / (last - first)
            taken = 0.5 * LETTER * (len(text) + len(other)) + 4.0 if which == "x" else LINE + 4.0
            return bool(at[1] - at[0] >= taken)

        whole = all(isinstance(value, int) for value in self.values)
        return stretched_ticks(axis, low, high, fit, whole=whole)

    def _numbers(self, ax: "Axes", which: Literal["x", "y"], values: Sequence[float]) -> list[str]:
        """Numbers as tick labels; empty where one would cover the one before."""
        length = _text_room(ax, which)
        low, high = self._linear(np.array(self.limits()))
        texts = [f"{value:g}" for value in values]
        # One half width for all of them, so that of equal steps every second or every third has a label.
        half = 0.5 * LETTER * max(map(len, texts)) if which == "x" else 6.0  # points of a letter, and of a line
        end, labels = -np.inf, []
        for text, at in zip(texts, (self._linear(self.place(values)) - low) / (high - low), strict=True):
            fits = at * length - half >= end
            labels.append(text if fits else "")
            end = at * length + half + 4.0 if fits else end
        return labels

    def spacing(self, ax: "Axes") -> float:
        """Smallest distance of two values along a horizontal axis, in points (1/72 inch)."""
        (low, high), at = self._linear(np.array(self.limits())), self._linear(self.place(self.values))
        return float(np.diff(at).min(initial=high - low) / (high - low)) * _length(ax, "x")

    def limits(self) -> tuple[float, float]:
        """Limits of the axis: those of the range, and half a step more if it is not a continuum."""
        bounds = self.place(self.values) if self.is_continuum else self.edges()
        return float(bounds[0]), float(bounds[-1])


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


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float | np.number | np.bool_) else None


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
