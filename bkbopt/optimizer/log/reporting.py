"""Reports, and the entries of a log that follow: of trials that finish, of replaced outcomes, and of lost trials."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from bkbopt.errors import ArgumentError, ArgumentTypeError, UnknownTrialError
from bkbopt.optimizer.log.attributes import as_number
from bkbopt.optimizer.log.limits import Limits
from bkbopt.optimizer.log.trial_log import Found, TrialLog, check_finished, check_known, check_running
from bkbopt.optimizer.log.trials import Entry, Outcome, Trial, utc_now
from bkbopt.search.trials.states import COMPLETE, WAITING

if TYPE_CHECKING:
    from bkbopt.spaces.base import Params, Point

__all__ = ["Report", "finished", "lost_ones", "measured", "own_entry", "replaced", "with_measured"]

Told = TypeVar("Told", Trial, Outcome)


@dataclass(frozen=True)
class Report:
    """The outcome of a trial, which is identified by its id or its parameters.

    Attributes:
        target: the id or the parameters.
        outcome: the outcome.
        given: the trial itself, where it was given; it may be one of another optimizer, with the same id.
    """

    target: "int | Params"
    outcome: Outcome
    given: Trial | None = None


def finished(
    log: TrialLog,
    reports: Sequence[Report],
    points: "Iterator[Point]",
    new: "Callable[[int, Point, Params, datetime], Entry]",
    is_other_row: "Callable[[Entry, Params], bool]",
    call: str,
) -> list[Entry]:
    """The entries of trials that finish.

    Args:
        log: the log.
        reports: the outcomes, by trial or by parameters.
        points: the points of those by parameters, in their order.
        new: makes an entry of a number, a point, parameters and a time, for points at which no trial is running.
        is_other_row: whether parameters name another row than that of a trial, with the same values.
        call: the name of the user's call, for errors.

    Raises:
        UnknownTrialError, TrialStateError: see `check_running`.
        ArgumentError: a trial has two reports, or is one of another optimizer.
    """
    running: dict[frozenset[tuple[str, float]], list[int]] = {}
    if any(isinstance(report.target, Mapping) for report in reports):
        for i in log.running:
            running.setdefault(_key(log.entries[i].point), []).append(i)
    taken: set[int] = set()
    done: list[Entry] = []
    now, n_new = utc_now(), 0
    for place, report in enumerate(reports, start=len(log.order)):
        if isinstance(report.target, Mapping):
            point, params = next(points), report.target
            there = (log.entries[i] for i in running.get(_key(point), ()) if i not in taken)
            held = next((entry for entry in there if not is_other_row(entry, params)), None)
            entry = held or new(len(log) + n_new, point, params, now)
            n_new += held is None
        else:
            entry = own_entry(log, report, functools.partial(check_running, call=call))
        _take(entry, taken)
        done.append(entry.finished(report.outcome, place, now))
    return done


def replaced(log: TrialLog, reports: Sequence[Report], call: str) -> list[Entry]:
    """The entries of finished trials with other outcomes; their places in the order of completion stay.

    Raises:
        UnknownTrialError, TrialStateError: see `check_finished`.
        ArgumentError: a trial has two reports, or is one of another optimizer.
        ArgumentTypeError: a report by parameters.
    """
    taken: set[int] = set()
    done = []
    for report in reports:
        if isinstance(report.target, Mapping):
            raise ArgumentTypeError("trial: expected trials or their ids, since replace=True, got parameters.")
        old = own_entry(log, report, functools.partial(check_finished, call=call))
        _take(old, taken)
        done.append(old.replaced(report.outcome))
    return done


def own_entry(log: TrialLog, report: Report, checked: Callable[[Found, int], Entry] = check_known) -> Entry:
    """The entry of the trial that a report by trial or id is about.

    Args:
        log: the log.
        report: the report.
        checked: refuses a trial that is not there, or is in another state.

    Raises:
        UnknownTrialError, TrialStateError: see `checked`.
        ArgumentError: another optimizer asked the trial: it is another point, at another time, with the same id.
    """
    assert isinstance(report.target, int)
    given = report.given
    if given is not None and report.target >= len(log):
        raise UnknownTrialError(
            f"trial: expected a trial of this optimizer, which has {len(log)} trials, got one with the id "
            f"{report.target}; tell it to the optimizer that was asked, or tell its params."
        )
    entry = checked(log.entry(report.target), report.target)
    own = entry.trial
    if given is None or given.state == WAITING or given.asked_at in (None, own.asked_at):
        return entry  # a queued trial is asked later
    if given.index == own.index and (own.index is not None or given.params == own.params):
        return entry  # that of a copy of the log
    raise ArgumentError(
        f"trial: expected a trial of this optimizer, whose trial {own.id} has the parameters {dict(own.params)}, got "
        f"one with {dict(given.params)}; tell it to the optimizer that was asked, or tell its params."
    )


def _take(entry: Entry, taken: set[int]) -> None:
    """Add the trial to those that have a report."""
    if entry.trial.id in taken:
        raise ArgumentError(f"trial: expected each trial once, got trial {entry.trial.id} twice.")
    taken.add(entry.trial.id)


def _key(point: "Point") -> frozenset[tuple[str, float]]:
    return frozenset(point.items())


def lost_ones(
    running: Iterable[Entry], older_than: float, enqueue: bool, place: int, number: int
) -> tuple[list[Entry], list[Entry]]:
    """The entries of `running` trials that fail without a heartbeat for `older_than` seconds, from a `place` on.

    The second list has those that are queued in their place, if they are, with numbers from `number` on.
    """
    now = utc_now()
    silent = [entry for entry in running if entry.silence(now) >= older_than]
    outcome = Outcome(is_lost=enqueue)
    lost = [entry.finished(outcome, at, now) for at, entry in enumerate(silent, place)]
    return lost, [entry.repeated(at, now) for at, entry in enumerate(silent, number)] if enqueue else []


def measured(log: TrialLog, limits: Limits) -> list[Entry]:
    """The complete trials whose attributes have values of constraints, with these values beside their own ones."""
    pairs = [(entry, with_measured(entry.trial, limits)) for entry in log.entries]
    return [replace(e, trial=trial) for e, trial in pairs if trial.constraints != e.trial.constraints]


def with_measured(told: Told, limits: Limits) -> Told:
    """What was told, with the attributes that are values of constraints beside its own ones."""
    if not told.user_attrs or told.state != COMPLETE:
        return told
    numbers = {name: as_number(told.user_attrs.get(name)) for name in limits if name not in told.constraints}
    found = {name: number for name, number in numbers.items() if number is not None}
    return replace(told, constraints={**told.constraints, **found}) if found else told
