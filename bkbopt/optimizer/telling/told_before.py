"""Reports of a table that are finished trials already."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from bkbopt.optimizer.designers.logged_designer import LoggedDesigner
from bkbopt.optimizer.log.attributes import as_number
from bkbopt.optimizer.log.limits import Limits
from bkbopt.optimizer.log.reporting import Report
from bkbopt.optimizer.log.trials import Entry, Outcome, Trial
from bkbopt.optimizer.telling.told_points import key_of
from bkbopt.search.trials.states import COMPLETE

__all__ = ["not_told"]

Told = TypeVar("Told", Trial, Outcome)


def not_told(core: LoggedDesigner, reports: Sequence[Report]) -> list[Report]:
    """The reports that are no finished trials yet; of equal ones as many as there are more than such trials.

    A table may be told again, or a longer one in its place. Its values would count twice, and repeats that are exactly
    equal say that there is no noise.
    """
    conversion, entries, limits = core.conversion, core.log.entries, core.aims.limits
    finished = [entry for entry in entries if entry.place is not None]
    known = Counter(key_of(entry.trial.params, _measured(entry.trial, limits)) for entry in finished)
    points = iter(conversion.told([r.target for r in reports if not isinstance(r.target, int)], finished))
    new = list[Report]()
    for report in reports:
        if isinstance(report.target, int):
            is_told = 0 <= report.target < len(entries) and _is_end(entries[report.target], report.outcome, limits)
        else:
            point = next(points)
            params = conversion.params(point, conversion.index(point, report.target))
            key = key_of(params, _measured(report.outcome, limits))
            known[key] -= 1
            is_told = known[key] >= 0
        if not is_told:
            new.append(report)
    return new


def _is_end(entry: Entry, outcome: Outcome, limits: Limits) -> bool:
    """Whether a trial has ended with these values."""
    own, other = _measured(entry.trial, limits), _measured(outcome, limits)
    return entry.place is not None and (own.values, own.constraints) == (other.values, other.constraints)


def _measured(told: Told, limits: Limits) -> Told:
    """What was told with the attributes that are values of constraints: `set_constraints` takes them from trials."""
    numbers = {name: as_number(told.user_attrs.get(name)) for name in limits} if told.user_attrs else {}
    found = {name: number for name, number in numbers.items() if number is not None}
    return replace(told, constraints={**found, **told.constraints}) if found and told.state == COMPLETE else told
