"""The data of a report: a run as it is when the report is made."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from bkbopt.analysis.run_data import has_model
from bkbopt.analysis.sensitivity import Share, variance_shares
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.log.trials import Trial
from bkbopt.plots import tables

__all__ = ["Run"]


@dataclass(frozen=True)
class Run:
    """The data of a report.

    Attributes:
        opt: the optimizer.
        trials: all of its trials.
        names: names of the objectives.
    """

    opt: Optimizer
    trials: Sequence[Trial]
    names: Sequence[str]

    @cached_property
    def valued(self) -> list[Trial]:
        """Trials with values."""
        return [trial for trial in self.trials if trial.values]

    @cached_property
    def front(self) -> list[Trial]:
        """The best trials; none if no trial is feasible."""
        return self.opt.best_trials if any(trial.is_feasible for trial in self.valued) else []

    @cached_property
    def lost(self) -> set[int]:
        """Ids of the trials that ended for a reason that is not their point."""
        return {trial.id for trial in self.opt.lost_trials}

    @property
    def is_single(self) -> bool:
        """Whether there is one objective."""
        return len(self.names) == 1

    @cached_property
    def singles(self) -> "list[Run]":
        """A run for each objective, with a model of it alone."""
        if self.is_single:
            return [self]
        opts = [self.opt.single_objective(j) for j in range(len(self.names))]
        return [Run(opt, opt.trials, [name]) for opt, name in zip(opts, self.names, strict=True)]

    @cached_property
    def has_model(self) -> bool:
        """See `readings.has_model`."""
        return has_model(self.opt)

    @cached_property
    def shares(self) -> Mapping[str, Share]:
        """Importances, the largest first."""
        shares = variance_shares(self.opt)
        return dict(sorted(shares.items(), key=lambda item: -item[1].total))

    @property
    def lead(self) -> str:
        """The run in a sentence."""
        counts = Counter(tables.state_of(trial, self.lost) for trial in self.trials)
        words = (*tables.STATES.values(), tables.LOST, tables.VALUELESS)
        states = ", ".join(f"{counts[word]} {word}" for word in words if counts[word])
        aims = ", ".join(f"{aim} {name}" for aim, name in zip(self.opt.directions, self.names, strict=True))
        times = [at for trial in self.trials for at in (trial.asked_at, trial.told_at) if at is not None]
        span = f", {min(times):%Y-%m-%d %H:%M} to {_until(min(times), max(times))} UTC" if times else ""
        number = "1 trial" if len(self.trials) == 1 else f"{len(self.trials)} trials"
        return f"{aims[0].upper()}{aims[1:]}: {number} ({states or 'none yet'}){span}."


def _until(first: datetime, last: datetime) -> str:
    return f"{last:%H:%M}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M}"
