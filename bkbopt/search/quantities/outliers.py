"""Which values are outliers: errors of measurement that a fit should leave out.

| symbol | shape  | units | meaning                                                                  |
| ------ | ------ | ----- | ------------------------------------------------------------------------ |
| X      | (n, d) | enc.  | points                                                                   |
| v      | (n,)   | -     | standardised values, larger is better, with a mean of zero               |
| away   | (n,)   | -     | v minus its prediction from all other kept values                        |

A value is suspected if a noise variance of its own gains more than log n + `OUTLYING` of log likelihood. With normal
noise a search then has a false suspect in one of some thousand fits. A suspect may also be a narrow optimum that the
fitted kernel does not have. The other values at its point, or else those close to it, decide: it is no outlier if they
deviate, by median, at least half as much in the same direction. A suspect that is better than its prediction and has no
values close to it is left out of the fit, but keeps its weight in the posterior, so that the search evaluates points
close to it. A value that occurs more than once is no outlier: labels and counts recur, errors do not.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt.kernels import Kernel
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.fit import log_evidence
from bkbopt.surrogates.fit_data import FitData
from bkbopt.surrogates.left_out import gains, predictions_from_others

__all__ = ["FEWEST_VALUES", "judge", "occur_once", "without_outliers"]

#: Fewer values are not judged.
FEWEST_VALUES = 20
#: Required gain of the log likelihood, beside the logarithm of the number of values.
OUTLYING = 3.0
#: Rounds of fits without outliers, and the largest share of these.
ROUNDS, MOST_OUTLIERS = 10, 0.2
#: Up to so many values, outliers may be explained by short lengthscales. They are looked for with the lengthscales at
#: the start of a fit, too, with so much noise (standardised).
EARLY, NOISY = 100, 0.5
#: Median of the square of a standard normal number; smallest variance.
NORMAL_MEDIAN, TINY = 0.4549, 1e-300
#: Number of values whose evidence is compared.
COMPARED = 400
#: Prior correlation with a value from which on another one is close to it.
CLOSE = 0.99
#: Part of its deviation that confirms a value.
CONFIRMING = 0.5


def _price(n: int) -> float:
    """The log likelihood that one of `n` values must gain as an outlier."""
    return OUTLYING + math.log(n)


#: Fits kernel, noise variance and constant mean to observations, from the kernel and the noise variance of an earlier
#: fit to more of them, or from the start of fits (None).
Refit = Callable[[Observations, tuple[Kernel, float] | None], tuple[Kernel, float, float]]


def occur_once(y: Tensor) -> Tensor:
    """Which of the values `y (n,)`, user's units, no other one equals, (n,)."""
    _, which, counts = y.unique(return_inverse=True, return_counts=True)
    return counts[which] == 1


@dataclass(frozen=True)
class Judged:
    """What is found of n values.

    Attributes:
        away: the values minus their predictions from all other kept values, (n,), standardised.
        is_outlier: suspects that are not confirmed, (n,).
        is_unchecked: those of them that are better than their predictions and have no values close to them, (n,).
    """

    away: Tensor
    is_outlier: Tensor
    is_unchecked: Tensor


@torch.no_grad()
def judge(
    X: Tensor, v: Tensor, may_be: Tensor, is_kept: Tensor, kernel: Kernel, noise: float, *, is_rough: bool = False
) -> Judged:
    """The outliers among the values `v (n,)` at the points `X (n, d)`, predicted from those that are kept.

    Args:
        X: encoded points.
        v: standardised values, larger is better.
        may_be: which of them may be outliers, (n,), see `occur_once`.
        is_kept: which of them the model was fitted to, (n,).
        kernel: the fitted kernel.
        noise: the fitted noise variance, standardised units squared.
        is_rough: whether kernel and noise are not fitted; the median deviation is then that of normal numbers.
    """
    mean, variance = predictions_from_others(X, v, is_kept, kernel, noise, np.random.default_rng(len(v)))
    away = v - mean
    if is_rough:
        variance = variance * (float((away.square() / variance).median()) / NORMAL_MEDIAN)
    is_outlier = gains(v, mean, variance.clamp_min(TINY)) > _price(len(v))
    is_outlier &= may_be
    is_unchecked, scale = torch.zeros_like(is_outlier), kernel.diag(X).sqrt()
    for i in is_outlier.nonzero()[:, 0].tolist():
        is_close = (X[i] == X).all(1)
        is_close[i] = False
        if not bool(is_close.any()):
            is_close = kernel(X[i : i + 1], X)[0] >= CLOSE * scale[i] * scale
            is_close[i] = False
        if bool(is_close.any()):
            is_outlier[i] = bool(away[is_close].median() / away[i] < CONFIRMING)
        else:
            is_unchecked[i] = bool(away[i] > 0.0)
    return Judged(away, is_outlier, is_unchecked)


@torch.no_grad()
def _evidence(X: Tensor, v: Tensor, rows: Tensor, is_kept: Tensor, kernel: Kernel, noise: float, mean: float) -> float:
    """Log posterior density of the kernel and of those values of `v (n,)` that are in the `rows`.

    Each outlier has the noise variance with which it is most likely, for the price of that.
    """
    price = _price(len(v))
    X, v, is_kept = X[rows], v[rows] - mean, is_kept[rows]
    observed = Observations(X.shape[1])
    observed.add(X[is_kept], v[is_kept])
    found = log_evidence(FitData.of(observed), kernel, noise)
    expected, _ = predictions_from_others(X, v, is_kept, kernel, noise, np.random.default_rng(len(v)))
    squares = (v - expected)[~is_kept].square()
    return found - float((0.5 * (1.0 + (2.0 * math.pi * squares).log()) + price).sum())


def _compared(is_kept: Tensor) -> Tensor:
    """At most `COMPARED` rows, a half of which may be outliers, whose evidence decides about these."""
    order = torch.as_tensor(np.random.default_rng(len(is_kept)).permutation(len(is_kept)))
    outliers = order[~is_kept[order]][: COMPARED // 2]
    return torch.cat([outliers, order[is_kept[order]][: COMPARED - len(outliers)]])


def without_outliers(
    X: Tensor, v: Tensor, may_be: Tensor, kernel: Kernel, noise: float, start: Kernel, refit: Refit
) -> Tensor:
    """Which of the values `v (n,)` at the points `X (n, d)` are no outliers, (n,); all if that has less evidence.

    Outliers increase the fitted noise, so that each fit without those found so far may show more of them.

    Args:
        X: encoded points.
        v: standardised values, larger is better, with a mean of zero under the model.
        may_be: which of them may be outliers, (n,), see `occur_once`.
        kernel: the kernel that was fitted to all values.
        noise: the noise variance that was fitted to all values, standardised units squared.
        start: the kernel at the start of a fit.
        refit: fits kernel, noise variance and constant mean to a part of the values, see `Refit`.
    """
    is_kept = everything = torch.ones_like(v, dtype=torch.bool)
    found, fitted = judge(X, v, may_be, everything, kernel, noise).is_outlier, (kernel, noise, 0.0)
    last: tuple[Kernel, float] | None = kernel, noise
    if not bool(found.any()) and len(v) <= EARLY:
        # The lengthscales of the fit may explain the outliers.
        found, last = judge(X, v, may_be, everything, start, NOISY, is_rough=True).is_outlier, None
    for _ in range(ROUNDS):
        more = is_kept & found
        if not bool(more.any()) or float((is_kept & ~more).sum()) < (1.0 - MOST_OUTLIERS) * len(v):
            break
        is_kept, observed = is_kept & ~more, Observations(X.shape[1])
        observed.add(X[is_kept], v[is_kept])
        fitted = refit(observed, last)
        last = fitted[:2]
        found = judge(X, v - fitted[2], may_be, is_kept, *fitted[:2]).is_outlier
    if bool(is_kept.all()):
        return everything
    is_kept = is_kept | ~found
    rows = _compared(is_kept)
    alone = _evidence(X, v, rows, is_kept, *fitted)
    return is_kept if alone > _evidence(X, v, rows, everything, kernel, noise, 0.0) else everything
