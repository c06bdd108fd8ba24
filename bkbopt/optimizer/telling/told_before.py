"""Reports of a table that are finished trials already."""

from collections import Counter
from collections.abc import Sequence

from bkbopt.optimizer.designers.logged_designer import LoggedDesigner
from bkbopt.optimizer.log.limits import Limits
from bkbopt.optimizer.log.reporting import Report, with_measured
from bkbopt.optimizer.log.trials import Entry, Outcome, values_of
from bkbopt.optimizer.telling.told_points import key_of

__all__ = ["not_told"]


def not_told(core: LoggedDesigner, reports: Sequence[Report]) -> list[Report]:
    """The reports that are no finished trials yet; of equal ones as many as there are more than such trials.

    A table may be told again, or a longer one in its place. Its values would count twice, and repeats that are exactly
    equal say that there is no noise.
    """
    conversion, entries, limits = core.conversion, core.log.entries, core.aims.limits
    finished = [entry for entry in entries if entry.place is not None]
    known = Counter(key_of(entry.trial.params, with_measured(entry.trial, limits)) for entry in finished)
    points = iter(conversion.told([r.target for r in reports if not isinstance(r.target, int)], finished))
    new = list[Report]()
    for report in reports:
        if isinstance(report.target, int):
            is_told = 0 <= report.target < len(entries) and _is_end(entries[report.target], report.outcome, limits)
        else:
            point = next(points)
            params = conversion.params(point, conversion.index(point, report.target))
            key = key_of(params, with_measured(report.outcome, limits))
            known[key] -= 1
            is_told = known[key] >= 0
        if not is_told:
            new.append(report)
    return new


def _is_end(entry: Entry, outcome: Outcome, limits: Limits) -> bool:
    """Whether a trial has ended with these values."""
    own, other = with_measured(entry.trial, limits), with_measured(outcome, limits)
    return entry.place is not None and (values_of(own), own.constraints) == (values_of(other), other.constraints)
