"""Changes of a log without a model, and so without torch or NumPy: outcomes, heartbeats, lost trials.

Checks and written data are the same as in `Optimizer.tell`, `fail`, `heartbeat` and `recover`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bkbopt.errors import ArgumentError
from bkbopt.optimizer.log.aims import Aims
from bkbopt.optimizer.log.attributes import checked_attrs
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.reporting import lost_ones
from bkbopt.optimizer.log.trial_log import check_finished, check_known, check_running
from bkbopt.optimizer.log.trials import Entry, Outcome, Trial, utc_now
from bkbopt.search.trials.states import RUNNING

__all__ = ["add_attrs", "beat", "check_outcome", "finish", "lose", "running"]


def check_outcome(
    aims: Aims,
    values: Sequence[float | None],
    limits: Mapping[str, float],
    stds: Sequence[float | None] = (),
    *,
    attrs: Mapping[str, Any] | None = None,
    advice: str = "call fail for a trial without a value",
) -> Outcome:
    """An outcome, checked to fit the log.

    Args:
        aims: directions and constraints of the log.
        values: one for each objective, None for those that are not measured; empty if the trial gave values of
            constraints only.
        limits: values of constraints by name.
        stds: standard deviations of the values' noise, one for each objective, None where unknown, or none at all.
        attrs: attributes by name.
        advice: what to do in place of giving a number that is not finite, for messages.

    Raises:
        ArgumentError: too many, too few or non-finite numbers, or an unknown constraint.
    """
    k = len(aims.directions)
    if values and len(values) != k:
        raise ArgumentError(
            f"value: expected {k} value{'s' * (k > 1)}, one for each objective, got {len(values)}; give each once."
        )
    if stds and len(stds) != len(values):
        raise ArgumentError(f"std: expected one for each of {len(values)} values, got {len(stds)}.")
    unknown = next((name for name in limits if name not in aims.limits), None)
    if unknown is not None:
        raise ArgumentError(
            f"constraints: expected names among {tuple(aims.limits)}, got {unknown!r}; "
            "name all constraints when the log is made, or with bkbopt change."
        )
    if values and all(value is None for value in values):
        raise ArgumentError(f"value: expected a number for one objective at least, got none; {advice}.")
    numbers = [("value", v) for v in values if v is not None] + [(f"constraints[{n!r}]", v) for n, v in limits.items()]
    for name, number in numbers:
        if not math.isfinite(number):
            raise ArgumentError(f"{name}: expected finite values, got {number}; {advice}.")
    if any(std is not None and not (math.isfinite(std) and std >= 0.0) for std in stds):
        raise ArgumentError(f"std: expected finite standard deviations >= 0, got {list(stds)}.")
    return Outcome.of(values, dict(limits), stds or None, checked_attrs(attrs))


def finish(file: LogFile, number: int, outcome: Outcome, call: str, *, replacing: bool = False) -> Trial:
    """Write the outcome of a running trial, or with `replacing` another outcome of a finished one.

    An outcome without values and constraints is that of a failed trial.

    Raises:
        UnknownTrialError: there is no such trial.
        TrialStateError: the trial is not running; with `replacing`, it is not finished.
        StorageError: the system does not give access to the file. After any error nothing was written.
    """
    with file.transaction() as writer:
        found = file.entry(number)
        if replacing:
            done = check_finished(found, number, call).replaced(outcome)
        else:
            held = check_running(found, number, call, "--replace")
            done = held.finished(outcome, writer.next_place(), utc_now())
        writer.put([done])
    return done.trial


def add_attrs(file: LogFile, number: int, attrs: Mapping[str, Any]) -> Trial:
    """Add attributes to a trial; the errors are those of `finish`, but the trial may have any state."""
    with file.transaction() as writer:
        writer.put([noted := check_known(file.entry(number), number).with_attrs(attrs)])
    return noted.trial


def beat(file: LogFile, numbers: Sequence[int]) -> list[int]:
    """Write heartbeats; returns the numbers of trials that are not running, since another process has ended them."""
    with file.transaction() as writer:
        alive = _running_among(file, numbers)
        now = utc_now()
        writer.put([replace(entry, seen_at=now) for entry in alive])
    return sorted(set(numbers) - {entry.trial.id for entry in alive})


def running(file: LogFile) -> list[Entry]:
    """The running trials of a log, by id."""
    entries, _ = file.changes(0)
    return sorted((e for e in entries if e.trial.state == RUNNING), key=lambda entry: entry.trial.id)


def lose(file: LogFile, numbers: Sequence[int], *, older_than: float = 0.0, enqueue: bool = False) -> list[Trial]:
    """Fail those of the trials that are running and had no heartbeat for `older_than` seconds.

    Args:
        file: the log.
        numbers: numbers of the trials.
        older_than: seconds since the ask of a trial, or since its last heartbeat.
        enqueue: whether the points of these trials are queued; the search then does not learn that they failed.

    Returns:
        The trials that failed.
    """
    if not numbers:
        return []
    with file.transaction() as writer:
        _, n_trials = file.entry(numbers[0])
        lost, queued = lost_ones(_running_among(file, numbers), older_than, enqueue, writer.next_place(), n_trials)
        writer.put(lost + queued)
    return [entry.trial for entry in lost]


def _running_among(file: LogFile, numbers: Iterable[int]) -> list[Entry]:
    entries = (file.entry(number)[0] for number in sorted(set(numbers)))
    return [entry for entry in entries if entry is not None and entry.trial.state == RUNNING]
