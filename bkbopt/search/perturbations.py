"""Coordinate perturbations: suggestions that change a single parameter of the best known point at random.

A posterior that has seen one basin at length and the rest of the space here and there is sure that nothing is better
elsewhere: in most of the space it has only its prior to go by, and the best values found lie several prior standard
deviations up. On functions with many basins such a search settles in a good one. The basins of a black box are often
shifted in one or a few parameters only, and a perturbation that lands in a better one is noticed by the global steps at
once. Trial t is a perturbation where the whole part of 3 sqrt(t) grows, past the first 50: about 9 times in 100
trials, 74 in 1,000, and their share of the regret goes to zero. Where a parameter has few values they begin after 10
trials: a search that likes one of the values has no reason to try the next.
"""

import math

__all__ = ["FIRST_PERTURBATION", "FIRST_PERTURBATION_OF_CHOICES", "PERTURBATIONS", "perturbation_is_due"]

#: No perturbations in the first trials, when the global search itself goes everywhere; and in how many where a
#: parameter has few values.
FIRST_PERTURBATION, FIRST_PERTURBATION_OF_CHOICES = 50, 10
#: About PERTURBATIONS * sqrt(t) perturbations in t trials.
PERTURBATIONS = 3.0


def perturbation_is_due(number: int, choices: bool) -> bool:
    """Whether trial `number` is a coordinate perturbation; `choices`: whether a parameter has few values."""
    first = FIRST_PERTURBATION_OF_CHOICES if choices else FIRST_PERTURBATION
    share = PERTURBATIONS
    return number > first and math.floor(share * number**0.5) > math.floor(share * (number - 1) ** 0.5)
