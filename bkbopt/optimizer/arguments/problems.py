"""The space or pool of an optimizer: as it is given, changed, and named in calls."""

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from torch import Tensor

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.search.trials.evaluations import Problem
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Params
from bkbopt.spaces.pool import Pool, as_pool
from bkbopt.spaces.sources import is_stored
from bkbopt.spaces.space import Space
from bkbopt.spaces.stored import encoded_pool
from bkbopt.spaces.values import with_hint

__all__ = ["arms_of", "as_problem", "as_queued", "other_pool", "other_space"]

#: An array with at most this many rows (low, high) is refused: it may be meant as bounds, or as a pool.
MOST_BOUNDS = 20


def as_problem(given: Any, fit: bool, has_kernel: bool) -> Problem:
    """The space or pool that the user means; a list of (low, high) tuples is a space, an array is a pool.

    With a kernel, tuples of anything but numbers are objects of a pool.

    The pool of a log is already encoded.

    Raises:
        ArgumentError: an array of a few rows (low, high), which may be either.
        ArgumentTypeError: none of these.
    """
    if isinstance(given, Arms) and given.scale == fit and (has_kernel or given.columns is not None):
        return Problem(pool=given)
    if isinstance(given, Pool) or is_stored(given):
        return Problem(pool=encoded_pool(as_pool(given), scale=fit, has_kernel=has_kernel))
    pairs = _are_pairs(given, of_numbers=has_kernel)
    if isinstance(given, Space | Mapping) or pairs:
        return Problem(space=Space.parse(list(given) if pairs else given))
    if hasattr(given, "iloc") or isinstance(given, np.ndarray | Tensor | list | tuple):
        if _may_be_bounds(given):
            raise ArgumentError(
                "space_or_pool: expected a space or a pool, got rows of (low, high), which may be either; pass "
                "bo.Space.parse(bounds) for the box with these bounds, or bo.Pool(rows) for a pool of these points."
            )
        return Problem(pool=encoded_pool(as_pool(given), scale=fit, has_kernel=has_kernel))
    raise ArgumentTypeError(
        "space_or_pool: expected a dict of parameters, a list of (low, high) tuples, an array, a data frame, a list of "
        f"arms, or a path, an Arrow table or a Dask collection, got {type(given).__name__}."
    )


def _are_pairs(given: Any, *, of_numbers: bool) -> bool:
    if not isinstance(given, list | tuple) or not given:
        return False
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in given):
        return False
    return not of_numbers or all(isinstance(end, Real) for pair in given for end in pair)


def _may_be_bounds(given: Any) -> bool:
    if hasattr(given, "iloc") or getattr(given, "ndim", 2) != 2 or not 0 < len(given) <= MOST_BOUNDS:
        return False
    rows = given if isinstance(given, list | tuple) else given.tolist()
    return all(_is_interval(row) for row in rows)


def _is_interval(row: Any) -> bool:
    is_pair = isinstance(row, list | tuple) and len(row) == 2
    return is_pair and all(isinstance(value, int | float) for value in row) and row[0] < row[1]


def other_pool(old: Arms | None, given: Any, *, has_kernel: bool) -> Arms:
    """The pool that takes the place of an optimizer's; see `Optimizer.set_pool`."""
    if old is None:
        raise ArgumentError("pool: expected an optimizer over a pool, but this one has a search space.")
    new = encoded_pool(as_pool(given), scale=old.scale, has_kernel=has_kernel, like=old)
    if new.feasible is not None and new.feasible is not old.feasible:
        raise ArgumentError("feasible: expected none in set_pool, since that of the optimizer holds; leave it out.")
    return new


def other_space(old: Space | None, given: Any, past: Any) -> tuple[Space, Params]:
    """The space that takes the place of an optimizer's, and the values of `past`; see `Optimizer.set_space`."""
    if old is None:
        raise ArgumentError("space: expected an optimizer over a space, but this one has a pool; see set_pool.")
    if not isinstance(past, Mapping | None):
        raise ArgumentTypeError(f"past: expected a dict of parameters, got {type(past).__name__}.")
    return Space.parse(given), past or {}


def arms_of(pool: Arms | None, rows: Any) -> list[Params]:
    """Rows of a pool, by number or label, as parameters; see `Optimizer.tell_rows`."""
    if pool is None:
        raise ArgumentError("rows: expected an optimizer over a pool, but this one has a search space; see tell.")
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise ArgumentTypeError(f"rows: expected a list of row numbers or labels, got {rows!r}.")
    return [{"index": row} for row in pool.rows_named(list(rows))]


def as_queued(given: Any) -> Params:
    """The parameters of a point that is to be queued."""
    if not isinstance(given, Mapping):
        advice = 'pass {"name": value, ...}, and call enqueue once for each of several points'
        got = with_hint(given, f"{type(given).__name__}; {advice}")
        raise ArgumentTypeError(f"params: expected a dict of parameters, got {got}.")
    return given
