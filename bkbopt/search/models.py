"""The models of all quantities of a problem: objectives, constraints, and whether a trial fails.

| symbol    | shape  | units | meaning                                                                              |
| --------- | ------ | ----- | ------------------------------------------------------------------------------------ |
| X         | (u, d) | enc.  | known points: unique points with a value of an objective                             |
| means     | (u, k) | y     | their posterior means, a column for each objective, standardised, larger is better   |
| violation | (u,)   | y     | sum of their constraint violations by posterior mean, 0 for feasible points          |
"""

import copy
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt.confidence import Confidence, ScheduleContext, beta_of
from bkbopt.kernels.base import placed
from bkbopt.posterior.model import Model
from bkbopt.search.criteria.acquisition import VARIANCE_FLOOR, ClosedFormAcquisition, LogEI, LogGain
from bkbopt.search.criteria.crashes import Crashes
from bkbopt.search.criteria.criterion import AcquisitionRule, Combined, Constraint, Criterion, UpperBound
from bkbopt.search.criteria.expected import Expected
from bkbopt.search.criteria.pareto import Improvement, near_reference_of, reference_of
from bkbopt.search.quantities import holding
from bkbopt.search.quantities.fitting import Fitter, ModelOptions
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.search.trials.history import History

__all__ = ["Known", "Models", "Posteriors"]

#: First numbers of random streams; those of objectives are 0, 1, ..., far below these.
CONSTRAINT_STREAM, FAILING_STREAM = 1_000, 2_000
#: Number of observed points, with the best posterior means, from which searches start.
N_INCUMBENTS = 5
#: Number of observed points, with the best posterior means, at which confidence bounds are compared.
N_BOUNDED = 64


class Models:
    """The models of all quantities, updated from a history.

    Args:
        history: the trials.
        options: options of every model.
        schedule: the schedule of beta.
        seed: seed of all random numbers.
        first: number of values at the first fit.
    """

    def __init__(self, history: History, options: ModelOptions, schedule: Confidence, seed: int, first: int) -> None:
        self.history, self.options, self.schedule = history, options, schedule
        self.seed, self.first = seed, first
        #: Constraints and failing are always fitted, since the user's kernel and noise are those of the objective.
        self._limit_options = replace(options, fit=True)
        self.objectives: list[Quantity] = []
        self.constraints: dict[str, Quantity] = {}
        self.failing: Quantity | None = None
        self._followed: tuple[int, int] | None = None
        self._known: Known | None = None

    def follow(self) -> None:
        """Update all models with the history."""
        history = self.history
        now = history.version, len(history.finished)
        if self._followed == now:
            return
        self._followed = self._known = None
        signs = history.problem.signs
        if not self.objectives:
            single = len(signs) == 1
            self.objectives = [
                Quantity(Fitter(self.options, sign, winsorised=single), self.seed, k) for k, sign in enumerate(signs)
            ]
        for k, quantity in enumerate(self.objectives):
            quantity.follow(history.objective(k, self.first))
        self._number_constraints(history.constraint_names)
        for name, quantity in self.constraints.items():
            quantity.follow(history.constraint(name, self.first))
        if history.n_failed:
            if self.failing is None:
                self.failing = self._limit(FAILING_STREAM, is_failing=True)
            rows = history.failing()
            self.failing.follow(rows.at_mark())
            if not self._fails_at_random:  # otherwise the model is not used until the next fit
                self.failing.follow(rows)
        self._followed = now

    def _number_constraints(self, names: Sequence[str]) -> None:
        """Make a quantity for each of the sorted names; a new name changes the streams of the names after it."""
        for i, name in enumerate(names):
            stream = CONSTRAINT_STREAM + i
            if name not in self.constraints or self.constraints[name].stream != stream:
                self.constraints[name] = self._limit(stream)
        self.constraints = {name: self.constraints[name] for name in names}

    def _limit(self, stream: int, *, is_failing: bool = False) -> Quantity:
        """A quantity that must stay below zero; its sign is such that larger is more feasible."""
        fitter = Fitter(self._limit_options, -1.0, winsorised=False, is_limit=True, extended=not is_failing)
        return Quantity(fitter, self.seed, stream, is_stated=not is_failing)

    def of_first(self, n: int) -> Self:
        """Models that have learnt the first `n` finished trials only, with these scalings, kernels, noises and limits.

        They are for readers of outcomes: there is no model of failing, and they must not follow the history.
        """
        past, history, first = copy.copy(self), self.history, self.first
        past._known = past.failing = None
        parts = [(quantity, history.objective(k, first)) for k, quantity in enumerate(self.objectives)]
        past.objectives = [quantity.retrained(rows, rows.places < n) for quantity, rows in parts]
        limits = [(name, quantity, history.constraint(name, first)) for name, quantity in self.constraints.items()]
        past.constraints = {name: quantity.retrained(rows, rows.places < n) for name, quantity, rows in limits}
        return past

    @property
    def ready(self) -> bool:
        """Whether every objective has a model."""
        return bool(self.objectives) and all(quantity.ready for quantity in self.objectives)

    @property
    def is_plain(self) -> bool:
        """Whether there is a single objective and no constraint."""
        return len(self.objectives) == 1 and not self.limits

    @property
    def is_flat(self) -> bool:
        """Whether there is a single objective and no constraint, and the points explain nothing of the values."""
        return self.is_plain and self.objectives[0].is_constant

    @property
    def is_noisily_limited(self) -> bool:
        """Whether there is a single objective, and a noisy outcome constraint."""
        return len(self.objectives) == 1 and any(not quantity.is_noiseless for quantity in self._measured_limits)

    @property
    def _measured_limits(self) -> list[Quantity]:
        """The outcome constraints that have a model."""
        return [quantity for quantity in self.constraints.values() if quantity.ready]

    @property
    def limits(self) -> list[Quantity]:
        """The constraints that have a model, failing among them."""
        measured = self._measured_limits
        return [*measured, self.failing] if self.failing is not None and self._failing_limits else measured

    def posteriors(
        self,
        pending: Tensor,
        n_arms: int | None,
        numbers: Sequence[int] = (),
        *,
        width: float = 1.0,
        sure: float = 0.5,
    ) -> "Posteriors":
        """All posteriors with `pending (p, d)` counted as if evaluated at their means.

        Args:
            pending: encoded points of running trials, (p, d).
            n_arms: number of points of a pool or grid; None for a box.
            numbers: numbers of the running trials, see `Quantity.model`.
            width: factor of beta; with zero, which is for one objective, the suggestion is to maximise the posterior
                mean, if a point is expected to be feasible.
            sure: probability with which constraints hold at the maximum of the posterior mean.
        """
        known = self.known
        if width == 0.0 and not known.feasible.any():
            width = 1.0
        greedy = width == 0.0
        # Only the means of constraints matter then, which do not change, and beta is zero.
        counted = pending[:0] if greedy else pending
        arms = self.history.problem.arms
        contexts = tuple(quantity.context(n_arms, counted, arms) for quantity in self.objectives)
        beyond = n_arms is None  # the bounds of a pool would have to be computed anew after each value
        return Posteriors(
            models=tuple(quantity.model(pending, numbers, beyond_budget=beyond) for quantity in self.objectives),
            contexts=contexts,
            betas=tuple(width * beta_of(self.schedule, context) for context in contexts),
            constraints=tuple(
                Constraint(quantity.model(counted, numbers, beyond_budget=beyond), quantity.zero)
                for quantity in self.limits
            ),
            pending=pending,
            known=known,
            is_greedy=greedy,
            by_bounds=bool(self._measured_limits) and not self.objectives[0].is_noiseless,
            sure=sure,
            is_narrow=0.0 < width < 1.0,
        )

    def losses(self, X: Tensor, *, predicted: bool) -> Tensor:
        """Posterior mean of the first objective at the best evaluated point minus that at the points `X (n, d)`, (n,).

        For a point without a value, where a trial has failed, it is `predicted`, and at least 0, or else NaN.
        """
        means, surrogate = self.objectives[0].fitted.numpy(), self.objectives[0].surrogate
        rows = [surrogate.observations.row_of(key) for key in row_keys(X)]
        known = torch.from_numpy(np.array([math.nan if row is None else means[row] for row in rows]))
        unknown = known.isnan()
        if predicted and bool(unknown.any()):
            known[unknown] = surrogate.model(X[unknown])[0]
        return (float(means.max()) - known).clamp_min(0.0)

    @property
    def known(self) -> "Known":
        """What is known of the observed points, computed once for the same trials."""
        if self._known is None:
            X = holding.known_points(self.objectives)
            violation = torch.zeros(len(X), dtype=torch.float64)
            for quantity in self._measured_limits:
                violation += holding.violation(quantity, X)
            crashes = None
            if self._failing_limits and len(failures := self.history.failures()):
                crashes = Crashes.among(placed(self.objectives[0].surrogate.kernel, X.device), failures, X)
            means = torch.stack([holding.at_known(quantity, X, quantity.fitted) for quantity in self.objectives], 1)
            self._known = Known(X, means, violation, crashes)
        return self._known

    @property
    def outliers(self) -> list[int]:
        """Numbers of the trials that have an outlier among their values, sorted; see `search.quantities.outliers`."""
        found = (self.history.numbers_of(k, quantity.outliers) for k, quantity in enumerate(self.objectives))
        return sorted(set(itertools.chain.from_iterable(found)))

    def log_feasibility(self, X: Tensor, *, noisy_only: bool = False) -> Tensor:
        """Log probability that the points `X (n, d)` satisfy the outcome constraints, (n,); <= 0.

        It is without the margin that searches leave, see `CONSTRAINT_FLOOR`. At points where a constraint was measured
        without noise the value decides. Constraints are independent, but for the two limits of one quantity: with the
        probabilities p and q of each, they hold with p + q - 1.

        Args:
            X: encoded points.
            noisy_only: leave out constraints without noise, since a point that was measured as feasible is feasible.
        """
        counted = {n: q for n, q in self.constraints.items() if q.ready and not (noisy_only and q.is_noiseless)}
        logs = {name: holding.log_probability(quantity, X, VARIANCE_FLOOR) for name, quantity in counted.items()}
        for low, high in self.history.problem.intervals:
            if low in logs and high in logs:
                logs[low] = (logs[low].exp() + logs.pop(high).exp() - 1.0).clamp_min(0.0).log()
        return sum(logs.values(), torch.zeros(len(X), dtype=torch.float64))

    def success(self, X: Tensor) -> Tensor:
        """Probability that a trial at the points `X (n, d)` does not fail, (n,), in [0, 1].

        The mean of the labels 1 (failed) and -1, p and 1 - p of them, is 2 p - 1: a regression of the labels estimates
        p. Where failures are independent of the point it is their share, and without failures 0.
        """
        if self.failing is None or not self.failing.ready:
            return torch.ones(len(X), dtype=torch.float64)
        if self._fails_at_random:
            labels = self.history.failing().y
            return torch.full((len(X),), float((labels < 0.0).double().mean()), dtype=torch.float64)
        return (0.5 * (1.0 - self.failing.predict(X)[0])).clamp(0.0, 1.0)

    @property
    def _failing_limits(self) -> bool:
        """Whether the model of failing is one of the constraints."""
        return self.failing is not None and self.failing.ready and not self._fails_at_random

    @property
    def _fails_at_random(self) -> bool:
        """Whether failures are independent of the point, so that their probability is the same everywhere.

        A single failure is not enough to decide that; the next trial would be at the same place.
        """
        return self.failing is not None and self.failing.is_constant and self.history.n_failed > 1


@dataclass(frozen=True)
class Known:
    """What is known of the observed points; see the module's table.

    Attributes:
        X: see the table.
        means: see the table.
        violation: see the table.
        crashes: exclusion of points near failures; None without failures.
    """

    X: Tensor
    means: Tensor
    violation: Tensor
    crashes: Crashes | None

    @cached_property
    def feasible(self) -> Tensor:
        """A mask (u,) of the points that are expected to be feasible."""
        return self.violation <= 0.0


@dataclass(frozen=True)
class Posteriors:
    """The posteriors of all quantities with pending points counted.

    Attributes:
        models: models of the objectives.
        contexts: inputs of the schedule of beta, for each objective; without pending points for a greedy suggestion.
        betas: the betas of the objectives; zeros for a greedy suggestion.
        constraints: outcome constraints, and the constraint that the trial does not fail.
        pending: encoded pending points, (p, d).
        known: what is known of the observed points.
        is_greedy: whether the suggestion is one of those that maximise the posterior mean.
        by_bounds: whether a single objective has outcome constraints and noise: an improvement is one of upper bounds.
        sure: the probability with which constraints hold at a greedy suggestion.
        is_narrow: whether the suggestion has a smaller beta than that of the schedule.
    """

    models: tuple[Model, ...]
    contexts: tuple[ScheduleContext, ...]
    betas: tuple[float, ...]
    constraints: tuple[Constraint, ...]
    pending: Tensor
    known: Known
    is_greedy: bool = False
    by_bounds: bool = False
    sure: float = 0.5
    is_narrow: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether there is a single objective and no constraint."""
        return len(self.models) == 1 and not self.constraints

    def criterion(self, rule: AcquisitionRule, rng: np.random.Generator) -> Criterion:
        """The criterion of a suggestion; `rng` generates its random numbers, if it has any."""
        if self.is_plain:
            return rule.build(self.models[0], self.betas[0], float(self.known.means.max()), rng)
        return self.expected(self.sure) if self.is_greedy else replace(self.combined, crashes=self.known.crashes)

    def expected(self, sure: float, k: int = 0) -> Expected:
        """The posterior mean of objective `k` where constraints hold with probability `sure`; see `Expected`."""
        means = self.known.means[:, k]
        return Expected.of(self.models[k], self.constraints, self.known.crashes, float(means.max() - means.min()), sure)

    @cached_property
    def combined(self) -> Combined:
        """The criterion for several objectives or with constraints, without the exclusion near failures."""
        bounds = [UpperBound.over(model, beta) for model, beta in zip(self.models, self.betas, strict=True)]
        if len(bounds) > 1:
            return Combined(bounds, self.constraints, self._improvement(bounds), None)
        return Combined(bounds, self.constraints, None, self._gain(bounds[0]))

    def _gain(self, bound: UpperBound) -> ClosedFormAcquisition | None:
        """What a point improves on the feasible known ones in a single objective; None if there are none.

        Without noise, and beside failed trials alone, that is the expected improvement over their best mean. With noise
        it is that of the upper bound over theirs and those of the pending points, since by the mean the best ones
        improve on themselves.
        """
        rows = self.known.feasible.nonzero()[:, 0]
        if not len(rows):
            return None
        means = self.known.means[rows, 0]
        if self.is_greedy or not self.by_bounds:
            return LogEI(float(means.max()))
        best = self.known.X[rows[means.topk(min(N_BOUNDED, len(rows))).indices]]
        return LogGain(bound.acquisition, float(bound(torch.cat([best, self.pending])).max()))

    def _improvement(self, bounds: Sequence[UpperBound]) -> Improvement:
        """The improvement over the front of the upper bounds of the feasible known points and the pending ones.

        The reference is that of their means. Over the front of the means the upper bound of each of its own points is
        an improvement, the largest one at its ends: a noisy search measures these again and again. Far from the front a
        slight improvement in one objective is a large volume, too; so narrow suggestions have a reference near it.
        """
        rows = self.known.feasible if bool(self.known.feasible.any()) else torch.ones_like(self.known.feasible)
        X = torch.cat([self.known.X[rows], self.pending])
        parts = [bound.with_means(X) for bound in bounds]
        means, upper = (torch.stack([part[j] for part in parts], 1) for j in (0, 1))
        return Improvement.over(upper, near_reference_of(means) if self.is_narrow else reference_of(means))

    def incumbents(self, rows: Tensor | None = None) -> Tensor:
        """The best known points, all or those of `rows (k,)`, best first, `(<= N_INCUMBENTS, d)`."""
        rows = torch.arange(len(self.known.X)) if rows is None else rows
        means, violation = self.known.means[rows], self.known.violation[rows]
        # With several objectives a point ranks mainly by its worst objective, each on its own scale.
        rank = means[:, 0] if means.shape[1] == 1 else means.min(1).values + 0.1 * means.sum(1)
        return self.known.X[rows[(rank - 1e3 * violation).topk(min(N_INCUMBENTS, len(rows))).indices]]

    def lower_bound(self) -> tuple[Tensor, float]:
        """The known point `(d,)` with the largest lower confidence bound of the first objective, and that bound."""
        means = self.known.means[:, 0]
        X = self.known.X[means.topk(min(N_BOUNDED, len(means))).indices]
        mean, variance = self.models[0](X)
        bounds = mean - self.betas[0] * variance.sqrt()
        i = int(bounds.argmax())
        return X[i], float(bounds[i])
