"""Compiled loops of the posterior with Nystrom features of a kernel of ours, for some hundred inducing points at most.

| symbol | shape  | units | meaning                                                                          |
| ------ | ------ | ----- | -------------------------------------------------------------------------------- |
| X      | (n, d) | enc.  | points                                                                           |
| K      | (n, m) | y^2   | kernel matrix of the points and the inducing points                              |
| W      | (m, r) | 1/y   | root of the features, see `features/nystrom.py`                                  |
| Z      | (n, r) | y     | features K W                                                                     |
| C      | (m, r) | 1/y   | root of the variance that the data explain, lower triangular; see `model.Collapsed` |

The loops multiply matrices themselves: BLAS starts threads for some of these sizes, and its results for a point depend
on the points beside it.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import fast, fused
from bkbopt.kernels._loops import FixedKernel, fixed_by_points, sloped_to_fixed, to_fixed

__all__ = ["PlainModel", "dot", "observe", "predict", "predict_collapsed", "predict_sloped", "product"]

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

    kernel: FixedKernel
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
    """A B (n, r) of `A (n, m)`, n a multiple of 4, and `B (m, r)`, which is lower triangular or not.

    Four rows of A meet four rows of B at a time, which takes a quarter of the loads and stores of one by one.
    """
    m, r = B.shape
    for i in range(0, len(A), 4):
        o0, o1, o2, o3 = out[i], out[i + 1], out[i + 2], out[i + 3]
        for j in range(r):
            o0[j] = o1[j] = o2[j] = o3[j] = 0.0
        p, q, s, t = A[i], A[i + 1], A[i + 2], A[i + 3]
        for k in range(0, m - 3, 4):
            p0, p1, p2, p3 = p[k], p[k + 1], p[k + 2], p[k + 3]
            q0, q1, q2, q3 = q[k], q[k + 1], q[k + 2], q[k + 3]
            s0, s1, s2, s3 = s[k], s[k + 1], s[k + 2], s[k + 3]
            t0, t1, t2, t3 = t[k], t[k + 1], t[k + 2], t[k + 3]
            b0, b1, b2, b3 = B[k], B[k + 1], B[k + 2], B[k + 3]
            for j in range(min(k + 4, r) if lower else r):
                o0[j] += p0 * b0[j] + p1 * b1[j] + p2 * b2[j] + p3 * b3[j]
                o1[j] += q0 * b0[j] + q1 * b1[j] + q2 * b2[j] + q3 * b3[j]
                o2[j] += s0 * b0[j] + s1 * b1[j] + s2 * b2[j] + s3 * b3[j]
                o3[j] += t0 * b0[j] + t1 * b1[j] + t2 * b2[j] + t3 * b3[j]
        for k in range(m - m % 4, m):
            b = B[k]
            for j in range(r):
                o0[j] += p[k] * b[j]
                o1[j] += q[k] * b[j]
                o2[j] += s[k] * b[j]
                o3[j] += t[k] * b[j]


@fast
def _squared_norms(Z: Floats, root: Floats, out: Floats) -> None:
    """|root z|^2 (n,) of the rows z of `Z (n, r)`, n a multiple of 4, four at a time; `root (k, r)`."""
    for i in range(0, len(Z), 4):
        p, q, s, t = Z[i], Z[i + 1], Z[i + 2], Z[i + 3]
        w, x, y, z = 0.0, 0.0, 0.0, 0.0
        for g in root:
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for j in range(len(g)):
                a += g[j] * p[j]
                b += g[j] * q[j]
                c += g[j] * s[j]
                d += g[j] * t[j]
            w, x, y, z = w + a * a, x + b * b, y + c * c, z + d * d
        out[i], out[i + 1], out[i + 2], out[i + 3] = w, x, y, z


@fused
def _fours(n: int) -> int:
    """The multiple of four that is not below n."""
    return (n + 3) // 4 * 4


@fused
def predict(X: Floats, rows: Ints, model: PlainModel, mean: Floats, variance: Floats) -> None:
    """Mean and variance, each (n,), of the points in some `rows (n,)` of `X`: the formula of `model.py`."""
    m, r = model.W.shape
    n = min(BLOCK, _fours(len(rows)))
    x, A = np.zeros((n, X.shape[1])), np.empty((n, len(model.kernel.numeric)))
    K, Z, inside = np.empty((n, m)), np.empty((n, r)), np.empty(n)
    for start in range(0, len(rows), BLOCK):
        n = min(BLOCK, len(rows) - start)
        for i in range(n):
            for j in range(X.shape[1]):
                x[i, j] = X[rows[start + i], j]
        f = _fours(n)  # the rows after the n-th are of no interest
        to_fixed(x[:f], model.kernel, A[:f], K[:f])
        product(K[:f], model.W, False, Z[:f])
        _squared_norms(Z[:f], model.root, inside[:f])
        for i in range(n):
            residual = max(model.kernel.prior - dot(Z[i], Z[i]), 0.0)
            mean[start + i] = dot(Z[i], model.w)
            variance[start + i] = residual + model.lam * inside[i]


@fused
def observe(
    z: Floats,
    y: float,
    V: Floats,
    root: Floats,
    b: Floats,
    w: Floats,
    new_V: Floats,
    new_root: Floats,
    new_b: Floats,
    new_w: Floats,
) -> float:
    """V, root, b, w after the value `y` at the features `z (r,)`, as in `GaussianState.update`; returns z^T V^-1 z."""
    r = len(z)
    u, v = np.empty(len(root)), np.zeros(r)
    for i in range(len(root)):
        u[i] = dot(root[i], z)
        for j in range(r):
            v[j] += u[i] * root[i, j]
    q = dot(u, u)
    s = np.sqrt(1.0 + q)
    c, step = 1.0 / (s * (1.0 + s)), (y - dot(z, w)) / (1.0 + q)
    for i in range(r):
        for j in range(r):
            new_V[i, j] = V[i, j] + z[i] * z[j]
        new_b[i] = b[i] + z[i] * y
        new_w[i] = w[i] + v[i] * step
    for i in range(len(root)):
        for j in range(r):
            new_root[i, j] = root[i, j] - c * u[i] * v[j]
    return q


@fused
def predict_collapsed(
    X: Floats, kernel: FixedKernel, a: Floats, C: Floats, lower: bool, mean: Floats, variance: Floats
) -> None:
    """Mean k_S(x) . a and variance k(x, x) - |C^T k_S(x)|^2, each (n,), of the points `X (n, d)`.

    C is lower triangular or not.
    """
    m, r = C.shape
    n = min(BLOCK, _fours(len(X)))
    A, K, P = np.empty((n, len(kernel.numeric))), np.zeros((n, m)), np.empty((n, r))
    for start in range(0, len(X), BLOCK):
        n = min(BLOCK, len(X) - start)
        to_fixed(X[start : start + n], kernel, A[:n], K[:n])
        f = _fours(n)
        product(K[:f], C, lower, P[:f])
        for i in range(n):
            mean[start + i] = dot(K[i], a)
            variance[start + i] = max(kernel.prior - dot(P[i], P[i]), 0.0)


@fused
def predict_sloped(
    X: Floats, kernel: FixedKernel, a: Floats, C: Floats, mean: Floats, variance: Floats, slopes: Floats
) -> None:
    """Mean and variance as in `predict_collapsed`, and their `slopes (2, n, d)` by the points; C is any root."""
    m, r = C.shape
    n, c = len(X), len(kernel.numeric)
    f = _fours(n)
    A, by_A, K, G = np.empty((n, c)), np.empty((n, c)), np.zeros((f, m)), np.empty((n, m))
    P, M = np.empty((f, r)), np.empty((f, m))
    sloped_to_fixed(X, kernel, A, K[:n], G)
    product(K, C, False, P)
    for i in range(n):
        mean[i], variance[i] = dot(K[i], a), kernel.prior - dot(P[i], P[i])
        for k in range(m):
            M[i, k] = a[k]
    fixed_by_points(X, kernel, G, M[:n], A, by_A, slopes[0])
    _transposed_product(P, C, M)  # d variance = -2 P C^T dk
    fixed_by_points(X, kernel, G, M[:n], A, by_A, slopes[1])
    for i in range(n):
        factor = -2.0 if variance[i] > 0.0 else 0.0
        variance[i] = max(variance[i], 0.0)
        for j in range(X.shape[1]):
            slopes[1, i, j] *= factor


@fast
def _transposed_product(P: Floats, C: Floats, out: Floats) -> None:
    """P C^T (n, m) of `P (n, r)`, n a multiple of 4, and `C (m, r)`."""
    for i in range(0, len(P), 4):
        p, q, s, t = P[i], P[i + 1], P[i + 2], P[i + 3]
        for k in range(len(C)):
            g = C[k]
            w, x, y, z = 0.0, 0.0, 0.0, 0.0
            for j in range(len(g)):
                w += g[j] * p[j]
                x += g[j] * q[j]
                y += g[j] * s[j]
                z += g[j] * t[j]
            out[i, k], out[i + 1, k], out[i + 2, k], out[i + 3, k] = w, x, y, z
