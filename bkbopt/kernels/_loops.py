"""Compiled loops of the kernels: kernel matrices of a few rows by some hundred columns, and their derivatives.

| symbol | shape  | units     | meaning                                                                   |
| ------ | ------ | --------- | ------------------------------------------------------------------------- |
| A      | (n, c) | -         | numeric columns over lengthscales (times sqrt(5) for sums over columns)   |
| B      | (c, m) | -         | the same for the other points, transposed                                 |
| a      | (c,)   | y squared | prior variance of each column's part, for sums over columns               |
| K      | (n, m) | y squared | the kernel matrix                                                         |
| G      | (n, m) | y squared | dK / d log lengthscale_j = G (A_ij - B_jk)^2 of a radial kernel           |
| M      | (n, m) | -         | derivative of a scalar by K                                               |
| r2     | (m,)   | -         | squared distances of one point                                            |
| D      | scalar | -         | distance |A_ij - B_jk| in one column                                      |
| codes  | (q, n) | -         | categories of the points, a row for each categorical column               |

The module is imported at the first call, since importing numba takes a fraction of a second.
"""

import math

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import fast, fused
from bkbopt._support.exponential import exp_of_negative

__all__ = [
    "add_categories",
    "add_columns",
    "add_columns_gram",
    "by_categories",
    "by_columns",
    "by_points",
    "radial",
    "radial_by_points",
    "radial_by_scales",
    "radial_gram",
    "times_categories",
    "total",
]

Floats = npt.NDArray[np.float64]

SQRT3, SQRT5 = math.sqrt(3.0), math.sqrt(5.0)


@fast
def total(terms: Floats, n: int) -> float:
    """The sum of the first n terms; in vectorised order, which the sums of numba's arrays do not have."""
    out = 0.0
    for k in range(n):
        out += terms[k]
    return out


@fused
def _decay(x: float) -> float:
    """exp(-x) for x >= 0, and zero where that is below 1e-307."""
    return exp_of_negative(-x) if x < 707.0 else 0.0


@fused
def _radial_row(A: Floats, B: Floats, i: int, m: int, form: int, height: float, K: Floats, G: Floats) -> None:
    """K and G of the first `m` points of B for row `i` of A; see `radial`."""
    r2 = G  # used as scratch memory until G is computed below
    r2[:m] = 0.0
    for j in range(A.shape[1]):
        for k in range(m):
            e = A[i, j] - B[j, k]
            r2[k] += e * e
    if form == 0:  # matern12
        for k in range(m):
            r = math.sqrt(r2[k])
            K[k] = height * _decay(r)
            G[k] = K[k] / r if r > 0.0 else 0.0  # times a squared difference, which is zero there
    elif form == 1:  # matern32
        for k in range(m):
            r = SQRT3 * math.sqrt(r2[k])
            e = height * _decay(r)
            K[k] = (1.0 + r) * e
            G[k] = 3.0 * e
    elif form == 2:  # matern52
        for k in range(m):
            r = SQRT5 * math.sqrt(r2[k])
            e = height * _decay(r)
            K[k] = (1.0 + r + r * r / 3.0) * e
            G[k] = (1.0 + r) * e * (5.0 / 3.0)
    else:  # rbf
        for k in range(m):
            K[k] = height * _decay(0.5 * r2[k])
            G[k] = K[k]


@fused
def radial(A: Floats, B: Floats, form: int, height: float, K: Floats, G: Floats) -> None:
    """K and G of a radial kernel with prior variance `height`; `form` is an index of `bkbopt.kernels.ard.FORMS`."""
    for i in range(A.shape[0]):
        _radial_row(A, B, i, B.shape[1], form, height, K[i], G[i])


@fused
def radial_gram(A: Floats, B: Floats, form: int, height: float, K: Floats) -> None:
    """K of a radial kernel, without G."""
    G = np.empty(B.shape[1])
    for i in range(A.shape[0]):
        _radial_row(A, B, i, B.shape[1], form, height, K[i], G)


@fused
def radial_by_scales(A: Floats, B: Floats, form: int, height: float, M: Floats, out: Floats) -> None:
    """Derivatives (c + 1,) of sum M * K by the logarithms of the lengthscales and of the prior variance.

    B is A transposed and M is symmetric. K and G are computed anew: that takes less time than to write and read G.
    """
    n = A.shape[0]
    K, G, terms = np.empty(n), np.empty(n), np.empty(n)
    out[:] = 0.0
    for i in range(n):
        _radial_row(A, B, i, i, form, height, K, G)
        for j in range(A.shape[1]):
            for k in range(i):
                e = A[i, j] - B[j, k]
                terms[k] = M[i, k] * G[k] * (e * e)
            out[j] += 2.0 * total(terms, i)
        for k in range(i):
            terms[k] = M[i, k] * K[k]
        out[-1] += 2.0 * total(terms, i) + M[i, i] * height


@fused
def radial_by_points(A: Floats, B: Floats, G: Floats, M: Floats, out: Floats) -> None:
    """out_ij (n, c) = sum_k M_ik dK_ik / dA_ij, where dK_ik / dA_ij = -G_ik (A_ij - B_jk)."""
    m = B.shape[1]
    terms = np.empty(m)
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            for k in range(m):
                terms[k] = M[i, k] * G[i, k] * (B[j, k] - A[i, j])
            out[i, j] = total(terms, m)


@fused
def _add_columns_row(A: Floats, B: Floats, i: int, m: int, a: Floats, K: Floats) -> None:
    """`add_columns` for row `i` of A and the first `m` points of B; `K (m,)`."""
    for j in range(A.shape[1]):
        for k in range(m):
            D = abs(A[i, j] - B[j, k])
            K[k] += a[j] * ((1.0 + D + D * D / 3.0) * _decay(D))


@fused
def add_columns(A: Floats, B: Floats, a: Floats, K: Floats) -> None:
    """K += sum_j a_j (1 + D + D^2 / 3) exp(-D)."""
    for i in range(A.shape[0]):
        _add_columns_row(A, B, i, B.shape[1], a, K[i])


@fused
def add_columns_gram(A: Floats, B: Floats, a: Floats, K: Floats) -> None:
    """`add_columns` where B is A transposed: each pair of points is computed once."""
    n = A.shape[0]
    terms = np.empty(n)
    for i in range(n):
        terms[:i] = 0.0
        _add_columns_row(A, B, i, i, a, terms)
        for k in range(i):
            K[i, k] += terms[k]
            K[k, i] += terms[k]
        for j in range(A.shape[1]):
            K[i, i] += a[j]


@fused
def by_points(A: Floats, B: Floats, a: Floats, M: Floats, out: Floats) -> None:
    """out_ij (n, c) = sum_k M_ik dK_ik / dA_ij, where dK / dD = -a_j D (1 + D) exp(-D) / 3."""
    m = B.shape[1]
    terms = np.empty(m)
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            for k in range(m):
                e = A[i, j] - B[j, k]
                D = abs(e)
                terms[k] = M[i, k] * (e * ((1.0 + D) * _decay(D)))
            out[i, j] = -a[j] / 3.0 * total(terms, m)


@fused
def by_columns(A: Floats, B: Floats, a: Floats, M: Floats, by_scale: Floats, by_variance: Floats) -> None:
    """Derivatives (c,) of sum M * K by the logarithms of the lengthscales and of the variances.

    dK / d log l_j = a_j D^2 (1 + D) exp(-D) / 3. B is A transposed and M is symmetric.
    """
    n = A.shape[0]
    scales, variances = np.empty(n), np.empty(n)
    by_scale[:] = 0.0
    by_variance[:] = 0.0
    for i in range(n):
        for j in range(A.shape[1]):
            for k in range(i):
                D = abs(A[i, j] - B[j, k])
                e = M[i, k] * _decay(D)
                square = D * D / 3.0
                scales[k] = e * (square * (1.0 + D))
                variances[k] = e * (1.0 + D + square)
            by_scale[j] += 2.0 * a[j] * total(scales, i)
            by_variance[j] += a[j] * (2.0 * total(variances, i) + M[i, i])


@fused
def times_categories(codes: Floats, factor: Floats, K: Floats) -> None:
    """Multiply `K (n, n)` by the `factor (q,)` of each column in which the categories of two points differ."""
    n = K.shape[0]
    for i in range(n):
        for q in range(len(factor)):
            for k in range(n):
                K[i, k] *= 1.0 if codes[q, k] == codes[q, i] else factor[q]


@fused
def add_categories(codes: Floats, a: Floats, K: Floats) -> None:
    """Add `a (q,)` to `K (n, n)` for each column in which the categories of two points are equal."""
    n = K.shape[0]
    for i in range(n):
        for q in range(len(a)):
            for k in range(n):
                K[i, k] += a[q] if codes[q, k] == codes[q, i] else 0.0


@fused
def by_categories(codes: Floats, M: Floats, equal: bool, out: Floats) -> None:
    """Sums (q,) of the symmetric `M (n, n)` over the pairs of points whose categories are `equal`, or differ."""
    n = M.shape[0]
    terms = np.empty(n)
    out[:] = 0.0
    for i in range(n):
        for q in range(len(codes)):
            for k in range(i):
                terms[k] = M[i, k] if (codes[q, k] == codes[q, i]) == equal else 0.0
            out[q] += 2.0 * total(terms, i) + (M[i, i] if equal else 0.0)
