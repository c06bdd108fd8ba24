"""The posterior mean where constraints hold: for greedy suggestions, and recommendations of points not evaluated.

| symbol | shape  | units | meaning                                                                          |
| ------ | ------ | ----- | -------------------------------------------------------------------------------- |
| X      | (n, d) | enc.  | encoded points                                                                   |
| z      | -      | -     | a constraint holds if its mean exceeds its zero by z standard deviations         |
| excess | (n, c) | y     | how far each of c constraints is from that; 0 where it holds                      |

The penalty is quadratic in the excess, and smooth: the best point is often on a constraint's border, along which the
ascent has to move. With a penalty proportional to the excess it stops where it meets the border.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import torch
from torch import Tensor

from bkbopt.posterior.model import Model
from bkbopt.search.criteria.crashes import Crashes, crash_penalty
from bkbopt.search.criteria.criterion import STILL_OPEN, Constraint, Search, UpperBound, by_decreasing
from bkbopt.search.criteria.pareto import Improvement, chained

__all__ = ["SURE", "Expected", "ExpectedGain"]

#: Excess of a constraint, on values with standard deviation one, up to which it holds at a greedy suggestion.
PRECISION = 1e-3
#: Probability with which a recommended point is feasible under noise, if there is such a point.
SURE = 0.9
#: Loss for an excess of one standard deviation of a constraint's values, in ranges of the objective's means. It is so
#: large that the point is beyond the border by less than the precision of the constraint's model.
PENALTY = 5e4


@dataclass(frozen=True)
class Expected:
    """The posterior mean of the objective, less a penalty where constraints are not expected to hold.

    Attributes:
        mean: the posterior mean.
        limits: bounds of the constraints, with the values that they have to reach.
        weight: loss for an excess of one, in 1 / y.
        crashes: exclusion of points near failures; None without failures.
        scores: the scores of a pool if they are kept, (A,).
    """

    mean: UpperBound
    limits: tuple[tuple[UpperBound, float], ...]
    weight: float
    crashes: Crashes | None
    scores: Tensor | None = None

    @classmethod
    def of(
        cls, model: Model, constraints: Sequence[Constraint], crashes: Crashes | None, span: float, sure: float
    ) -> "Expected":
        """The criterion for constraints that hold with probability `sure`, 0.5 for those whose means reach their zero.

        Args:
            model: model of the objective.
            constraints: models of the constraints; the probability is that each holds, to the power of their number.
            crashes: exclusion of points near failures.
            span: range of the objective's means, y.
            sure: the probability.
        """
        z = NormalDist().inv_cdf(sure ** (1.0 / max(len(constraints), 1))) if sure > 0.5 else 0.0
        limits = tuple((UpperBound.over(constraint.model, -z), constraint.bound) for constraint in constraints)
        return cls(UpperBound.over(model, 0.0), limits, PENALTY * (span or 1.0), crashes)

    def __call__(self, X: Tensor) -> Tensor:
        """See `Criterion`."""
        return self.mean(X) - self._penalty(X)

    def in_batch_order(
        self, X: Tensor, finished: "Expected", spreads: bool, *, still_open: float = STILL_OPEN
    ) -> Iterator[int]:
        """See `UpperBound.in_batch_order`."""
        return self.mean.in_batch_order(X, finished.mean, spreads, self._penalty(X), still_open=still_open)

    def _penalty(self, X: Tensor) -> Tensor:
        return self.weight * self.excess(X).square().sum(1) + self._crashed(X)

    def with_slopes(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """See `SlopedScore`."""
        scores, slopes = self.mean.with_slopes(X)
        for limit, least in self.limits:
            reached, by_X = limit.with_slopes(X)
            excess = (least - reached).clamp_min(0.0)
            scores = scores - self.weight * excess.square()
            slopes = slopes + 2.0 * self.weight * excess[:, None] * by_X
        return scores - self._crashed(X), slopes

    def excess(self, X: Tensor) -> Tensor:
        """See the module's table."""
        parts = [(least - limit(X)).clamp_min(0.0) for limit, least in self.limits]
        return torch.stack(parts, 1) if parts else X.new_zeros(len(X), 0)

    def holds(self, x: Tensor) -> bool:
        """Whether the constraints hold at the point `x (d,)`, up to the precision of their models."""
        is_near = bool((self.excess(x[None]) <= PRECISION).all())
        return is_near and not float(self._crashed(x[None]))

    def _crashed(self, X: Tensor) -> Tensor:
        return crash_penalty(self.crashes, X, self.weight)

    def ranked(self, search: Search, closed: Tensor) -> Iterator[int]:
        """See `Criterion`; without constraints by the lazy argmax."""
        if not self.limits and self.crashes is None:
            return self.mean.ranked(search, closed)
        return by_decreasing(self._scores(search) if self.scores is None else self.scores, closed)

    def kept(self, search: Search) -> "Expected":
        """The same with its scores of the pool, for several calls of `ranked`."""
        return replace(self, scores=self._scores(search))

    def _scores(self, search: Search) -> Tensor:
        return search.scores(self, self.mean.model.features.size)


@dataclass(frozen=True)
class ExpectedGain:
    """The hypervolume that the posterior means of the objectives add to a front, less the penalty of constraints.

    Attributes:
        objectives: the posterior means, each with the same constraints.
        improvement: over the front so far.
    """

    objectives: tuple[Expected, ...]
    improvement: Improvement

    def means(self, X: Tensor) -> Tensor:
        """The posterior means `(n, k)` of the points `X (n, d)`."""
        return torch.stack([objective.mean(X) for objective in self.objectives], 1)

    def __call__(self, X: Tensor) -> Tensor:
        """See `Criterion`."""
        return self.improvement(self.means(X)) - self.objectives[0]._penalty(X)

    def with_slopes(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """See `SlopedScore`."""
        means, by_X = zip(*(objective.mean.with_slopes(X) for objective in self.objectives), strict=True)
        gain, by_means = self.improvement.with_slopes(torch.stack(means, 1))
        scores, slopes = self.objectives[0].with_slopes(X)  # with the penalty, and the first mean
        slopes = slopes - by_X[0] + chained(by_means, by_X)
        return scores - means[0] + gain, slopes

    def ranked(self, search: Search, closed: Tensor) -> Iterator[int]:
        """See `Criterion`."""
        size = max(objective.mean.model.features.size for objective in self.objectives)
        return by_decreasing(search.scores(self, size), closed)
