"""Progress of one run: values, the best value so far, and the recommended points at earlier times."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bkbopt.optimizer import Optimizer
from bkbopt.plots.readings import drawable, has_model, left_out, recommended_so_far, told, values_of
from bkbopt.plots.runs import convergence
from bkbopt.plots.style import GREY, ORANGE, axes_of, legend_below, value_label
from bkbopt.search.trials.directions import sign_of
from bkbopt.search.trials.states import FAIL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_progress"]

#: Values farther from the best one than REACH times the upper quartile of these distances are drawn at the edge.
REACH = 1.5


def draw_progress(
    opt: Optimizer, ax: "Axes | None" = None, *, recommended: bool = True, value_name: str = "value"
) -> "Axes":
    """`convergence` of one optimizer with its values as dots; values far from the best are at the edge of the axes.

    So are outliers, which count neither for the limits of the axes nor as best values. Failed trials have no value to
    be drawn; the label of the axis says how many there are.
    Recommended values are drawn once the start-up design is over, and circles around `Optimizer.outliers`.

    Args:
        opt: an optimizer with at least one value.
        ax: Axes to draw on; None for a new figure.
        recommended: whether to draw `recommended_so_far`, too.
        value_name: label of the value axis, with its unit.
    """
    data = told(opt)
    # During the start-up design a recommendation would require a fit, and not be that of the search's model.
    run = opt if has_model(opt) else values_of(opt, 0)
    earlier = recommended_so_far(opt) if recommended and has_model(opt) else None
    ax = convergence(run, axes_of(ax), direction=opt.direction, recommended=earlier, value_name=value_name)
    feasible = np.array([trial.is_feasible for trial in data.trials])
    out = left_out(opt, data)
    kept = next(mask for mask in (feasible & ~out, feasible, np.ones_like(feasible)) if mask.any())
    limits = _limits(opt, data.y[kept])
    shown, t = np.clip(data.y, *limits), np.arange(1, len(data.y) + 1)
    size = float(np.clip(400.0 / len(t), 2.0, 6.0))
    far = "" if bool((shown == data.y).all()) else ", far ones at the edge"
    look: Any = {"linestyle": "", "color": GREY, "markersize": size, "zorder": 1, "rasterized": len(t) > 2000}
    if feasible.any():
        ax.plot(t[feasible], shown[feasible], marker="o", alpha=0.5, markeredgewidth=0, label=f"values{far}", **look)
    if not feasible.all():
        ax.plot(t[~feasible], shown[~feasible], marker="x", label="infeasible", **look)
    if out.any():
        rings = {**look, "color": ORANGE, "markersize": size + 4.0, "zorder": 3}
        ax.plot(t[out], shown[out], marker="o", fillstyle="none", label="left out of the fit", **rings)
    margin = 0.04 * (limits[1] - limits[0])
    ax.set(ylim=(limits[0] - margin, limits[1] + margin))
    ax.set_ylabel(value_label(value_name), parse_math=False)
    failed = sum(trial.state == FAIL for trial in opt.trials) - len(opt.lost_trials) + len(opt.penalties)
    if failed:
        ax.set_xlabel(f"evaluations with a value (and {failed} failed)")
    legend_below(ax)
    return ax


def _limits(opt: Optimizer, y: np.ndarray) -> tuple[float, float]:
    """Limits of the value axis: from the best value to most of the others, with the recommended point's band."""
    sign = sign_of(opt.direction)
    gain = sign * y
    best = gain.max()
    ends = [max(gain.min(), best - REACH * float(np.quantile(best - gain, 0.75))), best]
    if has_model(opt):
        choice = opt.recommend()
        mean, std = map(float, drawable([choice.mean, choice.std]))
        ends += [sign * mean - 2.0 * std, sign * mean + 2.0 * std]
    low, high = sorted([sign * min(ends), sign * max(ends)])
    return low, high if high > low else low + max(1.0, 0.1 * abs(low))  # if all values are equal
