"""Compiled refinement of the bounds of a pool in memory; `pool_maximizer.py` has the mathematics and the symbols."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import compiled, fused
from bkbopt.posterior._loops import PlainModel, predict

__all__ = ["Bounded", "refine"]

#: Arms whose bounds are looked at together.
GROUP = 64
#: Numbers that are compared together.
LANES = 8
#: Arms that are computed at first; each later time twice as many.
CHUNK = 32

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Bounded(NamedTuple):
    """Bounds of the arms; changed in place.

    Attributes:
        mu: means when they were last computed, (A,).
        sd: standard deviations then, (A,).
        version: when that was, (A,).
    """

    mu: Floats
    sd: Floats
    version: npt.NDArray[np.int32]


@compiled
def _fill(arms: Bounded, width: Floats, excluded: Mask, bound: Floats, top: Floats) -> int:
    """Bounds (A,), those of excluded arms -inf, and the largest of each group; the arm with the largest."""
    mu, sd, version = arms
    lanes, best = np.empty(LANES), 0
    for g in range(len(top)):
        start, stop = g * GROUP, min((g + 1) * GROUP, len(mu))
        for i in range(start, stop):
            bound[i] = mu[i] + sd[i] * width[version[i]]
        if len(excluded) > 0:
            for i in range(start, stop):
                bound[i] = -np.inf if excluded[i] else bound[i]
        for k in range(LANES):
            lanes[k] = -np.inf
        for i in range(start, stop - LANES + 1, LANES):
            for k in range(LANES):
                lanes[k] = bound[i + k] if bound[i + k] > lanes[k] else lanes[k]
        for i in range(stop - (stop - start) % LANES, stop):
            lanes[0] = max(lanes[0], bound[i])
        top[g] = -np.inf
        for k in range(LANES):
            top[g] = max(top[g], lanes[k])
        if top[g] > top[best]:
            best = g
    for i in range(best * GROUP, min((best + 1) * GROUP, len(mu))):
        if bound[i] == top[best]:
            return i
    return 0


@compiled
def _largest_first(rows: Ints, bound: Floats, least: float, most: float, k: int) -> int:
    """Move the rows with about the `k` largest bounds, which lie between two numbers, to the front; how many they are."""
    n = len(rows)
    for _ in range(40):
        middle, n_above = 0.5 * (least + most), 0
        for row in rows:
            n_above += bound[row] > middle
        if n_above >= k:
            least, n = middle, n_above
        else:
            most = middle
        if n <= 2 * k:
            break
    at = 0
    for i in range(len(rows)):
        if bound[rows[i]] > least:
            rows[i], rows[at] = rows[at], rows[i]
            at += 1
    return at


@fused
def refine(
    X: Floats,
    model: PlainModel,
    beta: float,
    arms: Bounded,
    current: int,
    width: Floats,
    excluded: Mask,
    winner: int,
    relative_slack: float,
    most: int,
) -> tuple[int, float, float, float, int]:
    """Compute arms exactly, largest bound first, until no bound that is left beats the best score.

    The arm with the best score, its score, mean and variance, and the number of computed arms; the arm is -1 where more
    than `most` bounds beat the score of the first arms.
    """
    mu, sd, version = arms
    bound, top = np.empty(len(mu)), np.empty(-(-len(mu) // GROUP))
    first = _fill(arms, width, excluded, bound, top)
    highest = bound[first]
    rows, n, done, chunk = np.empty(2 * CHUNK, dtype=np.int64), 1, 0, CHUNK
    rows[0] = first
    if winner != first and bound[winner] > -np.inf:
        rows[1], n = winner, 2
    mean, variance = np.empty(len(rows)), np.empty(len(rows))
    best, slack, k = -np.inf, 0.0, n
    while k > 0:
        predict(X, rows[done : done + k], model, mean[done : done + k], variance[done : done + k])
        for i in range(done, done + k):
            deviation = np.sqrt(variance[i])
            best = max(best, mean[i] + beta * deviation)
            slack = max(slack, relative_slack * (abs(mean[i]) + (1.0 + beta) * deviation))
            mu[rows[i]], sd[rows[i]], version[rows[i]] = mean[i], deviation, current
            bound[rows[i]] = -np.inf
        is_first, done = done == 0, done + k
        least = best - slack
        if is_first:
            n_above = 0
            for g in range(len(top)):
                if top[g] > least:
                    for i in range(g * GROUP, min((g + 1) * GROUP, len(mu))):
                        n_above += bound[i] > least
            if n_above > most:
                return -1, 0.0, 0.0, 0.0, done
            every = np.empty(n + n_above, dtype=np.int64)
            means, variances = np.empty(len(every)), np.empty(len(every))
            for i in range(n):
                every[i], means[i], variances[i] = rows[i], mean[i], variance[i]
            rows, mean, variance = every, means, variances
            for g in range(len(top)):
                if top[g] > least:
                    for i in range(g * GROUP, min((g + 1) * GROUP, len(mu))):
                        if bound[i] > least:
                            rows[n] = i
                            n += 1
        else:  # `best` only grows, so what falls below it once is never looked at again
            kept = done
            for i in range(done, n):
                if bound[rows[i]] > least:
                    rows[kept] = rows[i]
                    kept += 1
            n = kept
        k = n - done
        if k > 2 * chunk:
            k, chunk = _largest_first(rows[done:n], bound, least, highest, chunk), 2 * chunk
    at = -1
    for i in range(done):
        tied = mean[i] + beta * np.sqrt(variance[i]) >= best - 1e-3 * slack
        if tied and (at < 0 or rows[i] < rows[at]):
            at = i
    at = max(at, 0)  # no score is tied with the best where the posterior is not finite
    return rows[at], mean[at] + beta * np.sqrt(variance[at]), mean[at], variance[at], done
