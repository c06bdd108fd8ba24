"""Slices of the posterior along one parameter or two, the others fixed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bkbopt._support.arrays import check_number
from bkbopt.errors import ArgumentError
from bkbopt.optimizer import Optimizer
from bkbopt.plots.dimensions import Dimension, dimension_of, fixed_at, nearness, pair_of, told
from bkbopt.plots.style import BLUE, MAP, ORANGE, as_optimizer, axes_of, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["colour_grid", "posterior_contour", "posterior_slice"]

#: The faintest that a point is drawn.
FAINT = 0.1


def posterior_slice(
    opt: Optimizer,
    x: str | None = None,
    ax: "Axes | None" = None,
    *,
    at: Mapping[str, Any] | None = None,
    width: float = 2.0,
    n: int = 200,
    value_name: str = "value",
) -> "Axes":
    """Posterior mean and band of the noise-free value along one parameter, with the data and the inducing points.

    All other parameters are fixed. Trials and inducing points lie off the slice, then, and are drawn the fainter the
    less they say about it: by the prior correlation of their point with its projection on the slice. Values are as
    told, with their noise; very bad ones may lie far off the band, as the model clips them. Points that a constraint
    forbids are drawn like others.

    Args:
        opt: with at least one value.
        x: the parameter, or column of a pool; None where only one varies.
        ax: where to draw; None makes a new figure.
        at: values of the other parameters; those that it does not name are the recommendation's.
        width: of the band, in standard deviations to either side.
        n: points along a continuum.
        value_name: of the value axis, with its unit.

    Raises:
        ArgumentTypeError: `opt`, `ax` or `at` has the wrong type.
        ArgumentError: no such parameter, or one that is fixed; a pool of objects; `at` outside of the space.
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
    dimension = dimension_of(opt, "x", x, n)
    params = fixed_at(opt, at)
    ax = axes_of(ax)
    mean, std = opt.predict([{**params, dimension.name: v} for v in dimension.values])
    place = dimension.place(dimension.values)
    band = f"mean $\\pm$ {width:g} sd"
    if dimension.is_continuum:
        ax.fill_between(place, mean - width * std, mean + width * std, color=BLUE, alpha=0.22, linewidth=0, label=band)
        ax.plot(place, mean, color=BLUE, linewidth=2, label="posterior mean")
    else:
        ax.errorbar(place, mean, width * std, fmt="_", markersize=16, color=BLUE, capsize=5, linewidth=2, label=band)
    X, y = told(opt)
    near = nearness(opt, X, [dimension.column], params)
    here = dimension.place([opt.trials[i].params[dimension.name] for i in opt._log.order])
    size = float(np.clip(1600.0 / len(y), 4.0, 16.0))  # many points must not hide the band
    ax.scatter(here, y, s=size, c=_shades("black", near), linewidth=0, zorder=3)
    ax.scatter([], [], s=size, color="black", label="values told" + _is_off(near))
    _draw_inducing(ax, opt, dimension, params)
    best = opt.recommend()
    if at is None:
        _draw_star(ax, dimension.place([best.params[dimension.name]]), np.array([best.mean]))
    dimension.dress(ax, "x")
    ax.set_ylabel(value_name)
    ax.grid(alpha=0.3)
    legend_below(ax, ncols=3, below=dimension.room)
    return ax


def posterior_contour(
    opt: Optimizer,
    x: str,
    y: str,
    ax: "Axes | None" = None,
    *,
    what: Literal["mean", "std"] = "mean",
    at: Mapping[str, Any] | None = None,
    n: int = 50,
    value_name: str = "value",
) -> "Axes":
    """Posterior mean, or standard deviation, of the noise-free value over two parameters, the others fixed.

    Trials and inducing points are drawn as in `posterior_slice`; the colour bar is the figure's.

    Args:
        opt: with at least one value.
        x: the parameter, or column of a pool, from left to right.
        y: the one from bottom to top.
        ax: where to draw; None makes a new figure.
        what: "mean" or "std".
        at: values of the other parameters; those that it does not name are the recommendation's.
        n: points along a continuum.
        value_name: of the colour bar, with its unit.

    Raises:
        ArgumentTypeError, ArgumentError, NotReadyError: as `posterior_slice`; also `x` and `y` the same.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
        >>> told = opt.tell([{"x": 0.1, "y": 0.2}, {"x": 0.4, "y": 0.9}, {"x": 0.9, "y": 0.4}], [0.3, 0.1, 0.8])
        >>> plots.posterior_contour(opt, "x", "y", what="std", n=10).get_xlabel()
        'x'
    """
    opt = as_optimizer(opt)
    if what not in ("mean", "std"):
        raise ArgumentError(f'what: expected "mean" or "std", got {what!r}.')
    across, up = pair_of(opt, x, y, n)
    params = fixed_at(opt, at)
    ax = axes_of(ax)
    grid = [{**params, across.name: u, up.name: v} for v in up.values for u in across.values]
    surface = opt.predict(grid)[0 if what == "mean" else 1].reshape(len(up.values), len(across.values))
    colour_grid(ax, across, up, surface, f"posterior {'mean' if what == 'mean' else 'sd'} of {value_name}")
    near = nearness(opt, told(opt)[0], [across.column, up.column], params)
    trials = [opt.trials[i] for i in opt._log.order]
    _draw_inducing_2d(ax, opt, across, up, params)
    ax.scatter(
        across.place([t.params[across.name] for t in trials]),
        up.place([t.params[up.name] for t in trials]),
        s=20,
        c=_shades("white", near),
        edgecolors=_shades("black", near),
        linewidth=0.8,
        clip_on=False,  # a search goes to the bounds: what lies there is drawn whole
        zorder=3,
    )
    ax.scatter([], [], s=20, color="white", edgecolors="black", linewidth=0.8, label="values told" + _is_off(near))
    if at is None:
        best = opt.recommend().params
        _draw_star(ax, across.place([best[across.name]]), up.place([best[up.name]]))
    across.dress(ax, "x")
    up.dress(ax, "y")
    legend_below(ax, ncols=3, below=across.room)
    return ax


def colour_grid(ax: "Axes", across: Dimension, up: Dimension, surface: np.ndarray, label: str) -> None:
    """Draw values `surface (n_up, n_across)` with a colour bar: as contours over two continua, else in cells."""
    if across.is_continuum and up.is_continuum:
        places = across.place(across.values), up.place(up.values)
        drawn: Any = ax.contourf(*places, surface, levels=14, cmap=MAP)
    else:
        drawn = ax.pcolormesh(across.edges(), up.edges(), surface, cmap=MAP)
    ax.figure.colorbar(drawn, ax=ax, label=label)


def _is_off(near: np.ndarray) -> str:
    return " (fainter: off this slice)" if bool((near < 0.999).any()) else ""


def _shades(colour: str, near: np.ndarray) -> Any:
    """The colour as opaque as the points are near, RGBA (n, 4)."""
    from matplotlib.colors import to_rgb

    return np.column_stack([np.tile(to_rgb(colour), (len(near), 1)), np.clip(near, FAINT, 1.0)])


def _inducing(opt: Optimizer, dimensions: list[Dimension], params: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Where the inducing points stand on the axes, (len(dimensions), m), and how near they are to the slice, (m,)."""
    Z = opt.surrogate.inducing
    rows = [opt.domain.describe(z)[0] for z in Z]
    near = nearness(opt, Z, [dimension.column for dimension in dimensions], params)
    return np.array([dimension.place([row[dimension.name] for row in rows]) for dimension in dimensions]), near


def _draw_inducing(ax: "Axes", opt: Optimizer, dimension: Dimension, params: Mapping[str, Any]) -> None:
    """Ticks at the lower edge, where they cover no data."""
    (place,), near = _inducing(opt, [dimension], params)
    ax.scatter(
        place,
        np.full(len(place), 0.025),
        transform=ax.get_xaxis_transform(),
        marker="|",
        s=120,
        c=_shades(ORANGE, near),
        linewidth=2,
        zorder=2,
    )
    ax.scatter([], [], marker="|", s=120, color=ORANGE, linewidth=2, label="inducing points")


def _draw_inducing_2d(ax: "Axes", opt: Optimizer, across: Dimension, up: Dimension, params: Mapping[str, Any]) -> None:
    """Rings, with a black rim to be seen on any colour."""
    (x, y), near = _inducing(opt, [across, up], params)
    for colour, width in (("black", 2.8), (ORANGE, 1.6)):
        shades = _shades(colour, near)
        ax.scatter(x, y, s=70, facecolors="none", edgecolors=shades, linewidth=width, clip_on=False, zorder=3)
    ax.scatter([], [], s=70, facecolors="none", edgecolors=ORANGE, linewidth=1.6, label="inducing points")


def _draw_star(ax: "Axes", x: np.ndarray, y: np.ndarray) -> None:
    ax.scatter(x, y, marker="*", s=240, color=ORANGE, edgecolor="black", clip_on=False, zorder=5, label="recommended")
