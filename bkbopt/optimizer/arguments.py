"""Checks of the optimizer's arguments, and their conversion to the objects that the search uses."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.checks import check_choice, check_count
from bkbopt.errors import ArgumentError, ArgumentTypeError, KernelError
from bkbopt.kernels import ARDKernel, Kernel, matern52
from bkbopt.search.criteria.acquisition import Acquisition
from bkbopt.search.criteria.criterion import ACQUISITIONS, AcquisitionRule, rule_of
from bkbopt.search.trials.evaluations import Problem
from bkbopt.search.trials.history import History
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Params
from bkbopt.spaces.pool import Pool, as_pool
from bkbopt.spaces.sources import is_stored
from bkbopt.spaces.space import Space
from bkbopt.spaces.stored import encoded_pool
from bkbopt.spaces.values import with_hint
from bkbopt.surrogates import BKB, Surrogate
from bkbopt.surrogates.registry import MakesSurrogate, surrogate_named

__all__ = [
    "as_directions",
    "as_names",
    "as_objective",
    "as_problem",
    "as_queued",
    "as_rule",
    "as_surrogate",
    "check_columns",
    "check_kernel",
    "check_symmetry",
    "checked_seed",
]


#: An array with at most this many rows (low, high) is refused: it may be meant as bounds, or as a pool.
MOST_BOUNDS = 20
#: Number of objects for which a kernel's symmetry is checked; each may take long.
FEW_OBJECTS = 8
#: Largest difference of kernel values that have to be equal, relative; those computed in float32 differ by 1e-6.
ASYMMETRY = 1e-3


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


def as_surrogate(given: str | Surrogate | MakesSurrogate | None, fit: bool) -> Surrogate:
    """A `Surrogate` from a name, an instance without data (copied), a learner without data, or None."""
    surrogate = _surrogate(given)
    if not fit and not (surrogate.has_kernel and surrogate.fixed_noise):
        raise ArgumentError(
            "fit: expected a surrogate with kernel and noise when fit=False, since nothing is fitted; pass both to it."
        )
    return surrogate


def _surrogate(given: str | Surrogate | MakesSurrogate | None) -> Surrogate:
    if given is None:
        return BKB()
    if isinstance(given, str):
        return surrogate_named(given)
    if hasattr(type(given), "as_surrogate"):
        return cast(MakesSurrogate, given).as_surrogate()
    # isinstance with a protocol would read properties that raise errors before the first observation.
    if isinstance(given, type) or not hasattr(type(given), "fantasy"):
        raise ArgumentTypeError(f"surrogate: expected a name or an instance such as bo.BKB(), got {given!r}.")
    given = cast(Surrogate, given)
    if len(given.observations):
        raise ArgumentError("surrogate: expected one without data, got one with observations; pass a new instance.")
    return copy.deepcopy(given)


def check_kernel(surrogate: Surrogate, history: History) -> None:
    """Raise an error if the surrogate's kernel, given or default, does not fit the encoded points of this history."""
    default = matern52(history.dim, categorical=history.categorical)
    surrogate.check_kernel(surrogate.kernel if surrogate.has_kernel else default)
    if surrogate.has_kernel and isinstance(surrogate.kernel, ARDKernel) and surrogate.kernel.dim != history.dim:
        raise ArgumentError(
            f"surrogate: expected a kernel with {history.dim} columns, those of the encoded points, got one with "
            f"{surrogate.kernel.dim}."
        )


@torch.no_grad()
def check_symmetry(kernel: Kernel, n: int) -> None:
    """Refuse a kernel on `n` objects if the order of two of the first few changes its value."""
    rows = torch.arange(float(min(n, FEW_OBJECTS)), dtype=torch.float64)[:, None]
    K = kernel(rows, rows)
    gaps = (K - K.T).abs()
    if bool((gaps > ASYMMETRY * K.abs().max()).any()):
        i, j = divmod(int(gaps.argmax()), len(K))
        raise KernelError(
            f"kernel: expected k(a, b) = k(b, a), got {float(K[i, j]):.6g} for objects {i} and {j} of the pool and "
            f"{float(K[j, i]):.6g} for {j} and {i}; pass a symmetric kernel."
        )


def check_columns(surrogate: Surrogate, old: Space | Arms, new: Space | Arms) -> None:
    """Raise an error if a new space has other encoded columns than the old one, and the surrogate's kernel was given.

    The points of all trials are encoded together. A given kernel has a number of columns, and a lengthscale for each.
    """
    if not (surrogate.has_kernel and isinstance(old, Space) and isinstance(new, Space)):
        return
    if list(old.keyed) != list(new.keyed):
        names = [", ".join(repr(name) for name, _ in space.items) for space in (old, new)]
        raise ArgumentError(
            f"space: expected the parameters {names[0]}, of these kinds and in this order, for which the surrogate's "
            f"kernel was given, got {names[1]}; keep them, or make a new optimizer."
        )


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


def as_rule(given: str | Acquisition) -> AcquisitionRule:
    """The acquisition rule of a name or of a callable."""
    if isinstance(given, str):
        check_choice("acquisition", given, tuple(ACQUISITIONS))
    elif isinstance(given, type) or not callable(given):
        raise ArgumentTypeError(
            f"acquisition: expected one of {tuple(ACQUISITIONS)} or a callable (mean, variance) -> scores, "
            f"got {given!r}."
        )
    return rule_of(given)


def as_directions(
    direction: str, directions: Sequence[str] | Mapping[str, str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """One direction for each objective, and their names, if they have any."""
    allowed = ("minimize", "maximize")
    if directions is None:
        return (check_choice("direction", direction, allowed),), ()
    is_list = isinstance(directions, Sequence) and not isinstance(directions, str)
    if not (is_list or isinstance(directions, Mapping)) or not directions:
        raise ArgumentTypeError(
            "directions: expected a list of directions, one per objective, or a dict from names of objectives to "
            f"directions, got {directions!r}."
        )
    if direction != "minimize":
        raise ArgumentError(f"direction: expected none beside directions={directions!r}, got {direction!r}; drop one.")
    names = as_names("directions", list(directions)) if isinstance(directions, Mapping) else ()
    each = directions.values() if isinstance(directions, Mapping) else directions
    return tuple(check_choice("directions", one, allowed) for one in each), names


def as_objective(given: Any, k: int, names: Sequence[str]) -> int:
    """The number of an objective that is given by its number or name.

    Raises:
        ArgumentTypeError: neither a number nor a name.
        ArgumentError: there is no such objective.
    """
    if isinstance(given, str) and names:
        if given not in names:
            raise ArgumentError(f"objective: expected one of {tuple(names)}, or its number, got {given!r}.")
        return names.index(given)
    number = check_count("objective", given, 0)
    if number >= k:
        raise ArgumentError(f"objective: expected a number below {k}, got {number}.")
    return number


def as_names(argument: str, given: Sequence[str]) -> tuple[str, ...]:
    """A tuple of distinct names."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        limits = isinstance(given, Mapping) and argument == "constraints"
        advice = (
            "; pass list(constraints), and tell by how much each limit is exceeded, feasible if <= 0" if limits else ""
        )
        raise ArgumentTypeError(f"{argument}: expected a list of names, got {given!r}{advice}.")
    if len(set(given)) < len(given):
        raise ArgumentError(f"{argument}: expected distinct names, got {tuple(given)}.")
    return tuple(given)


def as_queued(given: Any) -> Params:
    """The parameters of a point that is to be queued."""
    if not isinstance(given, Mapping):
        advice = 'pass {"name": value, ...}, and call enqueue once for each of several points'
        got = with_hint(given, f"{type(given).__name__}; {advice}")
        raise ArgumentTypeError(f"params: expected a dict of parameters, got {got}.")
    return given


def checked_seed(seed: Any) -> int | None:
    """A seed: a whole number >= 0, or None."""
    return None if seed is None else check_count("seed", seed, 0, "a whole number >= 0, or None")
