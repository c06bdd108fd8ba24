"""Coverage of the posterior's central intervals, by values that are left out or that the optimizer was not told.

| symbol | shape | units  | meaning                                                             |
| ------ | ----- | ------ | ------------------------------------------------------------------- |
| z      | (n,)  | -      | |value - predicted mean| / predicted standard deviation             |
| p      | (k,)  | -      | nominal level of a central interval, mean +- Phi^-1((1 + p) / 2) sd |
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bkbopt._support.arrays import as_values
from bkbopt._support.checks import check_count
from bkbopt._support.settings import in_usual_settings
from bkbopt.analysis.run_data import as_optimizer, bounded, told
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer import Optimizer

__all__ = ["LEVELS", "Coverage", "coverage"]

LEVELS = np.linspace(0.02, 0.98, 49)


@dataclass(frozen=True, eq=False)
class Coverage:
    """How many values are in the posterior's central intervals.

    Attributes:
        levels: nominal levels of the intervals, (k,), from 0 to 1.
        inside: fraction of the values in the intervals of each level, (k,).
        low: lower end of the range that contains 95 % of such fractions, (k,), if the model is right and the errors are
            independent.
        high: its upper end, (k,).
        n: number of values.
    """

    levels: np.ndarray
    inside: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n: int


@in_usual_settings
def coverage(
    opt: Optimizer,
    test: Iterable[Mapping[str, Any]] | None = None,
    values: Any = None,
    *,
    noisy: bool = True,
    n_folds: int = 10,
) -> Coverage:
    """Fraction of values in the posterior's central intervals, for nominal levels of these from 2 to 98 %.

    Smaller fractions than the levels say that the intervals are too narrow (the model is overconfident), larger ones
    that they are too wide. Without `test` the values are predicted by `Optimizer.cross_validation`. Kernel and noise
    are fitted to all values, so that the coverage is slightly better than for new points. It concerns the region where
    the search has evaluated; for the whole space evaluate random points and pass them as `test`.
    `bkbopt.plots.calibration` draws it.

    Args:
        opt: an optimizer with values of at least two different points, or of one if `test` is given.
        test: parameters of points that the optimizer was not told.
        values: their values, (n,), user's units.
        noisy: whether `values` have evaluation noise, which is then included in the intervals; False for noise-free
            values. Left-out values always have it.
        n_folds: number of groups of the cross-validation.

    Raises:
        ArgumentTypeError: `opt` or `test` has the wrong type, or values are not numbers.
        ArgumentError: test points outside of the space, the wrong number of values, only one of `test` and `values`,
            n_folds < 2, or several objectives.
        NotReadyError: there are too few values.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import analysis
        >>> space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
        >>> opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], space, n_trials=12, seed=0)
        >>> found = analysis.coverage(opt, n_folds=4)
        >>> found.n, found.inside.shape
        (12, (49,))
    """
    opt, n_folds = as_optimizer(opt), check_count("n_folds", n_folds, 2)
    if (test is None) != (values is None):
        raise ArgumentError("values: expected both test and values, or neither, got only one of them.")
    told(opt)
    z = np.abs(opt.cross_validation(n_folds=n_folds)) if test is None else _given(opt, test, values, noisy)
    from scipy.special import ndtri

    reach = ndtri(0.5 * (1.0 + LEVELS))
    inside, n = (z[:, None] <= reach).mean(axis=0), len(z)
    low, high = _binomial_quantile(np.array([[0.025], [0.975]]), n, LEVELS) / n
    return Coverage(LEVELS.copy(), inside, low, high, n)


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
    y, (mean, std) = as_values(values, len(points), name="values").numpy(), map(bounded, opt.predict(points))
    return _standardised(bounded(y) - mean, np.hypot(std, bounded(opt.noise_std) if noisy else 0.0))


def _standardised(error: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """|error| / sd; infinity for an error with sd = 0, and 0 for no error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.abs(error) / sd, nan=0.0, posinf=np.inf)
