"""KORS for compiled loops; symbols are those of `kors.py`."""

import math

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import compiled, fast

__all__ = ["acceptance", "add_row", "residual", "select"]

Floats = npt.NDArray[np.float64]


@fast
def residual(L: Floats, m: int, k: Floats, prior: float, v: Floats) -> float:
    """k(x, x) - |v|^2, at least 0, and v = L^-1 k, for the first m rows of the factor and m kernel values `k`."""
    left = prior
    for i in range(m):
        total = 0.0
        for j in range(i):
            total += L[i, j] * v[j]
        v[i] = (k[i] - total) / L[i, i]
        left -= v[i] * v[i]
    return max(left, 0.0)


@compiled
def add_row(L: Floats, m: int, v: Floats, left: float, ridge: float) -> None:
    """Border the factor by a point with this v, residual `left` and diagonal entry k(x, x) + `ridge`."""
    for j in range(m):
        L[m, j] = v[j]
    L[m, m] = math.sqrt(left + ridge)


@compiled
def acceptance(left: float, alpha: float, beta: float, eps: float) -> float:
    """The probability of a point with residual `left` of entering the dictionary, min(1, beta score)."""
    return min(1.0, beta * (1.0 + eps) * left / (left + alpha))


@compiled
def select(
    K: Floats,
    diagonal: Floats,
    uniforms: Floats,
    start: int,
    place: npt.NDArray[np.int64],
    L: Floats,
    p: Floats,
    m: int,
    limit: int,
    alpha: float,
    beta: float,
    eps: float,
    power: float,
    accepted: npt.NDArray[np.bool_],
) -> tuple[int, int]:
    """Offer rows of a block from `start` on, until the arrays are full: the next row to offer, and the new size.

    `place[j]` is the column of `K` that belongs to the j-th point of the dictionary; the columns of the block's own
    rows are the last ones.
    """
    b = K.shape[0]
    first = K.shape[1] - b
    k = np.empty(L.shape[0])
    v = np.empty(L.shape[0])
    for t in range(start, b):
        if m == limit:
            break
        if m == L.shape[0]:
            return t, m
        for j in range(m):
            k[j] = K[t, place[j]]
        left = residual(L, m, k, diagonal[t], v)
        probability = acceptance(left, alpha, beta, eps)
        if uniforms[t] < probability:
            add_row(L, m, v, left, alpha * probability**power)
            p[m] = probability
            place[m] = first + t
            accepted[t] = True
            m += 1
    return b, m
