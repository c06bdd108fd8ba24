"""Overview of a run: up to four plots of one objective; fronts, progress and cost of several."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bkbopt._support.showing import shortened
from bkbopt.analysis.coordinates import coordinates_of, has_dimensions
from bkbopt.analysis.run_data import as_optimizer, told, values_of
from bkbopt.analysis.sensitivity import variance_shares
from bkbopt.errors import NotReadyError
from bkbopt.optimizer import Optimizer
from bkbopt.plots.cost import ask_time, complexity
from bkbopt.plots.coverage import calibration
from bkbopt.plots.front import pairs_of, pareto
from bkbopt.plots.posterior import posterior_contour, posterior_slice
from bkbopt.plots.progress import draw_progress
from bkbopt.plots.runs import convergence
from bkbopt.plots.sensitivity import draw_shares
from bkbopt.plots.signatures import picture
from bkbopt.plots.style import figure_of, names_of_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["overview"]

#: Characters of the name of a value, for which a panel has room up to the edge of the figure.
PANEL = 40
#: Most parameters whose importance has room in a panel.
BARS = 14


@picture
def overview(
    opt: Optimizer, *, figure: "Figure | None" = None, value_names: str | Sequence[str] | None = None
) -> "Figure":
    """Values and convergence, importance of the parameters, the posterior over the two most important ones, the cost.

    Where nothing was asked, as of an Optuna study, the slice along the most important parameter replaces the cost.

    With noise the best value told is biased by selection. The dashed line is not: it is the posterior mean, under the
    present model, of the point that would have been recommended at that time by the present kernel, noise and space;
    it ends at that of `Optimizer.recommend`. Values far from the best are triangles at the edge.

    The two parameters are chosen among those that are active at the recommended point. Of more than 14 parameters the
    importance of the largest 14 is drawn. For pools of objects, which have
    no parameters, calibration replaces importance and posterior. With several objectives the plots are the Pareto front
    of each pair (of more than four objectives, of the first with each other one), the best value so far of each
    objective as a single one, and the cost.

    Args:
        opt: an optimizer with at least one value.
        figure: an empty figure, or subfigure, to draw on; None for a new one.
        value_names: label of the value, with its unit; for several objectives a list with one for each. None for the
            names of the objectives.

    Returns:
        The figure; a new one is not registered with pyplot.

    Raises:
        ArgumentTypeError: `opt` or `figure` has the wrong type, or `value_names` is no text and no list of texts.
        ArgumentError: not one name for each objective.
        NotReadyError: there are no values yet.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
        >>> opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], space, n_trials=12, seed=0)
        >>> figure = plots.overview(opt, value_names="loss")
        >>> [ax.get_xlabel() for ax in figure.axes][:2]
        ['evaluations', "share of the posterior mean's variance (%)"]
    """
    opt = as_optimizer(opt)
    names = shortened(names_of_values(value_names, len(opt.directions), opt.objectives), PANEL)
    return _of_one(opt, figure, names[0]) if len(names) == 1 else _of_several(opt, figure, names)


def _of_one(opt: Optimizer, figure: "Figure | None", name: str) -> "Figure":
    told(opt)
    figure = figure_of(figure, 12.0, 9.0)
    axes = figure.subplots(2, 2)
    draw_progress(opt, ax=axes[0, 0], value_name=name)
    if has_dimensions(opt):
        shares, coordinates = variance_shares(opt), coordinates_of(opt)
        center = coordinates.center(None)
        ranked = sorted(shares, key=lambda parameter: -shares[parameter].total)
        first, *others = [parameter for parameter in ranked if not coordinates.inactive(parameter, center)]
        draw_shares(axes[0, 1], {parameter: shares[parameter] for parameter in ranked[:BARS]})
        if len(shares) > BARS:
            axes[0, 1].set_title(f"the largest {BARS} of {len(shares)}", fontsize="medium")
        if others:
            posterior_contour(opt, first, others[0], ax=axes[1, 0], value_name=name)
        else:
            posterior_slice(opt, first, ax=axes[1, 0], value_name=name)
        if not _draws_cost(opt, axes[1, 1]):
            if others:
                posterior_slice(opt, first, ax=axes[1, 1], value_name=name)
            else:
                _widen(axes[1])
    else:
        _widen(axes[0])
        _draw_calibration(opt, axes[1, 0])
        if not _draws_cost(opt, axes[1, 1]):
            _widen(axes[1])
    return figure


def _draw_calibration(opt: Optimizer, ax: "Axes") -> None:
    """Draw the calibration, or say that values of a single point cannot be left out."""
    try:
        calibration(opt, ax=ax)
    except NotReadyError:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "calibration needs values of two points", ha="center", va="center", transform=ax.transAxes)


def _widen(row: np.ndarray) -> None:
    """Put the first of the two Axes of a row, (2,), over all of it, and remove the second."""
    first, second = row
    second.remove()
    first.set_subplotspec(first.get_gridspec()[first.get_subplotspec().rowspan.start, :])


def _of_several(opt: Optimizer, figure: "Figure | None", names: list[str]) -> "Figure":
    valued = [trial for trial in opt.trials if trial.values]
    if not valued and opt.n_complete:
        raise NotReadyError("opt: expected a trial with a value of each objective, got none; see single_objective.")
    if not valued:
        raise NotReadyError("opt: expected at least one value, got none; call tell first.")
    pairs = pairs_of(len(names)) if any(trial.is_feasible for trial in valued) else []
    count = len(pairs) + len(names) + 1
    columns = 2 if count <= 4 else 3
    rows = math.ceil(count / columns)
    figure = figure_of(figure, 6.0 * columns, 4.5 * rows)
    left = list(figure.subplots(rows, columns, squeeze=False).flat)
    for i, j in pairs:
        pareto(opt, ax=left.pop(0), objectives=(i, j), value_names=names)
    for j, name in enumerate(names):
        convergence(values_of(opt, j), ax=left.pop(0), direction=opt.directions[j], value_name=name)
    if _draws_cost(opt, left[0]):
        del left[0]
    for ax in left:
        ax.remove()
    return figure


def _draws_cost(opt: Optimizer, ax: "Axes") -> bool:
    """Draw what the asks cost, if there were any; returns whether there were."""
    if any(d.n_inducing is not None for d in opt.diagnostics):
        complexity(opt, ax=ax)
    elif opt.diagnostics:
        ask_time(opt, ax=ax)
    return bool(opt.diagnostics)
