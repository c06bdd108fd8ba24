"""Common parts of all plots: figures, colours, ticks and legends."""

import functools
import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from bkbopt._support.showing import LONGEST, shortened
from bkbopt.errors import ArgumentError, ArgumentTypeError, extra

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GREY",
    "LONGEST_LABEL",
    "MAP",
    "ORANGE",
    "Series",
    "axes_of",
    "below_axis",
    "figure_of",
    "in_lines",
    "ink",
    "legend_below",
    "log_if_positive",
    "log_ticks",
    "names_of_values",
    "new_figure",
    "series",
    "text_size",
    "value_label",
    "whole_numbers",
]

# The palette of Okabe and Ito, which is distinguishable with all kinds of colour vision, in an order in which
# neighbours also differ in lightness.
BLUE, ORANGE, BLACK, SKY, GREEN, PURPLE, GREY = (
    "#0072b2",
    "#e69f00",
    "#000000",
    "#56b4e9",
    "#009e73",
    "#cc79a7",
    "#777777",
)
#: A colour map with evenly increasing lightness that is suitable for colour-blind readers.
MAP = "cividis"
#: Height of a line of text relative to its size.
LINE = 1.15


#: Characters of an axis label, for which a figure of the usual height has room.
LONGEST_LABEL = 52
#: Width of a character of an axis label, and height of a legend with its margins, in points.
CHARACTER = 4.9
LEGEND = 40.0


@dataclass(frozen=True)
class Series:
    """The style of a line."""

    colour: str
    line: str
    marker: str


SERIES = (
    Series(BLUE, "-", "o"),
    Series(ORANGE, "--", "s"),
    Series(BLACK, "-.", "^"),
    Series(SKY, ":", "D"),
    Series(GREEN, "-", "v"),
    Series(PURPLE, "--", "P"),
)


def new_figure(width: float, height: float) -> "Figure":
    """A figure of this size in inches, not registered with pyplot, that notebooks can show."""
    with extra("plots"):
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    # Padding for markers on the edge of their axes.
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.12))
    # IPython calls this method to show an object; without pyplot it has no other way to show a figure.
    figure._repr_png_ = functools.partial(_png, figure)  # type: ignore[attr-defined]
    return figure


def _png(figure: "Figure") -> bytes:
    """The figure as a PNG file, at its own resolution."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def axes_of(ax: "Axes | None", width: float = 6.4, height: float = 4.6) -> "Axes":
    """The given Axes, or those of a new figure.

    Raises:
        ArgumentTypeError: `ax` is neither Axes nor None.
        MissingPackageError: matplotlib is not installed.
    """
    if ax is None:
        return new_figure(width, height).add_subplot()
    if not hasattr(ax, "set_xscale"):
        raise ArgumentTypeError(f"ax: expected matplotlib Axes or None, got {type(ax).__name__}.")
    return ax


def figure_of(figure: "Figure | None", width: float, height: float) -> "Figure":
    """The given figure, which may be a subfigure, or a new one of this size in inches.

    Raises:
        ArgumentTypeError: `figure` is neither a figure nor None.
        MissingPackageError: matplotlib is not installed.
    """
    if figure is None:
        return new_figure(width, height)
    if not hasattr(figure, "add_subfigure"):
        raise ArgumentTypeError(f"figure: expected a matplotlib figure or None, got {type(figure).__name__}.")
    return figure


def value_label(value_name: object, form: str = "{}", most: int = LONGEST_LABEL) -> str:
    """An axis label with the name of a value in place of {}; a long name is shortened."""
    return form.format(*shortened([str(value_name)], most - len(form) + len("{}")))


def in_lines(label: str, ax: "Axes", below: float) -> str:
    """The label of a vertical axis in lines of its length, from which tick labels `below` take so many points."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    margins = figure.subplotpars  # the default ones, which the layout replaces by what labels need
    share = ax.get_position().height / (margins.top - margins.bottom)
    length = 72.0 * share * float(figure.get_figheight()) - below - LEGEND
    return textwrap.fill(label, max(int(length / CHARACTER), LONGEST // 2))


def names_of_values(value_names: object, k: int, objectives: Sequence[str] = ()) -> list[str]:
    """A name for each of `k` objectives: those of a list, or one text, which is numbered if there are several.

    None stands for the names of the objectives, or for "value" if they have none.

    Raises:
        ArgumentTypeError: no text and no list of texts.
        ArgumentError: not one name for each objective.
    """
    if value_names is None:
        value_names = objectives or "value"
    if isinstance(value_names, str):
        return [value_names] if k == 1 else [f"{value_names} {j}" for j in range(k)]
    if not isinstance(value_names, Sequence | np.ndarray) or not all(isinstance(name, str) for name in value_names):
        raise ArgumentTypeError(f"value_names: expected a text, or a list of texts, got {value_names!r}.")
    if len(value_names) != k:
        raise ArgumentError(f"value_names: expected {k}, one for each objective, got {value_names!r}.")
    return [str(name) for name in value_names]


def whole_numbers(ax: "Axes", *, both: bool = False) -> None:
    """Put the ticks of the horizontal axis, with `both` also of the vertical one, at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    class WholeNumbers(MaxNLocator):
        def nonsingular(self, v0: float, v1: float) -> tuple[float, float]:
            """Around a single number there is room for its neighbours; by default there are fractions only."""
            return (v0 - 1.0, v1 + 1.0) if abs(v1 - v0) < 1.0 else super().nonsingular(v0, v1)

    for axis in (ax.xaxis, ax.yaxis) if both else (ax.xaxis,):
        axis.set_major_locator(WholeNumbers(integer=True, steps=[1, 2, 5, 10]))
    ax.autoscale_view()  # limits may have been read, and so computed, before


def log_ticks(axis: "Axis") -> None:
    """Label a logarithmic axis with plain numbers, also between the powers of ten if it spans few of them."""
    from matplotlib import rcParams
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = axis.get_view_interval()
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    size, pad, minor = rcParams["xtick.major.size"], rcParams["xtick.major.pad"], rcParams["xtick.minor.size"]
    axis.set_tick_params(which="minor", pad=size + pad - minor)  # all labels in one line, though ticks differ in length
    if high < 1000.0 * low:
        axis.set_minor_locator(LogLocator(subs=(2.0, 3.0, 4.0, 6.0, 8.0) if high < 10.0 * low else (2.0, 5.0)))
        axis.set_minor_formatter(StrMethodFormatter("{x:g}"))
    else:
        axis.set_minor_formatter(NullFormatter())


def log_if_positive(ax: "Axes") -> None:
    """Make the vertical axis logarithmic if all values of the lines are positive."""
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in ax.get_lines()])
    if bool((drawn[np.isfinite(drawn)] > 0.0).all()):
        ax.set_yscale("log")
        log_ticks(ax.yaxis)


def text_size(name: Literal["font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize"]) -> float:
    """Size of a text in points (1/72 inch), which Matplotlib's parameter `name` sets; each is 10 by default."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    return float(FontProperties(size=rcParams[name]).get_size_in_points())


def below_axis() -> float:
    """Height of tick labels and label below a horizontal axis, in points (1/72 inch): 34 with the default style."""
    from matplotlib import rcParams

    padding = rcParams["xtick.major.size"] + rcParams["xtick.major.pad"] + rcParams["axes.labelpad"]
    return float(padding) + LINE * (text_size("xtick.labelsize") + text_size("axes.labelsize"))


def ink() -> str:
    """The colour of what is drawn on the background itself: that of text in the user's style, black by default."""
    with extra("plots"):
        from matplotlib import rcParams
        from matplotlib.colors import to_hex
    return to_hex(rcParams["text.color"])


def series() -> list[Series]:
    """The styles of lines, in their order."""
    return [replace(one, colour=ink()) if one.colour == BLACK else one for one in SERIES]


def legend_below(ax: "Axes", *more: "Artist", ncols: int = 2, below: float | None = None) -> None:
    """Draw a legend below the axis label, of all labelled artists and `more`; no legend if there are none.

    Where it would be a single column, long labels come first if a second one then has room.
    """
    from matplotlib.transforms import ScaledTranslation

    handles = [*ax.get_legend_handles_labels()[0], *more]
    if not handles:
        return
    columns = _columns(handles, ncols, ax)
    if columns == 1:
        by_length = sorted(handles, key=lambda handle: -len(str(handle.get_label())))
        columns = _columns(by_length, ncols, ax)
        handles = by_length if columns > 1 else handles
    down = ScaledTranslation(0.0, -(below_axis() if below is None else below) / 72.0, ax.figure.dpi_scale_trans)
    ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=ax.transAxes + down,
        borderaxespad=0.0,
        frameon=False,
        fontsize="small",
        ncols=columns,
    )


def _columns(handles: list["Artist"], most: int, ax: "Axes") -> int:
    """The largest number of columns, at most `most`, whose width is about that of the axes."""
    labels = [str(handle.get_label()) for handle in handles]
    figure = ax.get_figure(root=True)
    assert figure is not None
    points = 720.0 / text_size("font.size")  # in an inch, for text of 10 points
    room = 1.2 * points * ax.get_position().width * float(figure.get_size_inches()[0])
    for n in range(min(most, len(labels)), 1, -1):
        longest = [max(map(len, column)) for column in np.array_split(labels, n)]  # as a legend splits them
        if sum(34.0 + 4.6 * length for length in longest) <= room:  # points of a handle, and of a letter
            return n
    return 1
