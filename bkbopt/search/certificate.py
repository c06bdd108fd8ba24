"""Regret certificates: quantiles of the gap max f - f(x) in joint draws of the posterior.

| symbol | shape  | units | meaning                                                                             |
| ------ | ------ | ----- | ----------------------------------------------------------------------------------- |
| x      | (d,)   | enc.  | the point, the recommended one                                                      |
| f      |        | y     | a draw: hyper-parameters and constant mean (`Quantity.ensemble`), then a path        |
| gap    | (s,)   | user's | max f - f(x) of each of s draws, never negative                                    |

The confidence band of the search does not bound the gap: it is one to two standard deviations wide on each side, for
fixed hyper-parameters, and is no joint statement about all points. Draws of the posterior give the distribution of the
gap. The posterior is still slightly too narrow, since real functions are not draws of its prior. Half of the failure
probability is reserved for that: at a confidence of 95 % the bound is the 97.5 % quantile, and at least the gap of a
pointwise 95 % band. Frequency with which it held (`python -m benchmarks.calibration`): on functions of a prior in 216
of 220 cases, on Branin in 120 of 120. It does not hold where the posterior is narrow and wrong: on Hartmann-6 it held
in 50 of 60 cases in a box and in 42 of 60 over pools of random points, whose best arms are isolated; on Shekel-4, whose
minima are narrow wells, in 8 of 60.

Over a pool the maximum of a draw is taken over the 1,000 different arms with the largest upper bounds; rows that are
one point are one arm. In a box it is taken over 1,000 candidates, and the draws with the largest gaps are maximised
further by gradient ascent from their best one. Only points that the user's constraint (`feasible=`) accepts are
candidates, and ends of an ascent.

With constraints, and where trials fail in a region, a draw is one of all these quantities, which are independent, and
the maximum is over the points that are feasible in it. The bound is that of a point which is feasible: draws in which
an outcome constraint does not hold at x are left out. One that was measured at x without noise, and holds, holds there
in all draws. If x is not expected to be feasible, outcome constraints are ignored.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt._support.threads import small_work
from bkbopt.posterior.model import Predictor
from bkbopt.posterior.paths import Paths, draw_paths
from bkbopt.search.candidates.box import BoxCandidates, candidates_of
from bkbopt.search.candidates.feasible_walk import beside
from bkbopt.search.designer import Designer
from bkbopt.search.models import Models, Posteriors
from bkbopt.search.quantities.holding import measured_exactly
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.search.quantities.scaling import Scaler
from bkbopt.search.regions import regions_of
from bkbopt.spaces.rows import RowSource

__all__ = ["gap_quantile", "regret_bound"]

#: Total number of draws (ten are beyond the quantile of a bound at 0.95), total number of Fourier frequencies, which is
#: divided among the posteriors, and largest number of frequencies of one posterior.
N_DRAWS, N_FREQUENCIES, MOST_FREQUENCIES = 400, 5120, 1024
#: Number of candidates, and the width, in standard deviations, of the upper bound by which they are chosen.
N_CANDIDATES, WIDTH = 1000, 2.5
#: Largest number of listed points that the user's constraint is asked about.
MOST_CHECKED = 10_000
#: Number of rows from which no more are read to find that many that are different points.
MOST_READ = 200_000
#: Points whose bounds are computed at once.
BLOCK = 4096
#: Steps of the ascent of a draw; twice as many give the same bounds but for some parts in a hundred.
ITERATIONS = 10
#: Fraction of the draws that are maximised by ascent, those with the largest gaps: CLIMBING * (1 - confidence), at
#: least LEAST_CLIMBING.
CLIMBING, LEAST_CLIMBING = 4.0, 0.2
#: Weight of a violation, in standard deviations, in the ascent of a draw, units of the objective's.
PENALTY = 10.0
#: Distinguishes these random numbers from others with the same seed.
STREAM = 4_001


def gap_quantile(gap: Tensor, confidence: float) -> float:
    """The (1 + `confidence`) / 2 quantile of the draws `gap (s,)`."""
    rank = math.ceil(0.5 * (1.0 + confidence) * (len(gap) + 1))
    return float(gap.sort().values[min(rank, len(gap)) - 1])


@torch.no_grad()
def regret_bound(designer: Designer, posteriors: Posteriors, x: Tensor, confidence: float) -> float:
    """Upper bound of the regret at the encoded point `x (d,)`, user's units.

    Args:
        designer: the designer, with its models, candidates and seed.
        posteriors: the posteriors without pending points, by which candidates are chosen.
        x: the point.
        confidence: probability with which the bound is to hold.
    """
    models = designer.trained()
    limited = list(zip(models.limits, posteriors.constraints, strict=False))  # none where `posteriors` has none
    if float(models.log_feasibility(x[None])) < math.log(0.5):
        limited = [pair for pair in limited if pair[0] is models.failing]
        posteriors = replace(posteriors, constraints=tuple(constraint for _, constraint in limited))
    rng = np.random.default_rng([designer.seed, STREAM, len(designer.history.finished)])
    with small_work():
        boxes, X, box = _candidates(designer, posteriors, rng)
        X, box = torch.cat([x[None], X]), torch.cat([torch.tensor([-1]), box])
        lower, upper = _band(designer, posteriors, X, confidence)
        band = models.objectives[0].scaler.rise(lower, upper - lower)
        draws = _Draws.of(models, [limit for limit, _ in limited], x, X, rng)
        return max(gap_quantile(_gaps(draws, boxes, X, box, confidence), confidence), band)


def _band(designer: Designer, posteriors: Posteriors, X: Tensor, confidence: float) -> tuple[float, float]:
    """The lower bound at the first of the points `X (n, d)`, and the largest upper bound, standardised, of a band.

    It is a pointwise band with this confidence. With constraints the largest upper bound is that of the points `X`.
    """
    beta = float(torch.special.ndtri(torch.tensor(0.5 * (1.0 + confidence), dtype=torch.float64)))
    mean, variance = posteriors.models[0](X[:1])
    lower = float(mean[0] - beta * variance[0].sqrt())
    if posteriors.constraints or designer.problem.feasible is not None:
        upper = float(_upper_bounds(posteriors, X, beta).max())
    else:
        upper = designer.upper_bound(replace(posteriors, betas=(beta,)))
    return lower, max(upper, lower)


@dataclass(frozen=True)
class _Paths:
    """Joint draws of a quantity, as many from each posterior of its ensemble.

    Attributes:
        parts: the draws of each posterior.
        means: the constant mean of each draw, (s,).
        zero: for a constraint the limit above which it holds, standardised.
    """

    parts: Sequence[Paths]
    means: Tensor
    zero: float

    @classmethod
    def of(cls, quantity: Quantity, X: Tensor, rng: np.random.Generator) -> Self:
        """Draws that will be evaluated at the points `X (n, d)`, among others."""
        models, means = zip(*quantity.ensemble(), strict=True)
        each = math.ceil(N_DRAWS / len(models))
        frequencies = min(N_FREQUENCIES // len(models), MOST_FREQUENCIES)
        parts = [draw_paths(model, X, rng, each, frequencies) for model in models]
        return cls(parts, X.new_tensor(means).repeat_interleave(each), quantity.zero)

    def __call__(self, X: Tensor) -> Tensor:
        """Values `(n, s)` of all draws at the points `X (n, d)`."""
        return torch.cat([path(X) for path in self.parts], 1) + self.means

    def each(self, X: Tensor, draws: Tensor) -> Tensor:
        """Values `(n,)` of draw `draws[i]` at point `X[i]`, for `X (n, d)`; differentiable in `X`."""
        each = len(self.means) // len(self.parts)
        by_part = [torch.nonzero(draws // each == j)[:, 0] for j in range(len(self.parts))]
        found = [
            part.each(X[rows], draws[rows] % each) for part, rows in zip(self.parts, by_part, strict=True) if len(rows)
        ]
        return torch.cat(found)[torch.argsort(torch.cat(by_part))] + self.means[draws]


def _is_certain(models: Models, limit: Quantity, x: Tensor) -> bool:
    """Whether a constraint is known to hold at the recommended point `x (d,)`.

    That the trial does not fail: it did not. Another one: it was measured there without noise.
    """
    return limit is models.failing or bool(measured_exactly(limit, x[None])[1])


@dataclass(frozen=True)
class _Draws:
    """Joint draws of the objective and of the constraints.

    Attributes:
        scaler: the scaling of the objective's values.
        objective: draws of the objective.
        uncertain: draws of the constraints that may not hold at the recommended point.
        certain: draws of those that are known to hold there; see `_is_certain`.
    """

    scaler: Scaler
    objective: _Paths
    uncertain: Sequence[_Paths] = ()
    certain: Sequence[_Paths] = ()

    @classmethod
    def of(cls, models: Models, limits: Sequence[Quantity], x: Tensor, X: Tensor, rng: np.random.Generator) -> Self:
        """Draws that will be evaluated at the points `X (n, d)`, among others; `x (d,)` is the recommended one."""
        objective = _Paths.of(models.objectives[0], X, rng)
        uncertain, certain = list[_Paths](), list[_Paths]()
        for limit in limits:
            (certain if _is_certain(models, limit, x) else uncertain).append(_Paths.of(limit, X, rng))
        return cls(models.objectives[0].scaler, objective, uncertain, certain)

    @property
    def limits(self) -> list[_Paths]:
        """All constraints."""
        return [*self.uncertain, *self.certain]

    def penalised(self, X: Tensor, draws: Tensor) -> Tensor:
        """Values `(n,)` of draw `draws[i]` at `X[i]`, less `PENALTY` times the violations; differentiable in `X`."""
        values = self.objective.each(X, draws)
        for limit in self.limits:
            values = values - PENALTY * (limit.zero - limit.each(X, draws)).clamp_min(0.0)
        return values


def _gaps(draws: _Draws, boxes: Sequence[BoxCandidates | None], X: Tensor, box: Tensor, confidence: float) -> Tensor:
    """The gaps (s,), user's units, of the draws in which the first of the points `X (n, d)` is feasible."""
    values = draws.objective(X)
    holds = torch.ones_like(values, dtype=torch.bool)
    for limit in draws.uncertain:
        holds &= limit(X) >= limit.zero
    columns = torch.nonzero(holds[0] | ~holds[0].any())[:, 0]  # all draws if it holds in none of them
    for limit in draws.certain:  # they hold at the first point
        holds[1:] &= limit(X[1:]) >= limit.zero
    values, holds = values[:, columns], holds[:, columns]
    best = torch.where(holds, values, -torch.inf).max(0)
    gap = (best.values - values[0]).clamp_min(0.0)
    share = min(max(CLIMBING * (1.0 - confidence), LEAST_CLIMBING), 1.0)
    high = gap >= gap.quantile(1.0 - share)
    for number, candidates in enumerate(boxes):
        rows = torch.nonzero(high & (box[best.indices] == number))[:, 0]
        if candidates is not None and len(rows):
            top = _climbed(candidates, draws, X[best.indices[rows]], columns[rows])
            gap[rows] = torch.maximum(gap[rows], top - values[0, rows])
    return draws.scaler.rises(values[0], gap)


def _candidates(
    designer: Designer, posteriors: Posteriors, rng: np.random.Generator
) -> tuple[list[BoxCandidates | None], Tensor, Tensor]:
    """Candidate sets (None for listed points), candidates `(n, d)`, and the number of the set of each, `(n,)`."""
    incumbents, feasible = posteriors.incumbents(), designer.problem.feasible
    if designer.problem.pool is not None:
        rows, usable = designer.candidates.pool.spread(incumbents, rng)
        X, _ = _best(rows, posteriors, None if feasible is None else usable)
        return [None], X, torch.zeros(len(X), dtype=torch.int64)
    assert designer.problem.space is not None
    boxes, parts, checks = list[BoxCandidates | None](), list[Tensor](), list[Callable[[int], bool]]()
    for region in regions_of(designer.history, designer.problem.space, {}, rng):
        found = candidates_of(region.embedding, feasible)
        if isinstance(found, BoxCandidates):
            boxes.append(found)
            maximizer, embedding = found.maximizer, found.embedding
            U = maximizer.candidates(embedding.project(incumbents), rng, maximizer.settings.n_shared)
            open_rows = found.usable_rows(U)
            if feasible is not None:
                further = beside(found.space, U, open_rows, found.usable_rows, rng)
                U, open_rows = torch.cat([U, further]), [*open_rows, *[True] * len(further)]
            parts.append(embedding(U))
            checks.append(open_rows.__getitem__)
        else:
            boxes.append(None)
            parts.append(found.search.X[:])
            checks.append(found.usable)
    sizes = torch.tensor([len(part) for part in parts])
    number, first = torch.repeat_interleave(torch.arange(len(parts)), sizes), sizes.cumsum(0) - sizes

    def accepted(row: int) -> bool:
        part = int(number[row])
        return checks[part](row - int(first[part]))

    X, rows = _best(torch.cat(parts), posteriors, None if feasible is None else accepted)
    return boxes, X, number[rows]


def _best(X: RowSource, posteriors: Posteriors, usable: Callable[[int], bool] | None) -> tuple[Tensor, Tensor]:
    """The `usable` points among `X (n, d)` with the largest upper bounds, all where they are few, and their rows."""
    if usable is None and len(X) <= N_CANDIDATES:
        return X[:], torch.arange(len(X))
    most = N_CANDIDATES if usable is None else MOST_CHECKED
    highest = _highest(X, _upper_bounds(posteriors, X, WIDTH), most)
    chosen = highest if usable is None else itertools.islice(filter(usable, highest), N_CANDIDATES)
    rows = torch.tensor([*chosen], dtype=torch.int64)
    return X[rows], rows


def _highest(X: RowSource, bounds: Tensor, most: int) -> list[int]:
    """The rows of `X (n, d)` with the largest `bounds (n,)`, at most `most`; of rows that are one point the first."""
    k = min(most, len(bounds))
    while True:
        order = bounds.topk(k).indices
        rows: dict[bytes, int] = {}
        for row, key in zip(order.tolist(), row_keys(X[order]), strict=True):
            rows.setdefault(key, row)
        if len(rows) >= most or k >= min(MOST_READ, len(bounds)):
            return [*itertools.islice(rows.values(), most)]
        k = min(4 * k, len(bounds))


def _upper_bounds(posteriors: Posteriors, X: RowSource, width: float) -> Tensor:
    """Upper bounds (n,) of the objective, `width` sd above its mean, at the points `X (n, d)`.

    They are -inf where a constraint does not hold that many standard deviations above its mean, either.
    """
    objective = posteriors.models[0].collapse()
    limits = [(limit.model.collapse(), limit.bound) for limit in posteriors.constraints]

    def upper(predict: Predictor, B: Tensor) -> Tensor:
        mean, variance = predict(B)
        return mean + width * variance.sqrt()

    found = []
    for i in range(0, len(X), BLOCK):
        B = X[i : i + BLOCK]
        bounds = upper(objective, B)
        for predict, zero in limits:
            bounds = torch.where(upper(predict, B) >= zero, bounds, -torch.inf)
        found.append(bounds)
    return torch.cat(found)


def _climbed(candidates: BoxCandidates, draws: _Draws, X: Tensor, columns: Tensor) -> Tensor:
    """Values (k,) that the draws `columns (k,)` reach by gradient ascent from their starts `X (k, d)`."""

    def score(U: Tensor) -> Tensor:
        return draws.penalised(candidates.embedding(U), columns.repeat(len(U) // len(columns)))

    starts = candidates.embedding.project(X)
    found = candidates.maximizer.climbed(starts, score, ITERATIONS)
    usable = torch.tensor(candidates.usable_rows(found), dtype=torch.bool)
    return score(torch.where(usable[:, None], found, starts))
