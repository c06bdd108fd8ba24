"""Trials, and the log of trials in memory.

The module imports neither torch nor NumPy, so that programs that only report a value start fast.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NoReturn

from bkbopt.errors import ArgumentError, TrialStateError, UnknownTrialError
from bkbopt.search.trials.reports import Diagnostics
from bkbopt.search.trials.states import COMPLETE, FAIL, RUNNING, WAITING

__all__ = [
    "Entry",
    "Outcome",
    "Trial",
    "TrialLog",
    "check_finished",
    "check_running",
    "detached",
    "utc_now",
]


@dataclass(frozen=True, slots=True)
class Trial:
    """An immutable record of a trial at the time of the call that returned it.

    Attributes:
        id: number of the trial, from 0 on.
        params: the active parameters by name; for a queued trial the given ones. The dict is the caller's own.
        index: row of the pool in which the trial was asked for or told, also after `set_pool`; None for a search space.
        state: "WAITING" (queued), "RUNNING", "COMPLETE" or "FAIL".
        values: one for each objective, in the user's units and directions; empty if there are none.
        constraints: values of the outcome constraints by name; feasible if all are <= 0.
        stds: standard deviations of the values' noise if the user gave them, else None.
        asked_at: time of the ask (of the tell, for points that were not asked for); UTC.
        told_at: time of completion; UTC.
        label: name of the row, if the pool has an `id_column`. Files keep names that are numbers or text; after
            reading, other trials have it whose row of the current pool is the same.

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
    label: Hashable | None = field(default=None, compare=False)

    @property
    def value(self) -> float | None:
        """The value of a single objective; None if there is none.

        Raises:
            ArgumentError: there are several objectives.
        """
        if len(self.values) > 1:
            raise ArgumentError(f"value: this trial has {len(self.values)} objectives; read values.")
        return self.values[0] if self.values else None

    @property
    def is_feasible(self) -> bool:
        """Whether all known values of outcome constraints are <= 0."""
        return all(value <= 0.0 for value in self.constraints.values())


def _refuse(_: Trial, name: str, *__: object) -> NoReturn:
    """Refuse a change: a frozen class with slots has no message of its own for names that are no fields, as `value`."""
    raise FrozenInstanceError(
        f"trial.{name}: expected a trial to stay as it is, got a change; record its outcome with opt.tell(trial, "
        "value), a failure with opt.fail(trial)."
    )


Trial.__setattr__ = Trial.__delattr__ = _refuse  # type: ignore[method-assign, assignment]


def detached(trial: Trial) -> Trial:
    """The trial with dicts of its own: programs take parameters out of `trial.params` and put others in."""
    t, params, constraints = trial, dict(trial.params), dict(trial.constraints)  # `replace` takes twice as long
    return Trial(t.id, params, t.index, t.state, t.values, constraints, t.stds, t.asked_at, t.told_at, t.label)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a trial; without values and constraints the trial failed, or is lost: its point is not why."""

    values: tuple[float, ...] = ()
    constraints: Mapping[str, float] = field(default_factory=dict)
    stds: tuple[float, ...] | None = None
    is_lost: bool = False

    @property
    def state(self) -> str:
        """`COMPLETE` or `FAIL`."""
        return COMPLETE if self.values or self.constraints else FAIL


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the log: a trial and internal data. Entries are immutable; a changed trial gets a new entry.

    Attributes:
        trial: the public record.
        space: number of the space or pool from which it was proposed; see `LoggedDesigner.spaces`.
        point: its parameters in internal form; empty as long as they are not converted.
        place: place in the order of completion; None before.
        seen_at: time of the last heartbeat, of a lost trial that of its end; None if there was none.
        diagnostics: record of the ask; None for points that were told without being asked for.
    """

    trial: Trial
    space: int
    point: Mapping[str, float] = field(default_factory=dict)
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
        seen_at = None if self.is_lost else self.seen_at
        return replace(self, trial=trial, place=place, seen_at=now if outcome.is_lost else seen_at)

    @property
    def is_lost(self) -> bool:
        """Whether the trial failed for a reason that is not its point, from which the search learns nothing."""
        return self.trial.state == FAIL and self.seen_at is not None and self.seen_at == self.trial.told_at

    @property
    def n_values(self) -> int | None:
        """Number of values when the trial was suggested; None if it was not."""
        return None if self.diagnostics is None else self.diagnostics.n_values

    def replaced(self, outcome: Outcome) -> "Entry":
        """The same finished trial with another outcome, at its place and time."""
        assert self.place is not None
        assert self.trial.told_at is not None
        return self.finished(outcome, self.place, self.trial.told_at)

    @property
    def outcome(self) -> Outcome:
        """The outcome of a finished trial."""
        return Outcome(self.trial.values, self.trial.constraints, self.trial.stds, self.is_lost)

    def repeated(self, number: int, now: datetime) -> "Entry":
        """A new queued trial at the same point."""
        t = self.trial
        queued = Trial(number, t.params, t.index, state=WAITING, asked_at=now, label=t.label)
        return Entry(queued, self.space, self.point)

    def silence(self, now: datetime) -> float:
        """Seconds since the ask of the trial, or since its last heartbeat; 0 where the clock was set back since."""
        return max((now - (self.seen_at or self.trial.asked_at or now)).total_seconds(), 0.0)


class TrialLog:
    """All trials by id. Trials are never removed, and their states only advance: queued, running, finished.

    The outcome of a finished trial may be replaced by another one; its place stays. The dicts of trials that are put
    here may be the user's; those of the trials that are kept are copies, see `detached`.

    Attributes:
        entries: the entries, by id.
        order: ids of the finished trials in the order of completion.
        waiting: ids of the queued trials, in order.
        running: ids of the running trials, in order.
        n_complete: number of trials with values.
        is_rewritten: whether outcomes were replaced, so that what was learnt from the log has to be learnt again.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.is_rewritten = False
        #: Entries that `put` is storing; after an interrupt `mend` stores them.
        self._coming: Sequence[Entry] = ()
        self._changed: list[int] = []
        self._read_all()

    def __len__(self) -> int:
        """Number of trials."""
        return len(self.entries)

    def __iter__(self) -> Iterator[Trial]:
        """The trials, by id."""
        return (entry.trial for entry in self.entries)

    # -- writing -----------------------------------------------------------------------------------------------------

    def put(self, entries: Iterable[Entry]) -> None:
        """Store new trials, with the next ids, and changed ones; if this is interrupted, `mend` completes it.

        Raises:
            ValueError: a trial, or a place in the order of completion, is missing; nothing was stored.
        """
        changed = sorted((e for e in entries if not self._stays(e)), key=lambda entry: entry.trial.id)
        coming = [entry for entry in changed if not self._is_over(entry.trial.id)]
        rewritten = [entry for entry in changed if self._is_over(entry.trial.id)]
        new = [entry.trial.id for entry in coming if entry.trial.id >= len(self.entries)]
        finished = sorted((e for e in coming if e.place is not None), key=lambda entry: entry.place or 0)
        places = [entry.place for entry in finished]
        if new != list(range(len(self), len(self) + len(new))) or len({e.trial.id for e in changed}) < len(changed):
            raise ValueError(f"new trials {new} after {len(self)} trials")
        if places != list(range(len(self.order), len(self.order) + len(places))):
            raise ValueError(f"places {places} after {len(self.order)} finished trials")
        self.is_rewritten |= bool(rewritten)
        self._coming = changed
        for entry in changed:
            self._store(entry)
        for entry in (*(e for e in coming if e.place is None), *finished):
            self._index(entry)
        if rewritten:
            self._read_all()
        self._coming = ()

    def mend(self) -> None:
        """Complete a `put` that was interrupted; otherwise change nothing."""
        if self._coming:
            for entry in self._coming:
                self._store(entry)
            self._read_all()
            self.change_all()
            self._coming = ()

    def _is_over(self, number: int) -> bool:
        return number < len(self.entries) and self.entries[number].place is not None

    def _stays(self, entry: Entry) -> bool:
        """Whether the trial is finished, and the entry does not replace its outcome: that has the same place."""
        if not self._is_over(entry.trial.id):
            return False
        old = self.entries[entry.trial.id]
        return old.place != entry.place or old.outcome == entry.outcome

    def _store(self, entry: Entry) -> None:
        entry = replace(entry, trial=detached(entry.trial))
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
        """Recompute all indices from the entries."""
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
        """The entry of a running trial.

        Raises:
            UnknownTrialError: there is no trial with this id.
            TrialStateError: the trial is not running.
        """
        return check_running(self._entry(trial_id), trial_id, len(self), call)

    def finished_entry(self, trial_id: int, call: str) -> Entry:
        """The entry of a finished trial.

        Raises:
            UnknownTrialError: there is no trial with this id.
            TrialStateError: the trial is queued or running.
        """
        return check_finished(self._entry(trial_id), trial_id, len(self), call)

    def _entry(self, trial_id: int) -> Entry | None:
        return self.entries[trial_id] if 0 <= trial_id < len(self.entries) else None

    def changed(self) -> list[Entry]:
        """Entries that are new or changed since `forget_changes` was called, except queued ones."""
        return [self.entries[trial_id] for trial_id in dict.fromkeys(self._changed)]

    def change_all(self) -> None:
        """Let all entries except queued ones count as changed."""
        self._changed = [entry.trial.id for entry in self.entries if entry.trial.state != WAITING]

    def forget_changes(self) -> None:
        """Clear the list of changes."""
        self._changed.clear()

    def valued(self) -> list[Entry]:
        """The entries with values in the order of completion."""
        return [entry for entry in map(self.entries.__getitem__, self.order) if entry.trial.values]

    @property
    def diagnostics(self) -> list[Diagnostics]:
        """The records of all asks, in the order of the asks."""
        asked = [entry for entry in self.entries if entry.diagnostics is not None]
        asked.sort(key=lambda entry: (entry.trial.asked_at or datetime.min, entry.trial.id))
        return [entry.diagnostics for entry in asked if entry.diagnostics is not None]


def utc_now() -> datetime:
    """The present time in UTC, without a time zone, as in logs."""
    return datetime.now(UTC).replace(tzinfo=None)


def check_running(entry: Entry | None, trial_id: int, n_trials: int, call: str, flag: str = "replace=True") -> Entry:
    """The entry of a running trial; the errors are those of `TrialLog.running_entry`, `flag` is that of `tell`."""
    if entry is None:
        raise _unknown(trial_id, n_trials)
    if entry.trial.state != RUNNING:
        fate = _fate(entry.trial, flag if call == "tell" else "")
        raise TrialStateError(f"{call}: expected a running trial, but trial {trial_id} {fate}.")
    return entry


def check_finished(entry: Entry | None, trial_id: int, n_trials: int, call: str) -> Entry:
    """The entry, checked to be that of a finished trial; raises the errors of `TrialLog.finished_entry`."""
    if entry is None:
        raise _unknown(trial_id, n_trials)
    if entry.trial.state in (WAITING, RUNNING):
        fate = "is queued" if entry.trial.state == WAITING else "is running"
        raise TrialStateError(
            f"{call}: expected a finished trial, since its outcome is replaced, but trial {trial_id} {fate}; leave "
            "replace out."
        )
    return entry


def _unknown(trial_id: int, n_trials: int) -> UnknownTrialError:
    known = f"0 to {n_trials - 1}" if n_trials else "there is none yet"
    return UnknownTrialError(f"trial: expected the id of a trial ({known}), got {trial_id}.")


def _fate(trial: Trial, flag: str) -> str:
    if trial.state == WAITING:
        return "is queued and was not asked yet"
    what = f"the value {trial.values[0]!r}" if len(trial.values) == 1 else "its values"
    fate = "was failed already" if trial.state == FAIL else f"was told {what} already"
    return f"{fate}; {flag} replaces its outcome" if flag else fate
