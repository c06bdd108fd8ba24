"""The log of an optimizer with one of its objectives."""

from dataclasses import replace

from bkbopt.optimizer.designers.logged_designer import LoggedDesigner
from bkbopt.optimizer.log.trials import Entry

__all__ = ["with_one_objective"]


def with_one_objective(core: LoggedDesigner, k: int) -> LoggedDesigner:
    """A copy in memory of a log with its designer, whose trials have the values of objective `k` alone."""
    designer = core.designer
    problem = replace(designer.problem, signs=designer.problem.signs[k : k + 1])
    single = LoggedDesigner(problem, designer.options, designer.seed, core.feasible, core.aims.with_one(k))
    single.spaces = core.spaces.copy()
    single.log.put([_with_one_value(entry, k) for entry in core.log.entries])
    single.mend()
    return single


def _with_one_value(entry: Entry, k: int) -> Entry:
    trial = entry.trial
    stds = None if trial.stds is None or trial.stds[k] is None else trial.stds[k : k + 1]
    return replace(entry, trial=replace(trial, values=trial.values[k : k + 1], stds=stds))
