"""Partial dependence: the posterior mean over one or two parameters, averaged over the others."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from bkbopt.analysis.coordinates import dimension_of, pair_of
from bkbopt.analysis.dependence import ALONG, ALONG_2D, Averages
from bkbopt.analysis.dimensions import Dimension
from bkbopt.analysis.sensitivity import variance_shares
from bkbopt.optimizer import Optimizer
from bkbopt.plots.clipping import clipped_at, in_words, mark_level, note_level
from bkbopt.plots.dimensions import dress, room_below, spacing
from bkbopt.plots.labels import name_of
from bkbopt.plots.signatures import picture
from bkbopt.plots.style import BLUE, axes_of, figure_of, in_lines, legend_below, text_size, value_label
from bkbopt.plots.surfaces import MISSING, colour_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure

__all__ = ["pairwise_dependence", "partial_dependence"]

#: Number of parameters whose pairs are shown by default; a panel takes up to seconds.
MOST_NAMES = 6
#: Characters of the name of the value at a panel of many.
PANEL = 28
#: Characters of a title of 10 points that fit in an inch.
LETTERS = 11.0


@picture
def partial_dependence(
    opt: Optimizer,
    x: str | None = None,
    y: str | None = None,
    *,
    ax: "Axes | None" = None,
    at: Mapping[str, Any] | None = None,
    n_samples: int = 128,
    value_name: str | None = None,
) -> "Axes":
    """The posterior mean over `x`, or over `x` and `y`, averaged over all other parameters (Friedman 2001).

    The average is over the whole space, uniform in its own scales (a log parameter uniform in its logarithm), or over
    arms of the pool. Switches (parameters on which others are conditional) are not averaged over; they have the values
    of the recommended point, or those of `at`. For one parameter the band contains the middle 80 % of the averaged
    curves. A wide band means interactions with other parameters, or effects of these alone; it is not a measure of
    uncertainty. If very bad values are clipped before they are modelled, the legend names `Optimizer.clipping_level`,
    near which the mean ends; the level is drawn where it is within the axis.

    Args:
        opt: an optimizer with at least one value.
        x: the parameter, or column of a pool; None if only one varies.
        y: a second parameter, or None.
        ax: Axes to draw on; None for a new figure.
        at: values of switches in place of those of the recommended point, which show another branch.
        n_samples: number of settings of the other parameters.
        value_name: label of the value axis or colour bar, with its unit; None for the name of the objective.

    Raises:
        ArgumentTypeError: `opt`, `ax` or `at` has the wrong type.
        ArgumentError: a parameter that does not exist, is fixed, is inactive in this branch or is given twice; `at`
            with another parameter than a switch; a pool of objects; several objectives.
        NotReadyError: there are no values yet.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
        >>> told = opt.tell([{"x": 0.1, "y": 0.2}, {"x": 0.4, "y": 0.9}, {"x": 0.9, "y": 0.4}], [0.3, 0.1, 0.8])
        >>> plots.partial_dependence(opt, "x", n_samples=16).get_xlabel()
        'x'
    """
    averages = Averages.of(opt, at, n_samples)
    coordinates, center = averages.coordinates, averages.center
    across = dimension_of(coordinates, "x", x, center, ALONG)
    if y is None:
        ax, label = axes_of(ax), value_label(name_of(opt, value_name), "{}, averaged")
        _draw_curve(ax, averages, across, in_lines(label, ax, room_below(across, ax)))
        note_level(ax, opt, averages.data)
        legend_below(ax, below=room_below(across, ax))
        return ax
    across, up = pair_of(coordinates, across.name, y, center, ALONG_2D)
    ax, label = axes_of(ax), value_label(name_of(opt, value_name), "{}, averaged over the rest")
    mark_level(ax, _draw_surface(ax, averages, across, up, label), opt, averages.data)
    legend_below(ax, below=room_below(across, ax))
    return ax


@picture
def pairwise_dependence(
    opt: Optimizer,
    names: Sequence[str] | None = None,
    *,
    figure: "Figure | None" = None,
    at: Mapping[str, Any] | None = None,
    n_samples: int = 64,
    value_name: str | None = None,
) -> "Figure":
    """Partial dependence of each parameter (on the diagonal) and each pair (below it).

    Args:
        opt: an optimizer with at least one value.
        names: the parameters; None for those that vary and are active at the recommended point (or with `at`), of more
            than six the six with the largest total index, see `variance_shares`.
        figure: an empty figure, or subfigure, to draw on; None for a new one.
        at: values of switches in place of those of the recommended point, which show another branch.
        n_samples: number of settings of the other parameters.
        value_name: label of the value, with its unit; None for the name of the objective.

    Returns:
        The figure. Its `axes` are first the panels, row by row, and then the colour bars of the pairs.

    Raises:
        ArgumentTypeError, ArgumentError, NotReadyError: as for `partial_dependence`.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
        >>> told = opt.tell([{"x": 0.1, "y": 0.2}, {"x": 0.4, "y": 0.9}, {"x": 0.9, "y": 0.4}], [0.3, 0.1, 0.8])
        >>> panels = plots.pairwise_dependence(opt, n_samples=16).axes[:3]
        >>> [ax.get_xlabel() for ax in panels]
        ['x', 'x', 'y']
    """
    averages = Averages.of(opt, at, n_samples)
    coordinates, center = averages.coordinates, averages.center
    if names is None:
        names = [d.name for d in coordinates.dimensions(2) if not coordinates.inactive(d.name, center)]
        if len(names) > MOST_NAMES:
            shares = variance_shares(opt)
            largest = set(sorted(names, key=lambda name: shares[name].total)[-MOST_NAMES:])
            names = [name for name in names if name in largest]
    along = [dimension_of(coordinates, "names", name, center, ALONG) for name in names]
    k = len(names)
    places = [(i, j) for i in range(k) for j in range(i + 1)]
    pairs = {(i, j): pair_of(coordinates, names[j], names[i], center, ALONG_2D) for i, j in places if i != j}
    figure = figure_of(figure, 1.0 + 3.2 * k, 0.8 + 2.6 * k)
    panels = {(i, j): figure.add_subplot(k, k, i * k + j + 1) for i, j in places}
    for (i, j), ax in panels.items():
        if i == j:
            _draw_curve(ax, averages, along[i], value_label(name_of(opt, value_name), most=PANEL))
        else:
            _draw_surface(ax, averages, *pairs[i, j], "")
    form = "{}, averaged over all other parameters (bands: their middle 80 %)"
    most = max(1, int(LETTERS * figure.bbox.width / figure.dpi * 10.0 / text_size("font.size")))
    level = clipped_at(opt, averages.data.y)
    is_hatched = any(ax.patch.get_hatch() is not None for ax in panels.values())
    notes = [*_held(opt, center, is_hatched=is_hatched), *([] if level is None else [in_words(level)])]
    lines = [value_label(name_of(opt, value_name), form, len(form) + PANEL), *notes]
    title = "\n".join(textwrap.fill(line, most) for line in lines)
    figure.suptitle(title, fontsize="medium", parse_math=False)
    return figure


def _held(opt: Optimizer, center: Tensor, *, is_hatched: bool) -> list[str]:
    """The values of the switches, which are not averaged over, as further lines of a title: one, or none.

    With `is_hatched` it says what is hatched, too.
    """
    if opt.space is None:
        return []
    (params,) = opt.space.decode(center[None])
    held = [f"{name} = {params[name]}" for name in opt.space.names if name in opt.space.switches and name in params]
    values, hatched = ", ".join(held), f"; hatched: {MISSING}" if is_hatched else ""
    these = "this is" if len(held) == 1 else "these are"
    return [f"all panels are for {values}, except where {these} on an axis{hatched}"] if held else []


def _draw_curve(ax: "Axes", averages: Averages, across: Dimension, label: str) -> None:
    mean, low, high = averages.over(across)
    place, band = across.place(across.values), "middle 80 % over the rest"
    if across.is_continuum:
        ax.fill_between(place, low, high, color=BLUE, alpha=0.22, linewidth=0, label=band)
        ax.plot(place, mean, color=BLUE, linewidth=2, label="average")
    else:
        width = min(8.0, 0.45 * spacing(across, ax))
        ax.vlines(place, low, high, color=BLUE, alpha=0.35, linewidth=width, label=band)
        ax.plot(place, mean, "_", color=BLUE, markersize=2.0 * width, markeredgewidth=2.5, label="average")
    dress(across, ax, "x")
    ax.set_ylabel(label, parse_math=False)
    ax.grid(alpha=0.3)


def _draw_surface(ax: "Axes", averages: Averages, across: Dimension, up: Dimension, label: str) -> "Colorbar":
    bar = colour_grid(ax, across, up, averages.over(up, across)[0], label)
    dress(across, ax, "x")
    dress(up, ax, "y")
    return bar
