"""Acquisition functions: scores of candidates from their posterior. Larger is better; y is maximised.

Those of the package give scores and slopes in one pass over NumPy arrays, and PyTorch differentiates them by these
slopes: for the few points of an ascent its own operations took two to three times as long. Only the upper confidence
bound has its scores in PyTorch too, since they are computed most often, and on the device of a pool.

| symbol    | shape | units     | meaning                                  |
| --------- | ----- | --------- | ---------------------------------------- |
| mean      | (n,)  | y         | posterior mean                           |
| variance  | (n,)  | y squared | posterior variance                       |
| beta      | -     | -         | confidence width                         |
| incumbent | -     | y         | best posterior mean of an observed point |
| least     | -     | y         | best upper confidence bound of such a point |
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt._support.foreign_functions import Way, real_tensor, way_of
from bkbopt.errors import ArgumentError, ArgumentTypeError

Floats = NDArray[np.float64]

__all__ = ["UCB", "Acquisition", "CheckedAcquisition", "ClosedFormAcquisition", "LogEI", "LogFeasibility", "LogGain"]

#: Lower bound of variances of standardised y, which keeps the gradient of the square root finite.
VARIANCE_FLOOR = 1e-16
#: Lower bound of the standard deviation of a constraint, on values with standard deviation one; below it the
#: probability has no useful gradient. The constraint has to hold with a margin of twice this bound; without the margin
#: half of the trials at the border of the feasible region would be infeasible. See docs/design/constraints.md.
CONSTRAINT_FLOOR = 1e-5
#: Gains of an upper confidence bound below this, on values with standard deviation one, hardly count; without a gain
#: the score decreases in units of it.
SMALLEST_GAIN = 1e-3
#: Below this number of standard deviations the slope of `LogEI` is computed by its limit, to 2 / e^2.
RATIO_BELOW = -1e5


class Acquisition(Protocol):
    """A score of candidates from their posterior."""

    def __call__(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Scores `(n,)`."""


@runtime_checkable
class ClosedFormAcquisition(Acquisition, Protocol):
    """An acquisition function with derivatives in closed form."""

    def with_slopes(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scores and their derivatives by mean and variance, each `(n,)`."""


@dataclass(frozen=True)
class CheckedAcquisition:
    """A function of the user, whose scores are checked.

    It gets tensors or, if PyTorch cannot differentiate it, arrays; its first call decides which. Scores may be
    infinite: a point with minus infinity is the last choice.

    Example:
        >>> import numpy as np
        >>> import torch
        >>> from bkbopt.search.criteria.acquisition import CheckedAcquisition
        >>> acquisition = CheckedAcquisition(lambda mean, variance: mean + np.sqrt(variance))
        >>> acquisition(torch.zeros(2), torch.tensor([1.0, 4.0]))
        tensor([1., 2.])
    """

    function: Acquisition
    _ways: list[Way] = field(default_factory=list, init=False, repr=False, compare=False)

    def __call__(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Scores `(n,)`.

        Raises:
            ArgumentError: the result has another shape, or NaN among its values.
            ArgumentTypeError: the result is not of real numbers.
        """
        if not self._ways:
            self._ways.append(way_of(self.function, mean, variance))
        way = self._ways[0]
        returned = self.function(way(mean), way(variance))
        scores = real_tensor(returned)
        if scores is None:
            raise ArgumentTypeError(
                f"acquisition: expected a tensor or an array of real scores, got {type(returned).__name__} without "
                "real numbers; return a score for each entry of mean."
            )
        if scores.shape != mean.shape:
            raise ArgumentError(
                f"acquisition: expected scores of shape {tuple(mean.shape)}, got shape {tuple(scores.shape)}; return a "
                "score for each entry of mean."
            )
        wrong = scores.isnan()
        if bool(wrong.any()):
            i = int(wrong.nonzero()[0])
            raise ArgumentError(
                f"acquisition: expected scores without NaN, got NaN for mean {float(mean[i]):g} and variance "
                f"{float(variance[i]):g}; clamp divisors and arguments of roots and logarithms, or return -inf for a "
                "point that should not be proposed."
            )
        return scores.to(mean)


class _ClosedForm(ABC):
    """An acquisition function of the package; a subclass has its formulas."""

    def __call__(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Scores `(n,)`; differentiable once."""
        if torch.is_grad_enabled() and (mean.requires_grad or variance.requires_grad):
            return cast(Tensor, _BySlopes.apply(mean, variance, self))  # type: ignore[no-untyped-call]
        return self.with_slopes(mean, variance)[0]

    def with_slopes(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See `ClosedFormAcquisition`."""
        with np.errstate(all="ignore"):  # of several formulas, each computes all points and is right for some
            parts = self._slopes(mean.detach().cpu().numpy(), variance.detach().cpu().numpy())
        scores, by_mean, by_variance = (torch.from_numpy(part).to(mean.device) for part in parts)
        return scores, by_mean, by_variance

    @abstractmethod
    def _slopes(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        """Scores and their derivatives by mean and variance, each `(n,)`."""


class _BySlopes(torch.autograd.Function):
    """An acquisition function of the package as an autograd function."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, variance: Tensor, acquisition: _ClosedForm) -> Tensor:
        scores, *ctx.slopes = acquisition.with_slopes(mean, variance)
        return scores

    @staticmethod
    def backward(ctx: Any, *by_scores: Tensor) -> tuple[Tensor, Tensor, None]:
        by_mean, by_variance = ctx.slopes
        return by_scores[0] * by_mean, by_scores[0] * by_variance, None


@dataclass(frozen=True)
class UCB(_ClosedForm):
    """Upper confidence bound mean + beta * stddev (Srinivas et al. 2010), units of y.

    Example:
        >>> import torch
        >>> from bkbopt.search.criteria.acquisition import UCB
        >>> UCB(beta=2.0)(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.01]))
        tensor([2.0000, 1.2000])
    """

    beta: float

    def __call__(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Scores `(n,)`; also on the device of a large pool."""
        return mean + self.beta * variance.clamp_min(VARIANCE_FLOOR).sqrt()

    def _slopes(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        sd = _root(variance)
        return mean + self.beta * sd, np.ones_like(mean), np.where(variance > VARIANCE_FLOOR, 0.5 * self.beta / sd, 0.0)


@dataclass(frozen=True)
class LogEI(_ClosedForm):
    """Logarithm of the expected improvement over `incumbent`, also accurate far below it (Ament et al. 2023).

    Example:
        >>> import torch
        >>> from bkbopt.search.criteria.acquisition import LogEI
        >>> LogEI(incumbent=1.0)(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.01]))
        tensor([-2.4851, -3.2215])
    """

    incumbent: float

    def _slopes(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        """With e = (mean - incumbent) / sd, d log h(e) / de = cdf(e) / h(e)."""
        from scipy.special import log_ndtr

        sd = _root(variance)
        e = (mean - self.incumbent) / sd
        log_h = _log_h(e)
        # Far below, the logarithms of cdf and h have the size e^2 / 2, which leaves their difference no digits.
        by_mean = np.where(e < RATIO_BELOW, -e, np.exp(log_ndtr(e) - log_h)) / sd
        by_variance = (1.0 / sd - e * by_mean) / (2.0 * sd)
        return log_h + np.log(sd), by_mean, np.where(variance > VARIANCE_FLOOR, by_variance, 0.0)


@dataclass(frozen=True)
class LogGain(_ClosedForm):
    """Logarithm of what an upper confidence bound is above `least`, the largest one of the evaluated points.

    With noise an evaluated point has an expected improvement over the best posterior mean, but nothing to gain over the
    largest bound. See docs/design/constraints.md.

    Example:
        >>> import torch
        >>> from bkbopt.search.criteria.acquisition import UCB, LogGain
        >>> LogGain(UCB(beta=2.0), least=1.0)(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.01]))
        tensor([ 0.0000, -1.6094])
    """

    bound: UCB
    least: float

    def _slopes(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        """log(s softplus(gain / s)) with s = `SMALLEST_GAIN`: log gain far above s, log s + gain / s far below zero."""
        bounds, by_mean, by_variance = self.bound._slopes(mean, variance)
        z = (bounds - self.least) / SMALLEST_GAIN
        # softplus(z) is exp(z) (1 - exp(z) / 2 + ...), whose logarithm is z where exp(z) underflows.
        log_softplus = np.where(z < -30.0, z, np.log(np.logaddexp(0.0, np.maximum(z, -30.0))))
        # The slope of log softplus(z) is sigmoid(z) / softplus(z), and log sigmoid(z) is -softplus(-z).
        slope = np.exp(-np.logaddexp(0.0, -z) - log_softplus) / SMALLEST_GAIN
        return log_softplus + math.log(SMALLEST_GAIN), slope * by_mean, slope * by_variance


@dataclass(frozen=True)
class LogFeasibility(_ClosedForm):
    """Logarithm of the probability that a constraint holds, that is, that its value exceeds `bound`.

    Example:
        >>> import torch
        >>> from bkbopt.search.criteria.acquisition import LogFeasibility
        >>> LogFeasibility(bound=0.0)(torch.tensor([-1.0, 1.0]), torch.tensor([1.0, 1.0]))
        tensor([-1.8411, -0.1728])
    """

    bound: float

    def _slopes(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        """With the margin t, d log cdf(t) / dt = pdf(t) / cdf(t), about -t for t << 0."""
        from scipy.special import log_ndtr

        sd = np.sqrt(np.maximum(variance, CONSTRAINT_FLOOR**2))
        t = (mean - self.bound - 2.0 * CONSTRAINT_FLOOR) / sd
        scores = log_ndtr(t)
        ratio = np.exp(-0.5 * t * t - scores) / math.sqrt(2.0 * math.pi)
        by_mean = np.where(t < -1e4, -t, ratio) / sd
        return scores, by_mean, np.where(variance > CONSTRAINT_FLOOR**2, -0.5 * t * by_mean / sd, 0.0)


def _root(variance: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(variance, VARIANCE_FLOOR)))


def _log_h(e: Floats) -> Floats:
    """log(pdf(e) + e cdf(e)), by three formulas, each accurate in its range."""
    from scipy.special import erfcx, ndtr

    log_pdf = -0.5 * e * e - 0.5 * math.log(2.0 * math.pi)
    near = np.maximum(e, -1.0)
    direct = np.log(np.exp(-0.5 * near * near) / math.sqrt(2.0 * math.pi) + near * ndtr(near))
    # pdf + e cdf = pdf (1 - |e| M(|e|)) with M the Mills ratio, by the scaled complementary error function.
    far = np.minimum(e, -1.0)
    a = np.minimum(-far, 1e3)
    mills = math.sqrt(math.pi / 2.0) * erfcx(a / math.sqrt(2.0))
    middle = np.log(np.maximum(1.0 - a * mills, 1e-300))
    # Below -1e3 the bracket cancels; there it is (1 - 3 / e^2) / e^2 with a relative error of 1.5e-11.
    tail = np.where(e < -1e3, np.log1p(-3.0 / (far * far)) - 2.0 * np.log(-far), middle)
    return np.where(e > -1.0, direct, log_pdf + tail)
