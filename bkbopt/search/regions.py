"""Regions: branches of a space with the present ranges and fixed values, and the choice of the one to search.

The region is chosen whose best score is largest, over a few random points and its best trials. A branch with few trials
comes first, since the fitted kernel need not be right there. Failed and running trials count as visits, so that a
branch in which all trials fail is given up.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt.search.branches import Branch, Branching, declared_branches, inferred
from bkbopt.search.criteria.criterion import Criterion
from bkbopt.search.models import Posteriors
from bkbopt.search.trials.evaluations import Point, Request
from bkbopt.search.trials.history import History
from bkbopt.search.trials.presence import Presence
from bkbopt.spaces.encoding import Embedding, Encoding
from bkbopt.spaces.space import Space

__all__ = ["Region", "further_regions", "region_of", "regions_of"]

#: Largest number of branches that are compared, and total number of random points for the comparison.
MAX_BRANCHES, BRANCH_POINTS = 32, 2048
#: Largest number of branches among which points are sought where those compared have none left.
MOST_BRANCHES = 8192
#: A branch is visited first while it has fewer trials than PATIENCE * sqrt(trials / branches), or than OWED * trials /
#: branches if that is less. With PATIENCE = 1 examples/optunahub/example.py ended in the wrong branch.
PATIENCE, OWED = 2.0, 0.5


@dataclass(frozen=True)
class Region:
    """A branch, with its embedding in the encoding of all columns."""

    branch: Branch
    embedding: Embedding

    @property
    def key(self) -> object:
        """A key that is equal for equal regions of one encoding."""
        return self.embedding.key

    def members(self, encoding: Encoding, X: Tensor) -> Tensor:
        """Indices of the encoded points `X (n, d)` with the branch's setting."""
        columns = [encoding.columns[key] for key in self.branch.setting if key in encoding.columns]
        setting = encoding.encode([self.branch.setting])[0]
        return torch.nonzero((X[:, columns] == setting[columns]).all(1))[:, 0]


def regions_of(history: History, space: Space, fixed: Point, rng: np.random.Generator) -> list[Region]:
    """The regions of all branches of a declared space, or of many of them."""
    branches, make, _ = _branches(history, space, fixed, rng)
    return list(map(make, branches))


def region_of(
    history: History, request: Request, posteriors: Posteriors, criterion: Criterion, exhausted: Sequence[object] = ()
) -> Region | None:
    """The region in which a suggestion is searched; None if all are exhausted.

    Args:
        history: the finished trials.
        request: the request for a suggestion.
        posteriors: posteriors with the running trials counted.
        criterion: the criterion that is maximised.
        exhausted: keys of regions without points left to propose.
    """
    assert request.space is not None
    rng, fixed = request.rng(), request.fixed
    branches, make, branching = _branches(history, request.space, fixed, rng)
    if exhausted:
        branches = [branch for branch in branches if make(branch).key not in exhausted]
    if len(branches) <= 1:
        return next(map(make, branches), None)
    share = max(BRANCH_POINTS // len(branches), 16)

    def scored(branch: Branch) -> tuple[float, Region]:
        region = make(branch)
        incumbents = posteriors.incumbents(region.members(history.encoding, posteriors.known.X))
        with torch.no_grad():
            X = torch.cat([region.embedding(region.embedding.sample(share, rng)), incumbents])
            return float(criterion(X).max()), region

    candidates = list(map(scored, branches))
    visits = _visits(branches, request.running, history.failed)
    equal = (len(history.finished) - history.n_failed) / len(branches)
    neglected = min(visits) < min(PATIENCE * math.sqrt(equal), OWED * equal)
    open_to = [i for i in range(len(branches)) if not neglected or visits[i] == min(visits)]
    best = max((candidates[i] for i in open_to), key=lambda candidate: candidate[0])
    if branching is not None and not neglected:
        # Combinations of switches without trials compete by their scores, but are not visited first.
        crossed = [scored(branch) for branch in branching.crossings(best[1].branch) if branch.has(fixed)]
        crossed = [candidate for candidate in crossed if candidate[1].key not in exhausted]
        best = max([best, *crossed], key=lambda candidate: candidate[0])
    return best[1]


def further_regions(history: History, request: Request, searched: Sequence[object]) -> Iterator[Region]:
    """Regions besides those with the keys `searched`, which are exhausted, of more branches than `region_of` compares.

    Combinations of switches without trials are last. See `region_of` for the arguments.
    """
    assert request.space is not None
    known, limit, fixed = set(searched), MAX_BRANCHES, request.fixed
    while limit < MOST_BRANCHES:
        limit *= 4
        branches, make, branching = _branches(history, request.space, fixed, request.rng(), limit)
        new = {region.key: region for region in map(make, branches) if region.key not in known}
        if not new:
            break
        known.update(new)
        yield from new.values()
    if branching is None:
        return
    crossings = itertools.chain.from_iterable(map(branching.crossings, branching.seen))
    for region in map(make, (branch for branch in crossings if branch.has(fixed))):
        if region.key not in known:
            known.add(region.key)
            yield region


def _branches(
    history: History, space: Space, fixed: Point, rng: np.random.Generator, limit: int = MAX_BRANCHES
) -> tuple[list[Branch], Callable[[Branch], Region], Branching | None]:
    """Branches that have the fixed values, what makes a region of each, and the `Branching` if it was inferred."""
    known = {key: p for key, p in space.keyed.items() if key in history.parameters}
    proposed = {key: p for key, p in known.items() if key not in fixed}
    is_declared, branching = history.problem.space is not None, None
    if is_declared and space.is_conditional:
        branches = declared_branches(space, history.presence, limit, rng, fixed)
    elif not is_declared and history.is_conditional:
        branching = inferred(history.presence, known)  # a fixed parameter may be a switch
        branches = branching.branches(limit, fixed)
    else:
        branches = [Branch({}, tuple(proposed), 0)]
    # Columns that are present but not proposed have the values of the latest trial.
    latest = {} if is_declared else history.presence.latest
    held = {key: value for key, value in latest.items() if key not in space.keyed}

    def make(branch: Branch) -> Region:
        free = {key: proposed[key] for key in branch.free if key in proposed}
        return Region(branch, history.encoding.embedding(free, {**held, **branch.setting, **fixed}))

    return branches, make, branching


def _visits(branches: Sequence[Branch], running: Sequence[Point], failed: Presence) -> list[int]:
    """Numbers of trials in the branches, including running and failed ones."""
    names = sorted({name for branch in branches for name in branch.setting})
    others = failed.settings(names) + Counter(tuple(point.get(name) for name in names) for point in running)

    def inside(branch: Branch) -> int:
        held = [(at, branch.setting[name]) for at, name in enumerate(names) if name in branch.setting]
        return sum(n for values, n in others.items() if all(values[at] == value for at, value in held))

    return [branch.n_trials + inside(branch) for branch in branches]
