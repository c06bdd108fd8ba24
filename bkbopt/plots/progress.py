"""Progress of one run: values, the best value so far, and the recommended points at earlier times."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bkbopt.analysis.run_data import bounded, has_model, left_out, recommended_so_far, told, values_of
from bkbopt.optimizer import Optimizer
from bkbopt.plots.labels import failed_in_words, name_of
from bkbopt.plots.runs import convergence
from bkbopt.plots.style import GREY, ORANGE, axes_of, legend_below, value_label
from bkbopt.search.trials.directions import sign_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_progress", "reach_of"]

#: Values farther from the best one than REACH times the upper quartile of these distances are beyond the axis.
REACH = 1.5
#: Of fewer values than FEW a quartile says little: only those farther than FAR times it are, as a single 1e10.
FEW, FAR = 10, 10.0
#: Smallest size of a triangle that can be told from a dot, in points.
TRIANGLE = 5.0


def draw_progress(
    opt: Optimizer, *, ax: "Axes | None" = None, with_recommended: bool = True, value_name: str | None = None
) -> "Axes":
    """`convergence` of one optimizer with its values as dots; values beyond the axis are triangles that point there.

    From ten values on those far from the best are beyond the axis, of fewer the very far ones, and those of infeasible
    trials that are better than the best one. So are outliers, which count neither for the limits of the axes nor as
    best values. Failed trials have no value to be drawn; the label of the axis says how many there are.
    Recommended values are drawn once the start-up design is over, and circles around `Optimizer.outliers`.

    Args:
        opt: an optimizer with at least one value.
        ax: Axes to draw on; None for a new figure.
        with_recommended: whether to draw `recommended_so_far`, too.
        value_name: label of the value axis, with its unit; None for the name of the objective.
    """
    data = told(opt)
    # During the start-up design a recommendation would require a fit, and not be that of the search's model.
    run = opt if has_model(opt) else values_of(opt, 0)
    earlier = recommended_so_far(opt) if with_recommended and has_model(opt) else None
    ax = convergence(run, ax=axes_of(ax), direction=opt.direction, recommended=earlier)
    feasible, out = data.feasible, left_out(opt, data)
    everything = np.ones_like(feasible)
    masks = (feasible & ~out, feasible, everything) if len(data.y) >= FEW else (everything,)
    limits = _limits(opt, data.y[next(mask for mask in masks if mask.any())])
    margin = 0.04 * (limits[1] - limits[0])
    ax.set(ylim=(limits[0] - margin, limits[1] + margin))
    _draw_values(ax, data.y, limits, feasible, out)
    ax.set_ylabel(value_label(name_of(opt, value_name)), parse_math=False)
    failed = failed_in_words([opt])
    if failed:
        ax.set_xlabel(f"evaluations with a value (and {failed})")
    legend_below(ax)
    return ax


def reach_of(distances: np.ndarray) -> float:
    """The distance from the best value beyond which values are beyond the axis; `distances (n,)` are those of all."""
    return (REACH if len(distances) >= FEW else FAR) * float(np.quantile(distances, 0.75))


def _draw_values(ax: "Axes", y: np.ndarray, limits: tuple[float, float], feasible: np.ndarray, out: np.ndarray) -> None:
    """Draw values y (n,): those beyond the limits as triangles on the edge, hollow ones where infeasible."""
    t, (low, high) = np.arange(1, len(y) + 1), ax.get_ylim()
    above, below = y > limits[1], y < limits[0]
    within, places = ~(above | below), np.where(above, high, np.where(below, low, y))
    size = float(np.clip(400.0 / len(t), 2.0, 6.0))
    look: Any = {"linestyle": "", "color": GREY, "markersize": size, "zorder": 1, "rasterized": len(t) > 2000}
    dots: Any = {"marker": "o", "alpha": 0.5, "markeredgewidth": 0}
    for kind, mark, name in ((feasible, dots, "values"), (~feasible, {"marker": "x"}, "infeasible")):
        if (kind & within).any():
            ax.plot(t[kind & within], places[kind & within], label=name, **look, **mark)
    triangles: Any = {**look, "markersize": max(size, TRIANGLE), "clip_on": False, "zorder": 2.5}
    for kind, style, name in (
        (feasible, "full", "beyond the axis"),
        (~feasible, "none", "infeasible, beyond the axis"),
    ):
        drawn = [(beyond & kind, marker) for beyond, marker in ((above, "^"), (below, "v")) if (beyond & kind).any()]
        for i, (rows, marker) in enumerate(drawn):
            label = name if i == 0 else None  # one entry of the legend for both directions
            ax.plot(t[rows], places[rows], marker=marker, fillstyle=style, label=label, **triangles)
    if out.any():
        rings = {**look, "color": ORANGE, "markersize": size + 4.0, "zorder": 3, "clip_on": False}
        ax.plot(t[out], places[out], marker="o", fillstyle="none", label="left out of the fit", **rings)


def _limits(opt: Optimizer, y: np.ndarray) -> tuple[float, float]:
    """Limits of the value axis: from the best value to most of the others, with the recommended point's band.

    With fewer than `FEW` values they are those of all that are not farther by orders of magnitude.
    """
    sign = sign_of(opt.direction)
    gain = sign * y
    best = gain.max()
    ends = [max(gain.min(), best - reach_of(best - gain)), best]
    if has_model(opt):
        choice = opt.recommend()
        mean, std = map(float, bounded([choice.mean, choice.std]))
        ends += [sign * mean - 2.0 * std, sign * mean + 2.0 * std]
    low, high = sorted([sign * min(ends), sign * max(ends)])
    return low, high if high > low else low + max(1.0, 0.1 * abs(low))  # if all values are equal
