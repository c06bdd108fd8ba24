"""Coordinate perturbations: suggestions that change a single parameter of the best known point at random.

A posterior that has seen one basin at length and the rest of the space here and there is sure that nothing is better
elsewhere: in most of the space it has only its prior to go by, and the best values found lie several prior standard
deviations up. On functions with many basins such a search settles in a good one. The basins of a black box are often
shifted in one or a few parameters only, and a perturbation that lands in a better one is noticed by the global steps at
once. Trial t is a perturbation where the whole part of 3 sqrt(t) grows, past the first 50: about 9 times in 100
trials, 74 in 1,000, and their share of the regret goes to zero. Where a parameter has few values they begin after 10
trials: a search that likes one of the values has no reason to try the next.

They have to earn their place: where the other trials have come near the best known point, as at the end of a run, a
perturbation costs more than all of them. One is left out while those among the last 200 trials have cost more than half
of what the others have, in the model's estimate; but every fourth is made in any case, for the model may be in the
wrong basin.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = [
    "AFFORDABLE",
    "FIRST_PERTURBATION",
    "FIRST_PERTURBATION_OF_CHOICES",
    "PERTURBATIONS",
    "RECENT",
    "is_affordable",
    "perturbation_is_due",
]

#: No perturbations in the first trials, when the global search itself goes everywhere; and in how many where a
#: parameter has few values.
FIRST_PERTURBATION, FIRST_PERTURBATION_OF_CHOICES = 50, 10
#: About PERTURBATIONS * sqrt(t) perturbations in t trials.
PERTURBATIONS = 3.0
#: Of so many of the latest trials, perturbations may make up this part of the regret of the others.
RECENT, AFFORDABLE = 200, 0.5
#: Every so many perturbations one is made whatever it costs.
CERTAIN = 4


def perturbation_is_due(number: int, choices: bool) -> bool:
    """Whether trial `number` is a coordinate perturbation; `choices`: whether a parameter has few values."""
    first = FIRST_PERTURBATION_OF_CHOICES if choices else FIRST_PERTURBATION
    return number > first and _count(number) > _count(number - 1)


def _count(number: int) -> int:
    return math.floor(PERTURBATIONS * number**0.5)


def is_affordable(number: int, numbers: Sequence[int], losses: Tensor, choices: bool) -> bool:
    """Whether perturbations have cost little beside the other trials of late, or trial `number` is to be one anyway.

    Args:
        number: of the trial that may be one.
        numbers: of the latest trials.
        losses: by how much each is expected to be worse than the best known point, (n,).
        choices: see `perturbation_is_due`.
    """
    if _count(number) % CERTAIN == 0:
        return True
    due = torch.tensor([perturbation_is_due(number, choices) for number in numbers], dtype=torch.bool)
    return float(losses[due].sum()) <= AFFORDABLE * float(losses[~due].sum())
