"""Compiled loops of the posterior with Nystrom features of a kernel of ours, for some hundred inducing points at most.

| symbol | shape  | units | meaning                                                                          |
| ------ | ------ | ----- | -------------------------------------------------------------------------------- |
| X      | (n, d) | enc.  | points                                                                           |
| K      | (n, m) | y^2   | kernel matrix of the points and the inducing points                              |
| W      | (m, r) | 1/y   | root of the features, see `features/nystrom.py`                                  |
| Z      | (n, r) | y     | features K W                                                                     |
| C      | (m, r) | 1/y   | root of the variance that the data explain; see `collapsed.Collapsed`            |

The loops multiply matrices themselves: BLAS starts threads for some of these sizes, and its results for a point depend
on the points beside it. Matrices that others are multiplied by come transposed, as inner products read rows.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import fast, fused, inlined
from bkbopt.kernels._fixed_loops import FixedKernel, fixed_by_points, sloped_to_fixed, to_fixed

__all__ = ["PlainModel", "dot", "observe", "predict", "predict_collapsed", "predict_mean", "predict_sloped", "product"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Points whose kernel matrix is computed at once: it and its products stay in the first two levels of the cache.
BLOCK = 32
#: Whether a matrix is upper triangular; NumPy scalars, since numba compiles a loop again for each constant of Python.
UPPER, FULL = np.bool_(True), np.bool_(False)
#: Rows of a matrix that stay in the first level of the cache while they are read several times.
NEAR = 8


class PlainModel(NamedTuple):
    """A `Model` as arrays.

    Attributes:
        kernel: the kernel with the inducing points.
        W: root of the features, transposed, (r, m).
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


@fast
def product(A: Floats, B: Floats, upper: bool | np.bool_, out: Floats) -> None:
    """A B^T (n, r) of `A (n, m)`, n a multiple of 4, and `B (r, m)`, which is upper triangular or not.

    Four rows of A meet four rows of B at a time: their sixteen sums stay in registers. With unsigned numbers for j the
    sums are vectorised: the compiler cannot see that others are not negative, which would count from the end.
    """
    r, m = B.shape
    first, last = np.uint64(0), np.uint64(m)
    for i in range(0, len(A), 4):
        p, q, s, t = A[i], A[i + 1], A[i + 2], A[i + 3]
        o0, o1, o2, o3 = out[i], out[i + 1], out[i + 2], out[i + 3]
        for k in range(0, r - 3, 4):
            b0, b1, b2, b3 = B[k], B[k + 1], B[k + 2], B[k + 3]
            p0 = p1 = p2 = p3 = q0 = q1 = q2 = q3 = 0.0
            s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = 0.0
            for j in range(np.uint64(k) if upper else first, last):
                p0, p1, p2, p3 = p0 + p[j] * b0[j], p1 + p[j] * b1[j], p2 + p[j] * b2[j], p3 + p[j] * b3[j]
                q0, q1, q2, q3 = q0 + q[j] * b0[j], q1 + q[j] * b1[j], q2 + q[j] * b2[j], q3 + q[j] * b3[j]
                s0, s1, s2, s3 = s0 + s[j] * b0[j], s1 + s[j] * b1[j], s2 + s[j] * b2[j], s3 + s[j] * b3[j]
                t0, t1, t2, t3 = t0 + t[j] * b0[j], t1 + t[j] * b1[j], t2 + t[j] * b2[j], t3 + t[j] * b3[j]
            o0[k], o0[k + 1], o0[k + 2], o0[k + 3] = p0, p1, p2, p3
            o1[k], o1[k + 1], o1[k + 2], o1[k + 3] = q0, q1, q2, q3
            o2[k], o2[k + 1], o2[k + 2], o2[k + 3] = s0, s1, s2, s3
            o3[k], o3[k + 1], o3[k + 2], o3[k + 3] = t0, t1, t2, t3
        for k in range(r - r % 4, r):
            b = B[k]
            p0 = q0 = s0 = t0 = 0.0
            for j in range(np.uint64(k) if upper else first, last):
                p0, q0, s0, t0 = p0 + p[j] * b[j], q0 + q[j] * b[j], s0 + s[j] * b[j], t0 + t[j] * b[j]
            o0[k], o1[k], o2[k], o3[k] = p0, q0, s0, t0


@fused
def _fours(n: int) -> int:
    """The multiple of four that is not below n."""
    return (n + 3) // 4 * 4


@inlined
def _kernel_of_rows(X: Floats, rows: Ints, kernel: FixedKernel, x: Floats, A: Floats, K: Floats) -> None:
    """K of the points in some `rows` of `X`, at most `BLOCK`; `x` and `A` are scratch memory with a row for each."""
    for i in range(len(rows)):
        for j in range(X.shape[1]):
            x[i, j] = X[rows[i], j]
    f = _fours(len(rows))  # the rows after the last one are of no interest
    to_fixed(x[:f], kernel, A[:f], K[:f])


@fused
def predict(X: Floats, rows: Ints, model: PlainModel, mean: Floats, variance: Floats) -> None:
    """Mean and variance, each (n,), of the points in some `rows (n,)` of `X`: the formula of `model.py`."""
    r, m = model.W.shape
    n = min(BLOCK, _fours(len(rows)))
    x, A, K = np.zeros((n, X.shape[1])), np.empty((n, len(model.kernel.numeric))), np.empty((n, m))
    Z, P = np.empty((n, r)), np.empty((n, len(model.root)))
    for start in range(0, len(rows), BLOCK):
        n = min(BLOCK, len(rows) - start)
        f = _fours(n)
        _kernel_of_rows(X, rows[start : start + n], model.kernel, x, A, K)
        product(K[:f], model.W, FULL, Z[:f])
        product(Z[:f], model.root, FULL, P[:f])
        for i in range(n):
            residual = max(model.kernel.prior - dot(Z[i], Z[i]), 0.0)
            mean[start + i] = dot(Z[i], model.w)
            variance[start + i] = residual + model.lam * dot(P[i], P[i])


@fused
def predict_mean(X: Floats, rows: Ints, kernel: FixedKernel, a: Floats, mean: Floats) -> None:
    """Mean k_S(x) . a (n,) of the points in some `rows (n,)` of `X`; it takes a tenth of the time of `predict`."""
    n = min(BLOCK, _fours(len(rows)))
    x, A, K = np.zeros((n, X.shape[1])), np.empty((n, len(kernel.numeric))), np.empty((n, len(a)))
    for start in range(0, len(rows), BLOCK):
        n = min(BLOCK, len(rows) - start)
        _kernel_of_rows(X, rows[start : start + n], kernel, x, A, K)
        for i in range(n):
            mean[start + i] = dot(K[i], a)


@inlined
def _add_step(u: Floats, v: Floats, c: float, root: Floats, start: int, stop: int) -> None:
    """Subtract c u^T v from `root (k, r)`, in some of its rows, with `u (1, k)` and `v (1, r)`."""
    for i in range(start, stop):
        for j in range(v.shape[1]):
            root[i, j] -= c * u[0, i] * v[0, j]


@fused
def _add_product(A: Floats, B: Floats, out: Floats) -> None:
    """Add A B to `out (k, r)`, with `A (k, n)` and `B (n, r)`: four terms a pass, each rounded as if it came alone."""
    n, r = B.shape
    for t in range(0, n - 3, 4):
        b0, b1, b2, b3 = B[t], B[t + 1], B[t + 2], B[t + 3]
        for i in range(len(A)):
            o, a0, a1, a2, a3 = out[i], A[i, t], A[i, t + 1], A[i, t + 2], A[i, t + 3]
            for j in range(r):
                o[j] = o[j] + a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j]
    for t in range(n - n % 4, n):
        for i in range(len(A)):
            for j in range(r):
                out[i, j] += A[i, t] * B[t, j]


@fused
def observe(
    Z: Floats,
    rows: Ints,
    y: Floats,
    scale: Floats,
    V: Floats,
    root: Floats,
    b: Floats,
    w: Floats,
    inside: Floats,
    steps: Floats,
) -> None:
    """Change V, root, b, w in place by values `y (n,)` at `rows (n,)` of `Z`, in turn, as in `GaussianState.update`.

    Features and values are multiplied by `scale (n,)`. Columns of Z after the r-th are of no interest. `inside (n,)`
    gets q = z^T V^-1 z of each before it is observed, and `steps (n, r)` gets V^-1 z / sqrt(1 + q).

    The two matrices do not fit the cache together, so V comes last. A row of root gets the step of a value when the
    next value reads it. Neither changes how a number is rounded: the result does not depend on the groups of values.
    """
    n, r, k = len(rows), len(b), len(root)
    z, u, v, later, c = np.empty((n, r)), np.zeros((1, k)), np.zeros((1, r)), np.empty((1, r)), 0.0
    for t in range(n):
        for j in range(r):
            z[t, j], later[0, j] = Z[rows[t], j] * scale[t], 0.0
        value = y[t] * scale[t]
        for start in range(0, k, NEAR):
            stop = min(start + NEAR, k)
            if t > 0:
                _add_step(u, v, c, root, start, stop)
            for i in range(start, stop):
                u[0, i] = dot(root[i], z[t])
            _add_product(u[:, start:stop], root[start:stop], later)
        v, later = later, v
        q = dot(u[0], u[0])
        s = np.sqrt(1.0 + q)
        c, step = 1.0 / (s * (1.0 + s)), (value - dot(z[t], w)) / (1.0 + q)
        for i in range(r):
            b[i] += z[t, i] * value
            w[i] += v[0, i] * step
        for j in range(r):
            steps[t, j] = v[0, j] / s
        inside[t] = q
    _add_step(u, v, c, root, 0, k)
    _add_product(z.T, z, V)


@fused
def predict_collapsed(
    X: Floats, kernel: FixedKernel, a: Floats, C: Floats, upper: bool, mean: Floats, variance: Floats
) -> None:
    """Mean k_S(x) . a and variance k(x, x) - |C^T k_S(x)|^2, each (n,), of the points `X (n, d)`.

    C comes transposed (r, m), and is then upper triangular or not.
    """
    r, m = C.shape
    n = min(BLOCK, _fours(len(X)))
    A, K, P = np.empty((n, len(kernel.numeric))), np.zeros((n, m)), np.empty((n, r))
    for start in range(0, len(X), BLOCK):
        n = min(BLOCK, len(X) - start)
        to_fixed(X[start : start + n], kernel, A[:n], K[:n])
        f = _fours(n)
        product(K[:f], C, upper, P[:f])
        for i in range(n):
            mean[start + i] = dot(K[i], a)
            variance[start + i] = max(kernel.prior - dot(P[i], P[i]), 0.0)


@fused
def predict_sloped(
    X: Floats,
    kernel: FixedKernel,
    a: Floats,
    roots: tuple[Floats, Floats],
    mean: Floats,
    variance: Floats,
    slopes: Floats,
) -> None:
    """Mean and variance as in `predict_collapsed`, and their `slopes (2, n, d)` by the points; `roots`: C and C^T."""
    C, transposed = roots
    m, r = C.shape
    n, c = len(X), len(kernel.numeric)
    f = _fours(n)
    A, by_A, K, G = np.empty((n, c)), np.empty((n, c)), np.zeros((f, m)), np.empty((n, m))
    P, M = np.empty((f, r)), np.empty((f, m))
    sloped_to_fixed(X, kernel, A, K[:n], G)
    product(K, transposed, FULL, P)
    for i in range(n):
        mean[i], variance[i] = dot(K[i], a), kernel.prior - dot(P[i], P[i])
        for k in range(m):
            M[i, k] = a[k]
    fixed_by_points(X, kernel, G, M[:n], A, by_A, slopes[0])
    product(P, C, FULL, M)  # d variance = -2 P C^T dk
    fixed_by_points(X, kernel, G, M[:n], A, by_A, slopes[1])
    for i in range(n):
        factor = -2.0 if variance[i] > 0.0 else 0.0
        variance[i] = max(variance[i], 0.0)
        for j in range(X.shape[1]):
            slopes[1, i, j] *= factor
