"""The rounds of PROS-N-KONS, compiled; symbols are those of `prosnkons.py`."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import compiled, fast
from bkbopt.learners._loops_kors import acceptance, add_row, residual
from bkbopt.learners._loops_losses import loss_slope, step_weight

__all__ = ["Epoch", "Sampler", "rounds"]

Floats = npt.NDArray[np.float64]


class Sampler(NamedTuple):
    """KORS: its factor and probabilities, which the rounds extend by the accepted row, and its constants."""

    L: Floats
    p: Floats
    m: int
    full: bool
    alpha: float
    beta: float
    eps: float
    power: float


class Epoch(NamedTuple):
    """The state between two acceptances: map `Wt (r, m)`, inverse of A `(r, r)`, iterate `u (r,)`; and constants."""

    Wt: Floats
    A: Floats
    u: Floats
    code: int
    C: float
    sigma: float
    lipschitz: float


@fast
def product(M: Floats, x: Floats, out: Floats) -> None:
    """out <- M x."""
    for i in range(M.shape[0]):
        total = 0.0
        for j in range(M.shape[1]):
            total += M[i, j] * x[j]
        out[i] = total


@fast
def inner(x: Floats, y: Floats) -> float:
    """The inner product of x and y."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@fast
def add(x: Floats, factor: float, v: Floats) -> None:
    """x <- x + factor v."""
    for i in range(x.shape[0]):
        x[i] += factor * v[i]


@compiled
def rounds(
    K: Floats,
    diagonal: Floats,
    y: Floats,
    uniforms: Floats,
    start: int,
    first: int,
    sampler: Sampler,
    epoch: Epoch,
    out: Floats,
) -> tuple[int, bool]:
    """Predict and learn rows from `start` on, up to one that KORS accepts: the next row, and whether the last one was.

    `K (b, m)` holds the rows' kernel values with the dictionary; `first` rows were learnt before the block.
    """
    m, r = sampler.m, epoch.u.shape[0]
    v_kors, z, v = np.empty(m), np.empty(r), np.empty(r)
    for t in range(start, K.shape[0]):
        k = K[t, :m]
        probability, left = 0.0, 0.0
        if not sampler.full:
            left = residual(sampler.L, m, k, diagonal[t], v_kors)
            probability = acceptance(left, sampler.alpha, sampler.beta, sampler.eps)
        product(epoch.Wt, k, z)
        product(epoch.A, z, v)
        q, ybar = inner(z, v), inner(z, epoch.u)
        yhat = min(max(ybar, -epoch.C), epoch.C)
        out[t] = yhat
        if q > 0.0:
            g = loss_slope(epoch.code, y[t], yhat)
            weight = step_weight(epoch.sigma, epoch.lipschitz, epoch.C, first + t + 1) * g * g
            add(epoch.u, -((ybar - yhat) / q + g / (1.0 + weight * q)), v)
            if weight > 0.0:
                factor = -weight / (1.0 + weight * q)
                for i in range(r):
                    add(epoch.A[i], factor * v[i], v)
        if uniforms[t] < probability:
            add_row(sampler.L, m, v_kors, left, sampler.alpha * probability**sampler.power)
            sampler.p[m] = probability
            return t + 1, True
    return K.shape[0], False
