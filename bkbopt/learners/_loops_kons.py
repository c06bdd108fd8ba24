"""The rounds of KONS inside a block, compiled; symbols are those of `kons.py`."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import compiled
from bkbopt.learners._loops_kors import acceptance, add_row, residual
from bkbopt.learners._loops_losses import loss_slope, step_weight

__all__ = ["Corner", "Kors", "Sketch", "newton_rounds"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Corner(NamedTuple):
    """What the block's b rows know of all rows before the block, and of each other.

    `f (b,)` is k(x, earlier).c, `d (b,)` is V^T y_w, `K (b, b)` the kernel matrix and `P (b, b)` is V^T V.
    """

    f: Floats
    d: Floats
    K: Floats
    P: Floats


class Sketch(NamedTuple):
    """What the block adds, filled in by the rounds: arrays of length b but `L (b, b)`; `size[0]` rows entered A.

    `bound` sums up the terms of the regret bound: g^2 phi^T A^-1 phi, and (eta - curvature)^+ g^2.
    """

    L: Floats
    y_w: Floats
    rows: Ints
    size: Ints
    c: Floats
    bound: Floats


class Kors(NamedTuple):
    """The sampler of Sketched-KONS: kernel values `K (b, m + b)` with its dictionary and the block, and its arrays.

    `scale (m,)` is g sqrt(eta) of the dictionary's points, `place (m,)` their columns of K, `size (1,)` is m.
    """

    K: Floats
    L: Floats
    p: Floats
    scale: Floats
    place: Ints
    size: Ints
    uniforms: Floats


@compiled
def newton_rounds(
    corner: Corner,
    y: Floats,
    first: int,
    code: int,
    C: float,
    alpha: float,
    sigma: float,
    curvature: float,
    lipschitz: float,
    kors: Kors,
    beta: float,
    eps: float,
    gamma: float,
    sketch: Sketch,
    out: Floats,
) -> None:
    """Predict and learn the rows of a block; `first` rows were learnt before, `gamma` >= 1 keeps every row in A."""
    b = y.shape[0]
    v = np.empty(b)
    u = np.empty(b)
    k = np.empty(kors.L.shape[0])
    v_kors = np.empty(kors.L.shape[0])
    for t in range(b):
        m = sketch.size[0]
        for j in range(m):
            u[j] = corner.K[t, sketch.rows[j]] - corner.P[t, sketch.rows[j]]
        r = residual(sketch.L, m, u, corner.K[t, t] - corner.P[t, t], v)
        f = corner.f[t]
        inner = corner.d[t]
        for s in range(t):
            f += sketch.c[s] * corner.K[t, s]
            inner += sketch.c[s] * corner.P[t, s]
        for j in range(m):
            inner += v[j] * sketch.y_w[j]
        ybar = (f - inner) / alpha
        yhat = min(max(ybar, -C), C)
        out[t] = yhat
        g = loss_slope(code, y[t], yhat)
        eta = step_weight(sigma, lipschitz, C, first + t + 1)
        weight = eta * g * g
        enters = gamma >= 1.0 or coin(kors, t, g * math.sqrt(eta), alpha, beta, eps, gamma, k, v_kors)
        # Below that, alpha / weight would swamp the factor, and the row changes nothing.
        enters = enters and weight > 1e-14
        c = (weight * yhat if enters else 0.0) - g
        if r > 0.0 and ybar != yhat:
            c -= (ybar - yhat) * alpha / r
        sketch.c[t] = c
        sketch.bound[0] += g * g * (r / (r * weight + alpha) if enters else r / alpha)
        sketch.bound[1] += g * g * max((eta if enters else 0.0) - curvature, 0.0)
        sketch.y_w[:m] += c * v[:m]  # not in the sum's loop: see ridge_rows
        for j in range(m):
            inner += c * v[j] * v[j]
        if enters:
            inner += c * corner.P[t, t]
            add_row(sketch.L, m, v, r, alpha / weight)
            sketch.y_w[m] = (f + c * corner.K[t, t] - inner) / sketch.L[m, m]
            sketch.rows[m] = t
            sketch.size[0] = m + 1


@compiled
def coin(
    kors: Kors, t: int, scale: float, alpha: float, beta: float, eps: float, gamma: float, k: Floats, v: Floats
) -> bool:
    """Whether row t enters A: with probability max(min(1, beta score), gamma). Two coins, the sampler's own is one."""
    m = kors.size[0]
    for j in range(m):
        k[j] = scale * kors.scale[j] * kors.K[t, kors.place[j]]
    own = kors.K.shape[1] - kors.K.shape[0] + t
    left = residual(kors.L, m, k, scale * scale * kors.K[t, own], v)
    p = acceptance(left, alpha, beta, eps)
    if kors.uniforms[t, 0] < p:
        add_row(kors.L, m, v, left, alpha * p)
        kors.p[m] = p
        kors.scale[m] = scale
        kors.place[m] = own
        kors.size[0] = m + 1
    return kors.uniforms[t, 1] < max(p, gamma)
