"""Trials, and the log of them in memory: what was proposed, what came back, in which order.

Nothing here needs torch or NumPy, so that a program that only reports a value starts at once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bkbopt.errors import ArgumentError, TrialStateError, UnknownTrialError, extra
from bkbopt.search.reports import Diagnostics
from bkbopt.search.states import COMPLETE, FAIL, RUNNING, WAITING

if TYPE_CHECKING:
    import pandas

__all__ = [
    "COMPLETE",
    "FAIL",
    "RUNNING",
    "WAITING",
    "Entry",
    "Outcome",
    "Trial",
    "TrialLog",
    "check_running",
    "utc_now",
]

Point = Mapping[str, float]


@dataclass(frozen=True, slots=True)
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
        asked_at: when it was proposed (or told, for past data); UTC.
        told_at: when its value came; UTC.

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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back of a trial; without values and constraints it failed."""

    values: tuple[float, ...] = ()
    constraints: Mapping[str, float] = field(default_factory=dict)
    stds: tuple[float, ...] | None = None

    @property
    def state(self) -> str:
        """`COMPLETE` or `FAIL`."""
        return COMPLETE if self.values or self.constraints else FAIL


@dataclass(frozen=True, slots=True)
class Entry:
    """A trial with what the log knows of it; it never changes, another one takes its place.

    Attributes:
        trial: as users see it.
        space: number of the space, or of the pool, that it was proposed from; see `LoggedDesigner.spaces`.
        point: its parameters in internal form; None where nobody has asked for them yet.
        place: in the order of completion; None before.
        seen_at: when somebody last said that it is running; None where nobody did.
        diagnostics: of the ask that it comes from; None for what was told without being asked.
    """

    trial: Trial
    space: int
    point: Point | None = None
    place: int | None = None
    seen_at: datetime | None = None
    diagnostics: Diagnostics | None = None

    def finished(self, outcome: Outcome, place: int, now: datetime) -> "Entry":
        """The same trial, complete or failed."""
        trial = replace(
            self.trial,
            state=outcome.state,
            values=outcome.values,
            constraints=outcome.constraints,
            stds=outcome.stds,
            told_at=now,
        )
        return replace(self, trial=trial, place=place)

    def repeated(self, number: int, now: datetime) -> "Entry":
        """Another trial at the same point, in the queue."""
        return Entry(Trial(number, self.trial.params, state=WAITING, asked_at=now), self.space, self.point)

    def silence(self, now: datetime) -> float:
        """Seconds since the trial was asked, or since somebody last said that it is running."""
        return (now - (self.seen_at or self.trial.asked_at or now)).total_seconds()


class TrialLog:
    """All trials in order of their ids; it only grows, and a trial only goes on: queued, running, finished.

    Attributes:
        entries: the trials with what is known of them.
        order: ids of the finished trials in the order in which they were.
        waiting: ids of the queued trials, in order.
        running: ids of the running trials, in order.
        n_complete: number of trials with values.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        #: What is being put; it is put again where that was interrupted.
        self._coming: Sequence[Entry] = ()
        self._changed: list[int] = []
        self._read_all()

    def __len__(self) -> int:
        """Number of trials."""
        return len(self.entries)

    def __iter__(self) -> Iterator[Trial]:
        """The trials in order."""
        return (entry.trial for entry in self.entries)

    # -- writing -----------------------------------------------------------------------------------------------------

    def put(self, entries: Iterable[Entry]) -> None:
        """New trials, with the next ids, and known ones as they are now; all of them or, if interrupted, later.

        Raises:
            ValueError: a trial, or a place in the order of completion, is missing; nothing was put.
        """
        coming = sorted((e for e in entries if not self._is_over(e.trial.id)), key=lambda entry: entry.trial.id)
        new = [entry.trial.id for entry in coming if entry.trial.id >= len(self.entries)]
        finished = sorted((e for e in coming if e.place is not None), key=lambda entry: entry.place or 0)
        places = [entry.place for entry in finished]
        if new != list(range(len(self), len(self) + len(new))) or len(set(map(_id, coming))) < len(coming):
            raise ValueError(f"trials {new} where {len(self)} are known")
        if places != list(range(len(self.order), len(self.order) + len(places))):
            raise ValueError(f"places {places} where {len(self.order)} trials are finished")
        self._coming = coming
        for entry in coming:
            self._store(entry)
        for entry in (*(e for e in coming if e.place is None), *finished):
            self._index(entry)
        self._coming = ()

    def mend(self) -> None:
        """Go on with what an interrupt kept from being put; changes nothing if there is no such thing."""
        if self._coming:
            for entry in self._coming:
                self._store(entry)
            self._read_all()
            self._changed = [entry.trial.id for entry in self.entries if entry.trial.state != WAITING]
            self._coming = ()

    def _is_over(self, number: int) -> bool:
        return number < len(self.entries) and self.entries[number].place is not None

    def _store(self, entry: Entry) -> None:
        if entry.trial.id == len(self.entries):
            self.entries.append(entry)
        else:
            self.entries[entry.trial.id] = entry

    def _index(self, entry: Entry) -> None:
        number, state = entry.trial.id, entry.trial.state
        for states in (self._waiting, self._running):
            states.pop(number, None)
        if state in (WAITING, RUNNING):
            (self._waiting if state == WAITING else self._running)[number] = None
        else:
            self.order.append(number)
            self.n_complete += bool(entry.trial.values)
        if state != WAITING:
            self._changed.append(number)

    def _read_all(self) -> None:
        """What follows from the entries."""
        finished = [entry for entry in self.entries if entry.place is not None]
        self.order = [e.trial.id for e in sorted(finished, key=lambda entry: entry.place or 0)]
        self.n_complete = sum(bool(entry.trial.values) for entry in finished)
        self._waiting = {entry.trial.id: None for entry in self.entries if entry.trial.state == WAITING}
        self._running = {entry.trial.id: None for entry in self.entries if entry.trial.state == RUNNING}

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> list[int]:
        """Ids of the queued trials, in order."""
        return sorted(self._waiting)

    @property
    def running(self) -> list[int]:
        """Ids of the running trials, in order."""
        return sorted(self._running)

    def running_entry(self, trial_id: int, call: str) -> Entry:
        """The trial with that id, which must be running.

        Raises:
            UnknownTrialError: there is none.
            TrialStateError: it was told, failed, or not asked yet.
        """
        known = 0 <= trial_id < len(self.entries)
        return check_running(self.entries[trial_id] if known else None, trial_id, len(self), call)

    def changed(self) -> list[Entry]:
        """Trials, but queued ones, that are new or other than when `forget_changes` was called."""
        return [self.entries[trial_id] for trial_id in dict.fromkeys(self._changed)]

    def forget_changes(self) -> None:
        """The changes have been taken in."""
        self._changed.clear()

    def finished(self) -> list[Trial]:
        """The finished trials in the order in which their outcomes came."""
        return [self.entries[i].trial for i in self.order]

    @property
    def diagnostics(self) -> list[Diagnostics]:
        """Those of all asks, in the order of the asks."""
        asked = [entry for entry in self.entries if entry.diagnostics is not None]
        asked.sort(key=lambda entry: (entry.trial.asked_at or datetime.min, entry.trial.id))
        return [entry.diagnostics for entry in asked if entry.diagnostics is not None]

    def dataframe(self, directions: Sequence[str]) -> "pandas.DataFrame":
        """One row a trial with Optuna's column names: number, value(s), datetime_*, duration, params_*, state.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        with extra("pandas"):
            import pandas

        columns = table_of(list(self), len(directions))
        nan = float("nan")
        for name, cells in columns.items():
            if name.startswith(("value", "constraints_")):
                columns[name] = [nan if cell is None else cell for cell in cells]
        return pandas.DataFrame(columns)


def _id(entry: Entry) -> int:
    return entry.trial.id


def table_of(trials: Sequence[Trial], n_objectives: int) -> dict[str, list[Any]]:
    """The columns of the table of trials by name; None stands for what a trial does not have."""
    columns: dict[str, list[Any]] = {"number": [t.id for t in trials]}
    for j in range(n_objectives):
        name = "value" if n_objectives == 1 else f"values_{j}"
        columns[name] = [t.values[j] if t.values else None for t in trials]
    columns["datetime_start"] = [t.asked_at for t in trials]
    columns["datetime_complete"] = [t.told_at for t in trials]
    columns["duration"] = [t.told_at - t.asked_at if t.told_at and t.asked_at else None for t in trials]
    for name in dict.fromkeys(name for t in trials for name in t.params):
        columns[f"params_{name}"] = [t.params.get(name) for t in trials]
    for name in dict.fromkeys(name for t in trials for name in t.constraints):
        columns[f"constraints_{name}"] = [t.constraints.get(name) for t in trials]
    if any(t.index is not None for t in trials):
        columns["index"] = [t.index for t in trials]
    columns["state"] = [t.state for t in trials]
    return columns


def utc_now() -> datetime:
    """The time as logs have it: UTC, without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def check_running(entry: Entry | None, trial_id: int, n_trials: int, call: str) -> Entry:
    """The entry of a trial that is to be told or failed; raises as `TrialLog.running_entry` does."""
    if entry is None:
        raise UnknownTrialError(f"trial: expected an id that ask gave out (0 to {n_trials - 1}), got {trial_id}.")
    if entry.trial.state != RUNNING:
        raise TrialStateError(f"{call}: expected a running trial, but trial {trial_id} {_fate(entry.trial)}.")
    return entry


def _fate(trial: Trial) -> str:
    if trial.state == WAITING:
        return "is queued and was not asked yet"
    if trial.state == FAIL:
        return "was failed already"
    what = f"the value {trial.values[0]!r}" if len(trial.values) == 1 else "its values"
    return f"was told {what} already"
