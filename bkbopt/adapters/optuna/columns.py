"""Conversion of Optuna's distributions to parameters, and of its trials to evaluations.

Values are in Optuna's internal form, which is also ours: numbers, and categories by index. Choices may be any objects
that Optuna accepts, so the parameter of a category has the indices as its choices, and the text of the choices in its
name.
"""

import functools
from collections.abc import Mapping

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from bkbopt.adapters.optuna.proposals import published_point
from bkbopt.search.trials.evaluations import Evaluation
from bkbopt.search.trials.states import COMPLETE, FAIL, PRUNED, RUNNING
from bkbopt.spaces.encoding import column_key, real_numbers, whole_numbers
from bkbopt.spaces.space import Categorical, Parameter, Space

__all__ = ["evaluation_of", "internal_point", "key_of", "named_parameter", "space_of"]

STATES = {
    TrialState.RUNNING: RUNNING,
    TrialState.COMPLETE: COMPLETE,
    TrialState.PRUNED: PRUNED,
    TrialState.FAIL: FAIL,
}


def named_parameter(name: str, distribution: BaseDistribution) -> tuple[str, Parameter]:
    """The name and the parameter of a distribution.

    Raises:
        NotImplementedError: an unknown class of distributions, from a later version of Optuna.
    """
    if isinstance(distribution, CategoricalDistribution):
        return f"{name} of {distribution.choices!r}", _indices(len(distribution.choices))
    if isinstance(distribution, IntDistribution):
        return name, _numbers(int, distribution.low, distribution.high, distribution.log, distribution.step)
    if isinstance(distribution, FloatDistribution):
        return name, _numbers(float, distribution.low, distribution.high, distribution.log, distribution.step)
    raise NotImplementedError(f"BKBSampler does not support the distribution {distribution!r}.")


# Cached, since most trials have the same ranges as the trial before.
@functools.lru_cache(maxsize=4096)
def _numbers(kind: type, low: float, high: float, log: bool, step: float | None) -> Parameter:
    if kind is int:
        return whole_numbers(int(low), int(high), log=log, step=int(step or 1))
    return real_numbers(low, high, log=log, step=step)


@functools.lru_cache(maxsize=256)
def _indices(n: int) -> Categorical:
    return Categorical([float(i) for i in range(n)])


def key_of(name: str, distribution: BaseDistribution) -> str:
    """The column key of a parameter: its name and the attributes that Optuna does not allow to change."""
    return column_key(*named_parameter(name, distribution))


def space_of(distributions: Mapping[str, BaseDistribution]) -> Space | None:
    """The space of distributions by name; equal ranges give the same object. None without parameters."""
    items = tuple(sorted(named_parameter(name, distribution) for name, distribution in distributions.items()))
    return _space(items) if items else None


@functools.lru_cache(maxsize=1024)
def _space(items: tuple[tuple[str, Parameter], ...]) -> Space:
    return Space(items)


def internal_point(params: Mapping[str, object], distributions: Mapping[str, BaseDistribution]) -> dict[str, float]:
    """A trial's parameters by column key."""
    return {
        key_of(name, distribution): float(distribution.to_internal_repr(params[name]))
        for name, distribution in distributions.items()
        if name in params
    }


def evaluation_of(trial: FrozenTrial) -> Evaluation:
    """The evaluation of a trial, for the designer."""
    state = STATES[trial.state]
    finished = trial.datetime_complete
    return Evaluation(
        trial.number,
        state,
        # Parameters that the trial has used override the proposed ones.
        {
            **(published_point(trial) if state in (RUNNING, FAIL) else {}),
            **internal_point(trial.params, trial.distributions),
        },
        None if state in (RUNNING, FAIL) else space_of(trial.distributions),  # their ranges do not widen columns
        (finished.timestamp() if finished is not None else 0.0, trial.number),
        tuple(trial.values) if state == COMPLETE else (),
        curve=trial.intermediate_values if state in (COMPLETE, PRUNED) else {},
        constraints=dict(trial.constraints),
    )
