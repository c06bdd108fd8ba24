"""The candidate sets of a problem: its pool, or the regions of its space; they are kept while they are valid."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from torch import Tensor

from bkbopt._support.latest import Latest
from bkbopt.search.candidates.base import CandidateSet
from bkbopt.search.candidates.box import candidates_of
from bkbopt.search.candidates.listed import GRID_LIMIT, PoolCandidates
from bkbopt.search.candidates.product import ProductCandidates, candidates_of_pool
from bkbopt.search.criteria.criterion import Criterion
from bkbopt.search.models import Posteriors
from bkbopt.search.regions import Region, further_regions, region_of, regions_of
from bkbopt.search.trials.evaluations import Point, Problem, Request
from bkbopt.search.trials.history import History
from bkbopt.spaces.space import Space

__all__ = ["CandidateSets"]

#: Number of regions whose candidates are kept, with the bounds of their points.
KEPT = 8


class CandidateSets:
    """The candidate sets of a history's problem.

    Args:
        history: the trials, with the problem.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._pool: PoolCandidates | ProductCandidates | None = None
        #: The arms of the pool before this one, as long as their encoding holds.
        self._before: PoolCandidates | ProductCandidates | None = None
        self._regions: Latest[CandidateSet] = Latest(KEPT)

    def forget(self) -> None:
        """Forget all sets, since the problem changes; the bounds of arms are kept for the next pool."""
        self._before, self._pool, self._regions = self._pool or self._before, None, Latest(KEPT)

    def forget_bounds(self) -> None:
        """Forget the bounds of the earlier pool, whose encoding does not hold for the next one."""
        self._before = None

    @property
    def _problem(self) -> Problem:
        return self._history.problem

    @property
    def pool(self) -> PoolCandidates | ProductCandidates:
        """The arms of the pool."""
        if self._pool is None:
            assert self._problem.pool is not None
            self._pool = candidates_of_pool(self._problem.pool, self._problem.feasible, self._before)
            self._before = None
        return self._pool

    def arms(self, fixed: Point) -> CandidateSet | None:
        """The arms with the fixed values; None in a space."""
        if self._problem.pool is None:
            return None
        return self.pool.restricted(fixed) if fixed else self.pool

    def n_arms(self, space: Space | None = None) -> int | None:
        """Number of points of a pool or grid; None for a box. The `space` is needed if the problem has none."""
        if self._problem.pool is not None:
            return len(self._problem.pool)
        space = self._problem.space if space is None else space
        if space is None or space.is_conditional or not space.is_discrete or space.cardinality > GRID_LIMIT:
            return None
        return int(space.cardinality)

    def all_with(self, fixed: Point, space: Space | None = None) -> list[CandidateSet]:
        """The sets that have all points with the fixed values; the `space` is needed if the problem has none."""
        arms = self.arms(fixed)
        if arms is not None:
            return [arms]
        space = self._problem.space if space is None else space
        assert space is not None
        rng = np.random.default_rng(0)  # independent of the random numbers of suggestions
        regions = regions_of(self._history, space, fixed, rng)
        return [candidates_of(region.embedding, self._problem.feasible) for region in regions]

    def in_turn(
        self, posteriors: Posteriors, criterion: Criterion, request: Request
    ) -> Iterator[tuple[CandidateSet, Tensor]]:
        """Sets to search, each with known points to start from: the best first, others in case it is exhausted."""
        arms = self.arms(request.fixed)
        if arms is not None:
            yield arms, posteriors.incumbents()
            return
        searched, are_discrete = list[object](), True
        while (region := region_of(self._history, request, posteriors, criterion, searched)) is not None:
            candidates, incumbents = self._of(region, posteriors)
            yield candidates, incumbents
            searched.append(region.key)
            are_discrete = are_discrete and candidates.is_discrete
        if are_discrete:  # a continuum without points left is infeasible, and so may be all others
            for region in further_regions(self._history, request, searched):
                yield self._of(region, posteriors)

    def _of(self, region: Region, posteriors: Posteriors) -> tuple[CandidateSet, Tensor]:
        make = partial(candidates_of, region.embedding, self._problem.feasible)
        candidates = self._regions.of((self._history.version, region.key), make)
        return candidates, posteriors.incumbents(region.members(self._history.encoding, posteriors.known.X))
