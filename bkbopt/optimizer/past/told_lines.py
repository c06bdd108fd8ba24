"""The lines of a table, points with their outcomes, in the log of an optimizer."""

from collections import Counter
from collections.abc import Sequence

from bkbopt.optimizer.designers.locking import locked
from bkbopt.optimizer.log.reporting import Report
from bkbopt.optimizer.log.trials import Outcome, Trial
from bkbopt.optimizer.optimizer import Optimizer
from bkbopt.optimizer.telling.told_points import key_of, note_other_points
from bkbopt.search.trials.states import COMPLETE, FAIL
from bkbopt.spaces.base import Params

__all__ = ["tell_lines", "without_gaps"]


@locked
def tell_lines(opt: Optimizer, lines: Sequence[tuple[Params, Outcome]], *, again: bool = False) -> list[Trial]:
    """Tell points with their outcomes in one transaction; calls of `tell` would be one for each set of constraints.

    Args:
        opt: the optimizer.
        lines: points, which may be those of running trials, with their outcomes.
        again: whether lines that are finished trials already are told once more.

    Returns:
        The finished trials, without those that were finished before.
    """
    new = lines if again else _not_told(opt, lines)
    trials = opt._core.finish([Report(params, outcome) for params, outcome in new], "tell")
    if opt.pool is not None:
        note_other_points(trials, len(trials))
    return trials


def _not_told(opt: Optimizer, lines: Sequence[tuple[Params, Outcome]]) -> list[tuple[Params, Outcome]]:
    """The lines that are no finished trials yet; of equal ones as many as there are more than such trials.

    A table may be told again, or a longer one in its place. Its values would count twice, and repeats that are exactly
    equal say that there is no noise.
    """
    conversion = opt._core.conversion
    finished = (trial for trial in opt._core.log if trial.state in (COMPLETE, FAIL))
    known = Counter(key_of(trial.params, trial) for trial in finished)
    points = conversion.told([params for params, _ in lines], ())
    new = list[tuple[Params, Outcome]]()
    for (params, outcome), point in zip(lines, points, strict=True):
        key = key_of(conversion.params(point, conversion.index(point, params)), outcome)
        known[key] -= 1
        if known[key] < 0:
            new.append((params, outcome))
    return new


def without_gaps(opt: Optimizer, params: Params) -> Params:
    """The parameters of a line without those whose cells are missing."""
    return opt._core.conversion.without_gaps(params)
