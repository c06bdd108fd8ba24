"""Perturbations: suggestions that leave the best known basin, and when they are made.

| symbol | units | meaning                                                           |
| ------ | ----- | ----------------------------------------------------------------- |
| t      | -     | number of the trial that is suggested                             |
| c(t)   | -     | the whole part of 3 sqrt(t): a perturbation is due where it grows |
| beta   | -     | multiplies a standard deviation, as in `confidence.py`            |

A posterior that has seen one basin at length and the rest of the space here and there is sure that nothing is better
elsewhere: in most of the space it has only its prior to go by, and the best values found lie several prior standard
deviations up. On functions with many basins such a search settles in a good one. There are two ways out of it, in turn:

- a *coordinate perturbation*, at odd c(t), is the best of a few random points that differ from the best known one in
  one parameter, since the basins of a black box are often shifted in one or a few parameters only;
- a *wide step*, at even c(t), is the maximiser of the upper confidence bound with beta = 3, or that of the search if
  it is larger. It goes elsewhere only as far as that may pay: where nothing else comes close it stays near the best
  known point, and costs little. There are wide steps with one objective and no constraints; otherwise all perturbations
  are those of a coordinate.

What lands in a better basin is noticed by the global steps at once. Perturbations are about 15 in 100 trials, 79 in
1,000, and their share of the regret goes to zero. Wide steps begin after 10 trials; those of a coordinate after 50, or
also after 10 where a parameter has few values: a search that likes one of the values has no reason to try the next.

They have to earn their place: where the other trials have come near the best known point, as at the end of a run, a
perturbation costs more than all of them. One is left out while those among the last 200 trials have cost more than half
of what the others have, in the model's estimate; but every fourth, a wide step where there are such, is made in any
case, for the model may be in the wrong basin.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bkbopt.search.candidates import CandidateSet, Choice, Scope
from bkbopt.search.criteria import UpperBound
from bkbopt.search.history import History
from bkbopt.search.models import Fantasy

__all__ = [
    "AFFORDABLE",
    "FIRST_PERTURBATION",
    "FIRST_PERTURBATION_OF_CHOICES",
    "FIRST_WIDE_STEP",
    "PERTURBATIONS",
    "RECENT",
    "WIDE_BETA",
    "Perturbations",
    "is_perturbation",
    "perturbed",
]

#: No perturbations in the first trials, when the global search itself goes everywhere. The trials after which there are
#: some: of a coordinate; of a coordinate where a parameter has few values; wide steps.
FIRST_PERTURBATION, FIRST_PERTURBATION_OF_CHOICES, FIRST_WIDE_STEP = 50, 10, 10
#: About PERTURBATIONS * sqrt(t) perturbations in t trials.
PERTURBATIONS = 3.0
#: Of so many of the latest trials, perturbations may make up this part of the regret of the others.
RECENT, AFFORDABLE = 200, 0.5
#: Every so many perturbations one is made whatever it costs.
CERTAIN = 4
#: The confidence width of wide steps, at least.
WIDE_BETA = 3.0


@dataclass(frozen=True)
class Perturbations:
    """Which trials of a search are perturbations.

    Attributes:
        choices: whether a parameter has few values.
        wide: whether there are wide steps.
    """

    choices: bool
    wide: bool

    def is_wide(self, number: int) -> bool:
        """Whether the perturbation that trial `number` may be is a wide step, and not one of a coordinate."""
        return self.wide and _count(number) % 2 == 0

    def is_due(self, number: int) -> bool:
        """Whether trial `number` is a perturbation, if that is affordable."""
        if self.is_wide(number):
            first = FIRST_WIDE_STEP
        else:
            first = FIRST_PERTURBATION_OF_CHOICES if self.choices else FIRST_PERTURBATION
        return number > first and _count(number) > _count(number - 1)

    def is_affordable(self, number: int, numbers: Sequence[int], losses: Tensor) -> bool:
        """Whether perturbations have cost little beside the other trials of late, or this one is made anyway.

        Args:
            number: of the trial that may be one.
            numbers: of the latest trials.
            losses: by how much each is expected to be worse than the best known point, (n,).
        """
        if _count(number) % CERTAIN == 0:
            return True
        due = torch.tensor([self.is_due(number) for number in numbers], dtype=torch.bool)
        return float(losses[due].sum()) <= AFFORDABLE * float(losses[~due].sum())


def _count(number: int) -> int:
    return math.floor(PERTURBATIONS * number**0.5)


def is_perturbation(number: int, fantasy: Fantasy, candidates: CandidateSet, history: History) -> bool:
    """Whether trial `number` is to be a perturbation."""
    schedule = _schedule(fantasy, candidates)
    if len(fantasy.models) > 1 or not candidates.is_perturbed or not schedule.is_due(number):
        return False
    latest = history.finished[-RECENT:]
    losses = fantasy.losses(history.X[-len(latest) :])
    return schedule.is_affordable(number, [e.number for e in latest], losses)


def perturbed(number: int, fantasy: Fantasy, candidates: CandidateSet, scope: Scope) -> Choice | None:
    """The perturbation that trial `number` is; None where there is none but points that are taken.

    Args:
        number: of the trial.
        fantasy: the posteriors.
        candidates: the set to choose from.
        scope: where to look; the best known point is its first one.
    """
    if _schedule(fantasy, candidates).is_wide(number):
        beta = max(WIDE_BETA, fantasy.betas[0])
        return candidates.best(UpperBound.over(fantasy.models[0], beta), scope)
    return candidates.perturbed(fantasy.perturbation_criterion(), scope.good[0], scope)


def _schedule(fantasy: Fantasy, candidates: CandidateSet) -> Perturbations:
    return Perturbations(choices=candidates.has_choices, wide=fantasy.is_plain)
