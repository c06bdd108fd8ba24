"""Criteria: the function that a suggestion maximises, an acquisition function of one model or a score of several.

| symbol   | shape  | units | meaning                                                            |
| -------- | ------ | ----- | ------------------------------------------------------------------ |
| X        | (n, d) | enc.  | encoded points                                                     |
| mean, sd | (n,)   | y     | posterior of one quantity, larger is better; y standardised        |
| bound    | -      | y     | the constraint's zero on that scale; feasible above it             |

With one objective and no constraint the criterion is the user's acquisition function. With constraints it is the
logarithm of the expected improvement plus the logarithms of the probabilities that the constraints hold (Gardner et al.
2014); under noise the improvement is that of upper confidence bounds (`LogGain`). As the best feasible region is
explored, its log improvement decreases without limit, and regions with uncertain feasibility are tried. Upper
confidence bounds with a penalty were worse: with optimistic constraints four of five trials were just outside of the
feasible region, and with the probability alone searches stayed in the first region.
With several objectives the score is the hypervolume that the vector of upper bounds adds to that of the known points
(see `pareto.py`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from bkbopt.posterior.collapsed import Collapsed
from bkbopt.posterior.model import Model, Predictor
from bkbopt.posterior.paths import Paths, draw_paths
from bkbopt.search.criteria.acquisition import (
    UCB,
    VARIANCE_FLOOR,
    Acquisition,
    CheckedAcquisition,
    ClosedFormAcquisition,
    LogEI,
    LogFeasibility,
)
from bkbopt.search.criteria.crashes import Crashes, crash_penalty
from bkbopt.search.criteria.pareto import Improvement, chained
from bkbopt.search.maximizers.ascent import differentiated
from bkbopt.search.maximizers.parted import PartedMaximizer
from bkbopt.search.maximizers.pool import PoolMaximizer, joint_sample

if TYPE_CHECKING:
    from bkbopt.search.maximizers._loops_bound import PlainBound

__all__ = [
    "ACQUISITIONS",
    "INDIFFERENT",
    "STILL_OPEN",
    "AcquisitionRule",
    "Combined",
    "Constraint",
    "Criterion",
    "Search",
    "UpperBound",
    "by_decreasing",
    "rule_of",
    "still_open_beside",
]

#: Weight of the objective while no feasible point is known.
FEASIBILITY_FIRST = 0.01
#: A suggestion of a large batch leaves a place if pending trials have reduced the variance there below this fraction:
#: the standard deviation is then less than half of that before, and their leverages sum to three.
STILL_OPEN = 0.25
#: Sum of the leverages of pending points with which a place is left, for each pending point, where that leaves less.
PER_PENDING = 0.03
#: Standardised loss that a suggestion of a large batch accepts for a less known point, if the noise is smaller.
INDIFFERENT = 0.01
#: Rows that are found by the lazy argmax: this number, or one for each LAZY_FLOPS that scoring the whole pool takes.
#: Where none of them may be chosen, as in pools of which few rows are feasible, the whole pool is scored.
LAZY, LAZY_FLOPS = 8, 10_000_000
#: Difference of scores, relative to the largest, that rounding cannot change; small variances lose half of the digits.
CLEAR = 1e-6
#: Points whose variances are computed together for the order in a batch.
BLOCK = 32


#: What finds the largest score of a list of points.
Search = PoolMaximizer | PartedMaximizer


class Criterion(Protocol):
    """A score of encoded points, larger is better."""

    def __call__(self, X: Tensor) -> Tensor:
        """Scores `(n,)` of the points `X (n, d)`."""

    def ranked(self, search: Search, closed: Tensor) -> Iterator[int]:
        """The rows of a pool that are not `closed (A,)`, larger scores first; the rows that come may be closed."""


@dataclass(frozen=True)
class _Scored:
    """An acquisition function of one model's posterior."""

    model: Model
    acquisition: Acquisition

    @cached_property
    def _predict(self) -> Predictor:
        return self.model.collapse()

    def __call__(self, X: Tensor) -> Tensor:
        return self.acquisition(*self._predict(X))

    def with_slopes(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """See `SlopedScore`."""
        if self._closed is None:
            return differentiated(self, X)
        predict, acquisition = self._closed
        mean, variance, back = predict.with_pullback(X)
        scores, by_mean, by_variance = acquisition.with_slopes(mean, variance)
        return scores, back(by_mean, by_variance)

    @cached_property
    def _closed(self) -> tuple[Collapsed, ClosedFormAcquisition] | None:
        """Posterior and acquisition function if both have derivatives in closed form, otherwise None."""
        predict, acquisition = self._predict, self.acquisition
        if isinstance(predict, Collapsed) and predict.has_slopes and isinstance(acquisition, ClosedFormAcquisition):
            return predict, acquisition
        return None

    def ranked(self, search: Search, closed: Tensor) -> Iterator[int]:
        return by_decreasing(self.acquisition(*search.scan(self.model)), closed)


@dataclass(frozen=True)
class UpperBound(_Scored):
    """The upper confidence bound, with an exact lazy argmax over a pool."""

    acquisition: UCB

    @classmethod
    def over(cls, model: Model, beta: float) -> "UpperBound":
        """The bound mean + beta sd of a model."""
        return cls(model, UCB(beta))

    def __call__(self, X: Tensor) -> Tensor:
        """See `Criterion`."""
        if self.acquisition.beta == 0.0 and isinstance(predict := self._predict, Collapsed):
            return predict.mean(X)
        return super().__call__(X)

    def plain(self) -> "PlainBound | None":
        """See `PlainScore`."""
        predict = self._predict
        if not isinstance(predict, Collapsed) or predict.fixed is None:
            return None
        from bkbopt.search.maximizers._loops_bound import PlainBound

        score = predict.fixed, predict.a.numpy(), predict.roots, self.acquisition.beta, VARIANCE_FLOOR
        return PlainBound.over_encoding(*score, d=predict.S.shape[1])

    def with_means(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior means and scores, each `(n,)`."""
        mean, variance = self._predict(X)
        return mean, self.acquisition(mean, variance)

    def ranked(self, search: Search, closed: Tensor) -> Iterator[int]:
        """See `Criterion`."""
        closed = closed.clone()
        for _ in range(max(LAZY, len(closed) * self.model.features.size**2 // LAZY_FLOPS)):
            if closed.numpy().all():  # it stops at the first row that is open
                return
            row = search.argmax(self.model, self.acquisition.beta, closed).index
            yield row
            closed[row] = True
        yield from self._ranked_by_scan(search, closed)

    def _ranked_by_scan(self, search: Search, closed: Tensor) -> Iterator[int]:
        """The rows that are not `closed (A,)`, which it closes; where rounding may decide by the lazy argmax, too."""
        scores = self.acquisition(*search.scan(self.model)).to(closed.device)
        rows = (~closed).nonzero()[:, 0]
        decreasing, order = scores[rows].sort(descending=True, stable=True)
        alike = (decreasing[:-1] - decreasing[1:] <= CLEAR * scores.abs().max()).tolist()
        for i, row in enumerate(rows[order].tolist()):
            if any(alike[max(i - 1, 0) : i + 1]):
                row = search.argmax(self.model, self.acquisition.beta, closed).index  # noqa: PLW2901
            yield row
            closed[row] = True

    def in_batch_order(
        self,
        X: Tensor,
        finished: "UpperBound",
        spreads: bool,
        penalty: Tensor | float = 0.0,
        *,
        still_open: float = STILL_OPEN,
    ) -> Iterator[int]:
        """The rows of `X (n, d)` in the order in which a suggestion of a large batch takes them.

        First are those whose variance is at least `still_open` times that under `finished` (a ratio of zeros counts as
        one), by decreasing score. If the suggestion `spreads`, those of them that are almost as good as the best one
        come by decreasing variance. Last are the other rows, those with the most variance left first. Variances are
        computed when they are needed, for `BLOCK` points at a time: mostly the first row is taken.

        Args:
            X: the points.
            finished: the criterion without pending trials.
            spreads: see above.
            penalty: what is subtracted from the scores, (n,).
            still_open: see above and `still_open_beside`.
        """
        scores = self(X) - penalty
        near, rest = list[tuple[float, int]](), list[tuple[float, int]]()
        least = -math.inf if spreads else math.inf
        for block in torch.argsort(scores, descending=True, stable=True).split(BLOCK):
            variance = self._predict(X[block])[1]
            left = (variance / finished._predict(X[block])[1]).nan_to_num(1.0)
            columns = (column.tolist() for column in (block, scores[block], variance, left))
            for row, score, own, share in zip(*columns, strict=True):
                if near and score < least:
                    yield from _rows(near)
                    near.clear()
                if share < still_open:
                    rest.append((share, row))
                elif score >= least:
                    least = max(least, score - max(self.model.lam**0.5, INDIFFERENT))
                    near.append((own, row))
                else:
                    yield row
        yield from _rows(near)
        yield from _rows(rest)


def still_open_beside(n_pending: int) -> float:
    """The part of its variance with which a place is still open beside `n_pending` points of a large batch.

    A bound that does not depend on their number would drive the last ones of hundreds far from the maximiser.
    """
    return min(STILL_OPEN, 1.0 / (1.0 + PER_PENDING * n_pending))


def _rows(pairs: list[tuple[float, int]]) -> Iterator[int]:
    """The second ones of the pairs, those with the largest first ones first."""
    return (row for _, row in sorted(pairs, key=lambda pair: (-pair[0], pair[1])))


@dataclass(frozen=True)
class _Sampled:
    """Thompson sampling: one sample path of the posterior as the score.

    For a kernel without a known spectral density the prior is approximated from the points of the first call (see
    `prior_features`); over a pool these are all arms.
    """

    model: Model
    seed: int
    _drawn: list[Paths] = field(default_factory=list)

    def __call__(self, X: Tensor) -> Tensor:
        if not self._drawn:
            self._drawn.append(draw_paths(self.model, X.detach(), np.random.default_rng(self.seed)))
        return self._drawn[0](X)[:, 0]

    def ranked(self, search: Search, closed: Tensor) -> Iterator[int]:
        return by_decreasing(joint_sample(search, self.model, np.random.default_rng(self.seed)), closed)


@dataclass(frozen=True)
class AcquisitionRule:
    """A named acquisition function, or the user's own.

    Attributes:
        build: function of model, beta, incumbent (best posterior mean of an observed point, y) and random generator
            that returns the criterion.
        is_upper_bound: whether scores are upper confidence bounds of the objective.
        is_random: whether criteria differ by their random numbers.
    """

    build: Callable[[Model, float, float, np.random.Generator], Criterion]
    is_upper_bound: bool = False
    is_random: bool = False


def _build_ucb(model: Model, beta: float, _: float, _rng: np.random.Generator) -> Criterion:
    return UpperBound.over(model, beta)


def _build_logei(model: Model, _: float, incumbent: float, _rng: np.random.Generator) -> Criterion:
    return _Scored(model, LogEI(incumbent))


def _build_thompson(model: Model, _beta: float, _incumbent: float, rng: np.random.Generator) -> Criterion:
    return _Sampled(model, int(rng.integers(2**63)))


@dataclass(frozen=True)
class _BuildCustom:
    """Builds the criterion of the user's own acquisition function."""

    acquisition: Acquisition

    def __call__(self, model: Model, beta: float, incumbent: float, rng: np.random.Generator) -> Criterion:
        return _Scored(model, self.acquisition)


#: The named acquisition functions.
ACQUISITIONS = {
    "ucb": AcquisitionRule(_build_ucb, is_upper_bound=True),
    "logei": AcquisitionRule(_build_logei),
    "thompson": AcquisitionRule(_build_thompson, is_random=True),
}


def rule_of(acquisition: str | Acquisition) -> AcquisitionRule:
    """The rule of a name in `ACQUISITIONS`, or of a callable of mean and variance."""
    if isinstance(acquisition, str):
        return ACQUISITIONS[acquisition]
    # Functions with derivatives in closed form are those of the package; a wrapper would hide the derivatives.
    is_checked = not isinstance(acquisition, ClosedFormAcquisition)
    return AcquisitionRule(_BuildCustom(CheckedAcquisition(acquisition) if is_checked else acquisition))


@dataclass(frozen=True)
class Constraint:
    """The model of a constraint, and the constraint's zero on the model's scale."""

    model: Model
    bound: float

    @cached_property
    def log_probability(self) -> _Scored:
        """Log probability that the constraint holds, as a score of points, <= 0."""
        return _Scored(self.model, LogFeasibility(self.bound))


@dataclass(frozen=True)
class Combined:
    """The criterion for several objectives or with constraints; see the module's text.

    Attributes:
        objectives: upper confidence bounds of the objectives.
        constraints: outcome constraints, and the constraint that the trial does not fail.
        improvement: hypervolume improvement over the front of the known points' bounds; None with one objective.
        gain: what a point improves on the feasible ones in a single objective; None if none is known, and feasibility
            is then sought.
        crashes: exclusion of points near failures; None without failures, and for perturbations.
    """

    objectives: Sequence[UpperBound]
    constraints: Sequence[Constraint]
    improvement: Improvement | None
    gain: ClosedFormAcquisition | None
    crashes: Crashes | None = None

    @cached_property
    def _terms(self) -> list[tuple[float, _Scored]]:
        """Weights and scores of the sum, without hypervolume improvement and crash penalty."""
        terms = [(1.0, constraint.log_probability) for constraint in self.constraints]
        if self.improvement is not None:
            return terms
        if self.gain is None:
            return [(FEASIBILITY_FIRST, self.objectives[0]), *terms]
        return [(1.0, _Scored(self.objectives[0].model, self.gain)), *terms]

    def __call__(self, X: Tensor) -> Tensor:
        """See `Criterion`."""
        scores = -crash_penalty(self.crashes, X)
        for weight, term in self._terms:
            scores = scores + weight * term(X)
        if self.improvement is not None:
            scores = scores + self.improvement.untied([bound.with_means(X) for bound in self.objectives])
        return scores

    def with_slopes(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """See `SlopedScore`."""
        scores, slopes = -crash_penalty(self.crashes, X), torch.zeros_like(X)
        for weight, term in self._terms:
            score, slope = term.with_slopes(X)
            scores, slopes = scores + weight * score, slopes + weight * slope
        if self.improvement is not None:
            bounds, by_X = zip(*(bound.with_slopes(X) for bound in self.objectives), strict=True)
            gain, by_bounds = self.improvement.with_slopes(torch.stack(bounds, 1))
            scores, slopes = scores + gain, slopes + chained(by_bounds, by_X)
        return scores, slopes

    def ranked(self, search: Search, closed: Tensor) -> Iterator[int]:
        """See `Criterion`."""
        size = max(bound.model.features.size for bound in self.objectives)
        return by_decreasing(search.scores(self, size), closed)


def by_decreasing(scores: Tensor, closed: Tensor) -> Iterator[int]:
    """The rows that are not `closed (A,)` by decreasing `scores (A,)`, of equal ones that with the lowest number."""
    rows = (~closed).nonzero()[:, 0]
    if not len(rows):
        return
    yield int(rows[scores[rows].argmax()])  # the first one is mostly all that is needed
    yield from rows[scores[rows].argsort(descending=True, stable=True)[1:]].tolist()
