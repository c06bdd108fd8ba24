"""Data of the search: evaluations (trials of a log), problems, requests and suggestions."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bkbopt.search.trials.curves import Curve
from bkbopt.search.trials.reports import Diagnostics
from bkbopt.search.trials.states import FAIL
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Point
from bkbopt.spaces.rows import RowSource
from bkbopt.spaces.space import Space

__all__ = [
    "Evaluation",
    "Point",
    "Problem",
    "Request",
    "Suggestion",
    "one_of_each_row",
]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One trial of a log.

    Attributes:
        number: number of the trial, from 0 on.
        state: `RUNNING`, `COMPLETE`, `PRUNED` or `FAIL`.
        point: the point.
        space: the space from which the point was proposed; None for a pool.
        order: time of completion, then the number. Finished trials are learnt in this order.
        values: one for each objective, in the user's units; may be infinite; empty if there are none, or not all.
        stds: known standard deviations of the values' noise, user's units; None if the noise is fitted.
        curve: intermediate values by step, of a trial that is pruned or complete.
        constraints: values of constraints by name; a point is feasible if all are <= 0.
        added: the ranges of values that the point got from later spaces.
        row: the name of its row of the pool; None where rows have no names.
        n_values: number of values when it was suggested; None if unknown.
        partial: where some objectives are measured, one number for each, NaN for the others; empty otherwise.
    """

    number: int
    state: str
    point: Point
    space: Space | None = None
    order: tuple[float, int] = (0.0, 0)
    values: tuple[float, ...] = ()
    stds: tuple[float, ...] | None = None
    curve: Curve = field(default_factory=dict)
    constraints: Mapping[str, float] = field(default_factory=dict)
    added: tuple[Space, ...] = ()
    row: Hashable | None = None
    n_values: int | None = None
    partial: tuple[float, ...] = ()

    @property
    def measured(self) -> tuple[float, ...]:
        """One number for each objective, NaN for those that are not measured; empty if none is."""
        return self.values or self.partial

    @property
    def did_run(self) -> bool:
        """Whether it did not fail, or failed by a penalty among its values alone."""
        return self.state != FAIL or bool(self.measured)

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The spaces whose ranges hold the point."""
        return self.added if self.space is None else (self.space, *self.added)


def one_of_each_row(finished: Sequence[Evaluation]) -> Sequence[int]:
    """The places of the evaluations without repeats of a row that has a name; the first one of each is kept."""
    named = [evaluation.row for evaluation in finished if evaluation.row is not None]
    if len(set(named)) == len(named):
        return range(len(finished))
    kept, points = list[int](), dict[Hashable, list[Point]]()
    for place, evaluation in enumerate(finished):
        known = points.setdefault(evaluation.row, [])  # several in pools with other values of the row
        if evaluation.row is None or evaluation.point not in known:
            kept.append(place)
            known.append(evaluation.point)
    return kept


@dataclass(frozen=True)
class Problem:
    """An optimisation problem.

    Attributes:
        signs: one for each objective: +1 if larger is better, -1 if smaller is better.
        space: the search space; None for a pool, or if each request has its own space.
        pool: the pool; None for a space.
        feasible: the user's constraint on points.
        optional: keys of parameters of the space that a point may lack for no stated reason, as in trials of a study
            whose parameters depend on a float.
        intervals: pairs of constraints that are the two limits of one quantity.
    """

    signs: tuple[float, ...] = (-1.0,)
    space: Space | None = None
    pool: Arms | None = None
    feasible: Callable[[Point], bool] | None = None
    optional: frozenset[str] = frozenset()
    intervals: tuple[tuple[str, str], ...] = ()

    @property
    def candidates(self) -> Space | Arms:
        """The pool or else the space, one of which there is."""
        candidates = self.space if self.pool is None else self.pool
        assert candidates is not None
        return candidates

    @property
    def arms(self) -> RowSource | None:
        """The encoded arms of the pool, (A, d), where they are listed."""
        return None if self.pool is None or not self.pool.is_listed else self.pool.X


@dataclass(frozen=True)
class Request:
    """A request for a suggestion.

    Attributes:
        number: number of the trial.
        space: the search space; None for a pool.
        fixed: fixed values.
        running: points of the running trials.
        numbers: their numbers.
        entropy: seed of the random numbers, and number of the attempt at the same trial.
        n_older: number of the running trials that were suggested before the last value came, or may have been.
    """

    number: int
    space: Space | None
    fixed: Point
    running: tuple[Point, ...]
    numbers: tuple[int, ...]
    entropy: tuple[int, int]
    n_older: int = 0

    @property
    def attempt(self) -> int:
        """Number of the attempt at the same trial, from 0."""
        return self.entropy[1]

    def rng(self, *use: int) -> np.random.Generator:
        """A new generator of the suggestion's random numbers; `use` distinguishes independent streams."""
        seed, attempt = self.entropy
        return np.random.default_rng([seed, self.number, attempt, *use])


@dataclass(frozen=True)
class Suggestion:
    """A point to evaluate.

    Attributes:
        number: number of its trial.
        point: its parameters, in internal form.
        index: its row in the pool, or None.
        diagnostics: record of the models and the criterion.
    """

    number: int
    point: Point
    index: int | None
    diagnostics: Diagnostics
