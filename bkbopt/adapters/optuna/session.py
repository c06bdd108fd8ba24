"""A study as the sampler knows it: its history, the models of its quantities, and the next proposal."""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from optuna.distributions import BaseDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial
from torch import Tensor

from bkbopt._support.threads import small_work
from bkbopt.adapters.optuna.branches import MAX_SWITCH_VALUES, Branch, Branching
from bkbopt.adapters.optuna.encoding import Embedding, Values, column_key, parameter_of
from bkbopt.adapters.optuna.history import History
from bkbopt.adapters.optuna.pareto import Improvement
from bkbopt.adapters.optuna.quantity import ModelOptions, Quantity
from bkbopt.adapters.optuna.search import Constraint, Scored, embedded, score_of
from bkbopt.confidence import Confidence
from bkbopt.posterior.model import Model
from bkbopt.search.acquisition import Acquisition, LogEI, Thompson
from bkbopt.search.box_candidates import BoxDomain
from bkbopt.search.fitted_model import FittedModel
from bkbopt.search.proposing import N_GOOD, acquisition_of, choose, leap_is_due
from bkbopt.search.reports import Recommendation

__all__ = ["Session"]

#: Branches whose best points are compared, and the points that are looked at for it.
MAX_BRANCHES, BRANCH_POINTS = 32, 2048
#: A branch is not given up on fewer trials than this times sqrt(trials / branches), or than this part of an equal share
#: where that is less. With PATIENCE = 1 examples/optunahub/example.py ended in the wrong branch.
PATIENCE, OWED = 2.0, 0.5


@dataclass(frozen=True)
class _Fork:
    """Models with pending points counted, on the encoding's columns.

    `known (u, d)` are the observed points, `means (u, k)` their posterior means for each objective, and `lost (u,)` by
    how much the constraints' means miss feasibility there.
    """

    modellings: tuple[FittedModel, ...]
    models: tuple[Model, ...]
    betas: tuple[float, ...]
    constraints: tuple[Constraint, ...]
    pending: Tensor
    known: Tensor
    means: Tensor
    lost: Tensor


class Session:
    """What the sampler computes for one study. Nothing in it outlives a storage: all follows from the trials.

    Args:
        study: the study.
        options: of the models.
        confidence: schedule of beta.
        acquisition: "ucb", "logei" or "thompson".
    """

    def __init__(self, study: Study, options: ModelOptions, confidence: Confidence, acquisition: str) -> None:
        self.options, self.confidence, self.acquisition = options, confidence, acquisition
        self.storage, self.study_id = study._storage, study._study_id
        self.history = History()
        signs = [1.0 if direction == StudyDirection.MAXIMIZE else -1.0 for direction in study.directions]
        self.objectives = [Quantity(options, k, sign, winsorised=len(signs) == 1) for k, sign in enumerate(signs)]
        self.constraints: dict[str, Quantity] = {}

    def belongs_to(self, study: Study) -> bool:
        """Whether this is the study's session."""
        return study._storage is self.storage and study._study_id == self.study_id

    # -- following -----------------------------------------------------------------------------------------------

    def follow(self, finished: Sequence[FrozenTrial]) -> None:
        """Bring history and models up to date."""
        history = self.history
        history.update(finished)
        if history.n_complete < max(self.options.first, 1):
            return
        categorical = history.encoding.categorical
        for k, quantity in enumerate(self.objectives):
            y, poor = history.objective(k)
            quantity.follow(history.X, y, poor, categorical, history.version)
        self._number_constraints(history.constraint_names())
        for name, quantity in self.constraints.items():
            rows = [j for j, record in enumerate(history.records) if name in record.constraints]
            y = torch.tensor([history.records[j].constraints[name] for j in rows], dtype=torch.float64)
            nothing = torch.full_like(y, math.nan)
            quantity.follow(history.X[rows], y, nothing, categorical, history.version)

    def _number_constraints(self, names: Sequence[str]) -> None:
        """A quantity for each of the sorted names; one that comes late moves those behind it to other streams."""
        for i, name in enumerate(names):
            stream = 1000 + i  # far above those of objectives
            if name not in self.constraints or self.constraints[name].stream != stream:
                # More feasible is larger.
                self.constraints[name] = Quantity(self.options, stream, -1.0, winsorised=False)
        self.constraints = {name: self.constraints[name] for name in names}

    @property
    def ready(self) -> bool:
        """Whether every objective has a model."""
        return all(quantity.modelling is not None for quantity in self.objectives)

    def _modellings(self) -> list[FittedModel]:
        return [cast(FittedModel, quantity.modelling) for quantity in self.objectives]

    def _fork(self, pending: Tensor) -> _Fork:
        """The models with `pending (p, d)` counted; the session's own stay as they are."""
        held = [quantity.modelling for quantity in self.constraints.values() if quantity.modelling is not None]
        modellings, limits = self._modellings(), held
        if len(pending):
            modellings, limits = copy.deepcopy((modellings, held))
        models = [_model(modelling, pending) for modelling in modellings]
        constraints = []
        for modelling in limits:
            zero = float(modelling.scaler.transform(torch.zeros(1, dtype=torch.float64))[0])
            constraints.append(Constraint(_model(modelling, pending), zero))
        known = modellings[0].surrogate.observations.X
        lost = torch.zeros(len(known), dtype=torch.float64)
        for modelling, constraint in zip(limits, constraints, strict=True):
            own = modelling.surrogate
            mean = own.fitted() if torch.equal(own.observations.X, known) else constraint.model(known)[0]
            lost += (constraint.bound - mean).clamp_min(0.0)
        return _Fork(
            tuple(modellings),
            tuple(models),
            tuple(self.confidence(modelling.progress(None, len(pending))) for modelling in modellings),
            tuple(constraints),
            pending,
            known,
            torch.stack([modelling.surrogate.fitted() for modelling in modellings], 1),
            lost,
        )

    def recommend(self) -> Recommendation:
        """The evaluated point with the best posterior mean among those expected to be feasible; see `BKBSampler`."""
        fork = self._fork(self.history.X[:0])
        means = fork.means[:, 0]
        feasible = fork.lost <= 0.0
        best = int((means.masked_fill(~feasible, -math.inf) if bool(feasible.any()) else -fork.lost).argmax())
        x = fork.known[best : best + 1]
        # The trials there share their encoded point; the first of them has the parameters.
        record = self.history.records[int((x == self.history.X).all(1).nonzero()[0, 0])]
        latest, scaler = self.history.latest, fork.modellings[0].scaler
        params = {latest[key][0]: latest[key][1].to_external_repr(value) for key, value in record.values.items()}
        with torch.no_grad():
            sd = float(fork.models[0](x)[1][0]) ** 0.5
        return Recommendation(params, None, scaler.mean(float(means[best])), scaler.width(sd))

    # -- proposing -----------------------------------------------------------------------------------------------

    def propose(
        self,
        search_space: Mapping[str, BaseDistribution],
        running: Sequence[Values],
        failed: Sequence[Values],
        step: int,
        rng: np.random.Generator,
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The next point: values by column key, and what there is to report.

        Args:
            search_space: the distributions that may be chosen from, by parameter name.
            running: values of the running trials, by column key.
            failed: those of the failed ones, which teach nothing but count as visits of their branches.
            step: number of the trial.
            rng: of this proposal.
        """
        encoding = self.history.encoding
        pending = encoding.encode([values for values in running if any(key in encoding.columns for key in values)])
        proposed = {column_key(name, d): d for name, d in search_space.items()}
        with small_work():
            fork = self._fork(pending)
            branch, embedding = self._branch(proposed, fork, [*running, *failed], rng)
            values = self._search(embedding, fork, branch, step, rng)
        first = fork.modellings[0]
        report = {
            "m": len(first.surrogate.inducing),
            "effective_dimension": first.progress(None, 0).effective_dimension,
            "beta": fork.betas[0],
            "noise_sd": first.scaler.width(first.surrogate.noise**0.5),
        }
        return {**branch.setting, **values}, report

    def _embedding(self, branch: Branch, proposed: Mapping[str, BaseDistribution]) -> Embedding:
        """The branch's points; columns that are neither its own nor absent from it are as in the latest trial."""
        encoding, last = self.history.encoding, self.history.records[-1].values
        free = {key: proposed[key] for key in branch.free}
        held = {key: value for key, value in last.items() if key not in proposed}
        return encoding.embedding(free, {**held, **branch.setting})

    def _branch(
        self,
        proposed: Mapping[str, BaseDistribution],
        fork: _Fork,
        others: Sequence[Values],
        rng: np.random.Generator,
    ) -> tuple[Branch, Embedding]:
        """The branch with the best point among a few at random and its own best trials.

        A branch that was hardly tried comes first: what the others taught the kernel need not hold there.
        """
        records = self.history.records
        known = [key for key in proposed if key in dict(self.history.encoding.parameters)]
        if not self.history.is_conditional:
            branch = Branch({}, tuple(known), tuple(range(len(records))))
            return branch, self._embedding(branch, proposed)
        discrete = {key: values for key in known if (values := _switch_values(proposed[key]))}
        branching = Branching.of([record.values for record in records], known, discrete)
        branches = branching.branches(MAX_BRANCHES)
        if len(branches) == 1:
            return branches[0], self._embedding(branches[0], proposed)
        score = self._score(fork)
        share = max(BRANCH_POINTS // len(branches), 16)

        def scored(branch: Branch) -> tuple[float, Branch, Embedding]:
            embedding = self._embedding(branch, proposed)
            with torch.no_grad():
                U = torch.cat([embedding.sample(share, rng), self._good(fork, branch, embedding)])
                return float(score(embedding(U)).max()), branch, embedding

        candidates = [scored(branch) for branch in branches]
        visits = [_visits(branch, others) for branch in branches]
        equal = len(records) / len(branches)
        neglected = min(visits) < min(PATIENCE * math.sqrt(equal), OWED * equal)
        open_to = [i for i in range(len(branches)) if not neglected or visits[i] == min(visits)]
        best = max((candidates[i] for i in open_to), key=lambda candidate: candidate[0])
        if not neglected:
            # What no trial combined is known from its parts; it competes, but is not owed a visit.
            crossed = [scored(branch) for branch in branching.crossings(best[1])]
            best = max([best, *crossed], key=lambda candidate: candidate[0])
        return best[1], best[2]

    def _good(self, fork: _Fork, branch: Branch, embedding: Embedding) -> Tensor:
        """The branch's observed points with the best values by the models, as points of the embedding."""
        rows = self._members(fork.known, branch)
        means, lost = fork.means[rows], fork.lost[rows]
        # With several objectives: good in the worst of them, each on its own scale.
        rank = means[:, 0] if means.shape[1] == 1 else means.min(1).values + 0.1 * means.sum(1)
        best = (rank - 1e3 * lost).topk(min(N_GOOD, len(rows))).indices
        return embedding.project(fork.known[rows[best]])

    def _members(self, X: Tensor, branch: Branch) -> Tensor:
        """Rows of the encoded points `X (n, d)` that have the branch's setting."""
        encoding = self.history.encoding
        columns = [encoding.columns[key] for key in branch.setting if key in encoding.columns]
        setting = encoding.encode([branch.setting])[0]
        return torch.nonzero((X[:, columns] == setting[columns]).all(1))[:, 0]

    def _score(self, fork: _Fork) -> Any:
        """The optimistic score on encoded points."""
        improvement = None
        if len(fork.models) > 1:
            feasible = fork.lost <= 0.0
            F = fork.means[feasible] if bool(feasible.any()) else fork.means
            if len(fork.pending):
                F = torch.cat([F, torch.stack([model(fork.pending)[0] for model in fork.models], 1)])
            improvement = Improvement.over(F)
        pairs = list(zip(fork.models, fork.betas, strict=True))
        return score_of(pairs, fork.constraints, improvement, self._incumbent(fork))

    def _incumbent(self, fork: _Fork) -> float | None:
        """The best posterior mean of a feasible point; None without constraints, or without such a point."""
        feasible = fork.lost <= 0.0
        if not fork.constraints or not bool(feasible.any()):
            return None
        return float(fork.means[feasible, 0].max())

    def _search(
        self, embedding: Embedding, fork: _Fork, branch: Branch, step: int, rng: np.random.Generator
    ) -> dict[str, float]:
        """The best point of the embedding."""
        if embedding.space is None:
            return {}
        domain = BoxDomain(embedding.space, None, 0)
        good = self._good(fork, branch, embedding)
        # A trial that runs in another branch is none of this one's points, whatever its nearest here would be.
        busy = embedding.project(fork.pending[self._members(fork.pending, branch)])
        repeats_tell = not self.options.deterministic
        if domain.is_discrete and repeats_tell:
            repeats_tell = any(quantity.is_noisy() for quantity in self.objectives)
        if not repeats_tell:
            tried = torch.cat([busy, embedding.project(fork.known[self._members(fork.known, branch)])])
            # Once everything was tried, only what is running is left out.
            busy = tried if len(torch.unique(tried, dim=0)) < embedding.space.cardinality else busy
        may_leap = len(good) > 0 and len(fork.models) == 1 and self.acquisition != "thompson"
        may_leap = may_leap and leap_is_due(step, domain.has_choices)
        acquisition: Acquisition | Thompson
        leap: Acquisition
        with torch.no_grad():
            if len(fork.models) == 1 and not fork.constraints:
                model = embedded(fork.models[0], embedding)
                incumbent = float(fork.means.max())
                acquisition, leap = acquisition_of(self.acquisition, fork.betas[0], incumbent), LogEI(incumbent)
            else:
                score = self._score(fork)
                model = cast(Model, Scored(fork.models[0], lambda U: score(embedding(U))))
                acquisition = leap = _mean
            x, _ = choose(model, domain, acquisition, leap if may_leap else None, good, rng, busy)
        return {key: float(value) for key, value in domain.describe(x)[0].items()}


def _visits(branch: Branch, others: Sequence[Values]) -> int:
    """Trials in the branch, running and failed ones included: a branch that always fails must not be tried for ever."""
    inside = sum(all(values.get(key) == value for key, value in branch.setting.items()) for values in others)
    return len(branch.rows) + inside


def _model(modelling: FittedModel, pending: Tensor) -> Model:
    """The model with `pending (p, d)` counted, which changes the surrogate that they are counted on."""
    surrogate = modelling.surrogate
    return surrogate.hallucinate(pending, pending[:0], 0.0) if len(pending) else surrogate.model


def _mean(mean: Tensor, variance: Tensor) -> Tensor:  # noqa: ARG001  # the form of an acquisition
    return mean


def _switch_values(distribution: BaseDistribution) -> list[float]:
    """The values of a distribution that may be a switch; none where there are too many."""
    parameter = parameter_of(distribution)
    n = parameter.n_values
    if n is None or n > MAX_SWITCH_VALUES:
        return []
    return [float(parameter.value(position)) for position in range(n)]
