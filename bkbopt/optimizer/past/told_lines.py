"""The lines of a table, points with their outcomes, in the log of an optimizer."""

from collections.abc import Sequence

from bkbopt.optimizer.designers.locking import locked
from bkbopt.optimizer.log.reporting import Report
from bkbopt.optimizer.log.trials import Outcome, Trial
from bkbopt.optimizer.optimizer import Optimizer
from bkbopt.optimizer.telling.told_points import not_told, note_other_points
from bkbopt.spaces.base import Params

__all__ = ["tell_lines", "without_gaps"]


@locked
def tell_lines(opt: Optimizer, lines: Sequence[tuple[Params | int, Outcome]], *, again: bool = False) -> list[Trial]:
    """Tell points with their outcomes in one transaction; calls of `tell` would be one for each set of constraints.

    Args:
        opt: the optimizer.
        lines: points, which may be those of running trials, or ids of these, with their outcomes.
        again: whether lines that are finished trials already are told once more.

    Returns:
        The finished trials, without those that were finished before.
    """
    reports = [Report(target, outcome) for target, outcome in lines]
    trials = opt._core.finish(reports if again else not_told(opt._core, reports), "tell")
    if opt.pool is not None:
        note_other_points(trials, len(trials))
    return trials


def without_gaps(opt: Optimizer, params: Params) -> Params:
    """The parameters of a line without those whose cells are missing."""
    return opt._core.conversion.without_gaps(params)
