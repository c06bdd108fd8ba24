"""The optimizer's arguments, checked: what people pass, as the objects that the optimizer works with."""

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from bkbopt._support.arrays import as_values, check_count
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.learners.recipes import is_learner
from bkbopt.learners.surrogate import LearnerSurrogate
from bkbopt.optimizer.names import surrogate_named
from bkbopt.search.box_candidates import BoxDomain
from bkbopt.search.candidates import Params
from bkbopt.search.pool_candidates import Pool, PoolDomain
from bkbopt.search.trials import Trial
from bkbopt.spaces.space import Space
from bkbopt.surrogates import Surrogate

if TYPE_CHECKING:
    from bkbopt.learners import OnlineLearner

__all__ = ["as_domain", "as_surrogate", "checked_seed", "checked_value", "trial_id"]


def as_domain(
    given: Any, feasible: Callable[[Params], bool] | None, seed: int, fit: bool, has_kernel: bool
) -> BoxDomain | PoolDomain:
    """The domain that the user means; a list of (low, high) tuples is a space, an array is a pool."""
    if isinstance(given, Pool):
        return PoolDomain(given, feasible, scale=fit, has_kernel=has_kernel)
    pairs = (
        isinstance(given, list | tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in given) and len(given) > 0
    )
    if isinstance(given, Space | Mapping) or pairs:
        return BoxDomain(Space.parse(list(given) if pairs else given), feasible, seed)
    if hasattr(given, "iloc") or isinstance(given, np.ndarray | Tensor | list | tuple):
        return PoolDomain(Pool(given), feasible, scale=fit, has_kernel=has_kernel)
    raise ArgumentTypeError(
        "space_or_pool: expected a dict of parameters, a list of (low, high) tuples, an array, a data frame or a list "
        f"of arms, got {type(given).__name__}."
    )


def as_surrogate(given: "str | Surrogate | OnlineLearner | None") -> Surrogate:
    """A surrogate of our own from a name, an instance without data (copied), a learner without data, or None."""
    if given is None or isinstance(given, str):
        return surrogate_named("bkb" if given is None else given)
    if is_learner(given):
        return LearnerSurrogate(learner=given)
    # isinstance of a protocol would read its properties, which are not ready before the first observation.
    if isinstance(given, type) or not hasattr(type(given), "fantasy"):
        raise ArgumentTypeError(f"surrogate: expected a name or an instance such as bo.BKB(), got {given!r}.")
    if len(given.observations):
        raise ArgumentError("surrogate: expected one without data, got one that has observed points; pass a new one.")
    return copy.deepcopy(given)


def trial_id(trial: Any) -> int:
    """The id that a trial or an integer stands for."""
    if isinstance(trial, Trial):
        return trial.id
    if isinstance(trial, int | np.integer) and not isinstance(trial, bool):
        return int(trial)
    raise ArgumentTypeError(f"trial: expected a trial, its id, or a dict of parameters, got {type(trial).__name__}.")


def checked_value(value: Any) -> float:
    """One finite number; an array of one element will do."""
    if value is None:
        raise ArgumentTypeError("value: expected a finite number, got None; call fail for a trial without a value.")
    return float(as_values(value, 1, name="value").detach()[0])


def checked_seed(seed: Any) -> int | None:
    """A seed: a whole number >= 0, or None."""
    return None if seed is None else check_count("seed", seed, 0, "a whole number >= 0, or None")
