"""The designer, which computes suggestions from a problem, options, a seed and a log of trials.

`update` passes trials to a designer, in any order, and `suggest` returns points. The *law*: suggestions are a function
of problem, options, seed and log, bit for bit. For that, trials are learnt in the order of their completion,
hyper-parameters are fitted at fixed numbers of trials, and the random numbers of a suggestion depend only on the seed
and the number of its trial. The state of a designer is a cache. The designer does not depend on file formats, adapters
or forms of user input.

Three kinds of suggestion:

- *start-up*: the centre of the space, then quasi-random points, until there are `n_startup_trials` values, or fewer
  values and some failed trials;
- *global*: the maximiser of the criterion (see `criteria/criterion.py`) under the models of all data; some have a
  smaller or larger beta (see `choosing.width_of`);
- *perturbation*: a point by another rule, to find a better basin; see `perturbations.py`.

In a *restart* the three are those of a designer that knows the trials of the restart only; see `restarts.py`.
"""

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import torch

from bkbopt._support.threads import small_work
from bkbopt.errors import SpaceExhaustedError
from bkbopt.search.candidate_sets import CandidateSets
from bkbopt.search.candidates.base import Choice
from bkbopt.search.choosing import BATCH_BUDGET, LARGE_BATCH, Chooser, is_exploring_costly, width_of
from bkbopt.search.completion import completed
from bkbopt.search.criteria.expected import SURE
from bkbopt.search.input_stretching import InputStretching
from bkbopt.search.models import Models, Posteriors
from bkbopt.search.options import Options
from bkbopt.search.quantities.crowd import MANY
from bkbopt.search.restarts import LENGTH, MOST, MOST_STARTUP, can_begin_anew, first_of, is_needed, seed_of
from bkbopt.search.startup import exhausted, first_fit, startup_point, with_repeats
from bkbopt.search.trials.evaluations import Evaluation, Point, Problem, Request, Suggestion, one_of_each_row
from bkbopt.search.trials.history import History
from bkbopt.search.trials.reports import Diagnostics
from bkbopt.search.trials.states import FAIL
from bkbopt.spaces.space import Space

__all__ = ["Designer"]

#: Distinguishes the random numbers of criteria (see `Request.rng`).
DRAWN = 1
#: While the points explain nothing of the values, one of so many suggestions is global, and the others are start-up.
SEARCHING = 8


def _until_exhausted(suggestions: Iterable[Suggestion], may_be_empty: bool = False) -> list[Suggestion]:
    """The suggestions until the space is exhausted; an error if there are none, unless `may_be_empty`."""
    out: list[Suggestion] = []
    try:
        out.extend(suggestions)
    except SpaceExhaustedError:
        if not (out or may_be_empty):
            raise
    return out


class Designer:
    """Computes suggestions; see the module's text.

    Args:
        problem: the optimisation problem.
        options: options of the search.
        seed: seed of all random numbers, a whole number >= 0.
    """

    def __init__(self, problem: Problem, options: Options, seed: int) -> None:
        self.options, self.seed = options, seed
        self.history = History(problem, finds_penalties=options.models.fit)
        self._stretching = InputStretching(self.history, options.models)
        #: Models by the number of values at their first fit.
        self._models: dict[int, Models] = {}
        #: The designer of a restart, or None where there is none, and what that follows from.
        self._restarted: tuple[object, Designer | None] = None, None
        self.candidates = CandidateSets(self.history)

    @property
    def problem(self) -> Problem:
        """The optimisation problem."""
        return self.history.problem

    def set_problem(self, problem: Problem) -> None:
        """Set another space or pool for later suggestions; all trials are kept."""
        self._restarted = None, None
        self.candidates.forget()
        if self.history.set_problem(problem):
            self._models = {}
            self.candidates.forget_bounds()

    # -- update and suggest ------------------------------------------------------------------------------------------

    def update(self, evaluations: Iterable[Evaluation]) -> None:
        """Add finished, failed and running trials of the log, in any order; known ones change nothing."""
        self.history.update(evaluations)
        self._stretching.update()

    def suggest(
        self,
        count: int = 1,
        *,
        number: int | None = None,
        fixed: Point | None = None,
        running: Mapping[int, Point] | None = None,
        space: Space | None = None,
        attempt: int = 0,
        seed: int | None = None,
        quasi_random: bool = False,
    ) -> list[Suggestion]:
        """Points for the trials `number`, `number` + 1, ...; each is pending for those after it.

        Args:
            count: number of points, of any size; fewer are returned if a discrete set has no more.
            number: number of the first trial, by default the next after all known ones. A running trial of this number
                is the one for which the point is suggested, and is not counted as pending.
            fixed: fixed values, by column key in internal form.
            running: points, by trial number, of running trials that were not passed to `update`.
            space: the space of this suggestion, if the problem has no space; names are those of the user.
            attempt: number of the attempt; another attempt gives another point for the same trial.
            seed: seed of this suggestion, by default that of the designer.
            quasi_random: whether to suggest a start-up point even if there are models.

        Raises:
            SpaceExhaustedError: no point is left to propose.
        """
        entropy = (self.seed if seed is None else seed, attempt)
        request = self._request(number, fixed, running, self.problem.space if space is None else space, entropy)
        return _until_exhausted(itertools.islice(self._suggestions(request, quasi_random), min(count, sys.maxsize)))

    def suggest_useful(
        self,
        limit: int,
        *,
        number: int | None = None,
        fixed: Point | None = None,
        running: Mapping[int, Point] | None = None,
    ) -> list[Suggestion]:
        """`suggest` with a number of points that is useful in addition to the running trials, at most `limit`.

        BBKB's rule for the size of a batch, with the posterior of the finished trials: points are added while the sum
        of the leverages of all pending points is at most `BATCH_BUDGET`. Before there are models, the remaining
        start-up trials are suggested. Without running trials there is at least one point.

        Raises:
            SpaceExhaustedError: there are no running trials, and no point is left to propose.
        """
        request = self._request(number, fixed, running, self.problem.space, (self.seed, 0))
        return _until_exhausted(itertools.islice(self._useful(request), limit), may_be_empty=len(request.running) > 0)

    def _request(
        self,
        number: int | None,
        fixed: Point | None,
        running: Mapping[int, Point] | None,
        space: Space | None,
        entropy: tuple[int, int],
    ) -> Request:
        number = self.next_number if number is None else number
        points = {n: e.point for n, e in self.history.running.items()} | dict(running or {})
        numbers = tuple(sorted(n for n in points if n != number))
        known, last = self.history.running, self.history.n_complete
        n_older = sum(n != number and (e.n_values is None or e.n_values < last) for n, e in known.items())
        return Request(number, space, fixed or {}, tuple(points[n] for n in numbers), numbers, entropy, n_older)

    def _useful(self, request: Request) -> Iterator[Suggestion]:
        pending = list(request.running)
        suggestions = self._suggestions(request, False)
        while True:
            if self.has_models:
                leverages = self.models.objectives[0].pending_leverages(self.history.encode(pending))
                pays = float(leverages.sum()) <= BATCH_BUDGET
            else:
                pays = self.history.n_complete + len(pending) < self.first_fit
            if pending and not pays:
                return
            suggestion = next(suggestions)
            yield suggestion
            pending.append(suggestion.point)

    @property
    def next_number(self) -> int:
        """The number after those of all known trials."""
        return max([-1, *self.history.running, *(e.number for e in self.history.finished)]) + 1

    def _suggestions(self, request: Request, quasi_random: bool) -> Iterator[Suggestion]:
        while True:
            suggestion = self._suggest(request, quasi_random)
            yield suggestion
            running, numbers = (*request.running, suggestion.point), (*request.numbers, request.number)
            request = replace(request, number=request.number + 1, running=running, numbers=numbers)

    def complete(self, point: Point, number: int, running: Mapping[int, Point] | None = None) -> Suggestion:
        """A suggestion for trial `number` with the values of `point`, which may be incomplete; see `suggest`.

        Raises:
            SpaceExhaustedError, ArgumentError: no feasible point with these values is left to propose.
        """
        whole, feasible = completed(self.problem, point), self.problem.feasible
        if whole is not None and feasible is not None and not feasible(whole[0]):  # the constraint may be another one
            raise SpaceExhaustedError("feasible: expected a feasible point, got one that is not; queue another point.")
        if whole is None:
            return self.suggest(1, number=number, fixed=point, running=running)[0]
        diagnostics = Diagnostics(trial=number, n_values=self.history.n_complete)
        return Suggestion(number, whole[0], whole[1], diagnostics)

    def _suggest(self, request: Request, quasi_random: bool) -> Suggestion:
        diagnostics = Diagnostics(trial=request.number, n_values=self.history.n_complete)
        models = None if quasi_random or not self.has_values else self.models
        with torch.no_grad():
            if models is None or not models.ready or (models.is_flat and request.number % SEARCHING):
                choice = self._start_up(request)
            else:
                with small_work():
                    if (found := self._suggest_anew(request)) is not None:
                        return found
                    choice, diagnostics = self._search(models, request, diagnostics)
        return Suggestion(request.number, choice.point, choice.index, diagnostics)

    # -- restarts ----------------------------------------------------------------------------------------------------

    def _suggest_anew(self, request: Request) -> Suggestion | None:
        """The suggestion of a restart, whose own trials have the numbers 1, 2, ...; None for other trials."""
        first, space = first_of(request.number), request.space
        if first is None or space is None or not can_begin_anew(self.options, self.history, request):
            return None
        restarted = self._restart(first, space)
        if restarted is None:
            return None
        own = (e for e in self.history.finished if first <= e.number < first + LENGTH)
        restarted.update(replace(e, number=e.number - first + 1) for e in own)
        seed, attempt = request.entropy
        anew = replace(request, number=request.number - first + 1, entropy=(seed_of(seed, first), attempt))
        found = restarted._suggest(anew, False)
        diagnostics = replace(found.diagnostics, trial=request.number, n_values=self.history.n_complete)
        return replace(found, number=request.number, diagnostics=replace(diagnostics, confidence_gap=None))

    def _restart(self, first: int, space: Space) -> "Designer | None":
        """The designer of the restart that begins with trial `first`; None if the trials before it suffice."""
        before = [e for e in self.history.finished if e.number < first]
        key = first, len(before), space
        if self._restarted[0] != key:
            earlier = self
            if len(before) < len(self.history.finished):
                earlier = Designer(self.problem, self.options, self.seed)
                earlier.update(before)
            restarted = None
            pays = earlier.has_values and earlier.history.n_complete >= MOST * len(before)
            if pays and is_needed(first, earlier.models, earlier.history, space):
                n_startup = min(self.options.n_startup_trials, MOST_STARTUP)
                options = replace(self.options, n_startup_trials=n_startup, restarts=False)
                restarted = Designer(self.problem, options, seed_of(self.seed, first))
            self._restarted = key, restarted
        return self._restarted[1]

    # -- models ------------------------------------------------------------------------------------------------------

    @property
    def first_fit(self) -> int:
        """The number of values from which on suggestions come from models."""
        return first_fit(max(self.options.n_startup_trials, 1), self.history)

    @property
    def has_values(self) -> bool:
        """Whether there are enough values, or estimates of them, for suggestions from models."""
        return self.history.n_complete + self.history.n_estimated >= self.first_fit

    @property
    def has_models(self) -> bool:
        """Whether suggestions come from models."""
        return self.has_values and self.models.ready

    @property
    def models(self) -> Models:
        """The models, updated with all data; they may not be ready, see `Models.ready`."""
        return self._following(self.first_fit)

    def _following(self, first: int) -> Models:
        """The models whose first fit is at `first` values, updated with all data."""
        models = self._models.pop(first, None)  # after an interrupted update the models are made again
        if models is None:
            models = self._new_models(first)
        models.follow()
        self._models[first] = models
        return models

    def trained(self) -> Models:
        """The models of all data; during the start-up design models that are fitted from the first value on."""
        models = self.models
        if not models.ready:
            models = self._following(1)
        if not models.ready:  # no row up to a mark has a value: use all rows
            rows = (self.history.objective(k, 1) for k in range(len(models.objectives)))
            models = self._new_models(min((len(r.y) for r in rows), default=0))
            models.follow()
        return models

    def _new_models(self, first: int) -> Models:
        return Models(self.history, self.options.models, self.options.schedule, self.seed, first)

    def upper_bound(self, posteriors: Posteriors) -> float:
        """The largest upper confidence bound of the first objective; exact over a pool, otherwise found by a search."""
        model, beta = posteriors.models[0], posteriors.betas[0]
        incumbents = posteriors.incumbents()
        return max(candidates.upper_bound(model, beta, incumbents) for candidates in self.candidates.all_with({}))

    # -- start-up ----------------------------------------------------------------------------------------------------

    def _start_up(self, request: Request) -> Choice:
        running = list(request.running)
        closed, tried = self._closed_points(running)
        # Running points are last in each list, so that the lists of a batch differ at the end only.
        stricter = [[*closed, *tried, *running], [*closed, *running]]
        space, rng, arms = request.space, request.rng(), self.candidates.arms(request.fixed)
        levels = with_repeats(self.options.exclusions(stricter, closed, running, []), space, request.fixed)
        for points in levels:
            if arms is not None:
                choice = arms.random(rng, self.history.encode(list(points)))
            else:
                assert space is not None
                choice = startup_point(space, request, points, self.problem.feasible)
            if choice is not None:
                return choice
        if arms is not None and self.options.avoid_duplicates:  # rows that are equal to others are left, if any
            choice = arms.random(rng, self.history.encode([*closed]), each_row=True)
            if choice is not None:
                return choice
        raise exhausted(request, arms, self.history, self.options, space is not None and space.is_discrete)

    def _closed_points(self, running: list[Point]) -> tuple[list[Point], list[Point]]:
        """Points that may not be proposed again, and the other evaluated points."""
        finished = self.history.finished
        if self.options.avoid_duplicates:
            return [finished[place].point for place in one_of_each_row(finished)] + running, []
        failed = [e.point for e in finished if e.state == FAIL]
        return failed, [e.point for e in finished if e.state != FAIL]

    # -- searching ---------------------------------------------------------------------------------------------------

    def _search(self, models: Models, request: Request, diagnostics: Diagnostics) -> tuple[Choice, Diagnostics]:
        options = self.options
        pending = self.history.encode(list(request.running))
        n_arms = self.candidates.n_arms(request.space)
        width = width_of(
            options,
            request,
            len(models.objectives),
            noisily_limited=models.is_noisily_limited,
            is_flat=models.is_flat,
            is_costly=lambda: is_exploring_costly(request.number, models, n_arms),
        )
        sure = SURE if len(pending) < LARGE_BATCH else 0.5
        numbers = request.numbers if request.n_older >= MANY else ()
        posteriors = models.posteriors(pending, n_arms, numbers, width=width, sure=sure)
        criterion = posteriors.criterion(options.rule, request.rng(DRAWN))
        chooser = Chooser(options, models, posteriors, criterion, request)
        # A point of another branch comes before a repeat in the best one.
        passes = (False, True) if self.history.is_conditional else (True,)
        tried = ((at, again) for again in passes for at in self.candidates.in_turn(posteriors, criterion, request))
        for (candidates, incumbents), again in tried:
            found = chooser.choose(candidates, incumbents, repeats=again)
            if found is not None:
                break
        else:
            arms = self.candidates.arms(request.fixed)
            raise exhausted(request, arms, self.history, self.options, candidates.is_discrete)
        choice, is_maximiser = found
        first = models.objectives[0]
        diagnostics = replace(
            diagnostics,
            n_inducing=len(first.surrogate.inducing),
            effective_dimension=posteriors.contexts[0].effective_dimension,
            beta=posteriors.betas[0],
            noise_std=first.noise_std,
        )
        open_to_all = not (options.avoid_duplicates and candidates.is_discrete)
        whole = open_to_all and width == 1.0 and is_maximiser and not (len(pending) or request.fixed)
        if options.rule.is_upper_bound and posteriors.is_plain and whole:
            mean, variance = posteriors.models[0](choice.x[None])
            lower = posteriors.lower_bound()[1]
            gap = float(mean[0] + posteriors.betas[0] * variance[0].sqrt()) - lower
            diagnostics = replace(diagnostics, confidence_gap=first.scaler.rise(lower, max(gap, 0.0)))
        return choice, diagnostics
