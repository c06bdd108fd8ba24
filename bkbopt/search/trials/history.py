"""The finished trials of a log, encoded, in the order of their completion.

| symbol | shape  | meaning                                                                        |
| ------ | ------ | ------------------------------------------------------------------------------ |
| X      | (n, d) | encoded points of all finished trials, failed ones included                    |
| rows   | (k,)   | indices into X of the trials from which a quantity is learnt                   |

The rows are a function of the log, and do not depend on when the trials were added. A late trial, which completed
before a trial that was added earlier, is inserted at its place; `version` then changes, since results computed from the
old order are no longer valid.
"""

import bisect
import itertools
import math
import operator
from array import array
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.latest import Latest
from bkbopt._support.row_keys import row_keys
from bkbopt.search.quantities.marked_rows import Failures, Rows, last_mark, last_mark_of_failing
from bkbopt.search.trials.evaluations import Evaluation, Point, Problem
from bkbopt.search.trials.penalties import Penalties
from bkbopt.search.trials.presence import Presence
from bkbopt.search.trials.states import FAIL, PRUNED, RUNNING
from bkbopt.search.trials.valued_rows import ValuedRows
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.encoding import Encoding, merged
from bkbopt.spaces.space import Parameter, Space
from bkbopt.spaces.stretched import Stretch, can_be_stretched, stretched

__all__ = ["History"]


class History:
    """All trials of a log.

    Args:
        problem: the optimisation problem.
        finds_penalties: whether trials with penalties count as failed, see `Penalties`.

    Attributes:
        finished: the finished trials in the order of their completion; those with penalties count as failed.
        running: the running trials by number.
        version: incremented whenever existing rows have moved or are encoded differently.
        presence: which parameters the trials have that did not fail.
        failed: which parameters the failed trials have.
        parameters: parameters of all trials and of the problem by column key, each with the union of its ranges.
        n_complete: number of trials with a value of some objective.
        n_whole: number of trials with a value of each objective.
        n_estimated: number of pruned trials with intermediate values.
        n_failed: number of failed trials.
    """

    def __init__(self, problem: Problem, *, finds_penalties: bool = True) -> None:
        self.problem = problem
        self.finished: list[Evaluation] = []
        self.running: dict[int, Evaluation] = {}
        self.version = 0
        self._numbers: set[int] = set()
        self._interrupted = False
        self._penalties = Penalties(problem.signs, finds_penalties)
        self._failed_at: Latest[Tensor] = Latest()
        self.parameters: dict[str, Parameter] = {}
        self._spaces: dict[int, Space] = {}
        self._constant = {} if problem.pool is None else dict(problem.pool.constant)
        self._encoding: Encoding | None = None
        self._stretches: Mapping[str, Stretch] = {}
        self._encoded_last: tuple[object, tuple[Mapping[str, float], ...], Tensor] = (None, (), torch.zeros(0))
        self._reset()
        if problem.space is not None:
            self._widen(problem.space)

    def _reset(self) -> None:
        self.n_complete = self.n_whole = self.n_estimated = self.n_failed = 0
        self._X: Tensor | None = None
        self._encoded = self._taken = 0
        self._objectives = [ValuedRows(sign) for sign in self.problem.signs]
        self._limits: dict[str, ValuedRows] = {}
        self._failing = ValuedRows()
        self._failures, self._valued = list[int](), list[int]()  # rows of failures, and with values
        self.presence, self.failed = Presence(), Presence()
        #: For each finished trial, the number of trials that were running when it ended, by the numbers of the trials.
        self._n_running = array("q")
        self._highest = -1

    # -- following the log -------------------------------------------------------------------------------------------

    def update(self, evaluations: Iterable[Evaluation]) -> None:
        """Add trials; those that are known as finished are skipped.

        An interrupted update must be repeated.
        """
        if self._interrupted:
            self._begin_anew()
        self._interrupted = True
        self._follow(evaluations)
        self._interrupted = False

    def _begin_anew(self) -> None:
        """Reset all data that follow from the trials and the problem, after an interrupt."""
        self._numbers = {evaluation.number for evaluation in self.finished}
        self._merge_all()
        self._void()

    def _follow(self, evaluations: Iterable[Evaluation]) -> None:
        new = []
        for evaluation in evaluations:
            number = evaluation.number
            if number in self._numbers:
                continue
            self.running.pop(number, None)
            if not evaluation.point and evaluation.state in (RUNNING, FAIL):
                continue  # a trial without parameters, running or failed
            if evaluation.state == RUNNING:
                self.running[number] = evaluation
                continue
            new.append(evaluation)
            self._numbers.add(number)
        new.sort(key=lambda evaluation: evaluation.order)
        late = bool(new and self.finished) and new[0].order < self.finished[-1].order
        if late:
            self._penalties.forget()  # before trials move, in case of an interrupt
        for evaluation in map(self._penalties.judged, new):
            if late:
                bisect.insort(self.finished, evaluation, key=lambda other: other.order)
            else:
                self.finished.append(evaluation)
            for space in evaluation.spaces if evaluation.did_run else ():
                self._widen(space)
            if self._varies(evaluation.point):
                self._void()
        if self._penalties.update(self.finished) or late:
            self._void()
        self._take_all()

    def set_problem(self, problem: Problem) -> bool:
        """Set another space or pool; all trials are kept. Returns whether rows are encoded differently.

        An interrupted call must be repeated.
        """
        was_interrupted, self._interrupted = self._interrupted, True
        old = None if was_interrupted or problem.pool is not None else self.encoding
        constant = self.constant
        self.problem = problem
        if was_interrupted:
            self._begin_anew()
        else:
            self._merge_all()
        if problem.pool is None:
            moved = self.encoding != old
        else:
            moved = was_interrupted or problem.pool.objects is not None or self.constant != constant
        if moved:
            self._void()
            self._take_all()
        self._interrupted = False
        return moved

    def set_stretches(self, stretches: Mapping[str, Stretch]) -> None:
        """Set which ends of which ranges are stretched, by column key; if this changes, all rows are encoded again.

        An interrupted call must be repeated.
        """
        if stretches != self._stretches:
            self._interrupted, self._stretches, self._encoding = True, dict(stretches), None
            self._void()
            self._take_all()
            self._interrupted = False

    def _merge_all(self) -> None:
        """Recompute ranges from the problem's space and those of the trials, and constant columns from all points."""
        self._encoding, self.parameters, self._spaces = None, {}, {}
        for space in (self.problem.space, *(space for e in self.finished if e.did_run for space in e.spaces)):
            if space is not None:
                self._merge(space)
        self._constant = {} if self.problem.pool is None else dict(self.problem.pool.constant)
        for evaluation in self.finished:
            self._varies(evaluation.point)

    def _varies(self, point: Point) -> bool:
        """Whether a trial has another value in a column that was constant so far, and no longer is."""
        others = [name for name, value in self._constant.items() if point.get(name, value) != value]
        for name in others:
            del self._constant[name]
        return bool(others)

    def _void(self) -> None:
        self.version += 1
        self._reset()

    def _take_all(self) -> None:
        for row in range(self._taken, len(self.finished)):
            self._take(row, self.finished[row])
        self._taken = len(self.finished)

    def _take(self, row: int, evaluation: Evaluation) -> None:
        """Add the trial as a row to each quantity for which it has a value."""
        failed = evaluation.state == FAIL
        self._highest = max(self._highest, evaluation.number)
        self._n_running.append(self._highest - row)
        self._failing.append(row, 1.0 if failed else -1.0)
        (self.failed if failed else self.presence).add(evaluation.point)
        if failed:
            self.n_failed += 1
            self._failures.append(row)
        for name, value in evaluation.constraints.items():
            self._limits.setdefault(name, ValuedRows()).append(row, value)
        values, stds = evaluation.measured, evaluation.stds
        if failed or (not values and evaluation.state != PRUNED):
            return  # it failed, or has values of constraints only
        self._valued.append(row)
        self.n_complete += bool(values)
        self.n_whole += bool(evaluation.values)
        self.n_estimated += not values and bool(evaluation.curve)
        for k, column in enumerate(self._objectives):
            y = values[k] if values else math.nan
            if not (evaluation.partial and math.isnan(y)):
                column.append(row, y, math.nan if stds is None else stds[k], evaluation.curve)

    def _widen(self, space: Space) -> None:
        """Add the ranges of a space; if this changes a column, all rows are encoded again."""
        if self._merge(space) and self.finished:
            self._void()

    def _merge(self, space: Space) -> bool:
        """Add the ranges of a space to `parameters`; returns whether this changed them."""
        if self._spaces.get(id(space)) is space:
            return False
        self._spaces[id(space)] = space
        grown = False
        for key, parameter in space.keyed.items():
            old = self.parameters.get(key)
            wide = merged(parameter if old is None else old, parameter)
            if old is None or wide != old:
                self.parameters[key] = wide
                grown = True
        if grown:
            self._encoding = None
        return grown

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def encoding(self) -> Encoding:
        """The columns of all known parameters, with stretched ends."""
        if self._encoding is None:
            plain, by = self.plain_encoding, self.stretches
            parameters = ((key, stretched(p, by[key]) if key in by else p) for key, p in plain.parameters)
            self._encoding = Encoding(tuple(parameters))
        return self._encoding

    @property
    def stretches(self) -> dict[str, Stretch]:
        """The stretched ends by column key."""
        known, parameters = self._stretches, self.parameters
        return {key: known[key] for key in known if key in parameters and can_be_stretched(parameters[key])}

    @property
    def plain_encoding(self) -> Encoding:
        """The columns as given: those of the problem's space in its order, then the rest by key."""
        first = [] if self.problem.space is None else [*self.problem.space.keyed]
        rest = sorted(self.parameters.keys() - set(first))
        return Encoding(tuple((key, self.parameters[key]) for key in (*first, *rest)))

    @property
    def _encoder(self) -> Encoding | Arms:
        """What encodes points: the pool, or the encoding of a space."""
        return self.encoding if self.problem.pool is None else self.problem.pool

    @property
    def dim(self) -> int:
        """Number of encoded columns d."""
        return self._encoder.dim

    @property
    def categorical(self) -> tuple[int, ...]:
        """Columns that hold category codes."""
        return self._encoder.categorical

    @property
    def constant(self) -> tuple[int, ...]:
        """Columns in which all arms of a pool and all finished trials have the same value."""
        names = self.problem.pool.names if self.problem.pool is not None and self._constant else ()
        return tuple(j for j, name in enumerate(names) if name in self._constant)

    @property
    def n_codes(self) -> Mapping[int, int]:
        """Number of the codes of each column that holds codes."""
        return self._encoder.n_codes

    def encode(self, points: Sequence[Mapping[str, float]]) -> Tensor:
        """Encoded points `(n, d)`; those at the beginning that are in the last list are not encoded again."""
        encoder = self._encoder
        by, last, X = self._encoded_last
        if by is not encoder:
            last, X = (), torch.zeros(0, self.dim, dtype=torch.float64)
        if not all(map(operator.is_, last, points)):
            rows = {id(point): row for row, point in enumerate(last)}
            last = tuple(itertools.takewhile(lambda point: id(point) in rows, points))
            X = X[[rows[id(point)] for point in last]]
        if len(points) > len(last):
            X = torch.cat([X, encoder.encode(points[len(last) :])])
            self._encoded_last = encoder, tuple(points), X
        return X[: len(points)]

    @property
    def X(self) -> Tensor:
        """Encoded points of the finished trials, `(n, d)`."""
        n = len(self.finished)
        if self._X is None or len(self._X) < n:
            X = torch.zeros(max(2 * n, 16), self.dim, dtype=torch.float64)
            if self._X is not None:
                X[: self._encoded] = self._X[: self._encoded]
            self._X = X
        if self._encoded < n:
            self._X[self._encoded : n] = self.encode([e.point for e in self.finished[self._encoded :]])
            self._encoded = n
        return self._X[:n]

    @property
    def is_conditional(self) -> bool:
        """Whether some trial lacks a parameter that another has."""
        return self.presence.is_conditional

    def objective(self, k: int, first: int) -> Rows:
        """The rows of objective k, fitted at `first` values, or as soon as another objective has so many."""
        column, most = self._objectives[k], max(len(other.y) for other in self._objectives)
        return self._rows(column, self._mark(column, first if len(column.y) >= first or most < first else 1))

    def numbers_of(self, k: int, rows: Iterable[int]) -> list[int]:
        """The numbers of the trials of some rows of objective k."""
        return [self.finished[self._objectives[k].rows[row]].number for row in rows]

    @property
    def penalised(self) -> list[int]:
        """The numbers of the trials that count as failed because of a penalty, sorted."""
        return sorted(e.number for e in self.finished if e.state == FAIL and e.measured)

    @property
    def constraint_names(self) -> list[str]:
        """Names of all constraints with values, sorted."""
        return sorted(self._limits)

    def constraint(self, name: str, first: int) -> Rows:
        """The rows of a constraint; it is fitted from its first value on while it has fewer than `first`.

        Past data may have values of the objective only, and what is not known to be feasible must not be proposed
        again and again.
        """
        column = self._limits[name]
        return self._rows(column, self._mark(column, first if len(column.y) >= first else 1))

    def _mark(self, column: ValuedRows, first: int) -> int:
        return last_mark(len(column.y), first, lambda row: self._n_running[column.rows[row]])

    def failing(self) -> Rows:
        """Rows of all finished trials, with the value 1 for failed trials and -1 for others."""
        n = len(self.finished)
        return self._rows(self._failing, last_mark_of_failing(self._failures, n, self._n_running.__getitem__))

    def n_failed_by(self, n: int) -> int:
        """Number of trials that failed before value number `n`, from 0 on; of all of them if there are fewer values."""
        rows = self._valued
        return bisect.bisect_left(self._failures, rows[n] if n < len(rows) else len(self.finished))

    def failures(self) -> Tensor:
        """Points at which all trials failed, `(f, d)`; cached for the same rows."""
        return self._failed_at.of((self.version, self._taken), self._points_that_failed)

    def _points_that_failed(self) -> Tensor:
        X = self.X[self._failures]
        if not len(X):
            return X
        did_run = set(row_keys(self.X[self._valued]))
        return X[[key not in did_run for key in row_keys(X)]]

    def _rows(self, column: ValuedRows, mark: int) -> Rows:
        places = torch.from_numpy(np.array(column.rows))
        X = self.X if len(places) == len(self.finished) else self.X[places]
        # Copies, since an `array` cannot grow while a tensor shares its memory.
        y, std = (torch.from_numpy(np.array(values)) for values in (column.y, column.std))
        estimates = torch.full_like(y, math.nan)
        if column.pruned:
            estimates[column.pruned] = torch.from_numpy(np.array(column.estimates(mark)))
        later = tuple(self.finished[row].number for row in column.rows[mark:])
        failed = None if column is self._failing else self._failed_after(column, mark)
        columns = X, y, estimates, std, self.categorical, self.version, mark, self.constant
        return Rows(*columns, later, failed, places)

    def _failed_after(self, column: ValuedRows, mark: int) -> Failures:
        rows = self._failures[bisect.bisect_left(self._failures, column.rows[mark - 1]) if mark else 0 :]
        n = tuple(bisect.bisect_left(column.rows, row) for row in rows)
        return Failures(n, tuple(self.finished[row].number for row in rows), self.X[rows])
