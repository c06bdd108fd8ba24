"""Calibration of the posterior: the coverage of its central intervals against their nominal level.

| symbol | shape | units  | meaning                                                             |
| ------ | ----- | ------ | ------------------------------------------------------------------- |
| z      | (n,)  | -      | |value - predicted mean| / predicted standard deviation             |
| p      | (k,)  | -      | nominal level of a central interval, mean +- Phi^-1((1 + p) / 2) sd |
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bkbopt._support.arrays import as_values
from bkbopt._support.checks import check_count
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer import Optimizer
from bkbopt.plots.readings import drawable, told
from bkbopt.plots.signatures import picture
from bkbopt.plots.style import BLUE, GREY, as_optimizer, axes_of, ink, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calibration"]

LEVELS = np.linspace(0.02, 0.98, 49)


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
    are independent.

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
    opt, n_folds = as_optimizer(opt), check_count("n_folds", n_folds, 2)
    if (test is None) != (values is None):
        raise ArgumentError("values: expected both test and values, or neither, got only one of them.")
    told(opt)
    z = np.abs(opt.cross_validation(n_folds=n_folds)) if test is None else _given(opt, test, values, noisy)
    ax = axes_of(ax, 5.2, 5.2)
    from scipy.special import ndtri

    reach = ndtri(0.5 * (1.0 + LEVELS))
    coverage = (z[:, None] <= reach).mean(axis=0)
    n = len(z)
    band = 100.0 * _binomial_quantile(np.array([[0.025], [0.975]]), n, LEVELS) / n
    ax.fill_between(100.0 * LEVELS, *band, color=GREY, alpha=0.25, linewidth=0, label="95 % range if calibrated")
    ax.plot([0, 100], [0, 100], color=GREY, linestyle="--", linewidth=1, label="nominal level")
    what = "values, each predicted from others" if test is None else "test values"
    ax.plot(100.0 * LEVELS, 100.0 * coverage, color=BLUE, linewidth=2, label=f"{n} {what}")
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


def _binomial_quantile(q: np.ndarray, n: int, p: np.ndarray) -> np.ndarray:
    """The smallest number of successes among n that is reached with probability q; `scipy.stats` imports slowly."""
    from scipy.special import bdtr, bdtrik

    upper = np.ceil(bdtrik(q, n, p))
    lower = np.maximum(upper - 1.0, 0.0)
    return np.where(bdtr(lower, n, p) >= q, lower, upper)


def _given(opt: Optimizer, test: Iterable[Mapping[str, Any]], values: Any, noisy: bool) -> np.ndarray:
    """Absolute standardised errors at test points, (n,)."""
    if not isinstance(test, Iterable):
        raise ArgumentTypeError(f"test: expected parameters of points, got {type(test).__name__}.")
    points = list(test)
    if not points:
        raise ArgumentError("test: expected at least one point, got none.")
    y, (mean, std) = as_values(values, len(points), name="values").numpy(), map(drawable, opt.predict(points))
    return _standardised(drawable(y) - mean, np.hypot(std, drawable(opt.noise_std) if noisy else 0.0))


def _standardised(error: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """|error| / sd; infinity for an error with sd = 0, and 0 for no error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.abs(error) / sd, nan=0.0, posinf=np.inf)
