"""The models of all quantities of a problem: objectives, constraints, and whether a trial fails.

| symbol | shape  | units | meaning                                                                              |
| ------ | ------ | ----- | ------------------------------------------------------------------------------------ |
| known  | (u, d) | enc.  | unique points with a value                                                           |
| means  | (u, k) | y     | posterior means there, one column an objective, standardised, larger is better       |
| lost   | (u,)   | y     | by how much the constraints' posterior means miss feasibility there, 0 where feasible |
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from bkbopt.confidence import Confidence, ScheduleContext
from bkbopt.posterior.model import Model
from bkbopt.search.criteria import AcquisitionRule, Combined, Constraint, Crashes, Criterion
from bkbopt.search.history import History
from bkbopt.search.pareto import Improvement
from bkbopt.search.quantity import ModelOptions, Quantity

__all__ = ["Fantasy", "Models"]

#: Numbers of random streams: objectives have 0, 1, ..., far below these.
CONSTRAINT_STREAM, FAILING_STREAM = 1_000, 2_000
#: Observed points with the best posterior means that searches start from.
N_INCUMBENTS = 5
#: Observed points that lower confidence bounds are compared at.
N_LOWER = 64


class Models:
    """All quantities, brought up to date with a history.

    Args:
        options: of every model.
        seed: of everything random.
        first: values that the first fit waits for.
    """

    def __init__(self, options: ModelOptions, seed: int, first: int) -> None:
        self.options, self.seed, self.first = options, seed, first
        #: Constraints and failing are fitted in any case: the user's kernel and noise are those of the objective.
        self._limits = replace(options, fit=True)
        self.objectives: list[Quantity] = []
        self.constraints: dict[str, Quantity] = {}
        self.failing: Quantity | None = None
        self._followed: tuple[History, int, int] | None = None

    def follow(self, history: History) -> None:
        """Bring all models up to date."""
        now = history, history.version, len(history.finished)
        if self._followed == now:
            return
        self._followed = None
        signs = history.problem.signs
        if not self.objectives:
            single = len(signs) == 1
            self.objectives = [
                Quantity(self.options, self.seed, k, sign, winsorised=single) for k, sign in enumerate(signs)
            ]
        for k, quantity in enumerate(self.objectives):
            quantity.follow(history.objective(k, self.first))
        self._number_constraints(history.constraint_names)
        for name, quantity in self.constraints.items():
            quantity.follow(history.constraint(name, self.first))
        if history.n_failed:
            if self.failing is None:
                self.failing = self._limit(FAILING_STREAM)
            self.failing.follow(history.failing())
        self._followed = now

    def _number_constraints(self, names: Sequence[str]) -> None:
        """A quantity for each of the sorted names; one that comes late moves those behind it to other streams."""
        for i, name in enumerate(names):
            stream = CONSTRAINT_STREAM + i
            if name not in self.constraints or self.constraints[name].stream != stream:
                self.constraints[name] = self._limit(stream)
        self.constraints = {name: self.constraints[name] for name in names}

    def _limit(self, stream: int) -> Quantity:
        """A quantity that must stay below zero: more feasible is larger."""
        return Quantity(self._limits, self.seed, stream, -1.0, winsorised=False, is_limit=True)

    @property
    def ready(self) -> bool:
        """Whether every objective has a model."""
        return bool(self.objectives) and all(quantity.ready for quantity in self.objectives)

    def fantasy(self, history: History, pending: Tensor, confidence: Confidence, n_arms: int | None) -> "Fantasy":
        """All posteriors of the history with `pending (p, d)` counted as evaluated at their means."""
        limits = [quantity for quantity in self.constraints.values() if quantity.ready]
        models = tuple(quantity.model(pending) for quantity in self.objectives)
        constraints = [Constraint(quantity.model(pending), quantity.zero) for quantity in limits]
        known = self.objectives[0].surrogate.observations.X
        lost = torch.zeros(len(known), dtype=torch.float64)
        for quantity, constraint in zip(limits, constraints, strict=True):
            lost += _missing(quantity, constraint.bound, known)
        crashes = None
        if self.failing is not None and self.failing.ready and not self._fails_at_random(history):
            constraints.append(Constraint(self.failing.model(pending), self.failing.zero))
            failures = history.failures()
            if len(failures):
                crashes = Crashes.among(self.objectives[0].surrogate.kernel, failures, known)
        arms = history.problem.arms
        contexts = tuple(quantity.context(n_arms, pending, arms) for quantity in self.objectives)
        return Fantasy(
            models,
            contexts,
            tuple(float(confidence(context)) for context in contexts),
            tuple(constraints),
            pending,
            known,
            torch.stack([quantity.fitted for quantity in self.objectives], 1),
            lost,
            crashes,
        )

    def _fails_at_random(self, history: History) -> bool:
        """Whether failing has nothing to do with the point: its chance is then the same everywhere.

        A single failure does not tell: the next trial would be at the same place.
        """
        return self.failing is not None and self.failing.is_constant and history.n_failed > 1


def _missing(quantity: Quantity, bound: float, known: Tensor) -> Tensor:
    """By how much a constraint is expected to be missed at the points `known (u, d)`, (u,).

    What was measured at a point counts too, as far as its noise does not explain it: a point that was found infeasible
    without noise is not feasible because a smooth model says so.
    """
    surrogate = quantity.surrogate
    obs = surrogate.observations
    if not torch.equal(obs.X, known):
        return (bound - surrogate.posterior(known).mean).clamp_min(0.0)
    measured = obs.s / obs.n + (surrogate.noise / obs.n).sqrt()
    return (bound - torch.minimum(quantity.fitted, measured)).clamp_min(0.0)


@dataclass(frozen=True)
class Fantasy:
    """Posteriors with pending points counted; see the module's table.

    Attributes:
        models: of the objectives.
        contexts: what their confidence widths were made from.
        betas: the widths.
        constraints: outcome constraints, and failing.
        pending: encoded points that are being evaluated, (p, d).
        known: see the table.
        means: see the table.
        lost: see the table.
        crashes: where trials failed; None where none did.
    """

    models: tuple[Model, ...]
    contexts: tuple[ScheduleContext, ...]
    betas: tuple[float, ...]
    constraints: tuple[Constraint, ...]
    pending: Tensor
    known: Tensor
    means: Tensor
    lost: Tensor
    crashes: Crashes | None

    @cached_property
    def feasible(self) -> Tensor:
        """Which known points are expected to be feasible, (u,)."""
        return self.lost <= 0.0

    @cached_property
    def incumbent(self) -> float | None:
        """The best posterior mean of a point expected to be feasible; None where there is no such point."""
        return float(self.means[self.feasible, 0].max()) if bool(self.feasible.any()) else None

    @property
    def is_plain(self) -> bool:
        """Whether there is one objective and nothing that limits it."""
        return len(self.models) == 1 and not self.constraints

    def criterion(self, rule: AcquisitionRule, rng: np.random.Generator) -> Criterion:
        """What a suggestion maximises, drawn with `rng` if it is random."""
        if self.is_plain:
            return rule.build(self.models[0], self.betas[0], float(self.means.max()), rng)
        return replace(self._combined, crashes=self.crashes)

    def perturbation_criterion(self) -> Criterion:
        """What ranks coordinate perturbations: expected improvement. They may go where a trial is expected to fail."""
        if self.is_plain:
            return Combined([(self.models[0], 0.0)], (), None, float(self.means.max()))
        return self._combined

    @cached_property
    def _combined(self) -> Combined:
        improvement = None
        if len(self.models) > 1:
            F = self.means[self.feasible] if bool(self.feasible.any()) else self.means
            if len(self.pending):
                F = torch.cat([F, torch.stack([model(self.pending)[0] for model in self.models], 1)])
            improvement = Improvement.over(F)
        pairs = list(zip(self.models, self.betas, strict=True))
        return Combined(pairs, self.constraints, improvement, self.incumbent)

    def incumbents(self, rows: Tensor) -> Tensor:
        """The best known points among `rows (k,)`, best first, `(<= N_INCUMBENTS, d)`."""
        means, lost = self.means[rows], self.lost[rows]
        # With several objectives: good in the worst of them, each on its own scale.
        rank = means[:, 0] if means.shape[1] == 1 else means.min(1).values + 0.1 * means.sum(1)
        return self.known[rows[(rank - 1e3 * lost).topk(min(N_INCUMBENTS, len(rows))).indices]]

    def losses(self, X: Tensor) -> Tensor:
        """By how much the first objective is expected to be worse at `X (n, d)` than at the best known point, (n,)."""
        return (self.means[:, 0].max() - self.models[0](X)[0]).clamp_min(0.0)

    def lower_bound(self) -> tuple[Tensor, float]:
        """The known point `(d,)` with the largest lower confidence bound of the first objective, and that bound."""
        means = self.means[:, 0]
        X = self.known[means.topk(min(N_LOWER, len(means))).indices]
        mean, variance = self.models[0](X)
        bounds = mean - self.betas[0] * variance.sqrt()
        i = int(bounds.argmax())
        return X[i], float(bounds[i])
