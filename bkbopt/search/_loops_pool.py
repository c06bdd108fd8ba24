"""Compiled refinement of the bounds of a pool in memory; `pool_maximizer.py` has the mathematics and the symbols."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import compiled, fused
from bkbopt.posterior._loops import PlainModel, predict

__all__ = ["Bounded", "refine"]

#: Arms whose bounds are looked at together.
GROUP = 64
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
    lanes, at = np.empty(8), 0
    for g in range(len(top)):
        start, stop = g * GROUP, min((g + 1) * GROUP, len(mu))
        for i in range(start, stop):
            bound[i] = mu[i] + sd[i] * width[version[i]]
        if len(excluded) > 0:
            for i in range(start, stop):
                bound[i] = -np.inf if excluded[i] else bound[i]
        if stop - start == GROUP:
            lanes[:] = bound[start : start + 8]
            for i in range(start + 8, stop, 8):
                for k in range(8):
                    lanes[k] = bound[i + k] if bound[i + k] > lanes[k] else lanes[k]
            top[g] = lanes.max()
        else:
            top[g] = bound[start:stop].max()
        if top[g] > top[at]:
            at = g
    group = bound[at * GROUP : (at + 1) * GROUP]
    return at * GROUP + int(group.argmax())


@compiled
def _largest_first(rows: Ints, bound: Floats, start: int, stop: int, k: int) -> None:
    """Move the rows with the `k` largest bounds to the front of rows[start:stop]."""
    values = np.empty(stop - start)
    for i in range(start, stop):
        values[i - start] = bound[rows[i]]
    least = np.partition(values, len(values) - k)[len(values) - k]
    at = start
    for strictly in (True, False):  # of equal ones as many as there is room for
        for i in range(at, stop):
            b = bound[rows[i]]
            if at < start + k and (b > least if strictly else b == least):
                rows[i], rows[at] = rows[at], rows[i]
                at += 1


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
            every[:n] = rows[:n]
            means, variances = np.empty(len(every)), np.empty(len(every))
            means[:n], variances[:n] = mean[:n], variance[:n]
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
            _largest_first(rows, bound, done, n, chunk)
            k, chunk = chunk, 2 * chunk
    at = -1
    for i in range(done):
        tied = mean[i] + beta * np.sqrt(variance[i]) >= best - 1e-3 * slack
        if tied and (at < 0 or rows[i] < rows[at]):
            at = i
    at = max(at, 0)  # no score is tied with the best where the posterior is not finite
    return rows[at], mean[at] + beta * np.sqrt(variance[at]), mean[at], variance[at], done
