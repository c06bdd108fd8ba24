"""Overview of a run in up to four plots."""

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
    """Convergence, importance of the parameters, the posterior over the two most important ones, and the cost.

    The two parameters are chosen among those that are active at the recommended point. For pools of objects, which have
    no parameters, calibration replaces importance and posterior.

    Args:
        opt: an optimizer with at least one value.
        value_name: label of the value, with its unit.

    Returns:
        A new figure, which is not registered with pyplot.

    Raises:
        ArgumentTypeError: `opt` is not an optimizer.
        ArgumentError: there are several objectives.
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
    if any(d.n_inducing is not None for d in opt.diagnostics):
        complexity(opt, axes[1, 1])
    elif opt.diagnostics:
        ask_time(opt, axes[1, 1])
    else:
        axes[1, 1].remove()
    return figure
