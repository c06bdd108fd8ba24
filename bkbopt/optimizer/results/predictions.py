"""What follows from the models: predictions, residuals, beta, regret certificates, and how many workers are useful."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.arrays import as_points
from bkbopt._support.row_keys import row_keys
from bkbopt.confidence import Batch, Chowdhury, Confidence, Srinivas, Theorem2
from bkbopt.errors import ArgumentError, NotReadyError, SpaceExhaustedError
from bkbopt.optimizer.log.limits import Limits, sides_of
from bkbopt.optimizer.results.recommendations import (
    Belongs,
    ParamsOf,
    evaluated_at,
    feasibilities,
    finished_only,
    recommended,
)
from bkbopt.search.certificate import regret_bound
from bkbopt.search.completion import assumed
from bkbopt.search.designer import Designer
from bkbopt.search.quantities.marked_rows import Rows
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.search.trials.reports import RegretCertificate, Residual

__all__ = [
    "beta",
    "certificate",
    "constraints",
    "cross_validation",
    "feasibility",
    "modelled",
    "prediction",
    "residuals",
    "success_probability",
    "useful_workers",
]


@torch.no_grad()
def prediction(designer: Designer, X: Tensor, averaged: bool) -> tuple[np.ndarray, np.ndarray]:
    """See `Optimizer.predict_encoded`."""
    X = _checked(designer, X)
    objectives = designer.trained().objectives
    parts = [objective.averaged(X) if averaged else objective.predict(X) for objective in objectives]
    mean, std = (np.stack([part[j].numpy() for part in parts], 1) for j in (0, 1))
    return (mean[:, 0], std[:, 0]) if len(parts) == 1 else (mean, std)


def modelled(designer: Designer, k: int) -> tuple[Quantity, Rows]:
    """Objective `k` with its model, and the rows that it has learnt."""
    models = designer.trained()
    return models.objectives[k], designer.history.objective(k, models.first)


@torch.no_grad()
def residuals(designer: Designer, k: int) -> list[Residual]:
    """See `Optimizer.residuals`; of objective `k`."""
    objective, rows = modelled(designer, k)
    (v, learnt), scaler, surrogate = objective.learnt(rows), objective.scaler, objective.surrogate
    told = learnt.clone()
    told[list(objective.outliers)] = 1.0  # their noise is not known
    if surrogate.is_regression:
        mean, variance = surrogate.model.left_out(rows.X, v, learnt, surrogate.observations)
    else:  # what a learner of one pass had predicted without a value takes another pass
        posterior = surrogate.posterior(rows.X)
        mean, variance = posterior.mean.to(v.device), posterior.variance.to(v.device)
    # An outlier is learnt with a noise variance of its own, and judged by that of the others.
    sd = (variance + surrogate.noise / told).sqrt()
    columns = [part.tolist() for part in (rows.y, scaler.means(mean), scaler.widths(sd, mean), (v - mean) / sd)]
    ids = designer.history.numbers_of(k, range(len(v)))
    found = [Residual(*numbers) for numbers in zip(ids, *columns, strict=True)]
    return sorted(found, key=lambda residual: -abs(residual.score))


@torch.no_grad()
def cross_validation(designer: Designer, k: int, n_folds: int) -> np.ndarray:
    """See `Optimizer.cross_validation`; of objective `k`."""
    objective, rows = modelled(designer, k)
    v, weight = objective.learnt(rows)
    known = objective.surrogate.observations
    n = len(known)
    if n < 2:
        raise NotReadyError(
            "cross_validation: expected values of at least two points, got one; continue with ask and tell."
        )
    # Successive points are close in space: a group of them would leave a gap.
    unique = torch.tensor([known.row_of(key) for key in row_keys(rows.X)])
    group = torch.from_numpy(np.random.default_rng(0).permutation(n))[unique] % min(n_folds, n)
    scores = np.empty(len(v))
    for fold in range(min(n_folds, n)):
        out = group == fold
        surrogate = objective.retrained(rows, ~out).surrogate
        posterior = surrogate.posterior(rows.X[out])
        sd = (posterior.variance.cpu() + surrogate.noise / weight[out]).sqrt()
        scores[out.numpy()] = ((v[out] - posterior.mean.cpu()) / sd).numpy()
    return np.nan_to_num(scores, nan=0.0, posinf=np.inf, neginf=-np.inf)


@torch.no_grad()
def constraints(designer: Designer, X: Tensor, limits: Limits) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """See `Optimizer.predict_constraints`; of two limits of a quantity the first one's model predicts it."""
    models, out = designer.trained().constraints, {}
    for name, sides in sides_of(limits).items():
        if sides and sides[0].key in models and models[sides[0].key].ready:
            mean, std = models[sides[0].key].predict(X)
            out[name] = sides[0].value(mean.numpy()), std.numpy()
    return out


@torch.no_grad()
def feasibility(designer: Designer, X: Tensor, limits: Limits) -> np.ndarray:
    """See `Optimizer.feasibility`; `limits` are those of all constraints."""
    X, models = _checked(designer, X), designer.trained()
    for name, sides in sides_of(limits).items():
        if not all(side.key in models.constraints and models.constraints[side.key].ready for side in sides):
            raise NotReadyError(
                f"feasibility: expected at least one value of each constraint, got none of {name!r}; "
                f"pass constraints={{{name!r}: ...}} to tell."
            )
    return np.exp(models.log_feasibility(X).numpy())


@torch.no_grad()
def success_probability(designer: Designer, X: Tensor) -> np.ndarray:
    """See `Optimizer.success_probability_encoded`."""
    return designer.trained().success(_checked(designer, X)).numpy()


def _checked(designer: Designer, X: Any) -> Tensor:
    """Encoded points `(n, d)` of a caller; raises the errors of `as_points`, and one for codes that are none."""
    X = as_points(X[:], designer.history.dim)  # rows of a product are made here
    for j, n in designer.history.n_codes.items():
        column = X[:, j]
        bad = torch.nonzero((column != column.round()) | (column < 0.0) | (column >= n))[:, 0].tolist()
        if bad:
            raise ArgumentError(
                f"X: expected codes of choices, whole numbers from 0 to {n - 1}, in column {j}, got "
                f"{float(column[bad[0]])!r} in row {bad[0]}; see encode."
            )
    return X


@torch.no_grad()
def beta(designer: Designer) -> float:
    """See `Optimizer.beta`."""
    return finished_only(designer)[0].betas[0]


@torch.no_grad()
def certificate(designer: Designer, params_of: ParamsOf, belongs: Belongs, confidence: float) -> RegretCertificate:
    """See `Optimizer.regret_certificate`."""
    posteriors, objective = finished_only(designer)
    x, lower = posteriors.lower_bound()
    upper = max(designer.upper_bound(posteriors), lower)
    confidence_gap, width = objective.scaler.rise(lower, upper - lower), posteriors.betas[0]
    if _is_guaranteed(designer.options.schedule) and not designer.options.models.fit:
        point, index = evaluated_at(designer, x, belongs)
        whole = assumed(designer.problem, designer.history.encoding, point)
        (feasible,) = feasibilities(designer, x[None])
        return RegretCertificate(confidence_gap, params_of(whole, index), index, None, confidence_gap, width, feasible)
    x, point, index = recommended(designer, belongs)
    (feasible,) = feasibilities(designer, x[None])
    bound = regret_bound(designer, posteriors, x, confidence)
    return RegretCertificate(bound, params_of(point, index), index, confidence, confidence_gap, width, feasible)


def _is_guaranteed(schedule: Confidence) -> bool:
    """Whether a theorem guarantees the confidence bounds of this schedule."""
    inner = schedule.inner if isinstance(schedule, Batch) else schedule
    return isinstance(inner, Theorem2 | Srinivas | Chowdhury)


def useful_workers(designer: Designer, limit: int) -> int:
    """See `Optimizer.useful_workers`."""
    n = len(designer.history.running)
    try:
        more = designer.suggest_useful(max(limit - n, 0)) if n < limit else []
    except SpaceExhaustedError:
        more = []
    return max(min(n + len(more), limit), 1)
