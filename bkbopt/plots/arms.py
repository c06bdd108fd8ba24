"""The arms of a pool, coloured by their confidence bounds."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bkbopt._support.checks import check_number
from bkbopt._support.showing import shortened
from bkbopt.analysis.run_data import Told, as_optimizer, predicted, running, told
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer import Optimizer
from bkbopt.plots.dimensions import tick_whole
from bkbopt.plots.labels import name_of
from bkbopt.plots.signatures import picture
from bkbopt.plots.style import MAP, ORANGE, axes_of, legend_below, value_label
from bkbopt.search.trials.directions import sign_of
from bkbopt.spaces.arms import Arms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["pool_ucb"]


@picture
def pool_ucb(
    opt: Optimizer,
    x: Any,
    y: Any,
    *,
    ax: "Axes | None" = None,
    beta: float | None = None,
    value_name: str | None = None,
) -> "Axes":
    """The rows of a pool, coloured by their confidence bounds, with evaluated and running rows and the recommended one.

    The colour is mean + beta * standard deviation when maximising, and mean - beta * standard deviation when
    minimising, user's units: the bound that the acquisition function "ucb" optimises. The figure gets a colour bar.

    Args:
        opt: an optimizer over a pool, with at least one value.
        x: horizontal axis: a numeric column's name, or coordinates (A,) of the rows, from an embedding for example.
        y: vertical axis, in the same form.
        ax: Axes to draw on; None for a new figure.
        beta: width in standard deviations; None for the optimizer's current beta.
        value_name: label of the colour bar, with its unit; None for the name of the objective.

    Raises:
        ArgumentTypeError: `opt` or `ax` has the wrong type, or coordinates are not numbers.
        ArgumentError: a space instead of a pool, a column that does not exist or is not numeric, the wrong number of
            coordinates, a negative beta, or several objectives.
        NotReadyError: there are no values yet.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> opt = bo.Optimizer([[2.0, 0.1], [1.5, 0.7], [0.9, 0.4]], direction="maximize", seed=0)
        >>> told = opt.tell([{"x0": 2.0, "x1": 0.1}, {"x0": 0.9, "x1": 0.4}], [1.0, 3.0])
        >>> plots.pool_ucb(opt, "x0", "x1").get_ylabel()
        'x1'
    """
    pool = as_optimizer(opt).pool
    if pool is None:
        raise ArgumentError("opt: expected an optimizer over a pool, got one over a space; see posterior_contour.")
    data = told(opt)
    (across, x_name), (up, y_name) = _coordinates(pool, "x", x), _coordinates(pool, "y", y)
    beta = check_number("beta", opt.beta if beta is None else beta, 0.0, "a number of standard deviations >= 0")
    sign = sign_of(opt.direction)
    mean, std = predicted(opt, pool.X[:])
    bound = mean + sign * beta * std
    ax = axes_of(ax)
    _draw_bounds(ax, sign, across, up, bound, name_of(opt, value_name), beta)
    # Removed arms have no rows; equal arms have several.
    evaluated = sorted({row for point in data.X for row in pool.rows_at(point)})
    _draw_rows(ax, opt, data, across, up, evaluated)
    ax.set_xlabel(x_name, parse_math=False)
    ax.set_ylabel(y_name, parse_math=False)
    for axis, values in ((ax.xaxis, across), (ax.yaxis, up)):
        if bool((values == np.round(values)).all()):
            tick_whole(axis)
    legend_below(ax, ncols=3)
    return ax


def _size(n: int) -> float:
    return float(np.clip(20_000.0 / n, 4.0, 30.0))


def _draw_bounds(
    ax: "Axes", sign: float, across: np.ndarray, up: np.ndarray, bound: np.ndarray, value_name: str, beta: float
) -> None:
    """Draw all arms with the colours of their bounds (A,)."""
    # The best arms are drawn last, above the others.
    order = np.argsort(sign * bound, kind="stable")
    cmap = MAP if sign > 0 else f"{MAP}_r"
    drawn = ax.scatter(
        across[order],
        up[order],
        c=bound[order],
        s=_size(len(bound)),
        cmap=cmap,
        linewidth=0,
        rasterized=len(bound) > 2000,
        label="rows",
    )
    which, op = ("upper", "+") if sign > 0 else ("lower", "-")
    bar = ax.figure.colorbar(drawn, ax=ax)
    label = value_label(value_name, f"{which} confidence bound of {{}}")
    bar.set_label(f"{label}\n(mean {op} {beta:.2g} sd)", parse_math=False)


def _draw_rows(
    ax: "Axes", opt: Optimizer, data: Told, across: np.ndarray, up: np.ndarray, evaluated: list[int]
) -> None:
    """Draw rings around the evaluated arms, diamonds around running ones, and a star on the recommended one."""
    if evaluated:
        ax.scatter(
            across[evaluated],
            up[evaluated],
            s=_size(len(across)) + 14.0,
            facecolors="none",
            edgecolors="black",
            linewidth=0.8,
            label=f"evaluated ({len(evaluated)})",
        )
    asked = _asked(opt, data)
    if asked:
        look: Any = {"linestyle": "", "marker": "D", "fillstyle": "none", "color": "black", "markersize": 8.0}
        ax.plot(across[asked], up[asked], label=f"running ({len(asked)})", **look)
    best = opt.recommend().index
    if best is not None:
        star: Any = {"marker": "*", "s": 240, "color": ORANGE, "edgecolor": "black", "zorder": 5}
        ax.scatter(across[[best]], up[[best]], label="recommended", **star)


def _asked(opt: Optimizer, data: Told) -> list[int]:
    """Rows of running trials in the present pool, in order."""
    assert opt.pool is not None
    rows: set[int] = set()
    for trial, x in zip(*running(opt, data), strict=True):
        equal = opt.pool.rows_at(x)
        rows |= {trial.index} if trial.index in equal else set(equal)
    return sorted(rows)


def _coordinates(pool: Arms, argument: str, given: Any) -> tuple[np.ndarray, str]:
    """Coordinates (A,) of the arms and the axis label."""
    if isinstance(given, str):
        numeric = [] if pool.columns is None else [n for n in pool.names if n not in pool.columns.choice_names]
        if given not in numeric:
            raise ArgumentError(f"{argument}: expected coordinates or a numeric column of {numeric}, got {given!r}.")
        j = pool.names.index(given)
        return pool.column(j), shortened(pool.names)[j]
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{argument}: expected a column's name or numbers, got {given!r:.80}.") from None
    if values.shape != (len(pool),) or not bool(np.isfinite(values).all()):
        raise ArgumentError(
            f"{argument}: expected {len(pool)} finite coordinates, one for each row, got shape {values.shape}."
        )
    return values, argument
