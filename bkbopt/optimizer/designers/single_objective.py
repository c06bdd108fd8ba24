"""The log of an optimizer with one of its objectives, or with another measured quantity as its objective."""

from collections.abc import Callable
from dataclasses import replace

from bkbopt.optimizer.designers.logged_designer import LoggedDesigner
from bkbopt.optimizer.log.aims import Aims
from bkbopt.optimizer.log.attributes import as_number
from bkbopt.optimizer.log.trials import Trial, values_of
from bkbopt.search.trials.directions import sign_of

__all__ = ["with_one_objective", "with_quantity"]


def with_one_objective(core: LoggedDesigner, k: int) -> LoggedDesigner:
    """A copy in memory of a log with its designer, whose trials have the values of objective `k` alone."""

    def with_one_value(trial: Trial) -> Trial:
        own, std = values_of(trial)[k : k + 1], None if trial.stds is None else trial.stds[k]
        values = tuple(value for value in own if value is not None)
        return replace(trial, values=values, partial_values=(), stds=None if std is None else (std,))

    return _copied(core, core.aims.with_one(k), with_one_value)


def with_quantity(core: LoggedDesigner, name: str) -> LoggedDesigner | None:
    """A copy in memory whose objective is a constraint, or an attribute that is a number; None if no trial has it."""

    def with_value(trial: Trial) -> Trial:
        number = trial.constraints.get(name, as_number(trial.user_attrs.get(name)) if values_of(trial) else None)
        values = () if number is None else (number,)
        return replace(trial, values=values, partial_values=(), stds=None, constraints={})

    if not any(with_value(trial).values for trial in core.log):
        return None
    return _copied(core, core.aims.with_quantity(name), with_value)


def _copied(core: LoggedDesigner, aims: Aims, changed: Callable[[Trial], Trial]) -> LoggedDesigner:
    designer = core.designer
    problem = replace(designer.problem, signs=tuple(map(sign_of, aims.directions)))
    single = LoggedDesigner(problem, designer.options, designer.seed, core.feasible, aims)
    single.spaces = core.spaces.copy()
    single.log.put([replace(entry, trial=changed(entry.trial)) for entry in core.log.entries])
    single.mend()
    return single
