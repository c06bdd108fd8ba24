"""A run at a glance: four pictures chosen by what there is."""

from typing import TYPE_CHECKING

from bkbopt.optimizer import Optimizer
from bkbopt.plots.coordinates import coordinates_of, has_dimensions
from bkbopt.plots.cost import ask_time, complexity
from bkbopt.plots.coverage import calibration
from bkbopt.plots.posterior import posterior_contour, posterior_slice
from bkbopt.plots.readings import told
from bkbopt.plots.runs import convergence
from bkbopt.plots.sensitivity import draw_shares, variance_shares
from bkbopt.plots.style import as_optimizer, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["overview"]


def overview(opt: Optimizer, *, value_name: str = "value") -> "Figure":
    """How the run went, which parameters matter, the posterior over the two that matter most, and the cost.

    The two are among the parameters that are active at the recommended point.
    Over pools of objects, which have no columns, calibration stands in the middle.

    Args:
        opt: with at least one value.
        value_name: of the value, with its unit.

    Returns:
        A new figure, unknown to pyplot.

    Raises:
        ArgumentTypeError: `opt` is no optimizer.
        ArgumentError: it has several objectives.
        NotReadyError: there are no values yet.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
        >>> opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], space, n_trials=12, seed=0)
        >>> figure = plots.overview(opt, value_name="loss")
        >>> [ax.get_xlabel() for ax in figure.axes][:2]
        ['evaluations', "share of the posterior mean's variance (%)"]
    """
    opt = as_optimizer(opt)
    told(opt)
    figure = new_figure(12.0, 9.0)
    axes = figure.subplots(2, 2)
    convergence(opt, axes[0, 0], value_name=value_name)
    if has_dimensions(opt):
        shares, coordinates = variance_shares(opt), coordinates_of(opt)
        center = coordinates.center(None)
        ranked = sorted(shares, key=lambda name: -shares[name].total)
        first, *others = [name for name in ranked if not coordinates.inactive(name, center)]
        draw_shares(axes[0, 1], shares)
        if others:
            posterior_contour(opt, first, others[0], axes[1, 0], value_name=value_name)
        else:
            posterior_slice(opt, first, axes[1, 0], value_name=value_name)
    else:
        axes[0, 1].remove()
        calibration(opt, ax=axes[1, 0])
    if any(d.m is not None for d in opt.diagnostics):
        complexity(opt, axes[1, 1])
    elif opt.diagnostics:
        ask_time(opt, axes[1, 1])
    else:
        axes[1, 1].remove()
    return figure
