"""The coverage of the posterior's central intervals against their nominal level."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bkbopt.analysis.intervals import coverage
from bkbopt.optimizer import Optimizer
from bkbopt.plots.signatures import picture
from bkbopt.plots.style import BLUE, GREY, axes_of, ink, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calibration"]


@picture
def calibration(
    opt: Optimizer,
    test: Iterable[Mapping[str, Any]] | None = None,
    values: Any = None,
    *,
    ax: "Axes | None" = None,
    noisy: bool = True,
    n_folds: int = 10,
) -> "Axes":
    """Fraction of values in the posterior's central intervals against the intervals' nominal level.

    On the diagonal the coverage is the nominal one; below it the intervals are too narrow (the model is overconfident),
    above it too wide. At each level the grey band contains 95 % of such fractions if the model is right and the errors
    are independent. The numbers are those of `bkbopt.analysis.coverage`.

    Without `test` this is a cross-validation: groups of points, with all repeats of a point, are left out in turn, and
    their values are predicted from the rest, with unchanged kernel and noise. These were fitted to all values, so that
    the coverage is slightly better than for new points. It concerns the region where the search has evaluated; for the
    whole space evaluate random points and pass them as `test`.

    Args:
        opt: an optimizer with values of at least two different points, or of one if `test` is given.
        test: parameters of points that the optimizer was not told.
        values: their values, (n,), user's units.
        ax: Axes to draw on; None for a new figure.
        noisy: whether `values` have evaluation noise, which is then included in the intervals; False for noise-free
            values. Left-out values always have it.
        n_folds: number of groups of the cross-validation.

    Raises:
        ArgumentTypeError: `opt`, `test` or `ax` has the wrong type, or values are not numbers.
        ArgumentError: test points outside of the space, the wrong number of values, only one of `test` and `values`,
            n_folds < 2, or several objectives.
        NotReadyError: there are too few values.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
        >>> opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], space, n_trials=12, seed=0)
        >>> plots.calibration(opt, n_folds=4).get_xlabel()
        'central interval (%)'
    """
    found = coverage(opt, test, values, noisy=noisy, n_folds=n_folds)
    ax, levels = axes_of(ax, 5.2, 5.2), 100.0 * found.levels
    band = 100.0 * found.low, 100.0 * found.high
    ax.fill_between(levels, *band, color=GREY, alpha=0.25, linewidth=0, label="95 % range if calibrated")
    ax.plot([0, 100], [0, 100], color=GREY, linestyle="--", linewidth=1, label="nominal level")
    what = "values, each predicted from others" if test is None else "test values"
    ax.plot(levels, 100.0 * found.inside, color=BLUE, linewidth=2, label=f"{found.n} {what}")
    note: dict[str, Any] = {
        "transform": ax.transAxes,
        "color": ink(),
        "alpha": 0.67,
        "style": "italic",
        "fontsize": "small",
    }
    ax.text(0.03, 0.97, "intervals too wide", ha="left", va="top", **note)
    ax.text(0.97, 0.03, "intervals too narrow", ha="right", va="bottom", **note)
    # Lines at 0 and at 100 % would be hidden by the frame.
    ax.set(xlabel="central interval (%)", ylabel="values inside (%)", xlim=(0, 100), ylim=(-2, 102), aspect="equal")
    ax.grid(alpha=0.3)
    legend_below(ax, ncols=2)
    return ax
