"""The best points by posterior means among those with fixed values, evaluated or not."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt._support.threads import small_work
from bkbopt.errors import ArgumentError
from bkbopt.search.candidates.base import Choice, Scope
from bkbopt.search.criteria.criterion import Criterion
from bkbopt.search.criteria.expected import ExpectedGain
from bkbopt.search.criteria.pareto import Improvement, reference_of
from bkbopt.search.designer import Designer
from bkbopt.search.models import N_INCUMBENTS, Posteriors
from bkbopt.search.trials.evaluations import Point
from bkbopt.spaces.space import Space

__all__ = ["Slice"]

#: Points whose means are computed at once.
BLOCK = 4096
#: Largest number of points of a front: one search each.
MAX_FRONT = 20


@dataclass(frozen=True)
class Slice:
    """The points of a space or pool with fixed values.

    Attributes:
        designer: with the finished trials.
        posteriors: their posteriors.
        fixed: the values.
        space: of the points, if the problem has none.
    """

    designer: Designer
    posteriors: Posteriors
    fixed: Point
    space: Space | None = None

    @torch.no_grad()
    def best(self, sure: float) -> Choice:
        """The point with the largest posterior mean of the first objective.

        It is sought among the points at which the constraints hold with probability `sure`, then among those that are
        expected to be feasible; if none is found, it is the point with the smallest violation. Over pools and grids it
        is exact, otherwise the best one of a search.

        Raises:
            ArgumentError: no feasible point with these values was found.
        """
        for probability in self._probabilities(sure):
            criterion = self.posteriors.expected(probability)
            choice = self._best(criterion)
            if choice is not None and criterion.holds(choice.x):
                return choice
        if choice is None:
            raise ArgumentError(
                "fixed: expected values with which some point is feasible, but none was found; check the constraint "
                "`feasible`."
            )
        return choice

    @torch.no_grad()
    def front(self, sure: float) -> list[Choice]:
        """At most `MAX_FRONT` points whose posterior means no other one's dominate, feasible as those of `best`.

        First are the best points for each objective. Each of the others adds the largest hypervolume to those before
        it, until no point adds any. Over pools and grids a front that is smaller than `MAX_FRONT` is thus whole.

        Raises:
            ArgumentError: no feasible point with these values was found.
        """
        for probability in self._probabilities(sure):
            front = list(self._front(probability))
            if front:
                return front
        return [self.best(sure)]

    def _front(self, probability: float) -> Iterator[Choice]:
        objectives = tuple(self.posteriors.expected(probability, k) for k in range(len(self.posteriors.models)))
        best = [choice for choice in map(self._best, objectives) if choice and objectives[0].holds(choice.x)]
        ends = {row_keys(choice.x[None])[0]: choice for choice in best}.values()  # one may be best in several
        yield from ends
        X = torch.stack([choice.x for choice in ends]) if ends else self.posteriors.known.X[:0]
        while len(objectives) > 1 and 0 < len(X) < MAX_FRONT:
            Y = torch.stack([objective.mean(X) for objective in objectives], 1)
            reference = reference_of(torch.cat([Y, self.posteriors.known.means]))
            gain = ExpectedGain(objectives, Improvement.over(Y, reference))
            choice = self._best(gain, X)
            if choice is None or not objectives[0].holds(choice.x):
                return
            if bool((gain.means(choice.x[None]) <= Y).all(1).any()):
                return
            yield choice
            X = torch.cat([X, choice.x[None]])

    def _probabilities(self, sure: float) -> tuple[float, ...]:
        return (sure, 0.5) if self.posteriors.constraints else (0.5,)

    def _best(self, criterion: Criterion, taken: Tensor | None = None) -> Choice | None:
        """The point with the largest score that is not one of `taken (t, d)`; None if none is left."""
        starts, found = self._starts(criterion), list[Choice]()
        taken = starts[:0] if taken is None else taken
        for candidates in self.designer.candidates.all_with(self.fixed, self.space):
            # The random numbers are independent of those of suggestions, so that the same log gives the same point.
            scope = Scope(starts, np.random.default_rng(0), taken)
            with small_work():
                choice = candidates.best(criterion, scope) or candidates.random(scope.rng, scope.taken)
            if choice is not None:
                found.append(choice)
        return found[int(criterion(torch.stack([choice.x for choice in found])).argmax())] if found else None

    def _starts(self, criterion: Criterion) -> Tensor:
        """The known points that are best with the fixed values in place of their own, (g, d), best first."""
        X = self.posteriors.known.X.clone()
        if self.designer.problem.pool is None:
            encoding = self.designer.history.encoding
            columns = [encoding.columns[key] for key in self.fixed if key in encoding.columns]
            X[:, columns] = encoding.encode([self.fixed])[0, columns]
        scores = torch.cat([criterion(block) for block in X.split(BLOCK)])
        return X[scores.topk(min(N_INCUMBENTS, len(X))).indices]
