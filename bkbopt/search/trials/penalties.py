"""Penalties: values such as 1e10 that an objective returns where it cannot be evaluated.

A penalty means that a point failed, and is no information on the objective beside it. A kernel fitted to the cliff has
short lengthscales, or much noise, where the values are good. The search therefore treats trials with penalties as
failed ones. A penalty is

- an infinitely bad value, or
- a value at `REPEATS` points or more, or a worse one, if it is `AWAY` times as far from all better values as these are
  from each other.

Where a point has both a penalty and a better value, outcomes are good or terrible by chance, and their mean counts:
there are no penalties then. Nor are there where each trial has one in some objective, since nothing would be learnt.
They are looked for at marks of the number of finished trials, and thus follow from the log alone. Those of an earlier
mark remain penalties.
"""

import itertools
import logging
import math
import operator
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

from bkbopt.search.quantities.marked_rows import next_mark
from bkbopt.search.trials.evaluations import Evaluation, Point
from bkbopt.search.trials.states import COMPLETE, FAIL

__all__ = ["Penalties", "largest_penalty"]

logger = logging.getLogger(__name__)

#: Points with the same value, at the least. Smooth functions do not have one value at several points.
REPEATS = 3
#: Distance of a penalty from all better values, relative to their range.
AWAY = 2.0
#: Number of different better values, at the least, and their share of all better values: among ratings or labels the
#: worst one is a value like the others.
FEWEST, DIFFERENT = 3, 0.5
#: Number of finished trials among which penalties are looked for first.
FIRST = 8


class Penalties:
    """The penalties of each objective, as of the last mark.

    Args:
        signs: one for each objective: +1 if larger is better, -1 if smaller is better.
        are_sought: whether there are penalties; otherwise all values are values.
    """

    def __init__(self, signs: Sequence[float], are_sought: bool = True) -> None:
        self._signs, self._are_sought = tuple(signs), are_sought
        self.forget()

    def forget(self) -> None:
        """Find the penalties from the first mark on, at the next update: trials have another place than before."""
        #: The mark, and the best penalty of each objective, larger is better.
        self._found: tuple[int, tuple[float, ...]] = 0, tuple(-math.inf for _ in self._signs)

    def judged(self, evaluation: Evaluation) -> Evaluation:
        """The evaluation as the search sees it: failed if one of its values is a penalty."""
        return self._judged(evaluation, self._found[1])

    def update(self, finished: list[Evaluation]) -> bool:
        """Find the penalties, if there is a new mark, and judge all evaluations by them.

        Args:
            finished: the finished trials in the order of their completion, which begin with those of the last call;
                those judged otherwise are replaced.

        Returns:
            Whether a trial is judged otherwise than before.
        """
        mark, best = self._found
        while self._are_sought and (following := next_mark(mark, 0) if mark else FIRST) <= len(finished):
            mark, best = following, self._at_mark(finished[:following], best)
        if mark == self._found[0]:
            return False
        judged = [self._judged(evaluation, best) for evaluation in finished]
        is_changed = any(map(operator.is_not, judged, finished))
        finished[:] = judged
        self._found = mark, best  # last, so that an interrupted update is repeated
        if is_changed:
            n_failed = sum(evaluation.state == FAIL for evaluation in judged if evaluation.measured)
            logger.info("values: %d of %d are penalties, and are treated as failures.", n_failed, len(judged))
        return is_changed

    def _at_mark(self, finished: Sequence[Evaluation], known: Sequence[float]) -> tuple[float, ...]:
        """The best penalty of each objective among the trials up to a mark; `known` are those of the mark before."""
        told = [evaluation for evaluation in finished if evaluation.measured]
        best = tuple(largest_penalty(*_values_of(told, k, sign), known[k]) for k, sign in enumerate(self._signs))
        if all(self._has_penalty(evaluation, best) for evaluation in told):
            return tuple(-math.inf for _ in best)
        return best

    def _has_penalty(self, evaluation: Evaluation, best: Sequence[float]) -> bool:
        limits = zip(self._signs, evaluation.measured, best, strict=True)
        return any(sign * value <= penalty for sign, value, penalty in limits)

    def _judged(self, evaluation: Evaluation, best: Sequence[float]) -> Evaluation:
        if not (self._are_sought and evaluation.measured):
            return evaluation
        state = FAIL if self._has_penalty(evaluation, best) else COMPLETE
        return evaluation if state == evaluation.state else replace(evaluation, state=state)


def _values_of(told: Sequence[Evaluation], k: int, sign: float) -> tuple[list[float], list[Point]]:
    """The values of objective k, larger is better, and the points of the trials in which it is measured."""
    pairs = [(sign * e.measured[k], e.point) for e in told if not math.isnan(e.measured[k])]
    return [value for value, _ in pairs], [point for _, point in pairs]


def largest_penalty(values: Sequence[float], points: Sequence[Point], known: float = -math.inf) -> float:
    """The best penalty among the `values (n,)`, larger is better, at the `points (n,)`; -inf if none is finite.

    `known` is a penalty already.
    """
    kinds = Counter(sorted(value for value in values if math.isfinite(value)))
    best, n_better, found = max(kinds, default=math.nan), kinds.total(), known
    for left, (value, following) in enumerate(itertools.pairwise(kinds), 1):
        n_better -= kinds[value]
        if kinds[value] < REPEATS or len(kinds) - left < max(FEWEST, DIFFERENT * n_better):
            continue
        # Quarters, since differences of the largest doubles overflow.
        if following / 4.0 - value / 4.0 >= AWAY * (best / 4.0 - following / 4.0):
            found = max(found, value)
    if found == -math.inf:
        return found
    at_penalty, worse, better = set[Hashable](), set[Hashable](), set[Hashable]()
    for value, point in zip(values, points, strict=True):
        same = at_penalty if value == found else worse if value < found else better
        same.add(frozenset(point.items()))
    by_chance = better & (at_penalty | worse)
    return -math.inf if by_chance or len(at_penalty) < REPEATS else found
