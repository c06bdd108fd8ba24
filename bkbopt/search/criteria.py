"""What a suggestion maximises: the acquisition function on one model, or a score over several.

| symbol   | shape  | units | meaning                                                            |
| -------- | ------ | ----- | ------------------------------------------------------------------ |
| X        | (n, d) | enc.  | encoded points                                                     |
| mean, sd | (n,)   | y     | posterior of one quantity, larger is better; y standardised        |
| bound    | -      | y     | the constraint's zero on that scale; feasible where it is exceeded |

With one objective and no constraint the criterion is the acquisition function that the user named. With constraints it
is the logarithm of the expected improvement plus the logarithms of the probabilities that they hold (Gardner et al.
2014): as the best feasible region is used up its improvement falls without limit, and regions whose feasibility is in
doubt become worth a trial. Upper bounds with a penalty did worse: with optimistic constraints four trials in five lay
just outside, with the probability alone searches stayed in the first region. With several objectives the score is
what the vector of upper bounds adds to the hypervolume (see `pareto.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bkbopt.kernels import Kernel
from bkbopt.posterior.model import Collapsed, Model, Predictor
from bkbopt.posterior.paths import Paths, draw_paths
from bkbopt.search.acquisition import UCB, Acquisition, ClosedFormAcquisition, LogEI, LogFeasibility
from bkbopt.search.ascent import differentiated
from bkbopt.search.pareto import Improvement
from bkbopt.search.parted_maximizer import PartedMaximizer
from bkbopt.search.pool_maximizer import PoolMaximizer

__all__ = [
    "ACQUISITIONS",
    "AcquisitionRule",
    "Combined",
    "Constraint",
    "Crashes",
    "Criterion",
    "Search",
    "UpperBound",
    "rule_of",
]

#: What a score loses where a trial is expected to fail: more than any logarithm of an improvement differs by.
CRASH_PENALTY = 1e6
#: Correlations that differ by this part are the same: an edge is approached to a ten-thousandth of a lengthscale.
ALIKE = 1e-8
#: Successes that bound the neighbourhood of a failure.
N_NEAREST = 32
#: Weight of the objective while no feasible point is known.
FEASIBILITY_FIRST = 0.01


#: What finds the largest score of a list of points.
Search = PoolMaximizer | PartedMaximizer


class Criterion(Protocol):
    """A score of encoded points, larger is better."""

    def __call__(self, X: Tensor) -> Tensor:
        """Scores `(n,)` of the points `X (n, d)`; differentiable."""
        ...

    def best_row(self, search: Search, excluded: Tensor) -> int:
        """The row of a pool with the largest score, none of `excluded (A,)`."""
        ...


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
        return acquisition(mean, variance), back(*acquisition.slopes(mean, variance))

    @cached_property
    def _closed(self) -> tuple[Collapsed, ClosedFormAcquisition] | None:
        """Posterior and acquisition function where the derivatives of both are written out."""
        predict, acquisition = self._predict, self.acquisition
        if isinstance(predict, Collapsed) and predict.has_slopes and isinstance(acquisition, ClosedFormAcquisition):
            return predict, acquisition
        return None

    def best_row(self, search: Search, excluded: Tensor) -> int:
        return _largest(self.acquisition(*search.scan(self.model)), excluded)


@dataclass(frozen=True)
class UpperBound(_Scored):
    """The upper confidence bound, whose argmax over a pool is exact and lazy."""

    acquisition: UCB

    @classmethod
    def over(cls, model: Model, beta: float) -> "UpperBound":
        """The bound mean + beta sd of a model."""
        return cls(model, UCB(beta))

    def best_row(self, search: Search, excluded: Tensor) -> int:
        """See `Criterion`."""
        return search.argmax(self.model, self.acquisition.beta, excluded).index


@dataclass(frozen=True)
class _Sampled:
    """Thompson sampling: one joint draw of the posterior, a function of the points.

    The prior of a kernel without a known spectrum is drawn on the points that the function meets first (see
    `prior_features`); over a pool those are all arms.
    """

    model: Model
    seed: int
    _drawn: list[Paths] = field(default_factory=list)

    def __call__(self, X: Tensor) -> Tensor:
        if not self._drawn:
            self._drawn.append(draw_paths(self.model, X.detach(), np.random.default_rng(self.seed)))
        return self._drawn[0](X)[:, 0]

    def best_row(self, search: Search, excluded: Tensor) -> int:
        return _largest(search.thompson(self.model, np.random.default_rng(self.seed)), excluded)


@dataclass(frozen=True)
class AcquisitionRule:
    """A named acquisition function, or the user's own.

    Attributes:
        name: "ucb", "logei", "thompson" or "custom".
        build: model, beta, incumbent (the best posterior mean of an observed point, y) and the random numbers that
            the criterion is drawn with, if it is, to a criterion.
    """

    name: str
    build: Callable[[Model, float, float, np.random.Generator], Criterion]


def _build_ucb(model: Model, beta: float, _: float, _rng: np.random.Generator) -> Criterion:
    return UpperBound.over(model, beta)


def _build_logei(model: Model, _: float, incumbent: float, _rng: np.random.Generator) -> Criterion:
    return _Scored(model, LogEI(incumbent))


def _build_thompson(model: Model, _beta: float, _incumbent: float, rng: np.random.Generator) -> Criterion:
    return _Sampled(model, int(rng.integers(2**63)))


@dataclass(frozen=True)
class _BuildCustom:
    """The user's own acquisition function."""

    acquisition: Acquisition

    def __call__(self, model: Model, beta: float, incumbent: float, rng: np.random.Generator) -> Criterion:
        return _Scored(model, self.acquisition)


#: The rules that users name.
ACQUISITIONS = {
    "ucb": AcquisitionRule("ucb", _build_ucb),
    "logei": AcquisitionRule("logei", _build_logei),
    "thompson": AcquisitionRule("thompson", _build_thompson),
}


def rule_of(acquisition: str | Acquisition) -> AcquisitionRule:
    """The rule of a name in `ACQUISITIONS`, or of a callable of mean and variance."""
    if isinstance(acquisition, str):
        return ACQUISITIONS[acquisition]
    return AcquisitionRule("custom", _BuildCustom(acquisition))


@dataclass(frozen=True)
class Constraint:
    """A constraint's model, and where its zero is."""

    model: Model
    bound: float

    @cached_property
    def log_probability(self) -> _Scored:
        """Logarithm of the probability that the constraint holds, a score of points, <= 0."""
        return _Scored(self.model, LogFeasibility(self.bound))


@dataclass(frozen=True)
class Crashes:
    """Where trials failed: points that are more like a failure than like any success are not proposed.

    A success between a failure and a point opens the way to it, so that a search approaches an edge by bisection,
    until the difference is `ALIKE`.
    What is alike is measured by the prior correlation under the objective's kernel.

    Attributes:
        kernel: of the objective.
        failures: (f, d) points that failed and never gave a value.
        successes: (s, d) points with a value, those nearest to the failures.
    """

    kernel: Kernel
    failures: Tensor
    successes: Tensor

    @classmethod
    def among(cls, kernel: Kernel, failures: Tensor, known: Tensor) -> "Crashes":
        """Of all `failures (f, d)`, with the `N_NEAREST` most similar of the `known (u, d)` points of each."""
        nearest = _correlation(kernel, failures, known).topk(min(N_NEAREST, len(known)), dim=1).indices
        return cls(kernel, failures, known[torch.unique(nearest)])

    def __call__(self, X: Tensor) -> Tensor:
        """Which of the points `X (n, d)` are more like a failure, (n,)."""
        with torch.no_grad():
            near_failure = _correlation(self.kernel, X, self.failures).amax(1)
            return near_failure > (1.0 - ALIKE) * _correlation(self.kernel, X, self.successes).amax(1)


def _correlation(kernel: Kernel, A: Tensor, B: Tensor) -> Tensor:
    return kernel(A, B) / (kernel.diag(A)[:, None] * kernel.diag(B)).sqrt()


@dataclass(frozen=True)
class Combined:
    """The score of several objectives or under constraints; see the module's text.

    Attributes:
        objectives: models with their confidence widths.
        constraints: of the outcome, and of failing.
        improvement: over the front; None with a single objective.
        incumbent: the best posterior mean of a feasible point; None where none is known, and feasibility comes first.
        crashes: where trials failed; None where none did, and for suggestions that may go there.
    """

    objectives: Sequence[tuple[Model, float]]
    constraints: Sequence[Constraint]
    improvement: Improvement | None
    incumbent: float | None
    crashes: Crashes | None = None

    @cached_property
    def _bounds(self) -> list[UpperBound]:
        return [UpperBound.over(model, beta) for model, beta in self.objectives]

    @cached_property
    def _terms(self) -> list[tuple[float, _Scored]]:
        """The scores with their weights whose sum it is, but for several objectives and what failed."""
        terms = [(1.0, constraint.log_probability) for constraint in self.constraints]
        if self.improvement is not None:
            return terms
        if self.incumbent is None:
            return [(FEASIBILITY_FIRST, self._bounds[0]), *terms]
        return [(1.0, _Scored(self.objectives[0][0], LogEI(self.incumbent))), *terms]

    def __call__(self, X: Tensor) -> Tensor:
        """See `Criterion`."""
        scores = self._penalties(X)
        for weight, term in self._terms:
            scores = scores + weight * term(X)
        if self.improvement is not None:
            scores = scores + self.improvement(torch.stack([bound(X) for bound in self._bounds], 1))
        return scores

    def with_slopes(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """See `SlopedScore`."""
        if self.improvement is not None:
            return differentiated(self, X)
        scores, slopes = self._penalties(X), torch.zeros_like(X)
        for weight, term in self._terms:
            score, slope = term.with_slopes(X)
            scores, slopes = scores + weight * score, slopes + weight * slope
        return scores, slopes

    def _penalties(self, X: Tensor) -> Tensor:
        """What the points lose that are expected to fail, (n,): zero or minus `CRASH_PENALTY`, without slopes."""
        none = X.new_zeros(len(X))
        return none if self.crashes is None else none - CRASH_PENALTY * self.crashes(X)

    def best_row(self, search: Search, excluded: Tensor) -> int:
        """See `Criterion`."""
        size = max(model.features.size for model, _ in self.objectives)
        return _largest(search.scores(self, size), excluded)


def _largest(scores: Tensor, excluded: Tensor) -> int:
    return int(scores.masked_fill(excluded, -torch.inf).argmax())
