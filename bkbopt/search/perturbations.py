"""Perturbations: suggestions that leave the basin of the best known point, and their schedule.

| symbol | units | meaning                                                           |
| ------ | ----- | ----------------------------------------------------------------- |
| t      | -     | number of the suggested trial                                     |
| c(t)   | -     | floor(3 sqrt(t)); a perturbation is due when it increases         |
| beta   | -     | multiplies a standard deviation, as in `confidence.py`            |

If most observations are in one basin, the best values are several prior standard deviations above the mean. In the rest
of the space the posterior is close to the prior, so that the model excludes better values there. On functions with many
basins such a search stays in a good one. Two kinds of perturbations alternate:

- A *coordinate perturbation*, at odd c(t), is the best of random points that differ from the best known point in one
  parameter, since the basins of a black box often differ in one or a few parameters only.
- A *wide step*, at even c(t), is the best point of the whole space.

The best point is that with the largest upper confidence bound with beta = 3, or with the beta of the search if that is
larger. If no other region has a comparable bound, it is near the best known point, and costs little. Under constraints
all perturbations are of a coordinate, and the best of a few candidates by the criterion of the search is taken; there
are none while no known point is expected to be feasible. With several objectives there are none. Among very many
choices they are points without a value.

A pool or grid of noisy values, with a single objective and no constraints, has perturbations of another kind, in place
of both: the *untried row*, the one with the largest bound with beta = 2 of those without a value. Otherwise a search of
a pool may end up repeating one row.

When a perturbation finds a better basin, the following global steps search it. There are about 21 perturbations in 100
trials and 85 in 1,000, and their share of the regret goes to zero. They begin after 10 trials, or after 50 where trials
fail: then all of them are of a coordinate, and these are not kept from the region that fails.

Perturbations are limited by their cost, the regret that the model expects. At the end of a run, when the other trials
are near the best known point, a perturbation costs more than all of them. It is left out while the perturbations among
the last 200 trials have cost more than half of the cost of the other trials. Every fourth perturbation (a wide step, if
there are any) is always made, since the model may be in the wrong basin.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bkbopt.search.candidates.base import CandidateSet, Choice, Scope
from bkbopt.search.criteria.criterion import UpperBound
from bkbopt.search.models import Models, Posteriors

__all__ = [
    "AFFORDABLE",
    "FIRST_BESIDE_FAILURES",
    "FIRST_PERTURBATION",
    "PERTURBATIONS",
    "RECENT",
    "ROW_BETA",
    "WIDE_BETA",
    "Perturbations",
    "is_perturbation",
    "is_within_schedule",
    "perturbation",
]

#: Number of the trial after which there are perturbations, and where trials fail.
FIRST_PERTURBATION, FIRST_BESIDE_FAILURES = 10, 50
#: About PERTURBATIONS * sqrt(t) perturbations in t trials.
PERTURBATIONS = 3.0
#: Number of latest trials whose costs are compared, and largest cost of perturbations relative to that of the others.
RECENT, AFFORDABLE = 200, 0.5
#: One of this many perturbations is made whatever it costs.
CERTAIN = 4
#: Number of random points that are compared for a coordinate perturbation: by bounds, and by the criterion under
#: constraints, by which the best one of many would hardly differ from the best known point.
BY_BOUND, BY_IMPROVEMENT = 256, 8
#: Smallest beta of wide steps and coordinate perturbations, and of untried rows of a pool.
WIDE_BETA, ROW_BETA = 3.0, 2.0


@dataclass(frozen=True)
class Perturbations:
    """The schedule of perturbations.

    Attributes:
        wide: whether there are wide steps.
        first: number of the trial after which there are perturbations.
    """

    wide: bool
    first: int = FIRST_PERTURBATION

    def is_wide(self, number: int) -> bool:
        """Whether a perturbation at trial `number` would be a wide step, not one of a coordinate."""
        return self.wide and _count(number) % 2 == 0

    def is_due(self, number: int) -> bool:
        """Whether trial `number` is a perturbation, if that is affordable."""
        return number > self.first and is_within_schedule(number)

    def is_affordable(self, number: int, numbers: Sequence[int], losses: Tensor) -> bool:
        """Whether the latest perturbations have cost little compared with the other trials, or this one is certain.

        Args:
            number: number of the trial that may be a perturbation.
            numbers: numbers of the latest trials.
            losses: expected regrets of these trials relative to the best known point, (n,).
        """
        if _count(number) % CERTAIN == 0:
            return True
        due = torch.tensor([self.is_due(number) for number in numbers], dtype=torch.bool)
        return float(losses[due].sum()) <= AFFORDABLE * float(losses[~due].sum())


def is_within_schedule(number: int) -> bool:
    """Whether the number of perturbations is larger up to trial `number` than up to the trial before it."""
    return number > 0 and _count(number) > _count(number - 1)


def _count(number: int) -> int:
    return math.floor(PERTURBATIONS * number**0.5)


def is_perturbation(number: int, models: Models, posteriors: Posteriors, candidates: CandidateSet) -> bool:
    """Whether trial `number` is a perturbation."""
    schedule = _schedule(posteriors)
    has_untried_rows = candidates.n_arms is not None and posteriors.is_plain
    is_possible = candidates.coordinate_perturbation is not None or has_untried_rows
    if len(posteriors.models) > 1 or not is_possible or not schedule.is_due(number):
        return False
    if not bool(posteriors.known.feasible.any()):
        return False
    latest = models.history.finished[-RECENT:]
    losses = models.losses(models.history.X[-len(latest) :], predicted=True)
    return schedule.is_affordable(number, [e.number for e in latest], losses)


def perturbation(number: int, posteriors: Posteriors, candidates: CandidateSet, scope: Scope) -> Choice | None:
    """The perturbation at trial `number`, see `is_perturbation`; None if no point is left.

    Args:
        number: number of the trial.
        posteriors: the posteriors.
        candidates: the candidate set.
        scope: arguments of the search; its first incumbent is the best known one.
    """
    if candidates.n_arms is not None or candidates.has_many_choices:
        scope = replace(scope, taken=torch.cat([scope.taken, posteriors.known.X]), each_row=False)
    if candidates.n_arms is not None:
        beta = max(ROW_BETA, posteriors.betas[0])
        return candidates.best(UpperBound.over(posteriors.models[0], beta), scope)
    perturbed = candidates.coordinate_perturbation
    assert perturbed is not None
    if not posteriors.is_plain:
        return perturbed(posteriors.combined, BY_IMPROVEMENT, scope.incumbents[0], scope)
    bound = UpperBound.over(posteriors.models[0], max(WIDE_BETA, posteriors.betas[0]))
    if _schedule(posteriors).is_wide(number):
        return candidates.best(bound, scope)
    return perturbed(bound, BY_BOUND, scope.incumbents[0], scope)


def _schedule(posteriors: Posteriors) -> Perturbations:
    # Those of a coordinate are not kept from regions in which trials fail.
    first = FIRST_PERTURBATION if posteriors.known.crashes is None else FIRST_BESIDE_FAILURES
    return Perturbations(wide=posteriors.is_plain, first=first)
