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

from bkbopt.acquisition import UCB, Acquisition, LogEI, Thompson
from bkbopt.adapters.optuna.branches import MAX_SWITCH_VALUES, Branch, branches_of
from bkbopt.adapters.optuna.encoding import Embedding, Values, column_key, parameter_of
from bkbopt.adapters.optuna.history import History
from bkbopt.adapters.optuna.pareto import Improvement
from bkbopt.adapters.optuna.quantity import ModelOptions, Quantity
from bkbopt.adapters.optuna.search import Constraint, Scored, embedded, score_of
from bkbopt.confidence import Confidence
from bkbopt.domains import BoxDomain
from bkbopt.modelling import Modelling
from bkbopt.reports import Recommendation
from bkbopt.surrogates.model import Model

__all__ = ["Session"]

#: Observed points with the best posterior means that searches start from.
N_GOOD = 5
#: Branches whose best points are compared, and the points that are looked at for it.
MAX_BRANCHES, BRANCH_POINTS = 32, 2048


@dataclass(frozen=True)
class _Fork:
    """Models with pending points counted, on the encoding's columns, and what belongs to them."""

    modellings: tuple[Modelling, ...]
    models: tuple[Model, ...]
    betas: tuple[float, ...]
    constraints: tuple[Constraint, ...]
    pending: Tensor


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
        self.objectives = [Quantity(options, k, sign) for k, sign in enumerate(signs)]
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
        for i, name in enumerate(history.constraint_names()):
            if name not in self.constraints:
                # Streams far above those of objectives; more feasible is larger.
                self.constraints[name] = Quantity(self.options, 1000 + i, -1.0)
            rows = [j for j, record in enumerate(history.records) if name in record.constraints]
            y = torch.tensor([history.records[j].constraints[name] for j in rows], dtype=torch.float64)
            nothing = torch.full_like(y, math.nan)
            self.constraints[name].follow(history.X[rows], y, nothing, categorical, history.version)

    @property
    def ready(self) -> bool:
        """Whether every objective has a model."""
        return all(quantity.modelling is not None for quantity in self.objectives)

    def _modellings(self) -> list[Modelling]:
        return [cast(Modelling, quantity.modelling) for quantity in self.objectives]

    def _fork(self, pending: Tensor) -> _Fork:
        """The models with `pending (p, d)` counted; the session's own stay as they are."""
        modellings = self._modellings()
        if len(pending):
            modellings = copy.deepcopy(modellings)
        progress = [modelling.progress(None, len(pending)) for modelling in modellings]
        betas = [self.confidence(p) for p in progress]
        empty = pending[:0]
        models = [
            m.surrogate.hallucinate(pending, empty, 0.0) if len(pending) else m.surrogate.model for m in modellings
        ]
        constraints = []
        for quantity in self.constraints.values():
            if quantity.modelling is None:
                continue
            modelling = copy.deepcopy(quantity.modelling) if len(pending) else quantity.modelling
            model = modelling.surrogate.hallucinate(pending, empty, 0.0) if len(pending) else modelling.surrogate.model
            zero = modelling.scaler.transform(torch.zeros(1, dtype=torch.float64))
            constraints.append(
                Constraint(model, self.confidence(modelling.progress(None, len(pending))), float(zero[0]))
            )
        return _Fork(tuple(modellings), tuple(models), tuple(betas), tuple(constraints), pending)

    def recommend(self) -> Recommendation:
        """The evaluated point with the best posterior mean among those expected to be feasible; see `BKBSampler`."""
        fork, X = self._fork(self.history.X[:0]), self.history.X
        modelling = fork.modellings[0]
        with torch.no_grad():
            mean, variance = fork.models[0](X)
            lost = self._violation(fork, X)
        feasible = lost <= 0.0
        i = int((mean.masked_fill(~feasible, -math.inf) if bool(feasible.any()) else -lost).argmax())
        latest, scaler = self.history.latest, modelling.scaler
        params = {
            latest[key][0]: latest[key][1].to_external_repr(value)
            for key, value in self.history.records[i].values.items()
        }
        return Recommendation(params, None, scaler.mean(float(mean[i])), scaler.width(float(variance[i]) ** 0.5))

    def _violation(self, fork: _Fork, X: Tensor) -> Tensor:
        """By how much the posterior means of the constraints miss feasibility, (n,), >= 0."""
        lost = torch.zeros(len(X), dtype=torch.float64)
        for constraint in fork.constraints:
            lost = lost + (constraint.bound - constraint.model(X)[0]).clamp_min(0.0)
        return lost

    # -- proposing -----------------------------------------------------------------------------------------------

    def propose(
        self, search_space: Mapping[str, BaseDistribution], running: Sequence[Values], rng: np.random.Generator
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The next point: values by column key, and what there is to report.

        Args:
            search_space: the distributions that may be chosen from, by parameter name.
            running: values of the running trials, by column key.
            rng: of this proposal.
        """
        encoding = self.history.encoding
        pending = encoding.encode([values for values in running if any(key in encoding.columns for key in values)])
        proposed = {column_key(name, d): d for name, d in search_space.items()}
        fork = self._fork(pending)
        branch, embedding = self._branch(proposed, fork, rng)
        values = self._search(embedding, fork, branch, rng)
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
        self, proposed: Mapping[str, BaseDistribution], fork: _Fork, rng: np.random.Generator
    ) -> tuple[Branch, Embedding]:
        """The branch with the best point among a few at random and its own best trials."""
        records = self.history.records
        known = [key for key in proposed if key in dict(self.history.encoding.parameters)]
        if not self.history.is_conditional:
            branch = Branch({}, tuple(known), tuple(range(len(records))))
            return branch, self._embedding(branch, proposed)
        discrete = {key: values for key in known if (values := _switch_values(proposed[key]))}
        branches = branches_of([record.values for record in records], known, discrete, MAX_BRANCHES)
        embeddings = [self._embedding(branch, proposed) for branch in branches]
        if len(branches) == 1:
            return branches[0], embeddings[0]
        score = self._score(fork)
        share = max(BRANCH_POINTS // len(branches), 16)
        best = []
        with torch.no_grad():
            for branch, embedding in zip(branches, embeddings, strict=True):
                U = (
                    embedding.space.sample(share, rng)
                    if embedding.space.dim
                    else torch.zeros(1, 1, dtype=torch.float64)
                )
                U = torch.cat([U, self._good(fork, branch, embedding)])
                best.append(float(score(embedding(U)).max()))
        i = int(np.argmax(best))
        return branches[i], embeddings[i]

    def _good(self, fork: _Fork, branch: Branch, embedding: Embedding) -> Tensor:
        """The branch's observed points with the best values by the models, as points of the embedding."""
        X = self.history.X[list(branch.rows)]
        if not len(X):
            return torch.zeros(0, max(embedding.space.dim, 1), dtype=torch.float64)
        X = torch.unique(X, dim=0)
        means = torch.stack([modelling.surrogate.model(X)[0] for modelling in fork.modellings], 1)
        lost = self._violation(fork, X)
        if means.shape[1] == 1:
            rank = means[:, 0]
        else:
            # Points that few others dominate; ties by the sum.
            beaten = (means[None] > means[:, None]).all(2).sum(1) if len(X) <= 2000 else torch.zeros(len(X))
            rank = means.sum(1) / (1.0 + means.abs().sum(1).max()) - beaten
        rows = (rank - 1e3 * lost).topk(min(N_GOOD, len(X))).indices
        return embedding.project(X[rows])

    def _score(self, fork: _Fork) -> Any:
        """The optimistic score on encoded points."""
        improvement = None
        if len(fork.models) > 1:
            known = torch.cat([torch.unique(self.history.X, dim=0), fork.pending])
            F = torch.stack([model(known)[0] for model in fork.models], 1)
            feasible = self._violation(fork, known) <= 0.0
            improvement = Improvement.over(F[feasible] if bool(feasible.any()) else F)
        return score_of(list(zip(fork.models, fork.betas, strict=True)), fork.constraints, improvement)

    def _search(self, embedding: Embedding, fork: _Fork, branch: Branch, rng: np.random.Generator) -> dict[str, float]:
        """The best point of the embedding."""
        if not embedding.space.items:
            return {}
        domain = BoxDomain(embedding.space, None, 0)
        good = self._good(fork, branch, embedding)
        busy = [embedding.project(fork.pending)]
        if domain.is_discrete and not any(quantity.is_noisy() for quantity in self.objectives):
            busy.append(embedding.project(self.history.X[list(branch.rows)]))
        plain = len(fork.models) == 1 and not fork.constraints
        with torch.no_grad():
            if plain:
                model = embedded(fork.models[0], embedding)
                acquisition = self._acquisition(fork, good, model)
            else:
                score = self._score(fork)
                model = cast(Model, Scored(fork.models[0], lambda U: score(embedding(U))))
                acquisition = _mean
            x = domain.suggest(model, acquisition, good, rng, torch.cat(busy))
        return {key: float(value) for key, value in domain.describe(x)[0].items()}

    def _acquisition(self, fork: _Fork, good: Tensor, model: Model) -> Acquisition | Thompson:
        if self.acquisition == "ucb":
            return UCB(fork.betas[0])
        if self.acquisition == "thompson":
            return Thompson()
        return LogEI(float(model(good[:1])[0][0]))


def _mean(mean: Tensor, variance: Tensor) -> Tensor:  # noqa: ARG001  # the form of an acquisition
    return mean


def _switch_values(distribution: BaseDistribution) -> list[float]:
    """The values of a distribution that may be a switch; none where there are too many."""
    parameter = parameter_of(distribution)
    n = parameter.n_values
    if n is None or n > MAX_SWITCH_VALUES:
        return []
    return [float(parameter.value(position)) for position in range(n)]
