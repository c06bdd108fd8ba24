"""The lines of a table, points with their outcomes, in the log of an optimizer."""

from collections import Counter
from collections.abc import Sequence

from bkbopt.optimizer.designers.locking import locked
from bkbopt.optimizer.log.reporting import Report
from bkbopt.optimizer.log.trials import Entry, Outcome, Trial
from bkbopt.optimizer.optimizer import Optimizer
from bkbopt.optimizer.telling.told_points import key_of, note_other_points
from bkbopt.spaces.base import Params

__all__ = ["tell_lines", "without_gaps"]

#: The parameters of a point or the id of a trial, and the outcome.
Line = tuple[Params | int, Outcome]


@locked
def tell_lines(opt: Optimizer, lines: Sequence[Line], *, again: bool = False) -> list[Trial]:
    """Tell points with their outcomes in one transaction; calls of `tell` would be one for each set of constraints.

    Args:
        opt: the optimizer.
        lines: points, which may be those of running trials, or ids of these, with their outcomes.
        again: whether lines that are finished trials already are told once more.

    Returns:
        The finished trials, without those that were finished before.
    """
    new = lines if again else _not_told(opt, lines)
    trials = opt._core.finish([Report(target, outcome) for target, outcome in new], "tell")
    if opt.pool is not None:
        note_other_points(trials, len(trials))
    return trials


def _not_told(opt: Optimizer, lines: Sequence[Line]) -> list[Line]:
    """The lines that are no finished trials yet; of equal ones as many as there are more than such trials.

    A table may be told again, or a longer one in its place. Its values would count twice, and repeats that are exactly
    equal say that there is no noise.
    """
    conversion, entries = opt._core.conversion, opt._core.log.entries
    finished = [entry for entry in entries if entry.place is not None]
    known = Counter(key_of(entry.trial.params, entry.trial) for entry in finished)
    points = iter(conversion.told([target for target, _ in lines if not isinstance(target, int)], finished))
    new = list[Line]()
    for target, outcome in lines:
        if isinstance(target, int):
            is_told = target < len(entries) and _is_end(entries[target], outcome)
        else:
            point = next(points)
            key = key_of(conversion.params(point, conversion.index(point, target)), outcome)
            known[key] -= 1
            is_told = known[key] >= 0
        if not is_told:
            new.append((target, outcome))
    return new


def _is_end(entry: Entry, outcome: Outcome) -> bool:
    """Whether a trial has ended with these values."""
    found = entry.outcome
    return entry.place is not None and (found.values, found.constraints) == (outcome.values, outcome.constraints)


def without_gaps(opt: Optimizer, params: Params) -> Params:
    """The parameters of a line without those whose cells are missing."""
    return opt._core.conversion.without_gaps(params)
