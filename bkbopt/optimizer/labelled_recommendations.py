"""Recommendations in the words of the user: parameters, rows of the pool and labels."""

from dataclasses import replace
from functools import partial
from typing import TypeVar

from bkbopt.optimizer.logged_designer import LoggedDesigner
from bkbopt.optimizer.recommendations import recommendation, recommended_front
from bkbopt.search.completion import completed
from bkbopt.search.trials.evaluations import Point
from bkbopt.search.trials.reports import FrontPoint, Recommendation
from bkbopt.spaces.base import Params

__all__ = ["belongs", "front", "point"]

Found = TypeVar("Found", Recommendation, FrontPoint)


def point(core: LoggedDesigner, fixed: Params) -> Recommendation:
    """See `Optimizer.recommend`."""
    held = core.vocabulary.fixed(fixed, "fixed")
    designer = core.followed("recommend")
    return _named(core, recommendation(designer, held, core.vocabulary.params, partial(belongs, core)), fixed)


def front(core: LoggedDesigner, fixed: Params) -> list[FrontPoint]:
    """See `Optimizer.recommend_front`."""
    held = core.vocabulary.fixed(fixed, "fixed")
    designer = core.followed("recommend_front")
    found = recommended_front(designer, held, core.vocabulary.params, partial(belongs, core))
    return [_named(core, p, fixed) for p in found]


def _named(core: LoggedDesigner, found: Found, fixed: Params) -> Found:
    """The point with its label; of rows with equal values it has the one that `fixed` names."""
    words = core.vocabulary
    index = words.as_named(found.index, fixed)
    params = found.params if index == found.index else words.params({}, index)
    return replace(found, index=index, params=params, label=words.label(index))


def belongs(core: LoggedDesigner, point: Point) -> bool:
    """Whether a point is a complete point of the current space or pool."""
    return core.vocabulary.holds(point) and completed(core.designer.problem, point) is not None
