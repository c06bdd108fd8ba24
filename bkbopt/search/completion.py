"""Completion of points: with the values that follow from the problem, or with values that the models assume."""

from bkbopt.search.trials.evaluations import Point, Problem
from bkbopt.spaces.encoding import Encoding
from bkbopt.spaces.space import Space

__all__ = ["assumed", "completed", "is_complete"]


def completed(problem: Problem, point: Point) -> tuple[Point, int | None] | None:
    """The point with these values and its first row in the pool; None if there are several such points."""
    pool, space = problem.pool, problem.space
    if pool is not None:
        rows = pool.rows_like(point)
        is_whole = len(point) == len(pool.names)  # several rows with all of these values are one point
        return (pool.point(rows[0]), rows[0]) if len(rows) == 1 or (rows and is_whole) else None
    assert space is not None
    every = _with_single(space, point)
    return None if space.free_in(every) else (every, None)


def is_complete(problem: Problem, point: Point) -> bool:
    """Whether an evaluated point lacks no value but those that follow from the problem, and optional ones."""
    space = problem.space
    if space is None:
        return completed(problem, point) is not None
    return not space.free_in(_with_single(space, point)).keys() - _optional(problem, space)


def assumed(problem: Problem, encoding: Encoding, point: Point) -> Point:
    """The point of a trial with a value for each active parameter of the space, as the models see it.

    Missing values are mid-range, or the first choice: the nearest ones of the space to those of `Encoding.absent`.
    Others stay as they are, also outside of the space; those of inactive parameters are left out. Without a space, and
    if it lacks nothing but optional parameters, it is the point itself.
    """
    space = problem.space
    if space is None:
        return point
    whole, optional = _with_single(space, point), _optional(problem, space)
    while (free := space.free_in(whole)).keys() - optional:  # an added value may make other parameters active
        embedding = encoding.embedding(free, whole)
        added = embedding.point(embedding.project(encoding.encode([whole]))[0])
        whole = _with_single(space, {**point, **added})
    return point if whole.keys() == point.keys() else whole


def _optional(problem: Problem, space: Space) -> frozenset[str]:
    """Keys of the optional parameters; those for which the space, perhaps a later one, has conditions are none."""
    if not problem.optional:
        return problem.optional
    return problem.optional - {space.parameters[name].column_key(name) for name in space.conditions}


def _with_single(space: Space, point: Point) -> Point:
    """The active part of a point, with the values of the parameters that have only one."""
    single = {key: p.internal_values[0] for key, p in space.keyed.items() if p.n_values == 1}
    return space.active_part({**single, **point})
