"""The score that a study's next point maximises: upper confidence bounds, constraints, several objectives.

| symbol   | shape  | units | meaning                                                            |
| -------- | ------ | ----- | ------------------------------------------------------------------ |
| U        | (n, k) | enc.  | points of the space that the trial can choose from                 |
| mean, sd | (n,)   | y     | posterior of one quantity, larger is better; y standardised        |
| bound    | -      | y     | the constraint's zero on that scale; feasible where it is exceeded |

Without constraints the score is the upper confidence bound, or what the vector of bounds adds to the hypervolume. With
constraints it is the logarithm of an expected improvement plus the logarithms of the probabilities that they hold
(Gardner et al. 2014): as the best feasible region is used up, its improvement falls without limit, and regions whose
feasibility is in doubt become worth a trial. Bounds with a penalty were tried, and did worse in both ways: with
optimism four trials in five lay just outside, with the probability alone searches never left the first region.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bkbopt.adapters.optuna.encoding import Embedding
from bkbopt.adapters.optuna.pareto import Improvement
from bkbopt.posterior.features import FeatureMap
from bkbopt.posterior.model import Model
from bkbopt.search.acquisition import UCB, LogEI

__all__ = ["Constraint", "Scored", "embedded", "score_of"]


#: Smallest standard deviation of a constraint, on values with a standard deviation of one: below it a probability has
#: no slope to follow. Twice as much is kept as a distance from an edge, or half of the trials there would be outside.
CONSTRAINT_FLOOR = 1e-3
#: What the objective counts while no feasible point is known.
FEASIBILITY_FIRST = 0.01


@dataclass(frozen=True)
class _EmbeddedFeatures:
    """Features of the points that an embedding gives: a feature map pulled back."""

    features: FeatureMap
    embedding: Embedding

    @property
    def size(self) -> int:
        """Number of features r."""
        return self.features.size

    def __call__(self, X: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return self.features(self.embedding(X))

    def residual(self, X: Tensor, Z: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return self.features.residual(self.embedding(X), Z)

    def residual_covariance(self, X: Tensor, Z: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return self.features.residual_covariance(self.embedding(X), Z)

    def residual_cross(self, X1: Tensor, Z1: Tensor, X2: Tensor, Z2: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return self.features.residual_cross(self.embedding(X1), Z1, self.embedding(X2), Z2)


def embedded(model: Model, embedding: Embedding) -> Model:
    """The model as a function of the embedding's own points."""
    return model if embedding.is_whole else replace(model, features=_EmbeddedFeatures(model.features, embedding))


@dataclass(frozen=True)
class Constraint:
    """A constraint's model, and where its zero is."""

    model: Model
    bound: float

    def log_probability(self, X: Tensor) -> Tensor:
        """Logarithm of the probability that the constraint holds at the points `X (n, d)`, (n,), <= 0."""
        mean, variance = self.model(X)
        sd = variance.clamp_min(CONSTRAINT_FLOOR**2).sqrt()
        return torch.special.log_ndtr((mean - self.bound - 2.0 * CONSTRAINT_FLOOR) / sd)


def score_of(
    objectives: Sequence[tuple[Model, float]],
    constraints: Sequence[Constraint],
    improvement: Improvement | None,
    incumbent: float | None,
) -> Callable[[Tensor], Tensor]:
    """The score `(n,)` of points `(n, k)`; see the module's text.

    Args:
        objectives: models with their confidence widths.
        constraints: as they are.
        improvement: over the front; None with a single objective.
        incumbent: the best posterior mean of a feasible point; None where none is known, and feasibility comes first.
    """

    def score(X: Tensor) -> Tensor:
        posteriors = [model(X) for model, _ in objectives]
        feasible = X.new_zeros(len(X))
        for constraint in constraints:
            feasible = feasible + constraint.log_probability(X)
        if improvement is None and incumbent is not None:
            return LogEI(incumbent)(*posteriors[0]) + feasible
        bounds = [UCB(beta)(*posterior) for posterior, (_, beta) in zip(posteriors, objectives, strict=True)]
        if improvement is not None:
            return improvement(torch.stack(bounds, 1)) + feasible
        return FEASIBILITY_FIRST * bounds[0] + feasible

    return score


@dataclass(frozen=True)
class Scored:
    """A score in the place of a model, for searches that look at posteriors: the mean is the score, nothing varies."""

    model: Model
    score: Callable[[Tensor], Tensor]

    @property
    def features(self) -> FeatureMap:
        """Of one of the models, for the size of blocks."""
        return self.model.features

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Scores `(n,)` and zeros."""
        scores = self.score(X)
        return scores, torch.zeros_like(scores)

    def collapse(self) -> "Scored":
        """Itself."""
        return self
