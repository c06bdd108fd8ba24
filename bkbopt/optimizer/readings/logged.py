"""The trials of an optimizer."""

from typing import TYPE_CHECKING

from bkbopt.optimizer.designers.locking import locked
from bkbopt.optimizer.log.trial_list import TrialList
from bkbopt.optimizer.log.trial_tables import dataframe_of
from bkbopt.optimizer.log.trials import Trial, detached
from bkbopt.optimizer.readings.given import Given
from bkbopt.search.trials.reports import Diagnostics

if TYPE_CHECKING:
    import pandas

__all__ = ["Logged"]


class Logged(Given):
    """The trials as the log has them."""

    @property
    @locked
    def trials(self) -> TrialList:
        """All trials, by id, in a list that cannot be changed: `list(opt.trials)` makes one of your own."""
        return TrialList(self._core.log.entries)

    @property
    @locked
    def n_complete(self) -> int:
        """Number of trials with values."""
        return self._core.log.n_complete

    @property
    @locked
    def lost_trials(self) -> list[Trial]:
        """Failed trials that ended for a reason that is not their point, by id; the search learns nothing from them.

        They were interrupted (Ctrl-C in `minimize` or `bkbopt run`), their process died and `recover(enqueue=True)`
        queued their points again, or they were reported so by `fail(lost=True)`. Their state is "FAIL".

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
            >>> failed, lost = opt.fail(opt.ask()), opt.ask()
            >>> again = opt.recover(enqueue=True)
            >>> [trial.id for trial in opt.trials if trial.state == "FAIL"], [trial.id for trial in opt.lost_trials]
            ([0, 1], [1])
        """
        return [detached(entry.trial) for entry in self._core.log.entries if entry.is_lost]

    @property
    @locked
    def diagnostics(self) -> list[Diagnostics]:
        """One record for each trial that was asked for: the model's size, beta and noise, and the time."""
        return self._core.log.diagnostics

    @locked
    def trials_dataframe(self) -> "pandas.DataFrame":
        """One row a trial, with Optuna's column names (number, value, params_*, ...), `std`, and UTC; needs pandas."""
        return dataframe_of(list(self._core.log), len(self.directions), self.objectives)
