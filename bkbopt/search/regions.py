"""Where a suggestion is searched: a branch of the space, with the ranges of now and the values that are held.

The branch with the best point among a few at random and its own best trials is searched. One that was hardly tried
comes first: what the others taught the kernel need not hold there. Failed and running trials count as visits, so that a
branch that always fails is given up.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt.search.branches import MAX_SWITCH_VALUES, Branch, Branching, declared_branches
from bkbopt.search.criteria import Criterion
from bkbopt.search.evaluations import FAIL, Point, Request
from bkbopt.search.history import History
from bkbopt.search.keyed import keyed
from bkbopt.search.models import Fantasy
from bkbopt.spaces.encoding import Embedding, Encoding
from bkbopt.spaces.space import Parameter, Space

__all__ = ["Region", "region_of", "regions_of"]

#: Branches whose best points are compared, and the points that are looked at for it.
MAX_BRANCHES, BRANCH_POINTS = 32, 2048
#: A branch is not given up on fewer trials than this times sqrt(trials / branches), or than this part of an equal share
#: where that is less. With PATIENCE = 1 examples/optunahub/example.py ended in the wrong branch.
PATIENCE, OWED = 2.0, 0.5


@dataclass(frozen=True)
class Region:
    """A branch as points of the encoding."""

    branch: Branch
    embedding: Embedding

    @property
    def key(self) -> object:
        """What makes two regions of one encoding the same."""
        e = self.embedding
        parts = (e.base, e.columns, e.low, e.width)
        return (tuple(sorted(e.fixed.items())), *(part.numpy().tobytes() for part in parts), repr(e.space))

    def members(self, encoding: Encoding, X: Tensor) -> Tensor:
        """Rows of the encoded points `X (n, d)` that have the branch's setting."""
        columns = [encoding.columns[key] for key in self.branch.setting if key in encoding.columns]
        setting = encoding.encode([self.branch.setting])[0]
        return torch.nonzero((X[:, columns] == setting[columns]).all(1))[:, 0]


Make = Callable[[Branch], Region]


def regions_of(history: History, space: Space, fixed: Point, rng: np.random.Generator) -> list[Region]:
    """All branches of a declared space, or many of them."""
    regions, _ = _regions(history, space, fixed, rng)
    return [make(branch) for branch, make in regions]


def region_of(
    history: History, request: Request, fantasy: Fantasy, criterion: Criterion, exhausted: Sequence[object] = ()
) -> Region | None:
    """The region that a suggestion is searched in; None where all are exhausted.

    Args:
        history: of the log.
        request: for which trial, and what is held.
        fantasy: posteriors with the running trials counted.
        criterion: what is maximised.
        exhausted: keys of regions that have nothing left to propose.
    """
    assert request.space is not None
    rng, fixed = request.rng(), request.fixed
    regions, branching = _regions(history, request.space, fixed, rng)
    if exhausted:
        regions = [(branch, make) for branch, make in regions if make(branch).key not in exhausted]
    if len(regions) <= 1:
        return next((make(branch) for branch, make in regions), None)
    share = max(BRANCH_POINTS // len(regions), 16)

    def scored(branch: Branch, make: Make) -> tuple[float, Region]:
        region = make(branch)
        good = fantasy.incumbents(region.members(history.encoding, fantasy.known))
        with torch.no_grad():
            X = torch.cat([region.embedding(region.embedding.sample(share, rng)), good])
            return float(criterion(X).max()), region

    candidates = [scored(branch, make) for branch, make in regions]
    failed = [e.point for e in history.finished if e.state == FAIL]
    visits = [_visits(branch, [*request.running, *failed]) for branch, _ in regions]
    equal = (len(history.finished) - len(failed)) / len(regions)
    neglected = min(visits) < min(PATIENCE * math.sqrt(equal), OWED * equal)
    open_to = [i for i in range(len(regions)) if not neglected or visits[i] == min(visits)]
    best = max((candidates[i] for i in open_to), key=lambda candidate: candidate[0])
    if branching is not None and not neglected:
        # What no trial combined is known from its parts; it competes, but is not owed a visit.
        make = regions[0][1]
        crossed = [scored(branch, make) for branch in branching.crossings(best[1].branch) if _agrees(branch, fixed)]
        crossed = [candidate for candidate in crossed if candidate[1].key not in exhausted]
        best = max([best, *crossed], key=lambda candidate: candidate[0])
    return best[1]


def _regions(
    history: History, space: Space, fixed: Point, rng: np.random.Generator
) -> tuple[list[tuple[Branch, Make]], Branching | None]:
    """Branches that agree with the fixed values, with what makes regions of them; and how they were inferred."""
    at = keyed(space)
    proposed = {key: p for key, p in at.parameters.items() if key not in fixed and key in history.parameters}
    if history.problem.space is not None and not at.conditions:
        branch = Branch({}, tuple(proposed), ())
        return [(branch, lambda branch: Region(branch, history.encoding.embedding(proposed, fixed)))], None
    learnt = [e.point for e in history.finished if e.state != FAIL]
    branching: Branching | None = None
    if history.problem.space is not None:
        branches = declared_branches(at, space, learnt, MAX_BRANCHES, rng)
    elif history.is_conditional:
        discrete = {key: values for key, p in proposed.items() if (values := _switch_values(p))}
        branching = Branching.of(learnt, list(proposed), discrete)
        branches = branching.branches(MAX_BRANCHES)
    else:
        branches = [Branch({}, tuple(proposed), ())]
    # Columns that are neither proposed nor absent are as in the latest trial.
    latest = learnt[-1] if history.problem.space is None else {}
    held = {key: value for key, value in latest.items() if key not in at.parameters}

    def make(branch: Branch) -> Region:
        free = {key: proposed[key] for key in branch.free if key in proposed}
        return Region(branch, history.encoding.embedding(free, {**held, **fixed, **branch.setting}))

    agreeing = [branch for branch in branches if _agrees(branch, fixed)]
    return [(branch, make) for branch in agreeing or branches], branching


def _agrees(branch: Branch, fixed: Point) -> bool:
    here = {**dict.fromkeys(branch.free), **branch.setting}
    return all(key in here and branch.setting.get(key, value) == value for key, value in fixed.items())


def _visits(branch: Branch, others: Sequence[Point]) -> int:
    """Trials in the branch, running and failed ones included."""
    inside = sum(all(point.get(key) == value for key, value in branch.setting.items()) for point in others)
    return len(branch.rows) + inside


def _switch_values(parameter: Parameter) -> list[float]:
    """The values of a parameter that may be a switch; none where there are too many."""
    n = parameter.n_values
    return [] if n is None or n > MAX_SWITCH_VALUES else list(parameter.internal_values)
