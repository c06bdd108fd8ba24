"""Recommendations in the words of the user: parameters, rows of the pool and labels."""

from dataclasses import replace
from functools import partial
from typing import TypeVar

from bkbopt.optimizer.logged_designer import LoggedDesigner
from bkbopt.optimizer.recommendations import recommendation, recommended_front
from bkbopt.search.completion import is_complete
from bkbopt.search.trials.evaluations import Point
from bkbopt.search.trials.reports import FrontPoint, Recommendation
from bkbopt.spaces.base import Params

__all__ = ["belongs", "front", "point"]

Found = TypeVar("Found", Recommendation, FrontPoint)


def point(core: LoggedDesigner, fixed: Params) -> Recommendation:
    """See `Optimizer.recommend`."""
    held = core.conversion.fixed(fixed, "fixed")
    designer = core.followed("recommend")
    return _named(core, recommendation(designer, held, core.conversion.params, partial(belongs, core)), fixed)


def front(core: LoggedDesigner, fixed: Params) -> list[FrontPoint]:
    """See `Optimizer.recommend_front`."""
    held = core.conversion.fixed(fixed, "fixed")
    designer = core.followed("recommend_front")
    found = recommended_front(designer, held, core.conversion.params, partial(belongs, core))
    return [_named(core, p, fixed) for p in found]


def _named(core: LoggedDesigner, found: Found, fixed: Params) -> Found:
    """The point with its label; of rows with equal values it has the one that `fixed` names."""
    conversion = core.conversion
    index = conversion.as_named(found.index, fixed)
    params = found.params if index == found.index else conversion.params({}, index)
    return replace(found, index=index, params=params, label=conversion.label(index))


def belongs(core: LoggedDesigner, point: Point) -> bool:
    """Whether a point is a complete point of the current space or pool that `feasible` accepts."""
    problem = core.designer.problem
    is_whole = core.conversion.holds(point) and is_complete(problem, point)
    return is_whole and (problem.feasible is None or problem.feasible(point))
