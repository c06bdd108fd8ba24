"""Compiled loops of the posterior with Nystrom features of a radial kernel, for some hundred inducing points at most.

| symbol | shape  | units | meaning                                                                          |
| ------ | ------ | ----- | -------------------------------------------------------------------------------- |
| X      | (n, d) | enc.  | points                                                                           |
| K      | (n, m) | y^2   | kernel matrix of the points and the inducing points                              |
| W      | (m, r) | 1/y   | root of the features, see `features/nystrom.py`                                  |
| Z, P   | (n, r) | y, -  | features K W, and Z root^T                                                       |
| C      | (m, r) | 1/y   | root of the variance that the data explain, lower triangular; see `model.Collapsed` |

The loops multiply matrices themselves: BLAS starts threads for some of these sizes, and its results for a point depend
on the points beside it.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import fast, fused
from bkbopt.kernels._loops import Radial, to_fixed

__all__ = ["PlainModel", "dot", "predict", "predict_collapsed", "product"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Points whose kernel matrix is computed at once: it and its products stay in the first two levels of the cache.
BLOCK = 32


class PlainModel(NamedTuple):
    """A `Model` as arrays.

    Attributes:
        kernel: the kernel with the inducing points.
        W: root of the features, (m, r).
        w: weights, (r,).
        root: inverse root of V, (k, r).
        lam: noise variance, y squared.
    """

    kernel: Radial
    W: Floats
    w: Floats
    root: Floats
    lam: float


@fast
def dot(a: Floats, b: Floats) -> float:
    """The inner product of two vectors."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@fused
def product(A: Floats, B: Floats, lower: bool, out: Floats) -> None:
    """A B (n, r) of `A (n, m)` and `B (m, r)`, which is lower triangular or not; four rows of B at a time."""
    m, r = B.shape
    for i in range(A.shape[0]):
        o = out[i]
        o[:] = 0.0
        for k in range(0, m - 3, 4):
            a0, a1, a2, a3 = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
            b0, b1, b2, b3 = B[k], B[k + 1], B[k + 2], B[k + 3]
            for j in range(min(k + 4, r) if lower else r):
                o[j] += a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j]
        for k in range(m - m % 4, m):
            for j in range(min(k + 1, r) if lower else r):
                o[j] += A[i, k] * B[k, j]


@fused
def predict(X: Floats, rows: Ints, model: PlainModel, mean: Floats, variance: Floats) -> None:
    """Mean and variance, each (n,), of the points in some `rows (n,)` of `X`: the formula of `model.py`."""
    m, r = model.W.shape
    n, k = min(BLOCK, len(rows)), len(model.root)
    x, A = np.empty((n, X.shape[1])), np.empty((n, len(model.kernel.numeric)))
    K, G, Z, P = np.empty((n, m)), np.empty((n, m)), np.empty((n, r)), np.empty((n, k))
    root_T = np.empty((r, k))
    for i in range(k):
        for j in range(r):
            root_T[j, i] = model.root[i, j]
    for start in range(0, len(rows), BLOCK):
        n = min(BLOCK, len(rows) - start)
        for i in range(n):
            for j in range(X.shape[1]):
                x[i, j] = X[rows[start + i], j]
        to_fixed(x[:n], model.kernel, A[:n], G[:n], K[:n])
        product(K[:n], model.W, False, Z[:n])
        product(Z[:n], root_T, False, P[:n])
        for i in range(n):
            residual = max(model.kernel.height - dot(Z[i], Z[i]), 0.0)
            mean[start + i] = dot(Z[i], model.w)
            variance[start + i] = residual + model.lam * dot(P[i], P[i])


@fused
def predict_collapsed(X: Floats, kernel: Radial, a: Floats, C: Floats, mean: Floats, variance: Floats) -> None:
    """Mean k_S(x) . a and variance k(x, x) - |C^T k_S(x)|^2, each (n,), of the points `X (n, d)`."""
    m, r = C.shape
    n = min(BLOCK, len(X))
    A, K, G, P = np.empty((n, len(kernel.numeric))), np.empty((n, m)), np.empty((n, m)), np.empty((n, r))
    for start in range(0, len(X), BLOCK):
        n = min(BLOCK, len(X) - start)
        to_fixed(X[start : start + n], kernel, A[:n], G[:n], K[:n])
        product(K[:n], C, True, P[:n])
        for i in range(n):
            mean[start + i] = dot(K[i], a)
            variance[start + i] = max(kernel.height - dot(P[i], P[i]), 0.0)
