"""Tables that are told again, and warnings: of them, of constraints that are missing, of points that are no rows."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from bkbopt.optimizer.designers.logged_designer import LoggedDesigner
from bkbopt.optimizer.log.limits import Limits
from bkbopt.optimizer.log.reporting import Report, with_measured
from bkbopt.optimizer.log.trials import Entry, Outcome, Trial, values_of

__all__ = ["not_told", "note_missing_constraints", "note_other_points", "note_told_before"]

logger = logging.getLogger(__name__)

#: Points of a call that were told before are noted from so many on; one or two may be repeats that are equal by chance.
FEWEST = 3
#: Trials that are compared for each point that is told, at the most: of a table in small parts only the first are.
COMPARED = 100


def note_missing_constraints(told: Sequence[Trial], names: Sequence[str]) -> bool:
    """Warn of a value without values of all constraints, and return whether there is one."""
    lacking = next((trial for trial in told if trial.values and not trial.constraints.keys() >= set(names)), None)
    if lacking is None:
        return False
    logger.warning(
        "tell: trial %s has a value, but not one of each constraint %s, so that they are not known to hold there; tell "
        "them by constraints={name: number}, or return (value, {name: number, ...}) from the function of minimize. "
        "Later trials are not reported.",
        lacking.id,
        list(names),
    )
    return True


def note_other_points(points: Sequence[Trial], n: int) -> None:
    """Warn of `points`, of the `n` trials of a call, that are no rows of the optimizer's pool.

    Past data may have such points. Some are meant to be rows, whose numbers were rounded to less than six digits.
    """
    others = [trial for trial in points if trial.index is None]
    if others:
        logger.warning(
            "tell: %d of %d points are no rows of the pool, the first with %s. The model learns them, and rows with "
            "nearly these values may be asked. Tell rows by number or name (tell_rows) if they are meant, or with six "
            "digits.",
            len(others),
            n,
            dict(others[0].params),
        )


def note_told_before(points: Sequence[Trial], entries: Sequence[Entry]) -> None:
    """Warn if all `points` of a call equal earlier trials among `entries`, as where a table is told again."""
    if not max(FEWEST, len(entries) / COMPARED) <= len(points):
        return
    own, values = {trial.id for trial in points}, {values_of(trial) for trial in points}
    earlier = (entry.trial for entry in entries if values_of(entry.trial) in values and entry.trial.id not in own)
    known = Counter(_key_of(trial.params, trial) for trial in earlier)
    if not Counter(_key_of(trial.params, trial) for trial in points) - known:
        logger.warning(
            "tell: all %d points equal earlier trials in parameters and values, as where a table is told again. Their "
            "values count twice, and repeats that are exactly equal say that there is no noise. Call tell with "
            "again=False to leave them out.",
            len(points),
        )


def not_told(core: LoggedDesigner, reports: Sequence[Report]) -> list[Report]:
    """The reports that are no finished trials yet; of equal ones as many as there are more than such trials.

    A table may be told again, or a longer one in its place. Its values would count twice, and repeats that are exactly
    equal say that there is no noise.
    """
    conversion, entries, limits = core.conversion, core.log.entries, core.aims.limits
    finished = [entry for entry in entries if entry.place is not None]
    known = Counter(_key_of(entry.trial.params, with_measured(entry.trial, limits)) for entry in finished)
    points = iter(conversion.told([r.target for r in reports if not isinstance(r.target, int)], finished))
    new = list[Report]()
    for report in reports:
        if isinstance(report.target, int):
            is_told = 0 <= report.target < len(entries) and _is_end(entries[report.target], report.outcome, limits)
        else:
            point = next(points)
            params = conversion.params(point, conversion.index(point, report.target))
            key = _key_of(params, with_measured(report.outcome, limits))
            known[key] -= 1
            is_told = known[key] >= 0
        if not is_told:
            new.append(report)
    return new


def _is_end(entry: Entry, outcome: Outcome, limits: Limits) -> bool:
    """Whether a trial has ended with these values."""
    own, other = with_measured(entry.trial, limits), with_measured(outcome, limits)
    return entry.place is not None and (values_of(own), own.constraints) == (values_of(other), other.constraints)


def _key_of(params: Mapping[str, object], outcome: Trial | Outcome) -> tuple[object, ...]:
    """What trials with equal parameters and outcomes have in common."""
    cells = sorted((name, repr(value)) for name, value in params.items())
    return tuple(cells), values_of(outcome), tuple(sorted(outcome.constraints.items()))
