"""The log of trials in memory.

The module imports neither torch nor NumPy.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from bkbopt.errors import TrialStateError, UnknownTrialError
from bkbopt.optimizer.log.limits import Limits
from bkbopt.optimizer.log.trials import Entry, Trial, detached, values_of
from bkbopt.search.trials.reports import Diagnostics
from bkbopt.search.trials.states import FAIL, RUNNING, WAITING

__all__ = ["Found", "TrialLog", "check_finished", "check_known", "check_running"]

#: The entry of a trial, None if there is none with its id, and the number of trials.
Found = tuple[Entry | None, int]

#: A time before all others.
_FIRST = datetime.min.replace(tzinfo=UTC)


class TrialLog:
    """All trials by id. Trials are never removed, and their states only advance: queued, running, finished.

    The outcome of a finished trial may be replaced by another one; its place stays. The dicts of trials that are put
    here may be the user's; those of the trials that are kept are copies, see `detached`.

    Args:
        limits: limits of the outcome constraints, which all trials get.

    Attributes:
        limits: see above.
        entries: the entries, by id.
        order: ids of the finished trials in the order of completion.
        waiting: ids of the queued trials, in order.
        running: ids of the running trials, in order.
        n_complete: number of trials with values, of one objective at least.
        is_rewritten: whether outcomes were replaced, so that what was learnt from the log has to be learnt again.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = {} if limits is None else limits
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
        rewritten = [entry for entry in changed if self._is_over(entry.trial.id) and self._is_other(entry)]
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

    def use_limits(self, limits: Limits) -> None:
        """Take other limits for all trials, which have to be learnt again."""
        self.is_rewritten = True
        self.limits = limits
        for number, entry in enumerate(self.entries):
            self.entries[number] = replace(entry, trial=replace(entry.trial, limits=limits))

    def _is_over(self, number: int) -> bool:
        return number < len(self.entries) and self.entries[number].place is not None

    def _stays(self, entry: Entry) -> bool:
        """Whether the trial is finished, and the entry has not the same place."""
        return self._is_over(entry.trial.id) and self.entries[entry.trial.id].place != entry.place

    def _is_other(self, entry: Entry) -> bool:
        """Whether the entry has another outcome than the finished trial."""
        return self.entries[entry.trial.id].outcome != entry.outcome

    def _store(self, entry: Entry) -> None:
        entry = replace(entry, trial=replace(detached(entry.trial), limits=self.limits))
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
            self.n_complete += bool(values_of(entry.trial))
        if state != WAITING:
            self._changed.append(number)

    def _read_all(self) -> None:
        """Recompute all indices from the entries."""
        finished = [entry for entry in self.entries if entry.place is not None]
        self.order = [e.trial.id for e in sorted(finished, key=lambda entry: entry.place or 0)]
        self.n_complete = sum(bool(values_of(entry.trial)) for entry in finished)
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

    def entry(self, trial_id: int) -> Found:
        """The entry with this id, and the number of trials."""
        n = len(self.entries)
        return self.entries[trial_id] if 0 <= trial_id < n else None, n

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
        asked.sort(key=lambda entry: (entry.trial.asked_at or _FIRST, entry.trial.id))
        return [entry.diagnostics for entry in asked if entry.diagnostics is not None]


def check_known(found: Found, trial_id: int) -> Entry:
    """The entry that was found for an id, if there is one; `UnknownTrialError` otherwise."""
    entry, n_trials = found
    if entry is None:
        known = f"0 to {n_trials - 1}" if n_trials else "there is none yet"
        raise UnknownTrialError(f"trial: expected the id of a trial ({known}), got {trial_id}.")
    return entry


def check_running(found: Found, trial_id: int, call: str, flag: str = "replace=True") -> Entry:
    """The entry of a running trial; `flag` is that of the user's `tell`.

    Raises:
        UnknownTrialError: there is no trial with this id.
        TrialStateError: the trial is not running.
    """
    entry = check_known(found, trial_id)
    if entry.trial.state != RUNNING:
        fate = _fate(entry.trial, flag if call == "tell" else "")
        raise TrialStateError(f"{call}: expected a running trial, but trial {trial_id} {fate}.")
    return entry


def check_finished(found: Found, trial_id: int, call: str) -> Entry:
    """The entry of a finished trial; a `TrialStateError` says that it is queued or running."""
    entry = check_known(found, trial_id)
    if entry.trial.state in (WAITING, RUNNING):
        fate = "is queued" if entry.trial.state == WAITING else "is running"
        raise TrialStateError(
            f"{call}: expected a finished trial, since its outcome is replaced, but trial {trial_id} {fate}; leave "
            "replace out."
        )
    return entry


def _fate(trial: Trial, flag: str) -> str:
    if trial.state == WAITING:
        return "is queued and was not asked yet"
    what = f"the value {trial.values[0]!r}" if len(trial.values) == 1 else "its values"
    fate = "was failed already" if trial.state == FAIL else f"was told {what} already"
    return f"{fate}; {flag} replaces its outcome" if flag else fate
