"""Is the posterior as sure as it may be? The coverage of its central intervals, against what they promise.

| symbol | shape | units  | meaning                                                             |
| ------ | ----- | ------ | ------------------------------------------------------------------- |
| z      | (n,)  | -      | |value - predicted mean| / predicted standard deviation             |
| p      | (k,)  | -      | what a central interval promises: it reaches Phi^-1((1 + p) / 2) sd |
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bkbopt._support.arrays import as_values, check_count
from bkbopt.errors import ArgumentError, NotReadyError
from bkbopt.optimizer import Optimizer
from bkbopt.plots.readings import learnt, told
from bkbopt.plots.style import BLUE, GREY, as_optimizer, axes_of, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calibration"]

LEVELS = np.linspace(0.02, 0.98, 49)


def calibration(
    opt: Optimizer,
    test: Iterable[Mapping[str, Any]] | None = None,
    values: Any = None,
    ax: "Axes | None" = None,
    *,
    noisy: bool = True,
    folds: int = 10,
) -> "Axes":
    """How many values lie in the posterior's central intervals, against how many should.

    On the diagonal the intervals hold what they promise; below it they are too narrow (the model is overconfident),
    above it too wide. The grey band is where 95 % of such counts would lie, at each level, if the model were right and
    the errors independent.

    Without `test` the points told are left out in turn, in groups, all repeats of a point together; the values are
    predicted from the rest, with kernel and noise as they are. Those were fitted to all values, so that the picture is
    a little kinder than new points would be. It speaks of where the search has been: for the whole space, evaluate
    random points and give them as `test`.

    Args:
        opt: with at least two different points told, or one where `test` is given.
        test: parameters of points that the optimizer was not told.
        values: their values, (n,), user's units.
        ax: where to draw; None makes a new figure.
        noisy: whether `values` carry the noise of evaluations, which is then part of the intervals; False for
            noise-free ones. Left-out values always carry it.
        folds: groups in which points are left out.

    Raises:
        ArgumentTypeError: `opt` or `ax` has the wrong type, or values that are no numbers.
        ArgumentError: test points outside of the space, values that do not fit to them, only one of both, folds < 2,
            several objectives.
        NotReadyError: too few values told.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
        >>> opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], space, n_trials=12, seed=0)
        >>> plots.calibration(opt, folds=4).get_xlabel()
        'central interval (%)'
    """
    opt, folds = as_optimizer(opt), check_count("folds", folds, 2)
    if (test is None) != (values is None):
        raise ArgumentError("values: expected test points and their values together, got only one of both.")
    told(opt)
    z = _left_out(opt, folds) if test is None else _given(opt, test, values, noisy)
    ax = axes_of(ax, 5.2, 5.2)
    from scipy.special import ndtri
    from scipy.stats import binom

    reach = ndtri(0.5 * (1.0 + LEVELS))
    coverage = (z[:, None] <= reach).mean(axis=0)
    n = len(z)
    band = 100.0 * binom.ppf([[0.025], [0.975]], n, LEVELS) / n
    ax.fill_between(100.0 * LEVELS, *band, color=GREY, alpha=0.25, linewidth=0, label="95 % of right models lie here")
    ax.plot([0, 100], [0, 100], color=GREY, linestyle="--", linewidth=1, label="as promised")
    what = "values left out" if test is None else "test values"
    ax.plot(100.0 * LEVELS, 100.0 * coverage, color=BLUE, linewidth=2, label=f"{n} {what}")
    for x, y, text in ((24, 90, "too wide"), (76, 10, "too narrow")):
        ax.text(x, y, text, color="#555555", ha="center", va="center", style="italic")
    ax.set(xlabel="central interval (%)", ylabel="values inside (%)", xlim=(0, 100), ylim=(0, 100), aspect="equal")
    ax.grid(alpha=0.3)
    legend_below(ax, ncols=2)
    return ax


def _given(opt: Optimizer, test: Iterable[Mapping[str, Any]], values: Any, noisy: bool) -> np.ndarray:
    """Standardised errors at test points, (n,)."""
    points = list(test)
    if not points:
        raise ArgumentError("test: expected at least one point, got none.")
    y = as_values(values, len(points), name="values").numpy()
    mean, std = opt.predict(points)
    return _standardised(y - mean, np.hypot(std, opt.noise_std if noisy else 0.0))


def _left_out(opt: Optimizer, folds: int) -> np.ndarray:
    """Standardised errors at the points told, each predicted without its group, (n,)."""
    known = learnt(opt)
    n = int(known.unique.max()) + 1
    if n < 2:
        raise NotReadyError("opt: expected at least two different points told, got one; go on with ask and tell.")
    # Neighbours in time are neighbours in space: a group of them would leave a hole.
    group = torch.from_numpy(np.random.default_rng(0).permutation(n))[known.unique] % min(folds, n)
    z = np.empty(len(known.v))
    for fold in range(min(folds, n)):
        out = group == fold
        surrogate = known.retrained(~out)
        with torch.no_grad():
            mean, variance = surrogate.model(known.X[out])
        sd = (variance + surrogate.noise / known.weight[out]).sqrt()
        z[out.numpy()] = _standardised((known.v[out] - mean).numpy(), sd.numpy())
    return z


def _standardised(error: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """|error| / sd; an error without a deviation is infinitely surprising, and none is not surprising."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.abs(error) / sd, nan=0.0, posinf=np.inf)
