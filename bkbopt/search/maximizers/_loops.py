"""Compiled steps of a quasi-Newton ascent; see `ascent.py` for the table of symbols.

The loops are over numbers: numba takes three times as long to compile assignments and sums of whole arrays.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import fused, inlined

__all__ = ["Rows", "advance"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Sufficient increase of a step, as a fraction of the increase of the linear model (Nocedal and Wright 2006, Eq. 3.4).
ARMIJO = 1e-4
#: A row has converged if a step gains less than GAIN, relative to the score, or if the projected gradient is below
#: SLOPE in every column.
GAIN, SLOPE = 2e-9, 1e-5
#: A search ends after this number of shortenings of one step.
SHORTEST = 20
#: A search ends after EVALUATIONS times its largest number of steps. Smooth scores need fewer; at the border of a
#: region where trials fail, a cliff of the score, each step is shortened several times.
EVALUATIONS = 2
#: Largest length of the first step, in units of the cube; the gradient is a bad model further away.
FIRST = 0.1


class Rows(NamedTuple):
    """The state of all searches; changed in place.

    Attributes:
        x: current points, (n, c).
        f: scores at x, (n,).
        g: gradients at x, (n, c).
        d: directions, (n, c).
        trial: trial points, which are evaluated next, (n, c).
        S: the latest steps, a ring buffer, (n, h, c).
        Y: decrease of the gradients in these steps, (n, h, c).
        step: length of the current step, a multiple of d, (n,).
        counts: accepted points with the start, stored steps, shortenings of the current step, evaluations, (n, 4).
        done: 1 for searches that have ended, (n,).
    """

    x: Floats
    f: Floats
    g: Floats
    d: Floats
    trial: Floats
    S: Floats
    Y: Floats
    step: Floats
    counts: Ints
    done: Ints


@fused
def advance(rows: Rows, f: Floats, g: Floats, most: int) -> int:
    """Accept or shorten the step of each row, given scores and gradients at `rows.trial`; returns the active rows."""
    going = 0
    for i in range(rows.x.shape[0]):
        if rows.done[i]:
            continue
        rows.counts[i, 3] += 1
        is_last = rows.counts[i, 3] >= EVALUATIONS * most
        if _is_taken(rows, i, f[i], g[i]):
            if _has_converged(rows, i, f[i], g[i]) or rows.counts[i, 0] >= most or is_last:
                rows.done[i] = 1
            _take(rows, i, f[i], g[i])
            if not rows.done[i]:
                _aim(rows, i)
        elif rows.counts[i, 2] >= SHORTEST or is_last:
            rows.done[i] = 1
        else:
            _shorten(rows, i, f[i])
        if not rows.done[i]:
            _move(rows, i)
            going += 1
    return going


@inlined
def _is_taken(rows: Rows, i: int, f: float, g: Floats) -> bool:
    promised = 0.0
    for j in range(len(g)):
        if not np.isfinite(g[j]):
            return False
        promised += rows.g[i, j] * (rows.trial[i, j] - rows.x[i, j])
    return rows.counts[i, 0] == 0 or f >= rows.f[i] + ARMIJO * max(promised, 0.0)


@inlined
def _has_converged(rows: Rows, i: int, f: float, g: Floats) -> bool:
    largest = 0.0
    for j in range(len(g)):
        t = rows.trial[i, j]
        largest = max(largest, abs(min(max(t + g[j], 0.0), 1.0) - t))
    gain = f - rows.f[i]
    return largest <= SLOPE or (rows.counts[i, 0] > 0 and gain <= GAIN * max(abs(f), abs(rows.f[i]), 1.0))


@inlined
def _take(rows: Rows, i: int, f: float, g: Floats) -> None:
    """Accept the trial point, and store the step if the score is concave along it."""
    h = rows.S.shape[1]
    if rows.counts[i, 0]:
        at = rows.counts[i, 1] % h
        curvature, size = 0.0, 0.0
        for j in range(len(g)):
            rows.S[i, at, j] = rows.trial[i, j] - rows.x[i, j]
            rows.Y[i, at, j] = rows.g[i, j] - g[j]
            curvature += rows.S[i, at, j] * rows.Y[i, at, j]
            size += rows.Y[i, at, j] ** 2
        if curvature > 1e-10 * size:
            rows.counts[i, 1] += 1
    for j in range(len(g)):
        rows.x[i, j], rows.g[i, j] = rows.trial[i, j], g[j]
    rows.f[i] = f
    rows.counts[i, 0] += 1
    rows.counts[i, 2] = 0


@inlined
def _aim(rows: Rows, i: int) -> None:
    """The next direction: the two-loop recursion (Nocedal and Wright 2006, Alg. 7.4) in the free columns."""
    c, h = rows.x.shape[1], rows.S.shape[1]
    g, d, S, Y = rows.g, rows.d, rows.S, rows.Y
    free, norm = np.empty(c), 0.0
    for j in range(c):
        free[j] = 0.0 if _is_blocked(rows.x[i, j], g[i, j]) else 1.0
        d[i, j] = g[i, j] * free[j]
        norm += d[i, j] * g[i, j]
    first_length = FIRST / max(np.sqrt(norm), FIRST)
    last = rows.counts[i, 1]
    first, rho, alpha = max(0, last - h), np.zeros(h), np.zeros(h)
    scale = _first_loop(rows, i, free, first, rho, alpha)
    for j in range(c):
        d[i, j] *= scale if scale > 0.0 else first_length
    for k in range(first, last):
        at, ahead = k % h, 0.0
        for j in range(c):
            ahead += Y[i, at, j] * d[i, j] * free[j]
        for j in range(c):  # rho and alpha are zero for steps that are left out
            d[i, j] += S[i, at, j] * free[j] * (alpha[at] - rho[at] * ahead)
    slope = 0.0
    for j in range(c):
        slope += d[i, j] * g[i, j]
    if slope <= 0.0:
        rows.counts[i, 1] = 0
        for j in range(c):
            d[i, j] = g[i, j] * free[j] * first_length
    rows.step[i] = 1.0


@inlined
def _first_loop(rows: Rows, i: int, free: Floats, first: int, rho: Floats, alpha: Floats) -> float:
    """The first loop of the recursion, from the latest step to step `first`; returns the scale, or 0 without steps."""
    d, S, Y, scale = rows.d, rows.S, rows.Y, 0.0
    for k in range(rows.counts[i, 1] - 1, first - 1, -1):
        at, curvature, size, ahead = k % len(rho), 0.0, 0.0, 0.0
        for j in range(len(free)):
            curvature += S[i, at, j] * Y[i, at, j] * free[j]
            size += Y[i, at, j] * Y[i, at, j] * free[j]
            ahead += S[i, at, j] * d[i, j] * free[j]
        if curvature <= 1e-10 * size:
            continue
        rho[at], alpha[at] = 1.0 / curvature, ahead / curvature
        if scale == 0.0:
            scale = curvature / size
        for j in range(len(free)):
            d[i, j] -= alpha[at] * Y[i, at, j] * free[j]
    return scale


@inlined
def _is_blocked(x: float, g: float) -> bool:
    """Whether the gradient leads out of the cube."""
    return (x <= 0.0 and g < 0.0) or (x >= 1.0 and g > 0.0)


@inlined
def _shorten(rows: Rows, i: int, f: float) -> None:
    """Shorten the step to the maximum of the parabola through both scores and the slope, within 0.1 to 0.5 of it."""
    slope = 0.0
    for j in range(rows.x.shape[1]):
        slope += rows.g[i, j] * (rows.trial[i, j] - rows.x[i, j])
    missing = slope - (f - rows.f[i])
    part = 0.5
    if slope > 0.0 and missing > 0.0:
        part = min(max(0.5 * slope / missing, 0.1), 0.5)
    rows.step[i] *= part
    rows.counts[i, 2] += 1


@inlined
def _move(rows: Rows, i: int) -> None:
    for j in range(rows.x.shape[1]):
        rows.trial[i, j] = min(max(rows.x[i, j] + rows.step[i] * rows.d[i, j], 0.0), 1.0)
