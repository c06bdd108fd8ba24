"""Studies of Optuna as optimizers, for pictures, reports, predictions and certificates."""

import logging
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from bkbopt._support.settings import in_usual_settings
from bkbopt.adapters.optuna.columns import distinct, evaluation_of, external, parameter_of
from bkbopt.adapters.optuna.sampler import BKBSampler, arguments_of, check_study, ranges_of, trials_of
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.log.attributes import storable_attrs
from bkbopt.optimizer.log.trials import Trial, utc_now
from bkbopt.optimizer.past.adopting import adopt
from bkbopt.search.trials.states import COMPLETE
from bkbopt.spaces.space import Categorical, Space
from bkbopt.spaces.values import as_float, is_real

__all__ = ["optimizer_of"]

#: A number of a complete trial.
Target = Callable[[FrozenTrial], float]

logger = logging.getLogger(__name__)


def optimizer_of(study: Study, *, target: Target | None = None) -> Optimizer:
    """An optimizer in memory with the trials of a study: for `bkbopt.plots`, `predict`, `regret_certificate`.

    The study may have any sampler. If it is a `BKBSampler`, the optimizer has its options and its model. Trials keep
    their numbers, times and user attributes, objectives the names of `study.set_metric_names`. Ranges are the latest
    ones. A parameter that some trials lack is conditional on another one whose values decide in all trials whether it
    is there, if there is one. Without one, as where it depends on a float, trials may be recommended without it; a copy
    made by `save`, whose space has all parameters, recommends only trials that have them. Trials that were pruned, and
    infinite values, have no value here and are not learnt; the sampler estimates the former, counts infinitely bad
    values as failures, and may recommend another point. `save` refuses trials that a log cannot hold: without a value,
    without parameters, or outside of their ranges.

    The optimizer is a copy to be read, and does not follow the study. Later trials are asked of the study.

    Args:
        study: a study with a complete or pruned trial.
        target: a number to be minimised for each complete trial in place of its values, which may be the duration or
            one of several objectives; an infinite one or NaN counts as none. Its noise is estimated.

    Raises:
        ArgumentTypeError: `study` is none, or `target` gives something else than numbers.
        ArgumentError: no trial with parameters is complete or pruned.

    Example:
        >>> import optuna
        >>> from bkbopt.adapters.optuna import BKBSampler, optimizer_of
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=BKBSampler(seed=0))
        >>> study.optimize(lambda trial: (trial.suggest_float("x", -1, 2) - 0.5) ** 2, n_trials=15)
        >>> optimizer_of(study).recommend() == study.sampler.recommend(study)
        True
    """
    opt = of_complete(study, target)
    finished = [trial for trial in trials_of(study) if trial.state.is_finished()]
    n_pruned = sum(trial.state == TrialState.PRUNED for trial in finished)
    if n_pruned:
        estimated = isinstance(study.sampler, BKBSampler) and target is None
        logger.warning(
            "study: %d of %d finished trials were pruned, and have no value in the optimizer: its models and pictures "
            "are of the others.%s",
            n_pruned,
            len(finished),
            " study.sampler.recommend(study) estimates their values." if estimated else "",
        )
    return opt


@in_usual_settings
def of_complete(study: Study, target: Target | None) -> Optimizer:
    """What `optimizer_of` returns, without its warning of pruned trials: for readers that are of complete ones."""
    check_study(study)
    sampler = study.sampler if isinstance(study.sampler, BKBSampler) else BKBSampler(seed=0)
    space = _space_of(ranges_of(sampler, study))
    if space is None:
        raise ArgumentError(
            "study: expected a complete or pruned trial with parameters, got none; call optimize or tell first."
        )
    trials, arguments = trials_of(study), arguments_of(sampler)
    if target is not None:  # its noise is estimated
        arguments["deterministic"] = False
    opt = Optimizer(
        space,
        directions=_directions(study) if target is None else ["minimize"],
        constraints=dict.fromkeys(sorted({name for trial in trials for name in trial.constraints}), (None, 0.0)),
        **arguments,
    )
    finished = [trial for trial in trials if trial.state.is_finished()]
    finished.sort(key=lambda trial: evaluation_of(trial).order)
    by_number = sorted(trials, key=lambda trial: trial.number)
    adopted = [(_trial(t, _values_of(t, target)), _space_of(t.distributions)) for t in by_number]
    adopt(opt, adopted, [t.number for t in finished])
    return opt


def _directions(study: Study) -> list[str] | dict[str, str]:
    """The directions of a study, by the names of its metrics if these are set and distinct."""
    directions, names = [direction.name.lower() for direction in study.directions], study.metric_names or []
    is_named = 0 < len(names) == len(set(names))
    return dict(zip(names, directions, strict=True)) if is_named else directions


def _space_of(distributions: Mapping[str, BaseDistribution]) -> Space | None:
    """The space of distributions in the order of their names, as the sampler has them, with their choices."""
    once = ((name, distinct(distribution)) for name, distribution in sorted(distributions.items()))
    items = [
        (name, Categorical(d.choices) if isinstance(d, CategoricalDistribution) else parameter_of(d))
        for name, d in once
    ]
    return Space(tuple(items)) if items else None


def _values_of(trial: FrozenTrial, target: Target | None) -> tuple[float, ...]:
    """The values of a trial, none if one is infinite or NaN, or if the trial is not complete."""
    if trial.state != TrialState.COMPLETE:
        return ()
    values = trial.values if target is None else [target(trial)]
    if not all(is_real(value) or isinstance(value, bool | np.bool_) for value in values):
        raise ArgumentTypeError(f"target: expected a number for trial {trial.number}, got {values[0]!r}.")
    numbers = tuple(map(as_float, values))
    return numbers if all(map(math.isfinite, numbers)) else ()


def _trial(trial: FrozenTrial, values: tuple[float, ...]) -> Trial:
    pruned, complete = trial.state == TrialState.PRUNED, trial.state == TrialState.COMPLETE
    limits = trial.constraints if complete or pruned else {}
    return Trial(
        trial.number,
        {name: _own(value, trial.distributions[name]) for name, value in trial.params.items()},
        state=COMPLETE if pruned else trial.state.name,
        values=values,
        constraints={name: limit for name, limit in limits.items() if math.isfinite(limit)},
        asked_at=_utc(trial.datetime_start) or utc_now(),
        told_at=_utc(trial.datetime_complete),
        user_attrs=storable_attrs(trial.user_attrs),
    )


def _own(value: object, distribution: BaseDistribution) -> object:
    """A parameter's value, or the choice that Optuna takes it for: trials may have 1.0 or True for the choice 1."""
    if not isinstance(distribution, CategoricalDistribution):
        return value
    return external(distribution, distinct(distribution).to_internal_repr(value))


def _utc(local: datetime | None) -> datetime | None:
    return None if local is None else local.astimezone(UTC)
