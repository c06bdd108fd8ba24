"""Compiled refinement of the bounds of a pool in memory; `pool.py` has the mathematics and the symbols."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import fused, inlined
from bkbopt.posterior._loops import UPPER, PlainModel, dot, predict, predict_mean, product

__all__ = ["Bounded", "PlainVersions", "refine", "widths"]

#: Arms of a group, whose bounds are compared with one number.
GROUP = 64
#: Numbers that are compared at once.
LANES = 8
#: Arms computed at first; each later time twice as many.
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


class PlainVersions(NamedTuple):
    """`Versions` as arrays.

    Attributes:
        w: weights of the versions in the first n rows, the current one last; the others are of no interest.
        growth: their growths, as far.
        n: number of versions.
        V: matrix of the current version, (r, r); (0, 0) where it is the only one.
    """

    w: Floats
    growth: Floats
    n: int
    V: Floats


@fused
def widths(w: Floats, versions: PlainVersions, lam: float, beta: float) -> Floats:
    """`Versions.widths` (n,); the current weights are `w (r,)`.

    As V is symmetric, d^T V d = 2 d^T U d, where U is its upper triangle with half of the diagonal.
    """
    old, growth, n, V = versions
    r, f = len(V), (n + 3) // 4 * 4
    D, P, U, out = np.zeros((f, r)), np.empty((f, r)), np.zeros((r, r)), np.empty(n)
    for v in range(n):
        for j in range(r):
            D[v, j] = w[j] - old[v, j]
    for i in range(r):
        U[i, i] = 0.5 * V[i, i]
        for j in range(i + 1, r):
            U[i, j] = V[i, j]
    product(D, U, UPPER, P)
    for v in range(n):
        drift = np.sqrt(max(2.0 * dot(P[v], D[v]), 0.0) / lam)
        out[v] = growth[n - 1] / growth[v] * (beta + drift)
    return out


@inlined
def _fill(arms: Bounded, width: Floats, excluded: Mask, bound: Floats, top: Floats) -> int:
    """Write bounds (A,), -inf for excluded arms, and the largest of each group; return the arm with the largest."""
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


@inlined
def _largest_first(rows: Ints, bound: Floats, least: float, most: float, k: int) -> int:
    """Move the rows with about the `k` largest bounds, all between two numbers, to the front; return their number."""
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
def _above(bound: Floats, top: Floats, least: float, rows: Ints) -> int:
    """How many bounds are above `least`; their rows are written to `rows` as far as there is room."""
    n = 0
    for g in range(len(top)):
        if top[g] > least:
            for i in range(g * GROUP, min((g + 1) * GROUP, len(bound))):
                if bound[i] > least:
                    if n < len(rows):
                        rows[n] = i
                    n += 1
    return n


@fused
def _compute(
    X: Floats,
    model: PlainModel,
    beta: float,
    arms: Bounded,
    current: int,
    rows: Ints,
    exact: tuple[Floats, Floats, Floats],
    relative_slack: float,
) -> tuple[float, float]:
    """Write scores, means and variances of `rows` as version `current`; return the best score and the bounds' slack."""
    mu, sd, version = arms
    score, mean, variance = exact
    predict(X, rows, model, mean, variance)
    best, slack = -np.inf, 0.0
    for i in range(len(rows)):
        deviation = np.sqrt(variance[i])
        score[i] = mean[i] + beta * deviation
        best = max(best, score[i])
        slack = max(slack, relative_slack * (abs(mean[i]) + (1.0 + beta) * deviation))
        mu[rows[i]], sd[rows[i]], version[rows[i]] = mean[i], deviation, current
    return best, slack


@inlined
def _tighten(
    X: Floats, model: PlainModel, a: Floats, beta: float, arms: Bounded, growth: Floats, least: float, rows: Ints
) -> int:
    """Compute the means of `rows`, and move those whose bounds are still above `least` to the front; their number.

    The means are k_S(x) . a. A deviation keeps its bound: that of its version times what it may have grown since.
    """
    mu, sd, version = arms
    mean, current, n = np.empty(len(rows)), len(growth) - 1, 0
    predict_mean(X, rows, model.kernel, a, mean)
    for i in range(len(rows)):
        row = rows[i]
        mu[row], sd[row], version[row] = mean[i], growth[current] / growth[version[row]] * sd[row], current
        if mu[row] + beta * sd[row] > least:
            rows[i], rows[n] = rows[n], row
            n += 1
    return n


@fused
def refine(
    X: Floats,
    model: PlainModel,
    beta: float,
    arms: Bounded,
    versions: PlainVersions,
    excluded: Mask,
    winner: int,
    relative_slack: float,
    most: int,
) -> tuple[int, float, float, float, int, int]:
    """Compute arms exactly, largest bound first, until no bound that is left beats the best score.

    Before an arm is computed its mean is, which takes a tenth of the time and leaves few arms. Returns the arm with the
    best score, its score, mean and variance, and the numbers of computed arms and of computed means. The arm is -1 if
    the bounds of more than `most` arms are above the scores of those that are computed first.
    """
    bound, top, current = np.empty(len(X)), np.empty(-(-len(X) // GROUP)), versions.n - 1
    first = _fill(arms, widths(model.w, versions, model.lam, beta), excluded, bound, top)
    highest, two = bound[first], np.array([first, winner])
    # The last winner is often nearly the best, and a good first score leaves few bounds above it.
    done = 2 if winner != first and bound[winner] > -np.inf else 1
    values = (np.empty(2), np.empty(2), np.empty(2))
    best, slack = _compute(X, model, beta, arms, current, two[:done], values, relative_slack)
    for i in range(done):
        bound[two[i]] = -np.inf
    n, n_means = done + _above(bound, top, best - slack, two[:0]), 0
    if n - done > most:
        return -1, best, 0.0, 0.0, done, 0
    rows, score, mean, variance = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n), np.empty(n)
    for i in range(done):
        rows[i], score[i], mean[i], variance[i] = two[i], values[0][i], values[1][i], values[2][i]
    _above(bound, top, best - slack, rows[done:])
    chunk, a, growth = CHUNK, np.zeros(model.W.shape[1]), versions.growth[: versions.n]
    for i in range(len(model.w)):
        for j in range(len(a)):
            a[j] += model.W[i, j] * model.w[i]
    while done < n:
        k = n - done
        if k > 2 * chunk:
            k, chunk = _largest_first(rows[done:n], bound, best - slack, highest, chunk), 2 * chunk
        start, n_means = done + k, n_means + k
        stop = done + _tighten(X, model, a, beta, arms, growth, best - slack, rows[done:start])
        values = (score[done:stop], mean[done:stop], variance[done:stop])
        found, rounding = _compute(X, model, beta, arms, current, rows[done:stop], values, relative_slack)
        best, slack, done = max(best, found), max(slack, rounding), stop
        for i in range(start, n):  # `best` only grows, so a row below it now stays below it
            if bound[rows[i]] > best - slack:
                rows[stop] = rows[i]
                stop += 1
        n = stop
    at = -1
    for i in range(done):
        if score[i] >= best - 1e-3 * slack and (at < 0 or rows[i] < rows[at]):
            at = i
    at = max(at, 0)  # no score is tied with the best where the posterior is not finite
    return rows[at], score[at], mean[at], variance[at], done, n_means
