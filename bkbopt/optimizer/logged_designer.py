"""A log of trials in memory with its designer: what `Optimizer` does with checked arguments."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from bkbopt.errors import ArgumentError, NotReadyError, SpaceExhaustedError
from bkbopt.optimizer.telling import Report
from bkbopt.optimizer.trials import WAITING, Trial, TrialLog
from bkbopt.optimizer.vocabulary import Params, PoolVocabulary, SpaceVocabulary, Vocabulary
from bkbopt.search.designer import Designer, Options
from bkbopt.search.evaluations import Point, Problem
from bkbopt.search.reports import Diagnostics

__all__ = ["LoggedDesigner"]


class LoggedDesigner:
    """A designer that suggests into a log and learns from it.

    Args:
        problem: what is optimized.
        options: of the designer.
        entropy: of everything random.
        feasible: the user's constraint on parameters.

    Attributes:
        log: of all trials.
        designer: what suggests.
        vocabulary: the words of the space or pool.
        diagnostics: one record for each trial that was asked.
    """

    def __init__(
        self, problem: Problem, options: Options, entropy: int, feasible: Callable[[Params], bool] | None
    ) -> None:
        self._feasible = feasible
        self.vocabulary = _vocabulary(problem)
        self.designer = Designer(replace(problem, feasible=self._is_feasible()), options, entropy)
        self.log = TrialLog()
        self.diagnostics: list[Diagnostics] = []

    def _is_feasible(self) -> Callable[[Point], bool] | None:
        feasible = self._feasible
        if feasible is None:
            return None
        return lambda point: bool(feasible(self.vocabulary.params(point, None)))

    def replace(self, problem: Problem) -> None:
        """Take another space or pool."""
        if problem.pool is not None and problem.pool.objects is not None:
            self.designer.options.models.surrogate.bind_objects(problem.pool.objects)
        self.vocabulary = _vocabulary(problem)
        self.designer.set_problem(replace(problem, feasible=self._is_feasible()))

    def update(self) -> Designer:
        """The designer, told of all trials; what an interrupt kept from it is told again."""
        self.designer.update(self.log.changes())
        self.log.forget_changes()
        return self.designer

    def followed(self) -> Designer:
        """The designer, told of all trials, one of which has a value.

        Raises:
            NotReadyError: none has.
        """
        if not self.log.n_complete:
            raise NotReadyError("posterior: expected at least one value, got none; call tell first.")
        return self.update()

    # -- asking ------------------------------------------------------------------------------------------------------

    def ask(self, count: int, fixed: Point) -> list[Trial]:
        """The next trials, queued ones first; fewer where nothing else is left to propose."""
        trials = self._from_queue(count, fixed)
        if len(trials) < count:
            try:
                trials += self._suggested(count - len(trials), fixed)
            except SpaceExhaustedError:
                if not trials:
                    raise
        return trials

    def _suggested(self, count: int, fixed: Point) -> list[Trial]:
        start = time.perf_counter()
        self.update()
        suggestions = self.designer.suggest(count, number=len(self.log), fixed=fixed)
        seconds, now, trials = (time.perf_counter() - start) / len(suggestions), _now(), []
        for suggestion in suggestions:
            params = self.vocabulary.params(suggestion.point, suggestion.index)
            trials.append(self.log.add(params, suggestion.point, self.designer.problem.space, suggestion.index, now))
            self.diagnostics.append(replace(suggestion.diagnostics, ask_seconds=seconds))
        return trials

    def _from_queue(self, count: int, fixed: Point) -> list[Trial]:
        trials: list[Trial] = []
        for number in list(self.log.waiting):
            given = self.log.entries[number].point
            agrees = all(given.get(key, value) == value for key, value in fixed.items())
            if len(trials) < count and agrees and self.vocabulary.holds({**given, **fixed}):
                self.update()
                try:
                    suggestion = self.designer.complete({**given, **fixed}, number)
                except (SpaceExhaustedError, ArgumentError):  # it stays in the queue
                    continue
                params, space = self.vocabulary.params(suggestion.point, suggestion.index), self.designer.problem.space
                trials.append(self.log.start(number, params, suggestion.point, space, suggestion.index, _now()))
                self.diagnostics.append(suggestion.diagnostics)
        return trials

    def enqueue(self, params: Params) -> Trial:
        """Queue a point; parameters left out are suggested when it is asked."""
        given = self.vocabulary.fixed(params)
        whole, feasible = self.designer.whole(given), self.designer.problem.feasible
        if whole is not None and feasible is not None and not feasible(whole[0]):
            raise ArgumentError(f"params: expected a feasible point, got {dict(params)!r}.")
        shown = self.vocabulary.params(given, None)
        return self.log.add(shown, given, self.designer.problem.space, None, _now(), WAITING)

    # -- telling -----------------------------------------------------------------------------------------------------

    def finish(self, reports: Sequence[Report], call: str) -> list[Trial]:
        """Check all reports of a `call`, then write all."""
        params = [report.target for report in reports if isinstance(report.target, Mapping)]
        points = iter(self.vocabulary.points(params))
        running: dict[frozenset[tuple[str, float]], list[int]] = {}
        for i in self.log.running_ids if params else ():
            running.setdefault(_key(self.log.entries[i].point), []).append(i)
        targets: list[tuple[int | None, Point, Params]] = []
        taken: set[int] = set()
        for report in reports:
            if isinstance(report.target, Mapping):
                point = next(points)
                number = next((i for i in running.get(_key(point), ()) if i not in taken), None)
                targets.append((number, point, report.target))
            else:
                number = self.log.running(report.target, call).id
                if number in taken:
                    raise ArgumentError(f"trial: expected each trial once, got trial {number} twice.")
                targets.append((number, {}, {}))
            if number is not None:
                taken.add(number)
        now, done = _now(), []
        for report, (found, point, given) in zip(reports, targets, strict=True):
            number = self._add(point, given, now) if found is None else found
            done.append(self.log.finish(number, report.outcome, now))
        return done

    def _add(self, point: Point, given: Params, now: datetime) -> int:
        """A running trial of past data."""
        index = self.vocabulary.index(point, given)
        return self.log.add(self.vocabulary.params(point, index), point, self.designer.problem.space, index, now).id


def _vocabulary(problem: Problem) -> Vocabulary:
    if problem.pool is not None:
        return PoolVocabulary(problem.pool)
    assert problem.space is not None
    return SpaceVocabulary(problem.space)


def _key(point: Point) -> frozenset[tuple[str, float]]:
    return frozenset(point.items())


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
