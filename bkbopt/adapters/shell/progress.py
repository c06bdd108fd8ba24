"""The progress of a log: counts, best value, rate of completion. The module imports neither torch nor NumPy."""

from collections import Counter, deque
from datetime import datetime

from bkbopt.adapters.shell.rows import aims_of
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.trials import Entry, Trial
from bkbopt.search.trials.directions import sign_of
from bkbopt.search.trials.states import COMPLETE, FAIL, RUNNING, WAITING

__all__ = ["Progress"]

#: Number of trials over which the rate is computed.
RECENT = 20


class Progress:
    """The progress of a log that other processes may write.

    Args:
        file: the log.

    Attributes:
        aims: what the log aims at; other processes may change its constraints.
        running: the running trials, by their numbers.
        best: the feasible trial with the best value; with several objectives, None.
        front: the feasible trials that no other one dominates.
        n_lost: number of the failed trials that ended for a reason that is not their point, see `Entry.is_lost`.
    """

    def __init__(self, file: LogFile) -> None:
        self.file, self.aims = file, aims_of(file)
        self._signs = [*map(sign_of, self.aims.directions)]
        self._begin_anew()
        self.update()

    def _begin_anew(self) -> None:
        self.running: dict[int, Entry] = {}
        self.best: Trial | None = None
        self.front: list[Trial] = []
        self._is_whole = False
        self.n_lost = 0
        self._states: dict[int, str] = {}
        self._counts: Counter[str] = Counter()
        self._recent: deque[datetime] = deque(maxlen=RECENT)
        self._seen = 0

    def update(self) -> bool:
        """Read the changes; returns whether a trial is new, has another state or outcome, or constraints are others."""
        entries, self._seen = self.file.changes(self._seen)
        has_replaced = any(self._states.get(entry.trial.id) in (COMPLETE, FAIL) for entry in entries)
        has_changed = (aims := aims_of(self.file)) != self.aims
        if has_replaced or has_changed:  # the best one may have another outcome now, or be infeasible
            self.aims = aims
            self._begin_anew()
            entries, self._seen = self.file.changes(self._seen)
        n_new = sum(self._take(entry) for entry in entries)
        return n_new > 0 or has_replaced or has_changed

    def _take(self, entry: Entry) -> bool:
        trial = entry.trial
        before = self._states.get(trial.id)
        self._states[trial.id] = trial.state
        self.running.pop(trial.id, None)
        if trial.state == RUNNING:
            self.running[trial.id] = entry
        if before == trial.state:
            return False
        self._counts[trial.state] += 1
        if before is not None:
            self._counts[before] -= 1
        if trial.state in (COMPLETE, FAIL):
            self._note_end(entry)
        return True

    def _note_end(self, entry: Entry) -> None:
        trial = entry.trial
        if trial.told_at is not None:
            self._recent.append(trial.told_at)
        self.n_lost += entry.is_lost
        if not trial.values or not trial.is_feasible:
            return
        # A trial without a value of some constraint counts only if there is no other.
        is_whole = trial.constraints.keys() >= set(self.aims.constraints)
        if is_whole < self._is_whole:
            return
        if is_whole > self._is_whole:
            self._is_whole, self.best, self.front = True, None, []
        if any(self._dominates(other, trial) for other in self.front):
            return
        self.front = [other for other in self.front if not self._dominates(trial, other)] + [trial]
        if len(self._signs) == 1 and (self.best is None or self._dominates(trial, self.best)):
            self.best = trial

    def _dominates(self, one: Trial, other: Trial) -> bool:
        pairs = [(s * a, s * b) for s, a, b in zip(self._signs, one.values, other.values, strict=True)]
        return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)

    @property
    def n_finished(self) -> int:
        """Number of complete and failed trials."""
        return self._counts[COMPLETE] + self._counts[FAIL]

    def rate(self) -> float | None:
        """Finished trials per minute, over the last `RECENT` ones; None with fewer than two."""
        if len(self._recent) < 2:
            return None
        minutes = (max(self._recent) - min(self._recent)).total_seconds() / 60.0
        return (len(self._recent) - 1) / minutes if minutes > 0.0 else None

    def summary(self) -> str:
        """The best value so far, or the size of the Pareto front; empty before the first value."""
        if not self.front:
            return ""
        if self.best is not None:
            return f"best {self.best.values[0]:.6g} (trial {self.best.id})"
        return f"front of {len(self.front)}"

    def line(self, now: datetime) -> str:
        """The progress on one line."""
        words = ((COMPLETE, "complete"), (RUNNING, "running"), (WAITING, "queued"))
        counts = [f"{self._counts[state]} {word}" for state, word in words]
        counts.append(f"{self._counts[FAIL] - self.n_lost} failed")
        counts += [f"{self.n_lost} lost"] if self.n_lost else []
        parts = [", ".join(counts)]
        parts += [self.summary()] if self.front else []
        rate = self.rate()
        if rate is not None:
            parts.append(f"{rate:.3g} trials/min")
        if self._recent:
            parts.append(f"last {_age((now - max(self._recent)).total_seconds())} ago")
        return "; ".join(parts)


def _age(seconds: float) -> str:
    """A duration as text, in one unit."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0.0):.0f} s"
