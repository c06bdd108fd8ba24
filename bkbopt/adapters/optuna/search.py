"""The point that a study tries next: upper confidence bounds under constraints and for several objectives.

| symbol   | shape  | units | meaning                                                            |
| -------- | ------ | ----- | ------------------------------------------------------------------ |
| U        | (n, k) | enc.  | points of the space that the trial can choose from                 |
| mean, sd | (n,)   | y     | posterior of one quantity, larger is better; y standardised        |
| bound    | -      | y     | the constraint's zero on that scale; feasible where it is exceeded |

A constraint is met with optimism, as the objective is: a point may be tried while the upper confidence bound of the
constraint allows it, and pays for what is missing. Among feasible points the objective decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bkbopt.acquisition import VARIANCE_FLOOR
from bkbopt.adapters.optuna.encoding import Embedding
from bkbopt.adapters.optuna.pareto import Improvement
from bkbopt.features import FeatureMap
from bkbopt.surrogates.model import Model

__all__ = ["Constraint", "Scored", "embedded", "penalty", "score_of"]

#: What a standard deviation of certain violation costs, in standard deviations of the objective.
PENALTY = 10.0


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


def embedded(model: Model, embedding: Embedding) -> Model:
    """The model as a function of the embedding's own points."""
    return model if embedding.is_whole else replace(model, features=_EmbeddedFeatures(model.features, embedding))


@dataclass(frozen=True)
class Constraint:
    """A constraint's model, its confidence width, and where its zero is."""

    model: Model
    beta: float
    bound: float

    def shortfall(self, U: Tensor) -> Tensor:
        """By how much even the upper confidence bound misses feasibility, (n,), >= 0."""
        mean, variance = self.model(U)
        return (self.bound - mean - self.beta * variance.clamp_min(VARIANCE_FLOOR).sqrt()).clamp_min(0.0)


def penalty(constraints: Sequence[Constraint], U: Tensor) -> Tensor:
    """What the constraints take off the score `(n,)`."""
    total = U.new_zeros(len(U))
    for constraint in constraints:
        total = total + constraint.shortfall(U)
    return PENALTY * total


def score_of(
    objectives: Sequence[tuple[Model, float]], constraints: Sequence[Constraint], improvement: Improvement | None
) -> Callable[[Tensor], Tensor]:
    """The score `(n,)` of points `(n, k)`: optimistic value, or improvement of the front, less the penalty.

    Args:
        objectives: models with their confidence widths.
        constraints: as they are.
        improvement: over the front; None with a single objective.
    """

    def score(U: Tensor) -> Tensor:
        bounds = []
        for model, beta in objectives:
            mean, variance = model(U)
            bounds.append(mean + beta * variance.clamp_min(VARIANCE_FLOOR).sqrt())
        value = bounds[0] if improvement is None else improvement(torch.stack(bounds, 1))
        return value - penalty(constraints, U)

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
