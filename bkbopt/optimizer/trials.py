"""Trials, and the log of them in memory: what was proposed, what came back, in which order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bkbopt.errors import ArgumentError, TrialStateError, UnknownTrialError, extra
from bkbopt.search.evaluations import Evaluation, Point
from bkbopt.search.states import COMPLETE, FAIL, RUNNING, WAITING
from bkbopt.spaces.space import Space

if TYPE_CHECKING:
    import pandas

__all__ = ["COMPLETE", "FAIL", "RUNNING", "WAITING", "Outcome", "Trial", "TrialLog"]


@dataclass(frozen=True)
class Trial:
    """One trial, frozen at the time it was handed out or looked up.

    Attributes:
        id: number of the trial, from 0 on.
        params: the active parameters by name; of a queued trial, those that are given.
        index: row of the pool, or None outside of pools.
        state: "WAITING" (queued), "RUNNING", "COMPLETE" or "FAIL".
        values: one for each objective, in the user's units and directions; empty where there is none.
        constraints: values of the outcome constraints by name; feasible where all are <= 0.
        stds: standard deviations of the values' noise where the user gave them, else None.
        asked_at: when it was proposed (or told, for past data).
        told_at: when its value came.

    Example:
        >>> import bkbopt as bo
        >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
        >>> trial = opt.ask()
        >>> trial.id, trial.state, trial.value
        (0, 'RUNNING', None)
        >>> opt.tell(trial, 0.25).value, opt.trials[0].state
        (0.25, 'COMPLETE')
    """

    id: int
    params: Mapping[str, Any]
    index: int | None = None
    state: str = RUNNING
    values: tuple[float, ...] = ()
    constraints: Mapping[str, float] = field(default_factory=dict)
    stds: tuple[float, ...] | None = None
    asked_at: datetime | None = None
    told_at: datetime | None = None

    @property
    def value(self) -> float | None:
        """The value of a single objective; None where there is none.

        Raises:
            ArgumentError: there are several objectives.
        """
        if len(self.values) > 1:
            raise ArgumentError(f"value: this trial has {len(self.values)} objectives; read values.")
        return self.values[0] if self.values else None

    @property
    def is_feasible(self) -> bool:
        """Whether no outcome constraint that was told is violated."""
        return all(value <= 0.0 for value in self.constraints.values())


@dataclass(frozen=True)
class Outcome:
    """What came back of a trial; without values and constraints it failed."""

    values: tuple[float, ...] = ()
    constraints: Mapping[str, float] = field(default_factory=dict)
    stds: tuple[float, ...] | None = None

    @property
    def state(self) -> str:
        """`COMPLETE` or `FAIL`."""
        return COMPLETE if self.values or self.constraints else FAIL


@dataclass
class _Entry:
    """A trial with what the search knows of it."""

    trial: Trial
    point: Point
    space: Space | None
    order: int = -1


@dataclass
class TrialLog:
    """All trials in order of their ids; it only grows.

    Attributes:
        entries: the trials with their points.
        order: ids of the finished trials in the order in which they were.
        waiting: ids of the queued trials in the order in which they were queued.
        running_ids: ids of the running trials in the order in which they were asked.
        n_complete: number of trials with values.
    """

    entries: list[_Entry] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    running_ids: dict[int, None] = field(default_factory=dict)
    n_complete: int = 0
    _changed: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        """Number of trials."""
        return len(self.entries)

    def __iter__(self) -> Iterator[Trial]:
        """The trials in order."""
        return (entry.trial for entry in self.entries)

    # -- writing -----------------------------------------------------------------------------------------------------

    def add(
        self,
        params: Mapping[str, Any],
        point: Point,
        space: Space | None,
        index: int | None,
        now: datetime,
        state: str = RUNNING,
    ) -> Trial:
        """A new trial, running or queued."""
        trial = Trial(len(self.entries), params, index, state, asked_at=now)
        self.entries.append(_Entry(trial, point, space))
        if state == WAITING:
            self.waiting.append(trial.id)
        else:
            self._set_running(trial.id)
        return trial

    def start(
        self,
        trial_id: int,
        params: Mapping[str, Any],
        point: Point,
        space: Space | None,
        index: int | None,
        now: datetime,
    ) -> Trial:
        """A queued trial is running, with all its parameters."""
        entry = self.entries[trial_id]
        entry.trial = replace(entry.trial, params=params, index=index, state=RUNNING, asked_at=now)
        entry.point, entry.space = point, space
        self.waiting.remove(trial_id)
        self._set_running(trial_id)
        return entry.trial

    def _set_running(self, trial_id: int) -> None:
        self.running_ids[trial_id] = None
        self._changed.append(trial_id)

    def finish(self, trial_id: int, outcome: Outcome, now: datetime) -> Trial:
        """Mark as complete, or as failed."""
        entry = self.entries[trial_id]
        entry.trial = replace(
            entry.trial,
            state=outcome.state,
            values=outcome.values,
            constraints=outcome.constraints,
            stds=outcome.stds,
            told_at=now,
        )
        entry.order = len(self.order)
        self.running_ids.pop(trial_id)
        self.order.append(trial_id)
        self.n_complete += bool(outcome.values)
        self._changed.append(trial_id)
        return entry.trial

    # -- reading -----------------------------------------------------------------------------------------------------

    def running(self, trial_id: int, call: str) -> Trial:
        """The trial with that id, which must be running.

        Raises:
            UnknownTrialError: there is none.
            TrialStateError: it was told, failed, or not asked yet.
        """
        if not 0 <= trial_id < len(self.entries):
            raise UnknownTrialError(f"trial: expected an id that ask gave out (0 to {len(self) - 1}), got {trial_id}.")
        trial = self.entries[trial_id].trial
        if trial.state != RUNNING:
            raise TrialStateError(f"{call}: expected a running trial, but trial {trial_id} {_fate(trial)}.")
        return trial

    def changes(self) -> list[Evaluation]:
        """Trials that changed since `forget_changes` was called, as the search sees them."""
        return [self.evaluation(trial_id) for trial_id in dict.fromkeys(self._changed)]

    def forget_changes(self) -> None:
        """The changes have been taken in."""
        self._changed.clear()

    def evaluation(self, trial_id: int) -> Evaluation:
        """A trial as the search sees it."""
        entry = self.entries[trial_id]
        t = entry.trial
        order = (float(entry.order), t.id)
        return Evaluation(t.id, t.state, entry.point, entry.space, order, t.values, t.stds, constraints=t.constraints)

    def finished(self) -> list[Trial]:
        """The finished trials in the order in which their outcomes came."""
        return [self.entries[i].trial for i in self.order]

    def dataframe(self, directions: Sequence[str]) -> "pandas.DataFrame":
        """One row a trial with Optuna's column names: number, value(s), datetime_*, duration, params_*, state.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        with extra("pandas"):
            import pandas

        trials = list(self)
        nan, k = float("nan"), len(directions)
        columns: dict[str, list[Any]] = {"number": [t.id for t in trials]}
        for j in range(k):
            columns["value" if k == 1 else f"values_{j}"] = [t.values[j] if t.values else nan for t in trials]
        columns["datetime_start"] = [t.asked_at for t in trials]
        columns["datetime_complete"] = [t.told_at for t in trials]
        columns["duration"] = [t.told_at - t.asked_at if t.told_at and t.asked_at else None for t in trials]
        for name in dict.fromkeys(name for t in trials for name in t.params):
            columns[f"params_{name}"] = [t.params.get(name) for t in trials]
        for name in dict.fromkeys(name for t in trials for name in t.constraints):
            columns[f"constraints_{name}"] = [t.constraints.get(name, nan) for t in trials]
        if any(t.index is not None for t in trials):
            columns["index"] = [t.index for t in trials]
        columns["state"] = [t.state for t in trials]
        return pandas.DataFrame(columns)


def _fate(trial: Trial) -> str:
    if trial.state == WAITING:
        return "is queued and was not asked yet"
    if trial.state == FAIL:
        return "was failed already"
    what = f"the value {trial.values[0]!r}" if len(trial.values) == 1 else "its values"
    return f"was told {what} already"
