"""Conversion of Optuna's distributions to parameters, and of its trials to evaluations.

Values are in Optuna's internal form, which is also ours: numbers, and categories by index. Choices may be any objects
that Optuna accepts, so the parameter of a category has the indices as its choices, and the text of the choices in its
column key. Optuna accepts a list that has a choice twice, and takes it for the first one wherever it reads a value.
Indices are those of the list without repeats: a repeat would be a choice that no trial ever has, always worth a trial.
"""

import copy
import functools
import hashlib
import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

from bkbopt.adapters.optuna.proposals import published_point
from bkbopt.search.trials.evaluations import Evaluation
from bkbopt.search.trials.states import COMPLETE, FAIL, PRUNED, RUNNING
from bkbopt.spaces.encoding import real_numbers, whole_numbers
from bkbopt.spaces.space import Categorical, Parameter, Space

__all__ = ["distinct", "evaluation_of", "external", "held", "internal_point", "key_of", "parameter_of", "space_of"]

#: Longer texts of choices are replaced by their digests: the keys of columns are published with every proposal.
LONGEST = 200


def distinct(distribution: BaseDistribution) -> BaseDistribution:
    """The distribution with each choice once, the first of those that Optuna takes for equal."""
    choices = getattr(distribution, "choices", ())
    with suppress(TypeError):  # a choice without a hash
        if len(set(choices)) == len(choices) and not any(map(operator.ne, choices, choices)):  # no NaN
            return distribution
    # Optuna looks for the object itself first, also for NaN: another NaN has the index of the first one.
    sought = (float("nan") if isinstance(c, float | np.floating) and math.isnan(c) else c for c in choices)
    first = [distribution.to_internal_repr(choice) == i for i, choice in enumerate(sought)]
    once = copy.copy(distribution)  # Optuna's constructor warns of objects
    vars(once)["choices"] = tuple(itertools.compress(choices, first))
    return once


def external(distribution: BaseDistribution, value: float) -> object:
    """The value of a distribution whose internal form is `value`."""
    return distinct(distribution).to_external_repr(value)


def parameter_of(distribution: BaseDistribution) -> Parameter:
    """The parameter of a distribution.

    Raises:
        NotImplementedError: an unknown class of distributions, from a later version of Optuna.
    """
    distribution = distinct(distribution)
    if isinstance(distribution, CategoricalDistribution):
        return _indices(len(distribution.choices), _text(distribution.choices))
    if isinstance(distribution, IntDistribution):
        return _whole(distribution.low, distribution.high, log=distribution.log, step=distribution.step)
    if isinstance(distribution, FloatDistribution):
        return _real(distribution.low, distribution.high, log=distribution.log, step=distribution.step)
    raise NotImplementedError(f"BKBSampler does not support the distribution {distribution!r}.")


def _text(choices: Sequence[object]) -> str:
    """Choices in a key: one text for those that Optuna takes for equal, as written to a storage and read from it."""
    text = repr(tuple(map(_plain, choices)))
    return text if len(text) <= LONGEST else hashlib.sha256(text.encode()).hexdigest()


def _plain(choice: object) -> object:
    """A choice without its type, if it is a number, bool or string: np.str_("a") as "a", True and 1.0 as 1."""
    choice = choice.item() if isinstance(choice, np.generic) else choice
    return int(choice) if isinstance(choice, bool) or (isinstance(choice, float) and choice.is_integer()) else choice


@dataclass(frozen=True, repr=False)
class _Indices(Categorical):
    """The indices of choices, with the text of the choices: a study may have another parameter of any name."""

    text: str = field(default="", kw_only=True)
    __hash__ = Categorical.__hash__

    def column_key(self, name: str) -> str:
        return f"{name} of {self.text} of {len(self.choices)}"


@functools.lru_cache(maxsize=256)
def _indices(n: int, text: str) -> Categorical:
    return _Indices(tuple(map(float, range(n))), text=text)


# Cached, since most trials have the same ranges as the trial before.
_whole = functools.lru_cache(maxsize=4096)(whole_numbers)
_real = functools.lru_cache(maxsize=4096)(real_numbers)
_space = functools.lru_cache(maxsize=1024)(Space)


def key_of(name: str, distribution: BaseDistribution) -> str:
    """The column key of a parameter: its name and the attributes that Optuna does not allow to change."""
    return parameter_of(distribution).column_key(name)


def space_of(distributions: Mapping[str, BaseDistribution]) -> Space | None:
    """The space of distributions by name; equal ranges give the same object. None without parameters."""
    items = tuple((name, parameter_of(distribution)) for name, distribution in sorted(distributions.items()))
    return _space(items) if items else None


def internal_point(trial: FrozenTrial) -> dict[str, float]:
    """A trial's parameters in internal form by column key."""
    once = {name: distinct(distribution) for name, distribution in trial.distributions.items()}
    return {key_of(name, one): float(one.to_internal_repr(trial.params[name])) for name, one in once.items()}


def held(params: Mapping[str, object], distributions: Mapping[str, BaseDistribution]) -> dict[str, float]:
    """Those parameters whose values the distributions have, in internal form by column key."""
    point = dict[str, float]()
    for name, value in params.items():
        with suppress(KeyError, ValueError, OverflowError):  # another parameter, no double, or none of the choices
            distribution = distinct(distributions[name])
            internal = float(distribution.to_internal_repr(value))
            if distribution._contains(internal):
                point[key_of(name, distribution)] = internal
    return point


def evaluation_of(trial: FrozenTrial) -> Evaluation:
    """The evaluation of a trial, for the designer."""
    state = trial.state.name  # our states have Optuna's names
    finished = trial.datetime_complete
    proposed = published_point(trial) if state in (RUNNING, FAIL) else {}
    return Evaluation(
        trial.number,
        state,
        proposed | internal_point(trial),  # parameters that the trial has used override the proposed ones
        None if state in (RUNNING, FAIL) else space_of(trial.distributions),  # their ranges do not widen columns
        (finished.timestamp() if finished is not None else 0.0, trial.number),
        tuple(trial.values) if state == COMPLETE else (),
        curve=trial.intermediate_values if state in (COMPLETE, PRUNED) else {},
        constraints=dict(trial.constraints),
    )
