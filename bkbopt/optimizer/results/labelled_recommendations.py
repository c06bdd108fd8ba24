"""Recommendations in the words of the user: parameters, rows of the pool and labels."""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from bkbopt._support.checks import check_count
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer.designers.logged_designer import LoggedDesigner
from bkbopt.optimizer.results.recommendations import recommendation, recommendations_after, recommended_front
from bkbopt.search.completion import is_complete
from bkbopt.search.trials.evaluations import Point
from bkbopt.search.trials.reports import FrontPoint, Recommendation, RegretCertificate
from bkbopt.spaces.base import Params

__all__ = ["after", "belongs", "certified", "front", "point"]

Found = TypeVar("Found", Recommendation, FrontPoint)


def point(core: LoggedDesigner, fixed: Params) -> Recommendation:
    """See `Optimizer.recommend`."""
    held = core.conversion.fixed(fixed, "fixed")
    designer = core.followed("recommend")
    return _named(core, recommendation(designer, held, core.conversion.params, partial(belongs, core)), fixed)


def after(core: LoggedDesigner, counts: Sequence[int]) -> list[Recommendation]:
    """See `Optimizer.recommended_after`."""
    if not isinstance(counts, Iterable) or isinstance(counts, str):
        raise ArgumentTypeError(f"counts: expected a list of numbers of values, got {type(counts).__name__}.")
    designer = core.followed("recommended_after")
    n = core.log.n_complete - len(designer.history.penalised)
    what = f"numbers of values from 1 to {n}"
    checked = [check_count("counts", count, what=what) for count in counts]
    if beyond := [count for count in checked if count > n]:
        raise ArgumentError(f"counts: expected {what}, got {beyond[0]}.")
    found = recommendations_after(designer, checked, core.conversion.params, partial(belongs, core))
    return [_named(core, earlier, {}) for earlier in found]


def front(core: LoggedDesigner, fixed: Params) -> list[FrontPoint]:
    """See `Optimizer.recommend_front`."""
    held = core.conversion.fixed(fixed, "fixed")
    designer = core.followed("recommend_front")
    found = recommended_front(designer, held, core.conversion.params, partial(belongs, core))
    return [_named(core, p, fixed) for p in found]


def certified(core: LoggedDesigner, found: RegretCertificate) -> RegretCertificate:
    """The certificate of the row that `recommend` names: of rows with equal values the one that was evaluated."""
    index = _evaluated(core, found.index)
    return found if index == found.index else replace(found, index=index, params=core.conversion.params({}, index))


def _named(core: LoggedDesigner, found: Found, fixed: Params) -> Found:
    """The point with its label; of rows with equal values it has the one that `fixed` names, or that was evaluated."""
    conversion = core.conversion
    index = conversion.as_named(found.index, fixed) if fixed else _evaluated(core, found.index)
    params = found.params if index == found.index else conversion.params({}, index)
    return replace(found, index=index, params=params, label=conversion.label(index))


def _evaluated(core: LoggedDesigner, row: int | None) -> int | None:
    """The evaluated row with the values of `row`, of several the one with the best value; `row` if none is known."""
    pool, sign = core.designer.problem.pool, core.designer.problem.signs[0]
    if pool is None or row is None or not pool.may_have_twins:
        return row
    point = pool.point(row)
    there = [entry for entry in core.log.entries if entry.trial.values and entry.point == point]
    for entry in sorted(there, key=lambda entry: -sign * entry.trial.values[0]):
        names = core.conversion.naming(entry.trial, core.is_present(entry))
        with contextlib.suppress(ArgumentError):  # one of an earlier pool that is gone
            if names:
                return core.conversion.as_named(row, names)
    return row


def belongs(core: LoggedDesigner, point: Point) -> bool:
    """Whether a point is a complete point of the current space or pool that `feasible` accepts."""
    problem = core.designer.problem
    is_whole = core.conversion.holds(point) and is_complete(problem, point)
    return is_whole and (problem.feasible is None or problem.feasible(point))
