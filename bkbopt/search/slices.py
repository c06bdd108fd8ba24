"""The best point by posterior mean among those with fixed values, evaluated or not."""

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.threads import small_work
from bkbopt.errors import ArgumentError
from bkbopt.search.candidates.base import Choice, Scope
from bkbopt.search.criteria.expected import Expected
from bkbopt.search.designer import Designer
from bkbopt.search.models import N_INCUMBENTS, Fantasy
from bkbopt.search.trials.evaluations import Point

__all__ = ["best_with"]

#: Points whose means are computed at once.
BLOCK = 4096


@torch.no_grad()
def best_with(designer: Designer, fantasy: Fantasy, fixed: Point, sure: float) -> Choice:
    """The point with the largest posterior mean of the first objective among those with the `fixed` values.

    It is sought among the points at which the constraints hold with probability `sure`, then among those that are
    expected to be feasible; if none is found, it is the point with the smallest violation. Over pools and grids it is
    exact, otherwise the best one of a search.

    Raises:
        ArgumentError: no feasible point with these values was found.
    """
    for probability in (sure, 0.5) if fantasy.constraints else (0.5,):
        criterion = fantasy.expected(probability)
        choice = _best(designer, criterion, _starts(designer, fantasy, criterion, fixed), fixed)
        if criterion.holds(choice.x):
            break
    return choice


def _best(designer: Designer, criterion: Expected, starts: Tensor, fixed: Point) -> Choice:
    found = []
    for candidates in designer.candidates_with(fixed):
        # The random numbers are independent of those of suggestions, so that the same log gives the same point.
        scope = Scope(starts, np.random.default_rng(0), starts[:0])
        with small_work():
            choice = candidates.best(criterion, scope) or candidates.random(scope.rng, scope.taken)
        if choice is not None:
            found.append(choice)
    if not found:
        raise ArgumentError(
            "fixed: expected values with which some point is feasible, but none was found; check the constraint "
            "`feasible`."
        )
    return found[int(criterion(torch.stack([choice.x for choice in found])).argmax())]


def _starts(designer: Designer, fantasy: Fantasy, criterion: Expected, fixed: Point) -> Tensor:
    """The known points that are best with the fixed values in place of their own, (g, d), best first."""
    X = fantasy.known.clone()
    if designer.problem.space is not None:
        encoding = designer.history.encoding
        columns = [encoding.columns[key] for key in fixed if key in encoding.columns]
        X[:, columns] = encoding.encode([fixed])[0, columns]
    scores = torch.cat([criterion(block) for block in X.split(BLOCK)])
    return X[scores.topk(min(N_INCUMBENTS, len(X))).indices]
