"""Types of arguments that several functions take by name, for editors and type checkers."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from bkbopt.confidence import Confidence
from bkbopt.optimizer.arguments.known_constraint import Feasible
from bkbopt.optimizer.arguments.outcome_constraints import Constraints
from bkbopt.optimizer.log.trials import Trial
from bkbopt.search.criteria.acquisition import Acquisition
from bkbopt.surrogates import Surrogate
from bkbopt.surrogates.base import MakesSurrogate

if TYPE_CHECKING:
    import pandas

__all__ = [
    "AcquisitionName",
    "Constraints",
    "Direction",
    "FailOptions",
    "Feasible",
    "LogParts",
    "ManyTrials",
    "MinimizeOptions",
    "OneTrial",
    "Options",
    "TellOptions",
]

Direction = Literal["minimize", "maximize"]
AcquisitionName = Literal["ucb", "logei", "thompson"]

#: A trial, its id, or the parameters of a point.
OneTrial: TypeAlias = Trial | int | Mapping[str, Any]
#: Several of these, or a data frame of parameters.
ManyTrials: TypeAlias = "Sequence[OneTrial] | pandas.DataFrame"


class TellOptions(TypedDict, total=False):
    """Arguments of `Optimizer.tell` behind the value."""

    constraints: Mapping[str, Any] | None
    std: Any
    columns: Sequence[str] | None
    invalid: Literal["raise", "fail", "skip", "partial"]
    replace: bool
    user_attrs: Mapping[str, Any] | None
    again: bool


class FailOptions(TypedDict, total=False):
    """Arguments of `Optimizer.fail` behind the trial."""

    lost: bool
    user_attrs: Mapping[str, Any] | None


class LogParts(TypedDict, total=False):
    """Arguments of `Optimizer.open` behind the path: what a log does not store."""

    pool: Any
    surrogate: Surrogate | None
    feasible: Feasible | None
    acquisition: Acquisition | None
    beta: Confidence | None


class Options(TypedDict, total=False):
    """Arguments of `Optimizer` behind the space or pool."""

    direction: Direction
    directions: Sequence[str] | Mapping[str, str] | None
    constraints: Constraints
    seed: int | None
    n_startup_trials: int | None
    surrogate: str | Surrogate | MakesSurrogate | None
    acquisition: AcquisitionName | Acquisition
    beta: float | Confidence | None
    fit: bool
    duplicates: Literal["allow", "avoid"]
    deterministic: bool
    feasible: Feasible | None
    perturbations: bool
    storage: str | os.PathLike[str] | None


class MinimizeOptions(Options, total=False):
    """Arguments of `minimize` behind the number of trials, and those of `Optimizer`."""

    timeout: float | None
    callbacks: Callable[..., object] | Iterable[Callable[..., object]]
    executor: Any
    n_workers: int | None
    catch: type[Exception] | Iterable[type[Exception]]
    invalid: Literal["raise", "fail"]
    show_progress_bar: bool
    stop_at_regret: float | None
    pass_trial: bool
