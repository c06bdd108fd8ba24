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
pointwise 95 % band. Frequency with which it held (`python -m benchmarks.calibration`): on functions of a prior in 219
of 220 cases, on Branin in 120 of 120. It does not hold where the posterior is narrow and wrong: on Hartmann-6 it held
in 50 of 60 cases in a box and in 42 of 60 over pools of random points, whose best arms are isolated; on Shekel-4, whose
minima are narrow wells, in 17 of 60.

Over a pool the maximum of a draw is taken over the 1,000 arms with the largest upper bounds. In a box it is taken over
1,000 candidates, and the draws with the largest gaps are maximised further by gradient ascent from their best one.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.threads import small_work
from bkbopt.posterior.paths import Paths, draw_paths
from bkbopt.search.candidates.box import BoxCandidates, candidates_of
from bkbopt.search.designer import Designer
from bkbopt.search.models import Posteriors
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.search.regions import regions_of
from bkbopt.spaces.rows import RowSource

__all__ = ["band_gap", "gap_quantile", "gaps"]

#: Total number of draws (ten are beyond the quantile of a bound at 0.95), total number of Fourier frequencies, which is
#: divided among the posteriors, and largest number of frequencies of one posterior.
N_DRAWS, N_FREQUENCIES, MOST_FREQUENCIES = 400, 5120, 1024
#: Number of candidates, and the width, in standard deviations, of the upper bound by which they are chosen.
N_CANDIDATES, WIDTH = 1000, 2.5
#: Points whose bounds are computed at once.
BLOCK = 4096
#: Steps of the ascent of a draw; twice as many give the same bounds but for some parts in a hundred.
ITERATIONS = 10
#: Fraction of the draws that are maximised by ascent, those with the largest gaps: CLIMBING * (1 - confidence), at
#: least LEAST_CLIMBING.
CLIMBING, LEAST_CLIMBING = 4.0, 0.2
#: Distinguishes these random numbers from others with the same seed.
STREAM = 4_001


def gap_quantile(gap: Tensor, confidence: float) -> float:
    """The (1 + `confidence`) / 2 quantile of the draws `gap (s,)`."""
    rank = math.ceil(0.5 * (1.0 + confidence) * (len(gap) + 1))
    return float(gap.sort().values[min(rank, len(gap)) - 1])


@torch.no_grad()
def band_gap(designer: Designer, objective: Quantity, posteriors: Posteriors, x: Tensor, confidence: float) -> float:
    """Largest upper bound minus the lower bound at `x (d,)`, user's units, of a pointwise band with this confidence."""
    beta = float(torch.special.ndtri(torch.tensor(0.5 * (1.0 + confidence), dtype=torch.float64)))
    mean, variance = posteriors.models[0](x[None])
    lower = float(mean[0] - beta * variance[0].sqrt())
    return objective.scaler.rise(lower, max(designer.upper_bound(replace(posteriors, betas=(beta,))) - lower, 0.0))


@torch.no_grad()
def gaps(designer: Designer, objective: Quantity, posteriors: Posteriors, x: Tensor, confidence: float) -> Tensor:
    """Draws `(s,)` of max f - f(x), user's units, at the encoded point `x (d,)`.

    Args:
        designer: the designer, with its candidates and seed.
        objective: the objective whose posterior is drawn.
        posteriors: its posterior without pending points, by which candidates are chosen.
        x: the point.
        confidence: confidence of the certificate; draws far below its quantile are not maximised by ascent.
    """
    rng = np.random.default_rng([designer.seed, STREAM, len(designer.history.finished)])
    with small_work():
        boxes, X, box = _candidates(designer, posteriors, rng)
        X, box = torch.cat([x[None], X]), torch.cat([torch.tensor([-1]), box])
        models, means = zip(*objective.ensemble(), strict=True)
        each = math.ceil(N_DRAWS / len(models))
        frequencies = min(N_FREQUENCIES // len(models), MOST_FREQUENCIES)
        drawn = [draw_paths(model, X, rng, each, frequencies) for model in models]
        values = torch.cat([path(X) for path in drawn], 1)
        best = values.max(0)
        gap = best.values - values[0]
        share = min(max(CLIMBING * (1.0 - confidence), LEAST_CLIMBING), 1.0)
        high = gap >= gap.quantile(1.0 - share)
        for number, candidates in enumerate(boxes):
            rows = torch.nonzero(high & (box[best.indices] == number))[:, 0]
            if candidates is not None and len(rows):
                top = _climbed(candidates, drawn, each, X[best.indices[rows]], rows)
                gap[rows] = torch.maximum(gap[rows], top - values[0, rows])
        return objective.scaler.rises(values[0] + values.new_tensor(means).repeat_interleave(each), gap)


def _candidates(
    designer: Designer, posteriors: Posteriors, rng: np.random.Generator
) -> tuple[list[BoxCandidates | None], Tensor, Tensor]:
    """Candidate sets (None for listed points), candidates `(n, d)`, and the number of the set of each, `(n,)`."""
    incumbents = posteriors.incumbents()
    boxes: list[BoxCandidates | None] = [None]
    if designer.problem.pool is not None:
        X, _ = _best(designer.candidates.pool.spread(incumbents, rng), posteriors)
        return boxes, X, torch.zeros(len(X), dtype=torch.int64)
    assert designer.problem.space is not None
    boxes, parts = [], []
    for region in regions_of(designer.history, designer.problem.space, {}, rng):
        found = candidates_of(region.embedding, None)
        if isinstance(found, BoxCandidates):
            boxes.append(found)
            maximizer, embedding = found.maximizer, found.embedding
            near = embedding.project(incumbents)
            parts.append(embedding(maximizer.candidates(near, rng, maximizer.settings.n_shared)))
        else:
            boxes.append(None)
            parts.append(found.search.X[:])
    number = torch.repeat_interleave(torch.arange(len(parts)), torch.tensor([len(part) for part in parts]))
    X, rows = _best(torch.cat(parts), posteriors)
    return boxes, X, number[rows]


def _best(X: RowSource, posteriors: Posteriors) -> tuple[Tensor, Tensor]:
    """The points among `X (n, d)` with the largest upper bounds, all where they are few, and their rows."""
    if len(X) <= N_CANDIDATES:
        return X[:], torch.arange(len(X))
    predict = posteriors.models[0].collapse()
    blocks = (predict(X[i : i + BLOCK]) for i in range(0, len(X), BLOCK))
    bounds = torch.cat([mean + WIDTH * variance.sqrt() for mean, variance in blocks])
    rows = bounds.topk(N_CANDIDATES).indices
    return X[rows], rows


def _climbed(candidates: BoxCandidates, drawn: Sequence[Paths], each: int, X: Tensor, columns: Tensor) -> Tensor:
    """Values (k,) that the draws `columns (k,)` reach by gradient ascent from their starts `X (k, d)`."""

    def score(U: Tensor) -> Tensor:
        points, draws = candidates.embedding(U), columns.repeat(len(U) // len(columns))
        by_model = [torch.nonzero(draws // each == j)[:, 0] for j in range(len(drawn))]
        order = torch.cat(by_model)
        parts = [
            path.each(points[rows], draws[rows] % each) for path, rows in zip(drawn, by_model, strict=True) if len(rows)
        ]
        return torch.cat(parts)[torch.argsort(order)]

    with small_work():
        return score(candidates.maximizer.climbed(candidates.embedding.project(X), score, ITERATIONS))
