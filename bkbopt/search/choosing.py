"""Choice of a point: the width of its bound, which points are excluded, and whether it is a perturbation."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt.search.candidates.base import CandidateSet, Choice, Scope, Shared
from bkbopt.search.criteria.criterion import INDIFFERENT, Criterion
from bkbopt.search.criteria.expected import SURE
from bkbopt.search.models import Models, Posteriors
from bkbopt.search.options import Options
from bkbopt.search.perturbations import RECENT, is_perturbation, is_within_schedule, perturbation
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.search.trials.evaluations import Request, one_of_each_row

__all__ = [
    "BATCH_BUDGET",
    "FIRST_NARROW",
    "LARGE_BATCH",
    "NARROW",
    "WIDE",
    "Chooser",
    "is_exploring_costly",
    "width_of",
]

#: Distinguishes the random numbers of shared points from others with the same seed and mark.
SHARED = 2
#: Distinguishes the random numbers of `width_of`.
GREEDY = 3
#: From this number of running trials on, suggestions share the random starts of their searches, and most are greedy.
LARGE_BATCH = 5
#: Factors of beta of narrow suggestions and of wide ones; number of trials after which one objective has narrow ones.
NARROW, WIDE, FIRST_NARROW = 0.4, 2.5, 300
#: Expected regret of the latest odd trials of a pool, relative to that of the even ones, above which odd trials are
#: narrow too, all but one of `EXPLORING`; fewest trials of either kind that are compared.
COSTLY, EXPLORING, FEWEST = 3.0, 4, 20
#: Under noisy constraints one of this many suggestions is a point that could be recommended.
CHECKED = 4
#: Useful sum of the leverages of pending trials; 1 + this is BBKB's constant C. A sum of 1 halves the variance.
BATCH_BUDGET = 1.0
#: What suggestions share is searched again after so many pending points: a number of steps of `surrogates.pending`.
REFRESH = 64


def width_of(
    options: Options,
    request: Request,
    n_objectives: int = 1,
    *,
    noisily_limited: bool = False,
    is_flat: bool = False,
    is_costly: Callable[[], bool] = lambda: False,
) -> float:
    """The factor of beta for a suggestion: 1, `NARROW`, `WIDE`, or 0 for a *greedy* one, by the posterior mean alone.

    From trial `FIRST_NARROW` on every second suggestion is *narrow*. With the whole width the points of a late search
    are so far apart that the model takes detail near the optimum for noise; see docs/design/narrow-suggestions.md. If
    the others are costly, see `is_exploring_costly`, they are narrow too.

    Beside p >= `LARGE_BATCH` running trials one in p + 1 suggestions has the whole width, and the others are greedy. In
    a sequential search the first value in a region with a large bound lowers that bound. In a batch no value arrives,
    so that one suggestion after another would go to this region.

    With several objectives every second suggestion is narrow, and every fourth is wide; see
    docs/design/several-objectives.md.

    Under noisy constraints one suggestion in `CHECKED` is greedy among points that are feasible with a large
    probability: others are near the border of the feasible region, where no point can be recommended; see
    docs/design/constraints.md.

    While the points explain nothing of the values suggestions are narrow: the start-up design explores.

    Another attempt at the same trial has the whole width, since it must give another point.
    """
    p = len(request.running)
    if not options.varies_width or request.attempt:
        return 1.0
    if is_flat:
        return NARROW
    if n_objectives > 1:
        return (NARROW, 1.0, NARROW, WIDE)[request.number % 4]
    if p >= LARGE_BATCH:
        return 0.0 if request.rng(GREEDY).random() * (p + 1) >= 1.0 else 1.0
    if noisily_limited and request.number % CHECKED == 0:
        return 0.0
    if request.number < FIRST_NARROW:
        return 1.0
    return NARROW if request.number % 2 == 0 or is_costly() else 1.0


def is_exploring_costly(number: int, models: Models, n_arms: int | None) -> bool:
    """Whether the odd trial `number` in a pool or grid is to be narrow, because others like it have cost too much.

    The costs are expected regrets. Where values are rough, every row without a value may be the best one for the model,
    so that upper confidence bounds with the whole width explore without end; see docs/design/narrow-suggestions.md.
    """
    if n_arms is None or not models.is_plain or number // 2 % EXPLORING == 0:
        return False
    latest = models.history.finished[-RECENT:]
    numbers = np.array([e.number for e in latest])
    costs = models.losses(models.history.X[-len(latest) :], predicted=False).numpy()
    # Perturbations cost more, and have odd and even numbers.
    counted = np.isfinite(costs) & (numbers >= FIRST_NARROW) & ~np.array([is_within_schedule(n) for n in numbers])
    even, odd = (costs[counted & (numbers % 2 == k)] for k in (0, 1))
    return min(len(even), len(odd)) >= FEWEST and bool(odd.mean() > COSTLY * even.mean())


@dataclass(frozen=True)
class Chooser:
    """The choice of a point of a candidate set.

    Attributes:
        options: options of the designer.
        models: models of all finished trials.
        posteriors: their posteriors with pending points counted.
        criterion: the criterion that is maximised.
        request: the request for a suggestion.
    """

    options: Options
    models: Models
    posteriors: Posteriors
    criterion: Criterion
    request: Request

    def choose(
        self, candidates: CandidateSet, incumbents: Tensor, *, repeats: bool = True
    ) -> tuple[Choice, bool] | None:
        """The choice, and whether it is the maximiser of the criterion; None if no point is left to propose.

        Perturbations are not, nor are points that were moved away from an end, or that have new choices.

        Args:
            candidates: the candidate set.
            incumbents: the best known points in it, best first, (g, d).
            repeats: whether points that are not worth a repeat are proposed again if there are no others.
        """
        perturbs = self.options.perturbs and len(incumbents) > 0
        perturbs = perturbs and is_perturbation(self.request.number, self.models, self.posteriors, candidates)
        # Without noise the rows of a pool that are chosen have no value in any case.
        perturbs = perturbs and (candidates.n_arms is None or self._is_noisy())
        first = Scope(incumbents, self.request.rng(), incumbents[:0], self._shared(candidates))
        for taken, each_row in self._levels(candidates) if repeats else itertools.islice(self._levels(candidates), 1):
            scope = replace(first, taken=taken, each_row=each_row)
            if perturbs:
                choice = perturbation(self.request.number, self.posteriors, candidates, scope.exploring())
                if choice is not None and not self._is_useless_repeat(choice):
                    return choice, False
            choice = self._best(candidates, scope)
            if choice is not None and (repeats or not self._is_useless_repeat(choice)):
                moved = candidates.off_ends(choice, scope) if self._probes_ends else choice
                return moved, moved is choice and not self._is_to_be_new(candidates)
        return None

    @property
    def _probes_ends(self) -> bool:
        """Whether the suggestion is moved away from the ends of ranges, if the best known point is near them, too.

        On a linear scale a search does not see what is close to an end. If the effect is on a logarithmic scale, points
        there show it, and are better or worse; otherwise they are as good as the end.
        """
        return self.options.perturbs and is_within_schedule(self.request.number - 1)

    def _best(self, candidates: CandidateSet, scope: Scope) -> Choice | None:
        if self._is_to_be_new(candidates):
            new = candidates.best(self.criterion, replace(self._untried(scope), new_choices=True))
            if new is not None:
                return new
        choice = candidates.best(self.criterion, scope)
        if choice is not None and self._is_useless_repeat(choice):
            untried = self._untried(scope)
            other = candidates.best(self.criterion, untried) or candidates.random(untried.rng, untried.taken)
            choice = other or choice
        return choice or candidates.random(scope.rng, scope.taken, each_row=scope.each_row)

    def _untried(self, scope: Scope) -> Scope:
        """The scope without known points and those of running trials."""
        taken = torch.cat([scope.taken, self.posteriors.known.X, self.posteriors.pending])
        return replace(scope, taken=taken, each_row=False)

    def _is_to_be_new(self, candidates: CandidateSet) -> bool:
        """Whether the suggestion has choices that no known point has, where there are very many of them.

        Most of them are unlike all that are known, so that none of them alone has the largest upper bound: a search
        repeated one point in half of its trials. Suggestions that exploit what is known may repeat choices. See
        docs/design/perturbations.md.
        """
        if not (candidates.has_many_choices and self.options.varies_width and len(self.posteriors.models) == 1):
            return False
        number = self.request.number
        exploits = number % 2 == 0 and (number >= FIRST_NARROW or self.posteriors.by_bounds)
        return not exploits

    def _levels(self, candidates: CandidateSet) -> Iterator[tuple[Tensor, bool]]:
        """Sets of excluded points, (t, d), see `Options.exclusions`, and whether each excludes one row only."""
        options, posteriors, closed = self.options, self.posteriors, self._closed(candidates)
        stricter = [torch.cat([closed, self._spent(candidates), self._infeasible(candidates)])]
        levels = options.exclusions(stricter, closed, posteriors.pending, closed[:0])
        listed = candidates.n_arms is not None and options.models.fit
        if listed and not self._rows_are_named and self._is_without_noise:
            # Excludes known points at once, with the same result as the second search of `_best`. Points that a batch
            # adds come last, so that the rows of the others are not looked up again (`Listed._rows_taken`).
            yield torch.cat([posteriors.known.X, levels[0]]), False
        each_row = options.avoid_duplicates and self.models.history.problem.pool is not None
        yield from ((points, each_row) for points in levels)

    @property
    def _is_without_noise(self) -> bool:
        """Whether one value of each point suffices for all objectives, as is known without a new fit."""
        return all(q.noisiness.is_found_noiseless or self._suffices(q) for q in self.models.objectives)

    @property
    def _rows_are_named(self) -> bool:
        """Whether rows of a pool with equal columns are different candidates, as isomers with the same descriptors are.

        Otherwise such a row is a repeat of the other one, which is useless without noise.
        """
        pool = self.models.history.problem.pool
        return self.options.avoid_duplicates and pool is not None and pool.pool.id_column is not None

    def _closed(self, candidates: CandidateSet) -> Tensor:
        """Encoded points of a discrete set that may not be proposed again, (c, d)."""
        X, finished = self.models.history.X, self.models.history.finished
        if not candidates.is_discrete:
            return X[:0]
        if self.options.avoid_duplicates:  # a repeat of a row would close another one that is equal to it
            kept = one_of_each_row(finished)
            return torch.cat([X if len(kept) == len(X) else X[torch.tensor(kept)], self.posteriors.pending])
        return self.models.history.failures()

    def _spent(self, candidates: CandidateSet) -> Tensor:
        """Pending points that are not proposed again beside their pending copies, (s, d).

        Where values are noisy a second one is useful. BBKB's rule for a batch is applied to the copies of each point:
        it is proposed until the leverages of its pending copies sum to `BATCH_BUDGET`, which halves its variance.
        """
        pending = self.posteriors.pending
        if not (candidates.is_discrete and len(pending)):
            return pending
        if not self.options.models.fit:
            return pending[:0]
        if not self._is_noisy():
            return pending
        leverages = torch.stack([quantity.pending_leverages(pending) for quantity in self.models.objectives]).amin(0)
        spent, rows, sums = list[int](), dict[bytes, int](), [0.0] * len(pending)
        for i, (key, leverage) in enumerate(zip(row_keys(pending), leverages.tolist(), strict=True)):
            first = rows.setdefault(key, i)
            if sums[first] < BATCH_BUDGET <= sums[first] + leverage:
                spent.append(i)
            sums[first] += leverage
        return pending[spent]

    def _infeasible(self, candidates: CandidateSet) -> Tensor:
        """Known points of a discrete set that are infeasible with probability `SURE`, for several objectives, (i, d).

        Points of the front score next to nothing. An infeasible point that would improve it scores more, however small
        its probability is, and would be evaluated again and again.
        """
        X, constraints = self.posteriors.known.X, self.posteriors.constraints
        is_open = candidates.is_discrete and not self.options.avoid_duplicates
        if not (is_open and constraints and len(self.posteriors.models) > 1):
            return X[:0]
        log_p = torch.stack([constraint.log_probability(X) for constraint in constraints]).sum(0)
        return X[log_p < math.log(1.0 - SURE)]

    def _is_useless_repeat(self, choice: Choice) -> bool:
        """Whether the choice was evaluated before and values have no noise, so that a second value is useless."""
        if not self.options.models.fit or self._rows_are_named:
            return False
        return self._is_repeat(choice.x) and not self._is_noisy()

    def _is_repeat(self, x: Tensor) -> bool:
        """Whether the point `x (d,)` has a value or, where duplicates are avoided, had or has a trial of any state."""
        (key,) = row_keys(x[None])
        if self._is_known(key) or not self.options.avoid_duplicates:
            return self._is_known(key)
        tried = torch.cat([self.models.history.X, self.posteriors.pending])
        return bool((tried == x).all(1).any())

    def _is_known(self, key: bytes) -> bool:
        """Whether the point with this key, see `row_keys`, has a value of an objective."""
        return any(q.surrogate.observations.row_of(key) is not None for q in self.models.objectives)

    def _is_noisy(self) -> bool:
        """Whether a second value of a known point is worth a trial.

        Beside running trials it is not where the noise is smaller than differences that do not matter, nor while a
        first repeat, which decides whether there is noise, is running.
        """
        return any(quantity.noisiness.is_noisy() for quantity in self.models.objectives if not self._suffices(quantity))

    def _suffices(self, quantity: Quantity) -> bool:
        """Whether a value of each point suffices beside the running trials, whatever the noise."""
        if not len(self.posteriors.pending):
            return False
        return quantity.surrogate.noise <= INDIFFERENT**2 or (quantity.noisiness.awaits_repeat and self._repeat_runs)

    @cached_property
    def _repeat_runs(self) -> bool:
        keys = row_keys(self.posteriors.pending)
        return len(set(keys)) < len(keys) or any(map(self._is_known, keys))

    def _shared(self, candidates: CandidateSet) -> Shared | None:
        """What many suggestions share; None for a whole search."""
        if len(self.posteriors.pending) < LARGE_BATCH or self.options.rule.is_random:
            return None  # the draw over the shared points would differ from the path that is maximised
        numbers = self.request.entropy[0], self.models.objectives[0].mark, SHARED
        n = len(self.posteriors.pending) // REFRESH * REFRESH
        data = self.models, self.models.history.version, len(self.models.history.finished)
        finished = self._finished if self.posteriors.is_greedy else None
        return Shared(numbers, data, self.request.running[:n], lambda: self._earlier(candidates, n), finished)

    def _finished(self) -> Criterion:
        """The criterion of a greedy suggestion without pending points."""
        return self._with_pending(0, width=0.0).criterion(self.options.rule, np.random.default_rng(0))

    def _earlier(self, candidates: CandidateSet, n: int) -> tuple[Criterion, Tensor]:
        """The criterion and the closed points with the first `n` pending points."""
        posteriors = self._with_pending(n)
        criterion = posteriors.criterion(self.options.rule, np.random.default_rng(0))  # draws nothing: see `_shared`
        return criterion, next(replace(self, posteriors=posteriors)._levels(candidates))[0]

    def _with_pending(self, n: int, *, width: float = 1.0) -> Posteriors:
        """The posteriors that count the first `n` pending points."""
        n_arms, pending = self.posteriors.contexts[0].n_arms, self.posteriors.pending[:n]
        return self.models.posteriors(pending, n_arms, width=width)
