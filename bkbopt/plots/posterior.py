"""Slices of the posterior: one or two parameters vary, the others are fixed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.checks import check_count, check_number
from bkbopt._support.row_keys import row_keys
from bkbopt.analysis.coordinates import Coordinates, coordinates_of, dimension_of, pair_of
from bkbopt.analysis.dimensions import Dimension
from bkbopt.analysis.run_data import Told, as_optimizer, bounded, failures, left_out, predicted, running, told
from bkbopt.analysis.slices import grid_of, likeness, projected
from bkbopt.errors import ArgumentError
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.log.trials import Trial
from bkbopt.plots.clipping import clipped_at, draw_level, mark_level
from bkbopt.plots.dimensions import dress, room_below
from bkbopt.plots.feasible import draw_area, draw_range, odds
from bkbopt.plots.labels import name_of
from bkbopt.plots.signatures import picture
from bkbopt.plots.style import BLUE, ORANGE, axes_of, in_lines, ink, legend_below, value_label
from bkbopt.plots.surfaces import colour_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

__all__ = ["posterior_contour", "posterior_slice"]

#: Smallest opacity of a point.
FAINT = 0.15
#: Differences of less than this share of the values' range are hardly seen, and make no point faint.
LEAST = 0.02
#: From this likeness on a point counts as one on the slice, whose height must be seen.
ON = 0.5
#: Area of a triangle that is as visible as a dot, relative to the dot's.
AREA = 2.0


@picture
def posterior_slice(
    opt: Optimizer,
    x: str | None = None,
    *,
    ax: "Axes | None" = None,
    at: Mapping[str, Any] | None = None,
    width: float = 2.0,
    n_grid: int = 200,
    value_name: str | None = None,
) -> "Axes":
    """Posterior mean and band of the noise-free value along one parameter, with the data and the inducing points.

    All other parameters are fixed, so that most trials and inducing points are not on the slice. They are the fainter,
    the less a point says about the slice below it: its opacity is the prior correlation with its projection on the
    slice, times a factor that is small where their posterior means differ by more than the noise and the band; see
    `bkbopt.analysis.slices.likeness`. Trials without the parameter are left out. Values are drawn as told, with their
    noise; those off the slice beyond three times the range of band and values on it are triangles at the edge, as are
    outliers. Very bad values are clipped before they are modelled: if some are drawn, a dashed line is the level to
    which they are clipped (`Optimizer.clipping_level`), near which the band ends. Infeasible trials are crosses, and
    the background is hatched where the probability that a trial does not fail and satisfies the constraints is below
    one half. Failed trials that are not far from the slice are thin crosses, and running ones diamonds, at the upper
    edge; of a contour, where they are.

    If other parameters are conditional on this one and become active along it, they are mid-range, or have their first
    choice.

    Args:
        opt: an optimizer with at least one value.
        x: the parameter, or column of a pool; None if only one varies.
        ax: Axes to draw on; None for a new figure.
        at: values of other parameters; the rest have the values of the recommended point, which is drawn if the slice
            goes through it, except with an empty dict.
        width: half the width of the band, in standard deviations.
        n_grid: number of points along a continuum.
        value_name: label of the value axis, with its unit; None for the name of the objective.

    Raises:
        ArgumentTypeError: `opt`, `ax` or `at` has the wrong type.
        ArgumentError: a parameter that does not exist, is fixed or is inactive; a pool of objects; `at` outside of the
            space; several objectives.
        NotReadyError: there are no values yet.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
        >>> told = opt.tell([{"x": 0.1}, {"x": 0.4}, {"x": 0.9}], [0.3, 0.1, 0.8])
        >>> plots.posterior_slice(opt, value_name="loss").get_ylabel()
        'loss'
    """
    opt, width = as_optimizer(opt), check_number("width", width, 0.0, "a number of standard deviations >= 0")
    data, coordinates = told(opt), coordinates_of(opt)
    center = coordinates.center(at)
    dimension = dimension_of(coordinates, "x", x, center, check_count("n_grid", n_grid))
    ax = axes_of(ax)
    X = coordinates.encoded(projected(center, [dimension], [dimension.values]))
    mean, std = predicted(opt, X)
    place = dimension.place(dimension.values)
    band = f"mean $\\pm$ {width:g} sd"
    if dimension.is_continuum:
        ax.fill_between(place, mean - width * std, mean + width * std, color=BLUE, alpha=0.22, linewidth=0, label=band)
        ax.plot(place, mean, color=BLUE, linewidth=2, label="posterior mean")
    else:
        ax.errorbar(place, mean, width * std, fmt="_", markersize=16, color=BLUE, capsize=5, linewidth=2, label=band)
    seen = _seen(opt, data, data.trials, data.X, coordinates, [dimension], center)
    size = float(np.clip(1600.0 / len(data.y), 4.0, 16.0))  # smaller for many points, so that the band stays visible
    draw_range(ax, dimension, odds(opt, X))
    heights, beyond = _heights(data.y[seen.rows], seen.near, left_out(opt, data)[seen.rows], mean, width * std)
    _draw_trials(ax, data, seen, heights, s=size, colour=ink(), linewidth=0.0, beyond=beyond)
    if (level := clipped_at(opt, heights)) is not None:
        draw_level(ax, level)
    _draw_valueless(ax, opt, data, coordinates, [dimension], center)
    _draw_inducing(ax, seen.among(opt.surrogate.inducing, data))
    best = opt.recommend()
    if _is_on_slice(best.params, at, dimension):
        _draw_star(ax, dimension.place([best.params[dimension.name]]), bounded([best.mean]))
    dress(dimension, ax, "x")
    ax.set_ylabel(in_lines(value_label(name_of(opt, value_name)), ax, room_below(dimension, ax)), parse_math=False)
    ax.grid(alpha=0.3)
    legend_below(ax, ncols=3, below=room_below(dimension, ax))
    return ax


@picture
def posterior_contour(
    opt: Optimizer,
    x: str,
    y: str,
    *,
    ax: "Axes | None" = None,
    what: Literal["mean", "std"] = "mean",
    at: Mapping[str, Any] | None = None,
    n_grid: int = 50,
    value_name: str | None = None,
) -> "Axes":
    """Posterior mean, or standard deviation, of the noise-free value over two parameters, the others fixed.

    Trials, inducing points and constraints are drawn as in `posterior_slice`; the figure gets a colour bar. The area
    is hatched where one of the two parameters is inactive because of the value of the other. Values worse than
    `Optimizer.clipping_level` are clipped to it, and the mean among them is about that level. A line on the colour
    bar, named by the legend, is the level, if it is within the bar.

    Args:
        opt: an optimizer with at least one value.
        x: the parameter, or column of a pool, of the horizontal axis.
        y: that of the vertical axis.
        ax: Axes to draw on; None for a new figure.
        what: "mean" or "std".
        at: values of other parameters; the rest have the values of the recommended point.
        n_grid: number of points along a continuum.
        value_name: label of the colour bar, with its unit; None for the name of the objective.

    Raises:
        ArgumentTypeError, ArgumentError, NotReadyError: as for `posterior_slice`; also if `x` and `y` are the same.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
        >>> told = opt.tell([{"x": 0.1, "y": 0.2}, {"x": 0.4, "y": 0.9}, {"x": 0.9, "y": 0.4}], [0.3, 0.1, 0.8])
        >>> plots.posterior_contour(opt, "x", "y", what="std", n_grid=10).get_xlabel()
        'x'
    """
    opt, n_grid = as_optimizer(opt), check_count("n_grid", n_grid)
    if what not in ("mean", "std"):
        raise ArgumentError(f'what: expected "mean" or "std", got {what!r}.')
    data, coordinates = told(opt), coordinates_of(opt)
    center = coordinates.center(at)
    across, up = pair_of(coordinates, x, y, center, n_grid)
    ax = axes_of(ax)
    grid = grid_of(center, across, up)
    X, active = coordinates.encoded(grid), coordinates.active([across, up], grid)
    surface = predicted(opt, X)[0 if what == "mean" else 1]
    surface[~active] = np.nan
    label = value_label(name_of(opt, value_name), f"posterior {'mean' if what == 'mean' else 'sd'} of {{}}")
    bar = colour_grid(ax, across, up, surface, label)
    if what == "mean":
        mark_level(ax, bar, opt, data)
    draw_area(ax, across, up, odds(opt, X), active)
    seen = _seen(opt, data, data.trials, data.X, coordinates, [across, up], center)
    _draw_inducing_2d(ax, seen.among(opt.surrogate.inducing, data))
    _draw_trials(ax, data, seen, seen.places[1], s=20.0, colour="white", linewidth=0.8)
    _draw_valueless(ax, opt, data, coordinates, [across, up], center)
    best = opt.recommend().params
    if _is_on_slice(best, at, across, up):
        _draw_star(ax, across.place([best[across.name]]), up.place([best[up.name]]))
    dress(across, ax, "x")
    dress(up, ax, "y")
    legend_below(ax, ncols=3, below=room_below(across, ax))
    return ax


def _is_on_slice(best: Mapping[str, Any], at: Mapping[str, Any] | None, *dimensions: Dimension) -> bool:
    """Whether the recommended point is on the axes and has the values of `at`; an empty `at` leaves it out."""
    drawn = [dimension.name for dimension in dimensions]
    if at is not None and not (at and all(best.get(name) == at[name] for name in at if name not in drawn)):
        return False
    return all(bool(dimension.visible([best.get(dimension.name)])[0]) for dimension in dimensions)


def _shades(colour: str, near: np.ndarray) -> Any:
    """The colour with the opacities `near`, RGBA (n, 4)."""
    from matplotlib.colors import to_rgb

    return np.column_stack([np.tile(to_rgb(colour), (len(near), 1)), np.clip(near, FAINT, 1.0)])


@dataclass(frozen=True)
class _Seen:
    """The trials that are drawn on a slice.

    Attributes:
        rows: their indices among the trials with a value, or among the failed ones, (r,).
        places: their coordinates, one array (r,) for each axis.
        near: likeness to their projections on the slice, (r,), from 0 to 1.
    """

    rows: np.ndarray
    places: tuple[np.ndarray, ...]
    near: np.ndarray

    def among(self, points: Tensor, data: Told) -> "_Seen":
        """The trials at the encoded points `(m, d)`; for each point the last trial."""
        wanted = set(row_keys(points))
        keys = row_keys(data.X)
        last = {keys[row]: i for i, row in enumerate(self.rows)}
        kept = [i for key, i in last.items() if key in wanted]
        return _Seen(self.rows[kept], tuple(place[kept] for place in self.places), self.near[kept])


def _seen(
    opt: Optimizer,
    data: Told,
    trials: Sequence[Trial],
    encoded: Tensor,
    coordinates: Coordinates,
    dimensions: list[Dimension],
    center: Tensor,
) -> _Seen:
    """Those `trials`, at points `encoded (n, d)`, that are on the axes, with their likeness to their projections."""
    values = [[trial.params.get(dimension.name) for trial in trials] for dimension in dimensions]
    visible = [dimension.visible(own) for dimension, own in zip(dimensions, values, strict=True)]
    rows = np.flatnonzero(np.all(visible, axis=0))
    values = [[own[row] for row in rows] for own in values]
    on_slice = coordinates.encoded(projected(center, dimensions, values))
    places = tuple(dimension.place(own) for dimension, own in zip(dimensions, values, strict=True))
    X, extent = encoded[torch.from_numpy(rows)], float(data.y.max() - data.y.min())
    return _Seen(rows, places, likeness(opt, X, on_slice, LEAST * extent))


def _draw_trials(
    ax: "Axes",
    data: Told,
    seen: _Seen,
    heights: np.ndarray,
    *,
    s: float,
    colour: str,
    linewidth: float,
    beyond: str = "",
) -> None:
    """Draw trials at `heights (r,)`, with a black rim of that width: feasible ones as dots, others as crosses.

    Values told that are not at their heights are triangles that point there, with `beyond` in the legend.
    """
    feasible = data.feasible[seen.rows]
    off = " (faint: off slice)" if bool((seen.near < 0.999).any()) else ""
    for chosen, marker, size, label in ((feasible, "o", s, "values told"), (~feasible, "X", 2.0 * s, "infeasible")):
        if not chosen.any():
            continue
        near = seen.near[chosen]
        drawn = ax.scatter(
            seen.places[0][chosen],
            heights[chosen],
            s=size,
            marker=marker,
            c=_shades(colour, near),
            edgecolors=_shades("black", near),
            linewidth=linewidth,
            clip_on=False,  # points on the bounds are drawn completely
            zorder=3,
        )
        if beyond:
            _point_out(drawn, data.y[seen.rows[chosen]] - heights[chosen])
        look: Any = {"s": size, "marker": marker, "color": colour, "edgecolors": "black", "linewidth": linewidth}
        ax.scatter([], [], label=label + off, **look)
        off = ""  # said once
    if beyond:
        ax.scatter([], [], s=2.0 * s, marker="^", color=colour, label=beyond)


def _point_out(drawn: "PathCollection", away: np.ndarray) -> None:
    """Make points of a scatter triangles where `away (n,)` is not zero: up where it is positive, down elsewhere.

    All remain in one scatter, with their own colours.
    """
    from matplotlib.markers import MarkerStyle

    (own,), sizes = drawn.get_paths(), np.asarray(drawn.get_sizes(), dtype=float)
    up, down = (style.get_path().transformed(style.get_transform()) for style in map(MarkerStyle, "^v"))
    drawn.set_paths([own if gap == 0.0 else up if gap > 0.0 else down for gap in away])
    drawn.set_sizes(np.where(away == 0.0, 1.0, AREA) * sizes)


def _heights(
    y: np.ndarray, near: np.ndarray, out: np.ndarray, mean: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, str]:
    """Heights (r,) of values on a slice, far ones at the edge of all the rest, and the legend's entry for these.

    Outliers are far, and values that are off the slice by more than the range of the band and of those on it: with
    them the band would be flat.
    """
    band = np.concatenate([mean - spread, mean + spread])
    on = np.concatenate([y[~out & (near >= ON)], band])
    room = np.ptp(on) or np.inf
    rest = np.clip(np.concatenate([y[~out], band]), on.min() - room, on.max() + room)
    heights = np.clip(y, rest.min(), rest.max())
    if (heights != y)[~out].any():
        return heights, "beyond the axis"
    return heights, "outliers, beyond the axis" if bool((heights != y).any()) else ""


def _draw_valueless(
    ax: "Axes", opt: Optimizer, data: Told, coordinates: Coordinates, dimensions: list[Dimension], center: Tensor
) -> None:
    """Draw failed and running trials that are not far from the slice; they have no height on an axis of values."""
    for (trials, X), marker, label in ((failures(opt, data), "x", "failed"), (running(opt, data), "d", "running")):
        if not trials:
            continue
        seen = _seen(opt, data, trials, X, coordinates, dimensions, center)
        near = seen.near >= ON
        if not near.any():
            continue
        x, *others = (place[near] for place in seen.places)
        look: Any = {"linestyle": "", "marker": marker, "markersize": 6.0, "clip_on": False, "zorder": 3}
        look["fillstyle"] = "none"
        if others:
            ax.plot(x, others[0], color="white", markeredgewidth=3.0, **look)  # a rim that is visible on any colour
            ax.plot(x, others[0], color="black", markeredgewidth=1.4, label=label, **look)
        else:
            ax.plot(x, np.full(len(x), 0.97), color=ink(), label=label, transform=ax.get_xaxis_transform(), **look)


def _draw_inducing(ax: "Axes", seen: _Seen) -> None:
    """Draw inducing points as ticks at the lower edge, where they cover no data."""
    (place,) = seen.places
    ax.scatter(
        place,
        np.full(len(place), 0.025),
        transform=ax.get_xaxis_transform(),
        marker="|",
        s=120,
        c=_shades(ORANGE, seen.near),
        linewidth=2,
        zorder=2,
    )
    if len(place):
        ax.scatter([], [], marker="|", s=120, color=ORANGE, linewidth=2, label="inducing points")


def _draw_inducing_2d(ax: "Axes", seen: _Seen) -> None:
    """Draw inducing points as rings, with a black rim that is visible on any colour."""
    x, y = seen.places
    for colour, width in (("black", 2.8), (ORANGE, 1.6)):
        shades = _shades(colour, seen.near)
        ax.scatter(x, y, s=70, facecolors="none", edgecolors=shades, linewidth=width, clip_on=False, zorder=3)
    if len(x):
        ax.scatter([], [], s=70, facecolors="none", edgecolors=ORANGE, linewidth=1.6, label="inducing points")


def _draw_star(ax: "Axes", x: np.ndarray, y: np.ndarray) -> None:
    ax.scatter(x, y, marker="*", s=240, color=ORANGE, edgecolor="black", clip_on=False, zorder=5, label="recommended")
