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

The module is imported at the first call, since importing numba takes a fraction of a second.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import fast, fused
from bkbopt._support.exponential import exp_of_negative
from bkbopt.kernels.spherical import MIDDLE

__all__ = [
    "FixedKernel",
    "add_columns",
    "add_columns_gram",
    "by_columns",
    "by_points",
    "fixed_by_points",
    "radial",
    "radial_by_points",
    "radial_by_scales",
    "radial_gram",
    "sloped_to_fixed",
    "to_fixed",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


SQRT3, SQRT5 = math.sqrt(3.0), math.sqrt(5.0)


@fast
def _total(terms: Floats, n: int) -> float:
    """The sum of the first n terms; in vectorised order, which the sums of numba's arrays do not have."""
    total = 0.0
    for k in range(n):
        total += terms[k]
    return total


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
    if form == 0:
        for k in range(m):
            r = math.sqrt(r2[k])
            K[k] = height * _decay(r)
            G[k] = K[k] / r if r > 0.0 else 0.0  # times a squared difference, which is zero there
    elif form == 1:
        for k in range(m):
            r = SQRT3 * math.sqrt(r2[k])
            e = height * _decay(r)
            K[k] = (1.0 + r) * e
            G[k] = 3.0 * e
    elif form == 2:
        for k in range(m):
            r = SQRT5 * math.sqrt(r2[k])
            e = height * _decay(r)
            K[k] = (1.0 + r + r * r / 3.0) * e
            G[k] = (1.0 + r) * e * (5.0 / 3.0)
    else:
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
            out[j] += 2.0 * _total(terms, i)
        for k in range(i):
            terms[k] = M[i, k] * K[k]
        out[-1] += 2.0 * _total(terms, i) + M[i, i] * height


#: What a kernel has in place of a part that it lacks.
NONE, NO_ROWS = np.zeros(0), np.zeros((0, 0))


class FixedKernel(NamedTuple):
    """A kernel as a function of one of its two points; the m others are fixed. See `kernels/fixed.py`.

    A radial kernel of the numeric columns, rotated or not, times a factor for each category that differs, plus a sum of
    one-column kernels, a trend, or nothing.

    Attributes:
        prior: k(x, x), y squared.
        form: index of `bkbopt.kernels.ard.FORMS`.
        height: prior variance of the radial kernel, y squared.
        numeric: numeric columns, (c,).
        scale: one over their lengthscales in the radial kernel, (c,).
        R: the rotation (d, d); (0, 0) for none.
        B: numeric columns of the other points, rotated and over the lengthscales, transposed, (c, m).
        categorical: columns of categories, (q,).
        factor: of the radial kernel where a category differs, (q,).
        codes: categories of the other points, (q, m).
        a: prior variance of each numeric column's own kernel, y squared, (c,); (0,) for no sum over columns.
        column_scale: sqrt(5) over the lengthscales of these kernels, (c,).
        columns: numeric columns of the other points times `column_scale`, transposed, (c, m).
        match: prior variance of each category's own kernel, y squared, (q,).
        trend: variances of the constant and of the linear part of a trend, y squared, (2,); (0,) for none.
        trend_scale: one over the trend's lengthscales, (c,).
        sphere: the projections u of the other points, transposed, (c + 1, m); see `kernels/spherical.py`.
    """

    prior: float
    form: int
    height: float
    numeric: Ints
    scale: Floats
    R: Floats
    B: Floats
    categorical: Ints
    factor: Floats
    codes: Floats
    a: Floats = NONE
    column_scale: Floats = NONE
    columns: Floats = NO_ROWS
    match: Floats = NONE
    trend: Floats = NONE
    trend_scale: Floats = NONE
    sphere: Floats = NO_ROWS


@fused
def _place(X: Floats, kernel: FixedKernel, scale: Floats, rotates: bool, A: Floats) -> None:
    """A `(n, c)`: numeric columns of `X (n, d)`, rotated or not, times a scale `(c,)`."""
    for i in range(X.shape[0]):
        for j in range(len(kernel.numeric)):
            column = kernel.numeric[j]
            x = X[i, column]
            if rotates:
                x = 0.0
                for k in range(X.shape[1]):
                    x += X[i, k] * kernel.R[k, column]
            A[i, j] = x * scale[j]


@fused
def _add_slopes(by_A: Floats, kernel: FixedKernel, scale: Floats, rotates: bool, out: Floats) -> None:
    """Add to `out (n, d)` the derivatives by X, given those by the A of `_place`."""
    for i in range(out.shape[0]):
        for j in range(len(kernel.numeric)):
            column, slope = kernel.numeric[j], by_A[i, j] * scale[j]
            if rotates:
                for k in range(out.shape[1]):
                    out[i, k] += slope * kernel.R[k, column]
            else:
                out[i, column] += slope


@fused
def _by_category(X: Floats, kernel: FixedKernel, K: Floats) -> None:
    """Multiply K or G `(n, m)` by the factors of the categories that differ."""
    for q in range(len(kernel.categorical)):
        for i in range(X.shape[0]):
            code = X[i, kernel.categorical[q]]
            for k in range(K.shape[1]):
                K[i, k] *= 1.0 if kernel.codes[q, k] == code else kernel.factor[q]


@fused
def _add_columns_part(X: Floats, kernel: FixedKernel, A: Floats, K: Floats) -> None:
    """Add the sum of one-column kernels to K `(n, m)`; `A (n, c)` is scratch memory."""
    if len(kernel.a) > 0:
        _place(X, kernel, kernel.column_scale, False, A)
        add_columns(A, kernel.columns, kernel.a, K)
    for q in range(len(kernel.match)):
        for i in range(X.shape[0]):
            code = X[i, kernel.categorical[q]]
            for k in range(K.shape[1]):
                K[i, k] += kernel.match[q] if kernel.codes[q, k] == code else 0.0


@fused
def _add_trend(X: Floats, kernel: FixedKernel, A: Floats, K: Floats) -> None:
    """Add the trend a_0 + a_1 u . u' to K `(n, m)`; A `(n, c)` becomes the z of the points."""
    if len(kernel.trend) == 0:
        return
    c = len(kernel.numeric)
    _place(X, kernel, kernel.trend_scale, False, A)
    for i in range(X.shape[0]):
        square = 0.0
        for j in range(c):
            A[i, j] -= MIDDLE * kernel.trend_scale[j]
            square += A[i, j] * A[i, j]
        for j in range(c + 1):
            u = (2.0 * A[i, j] if j < c else square - 1.0) / (1.0 + square)
            for k in range(K.shape[1]):
                K[i, k] += kernel.trend[1] * u * kernel.sphere[j, k]
        for k in range(K.shape[1]):
            K[i, k] += kernel.trend[0]


@fused
def _add_trend_slopes(X: Floats, kernel: FixedKernel, M: Floats, A: Floats, by_A: Floats, out: Floats) -> None:
    """Add sum_k M_ik a_1 dt_ik / dX_ij to `out (n, d)`, with dt / dz = 2 (2 z' / h' + (u'_c - t) z) / h."""
    n, m, c = X.shape[0], M.shape[1], len(kernel.numeric)
    T, terms = np.zeros((n, m)), np.empty(m)
    _add_trend(X, kernel, A, T)
    for i in range(n):
        square = 0.0
        for j in range(c):
            square += A[i, j] * A[i, j]
        for k in range(m):
            terms[k] = M[i, k] * (kernel.sphere[c, k] * kernel.trend[1] + kernel.trend[0] - T[i, k])
        along = _total(terms, m)
        for j in range(c):
            for k in range(m):
                terms[k] = M[i, k] * kernel.sphere[j, k]
            by_A[i, j] = 2.0 * (kernel.trend[1] * _total(terms, m) + along * A[i, j]) / (1.0 + square)
    _add_slopes(by_A, kernel, kernel.trend_scale, False, out)


@fused
def to_fixed(X: Floats, kernel: FixedKernel, A: Floats, K: Floats) -> None:
    """K (n, m) between the points `X (n, d)` and the fixed ones; `A (n, c)` is scratch memory."""
    _place(X, kernel, kernel.scale, len(kernel.R) > 0, A)
    radial_gram(A, kernel.B, kernel.form, kernel.height, K)
    _by_category(X, kernel, K)
    _add_columns_part(X, kernel, A, K)
    _add_trend(X, kernel, A, K)


@fused
def sloped_to_fixed(X: Floats, kernel: FixedKernel, A: Floats, K: Floats, G: Floats) -> None:
    """`to_fixed`; also G (n, m), dK / dA = -G (A_ij - B_jk) of the radial kernel."""
    _place(X, kernel, kernel.scale, len(kernel.R) > 0, A)
    radial(A, kernel.B, kernel.form, kernel.height, K, G)
    _by_category(X, kernel, K)
    _by_category(X, kernel, G)
    _add_columns_part(X, kernel, A, K)
    _add_trend(X, kernel, A, K)


@fused
def fixed_by_points(X: Floats, kernel: FixedKernel, G: Floats, M: Floats, A: Floats, by_A: Floats, out: Floats) -> None:
    """out_ij (n, d) = sum_k M_ik dK_ik / dX_ij; `A` and `by_A (n, c)` are scratch memory."""
    rotates = len(kernel.R) > 0
    out[:] = 0.0
    _place(X, kernel, kernel.scale, rotates, A)
    radial_by_points(A, kernel.B, G, M, by_A)
    _add_slopes(by_A, kernel, kernel.scale, rotates, out)
    if len(kernel.a) > 0:
        _place(X, kernel, kernel.column_scale, False, A)
        by_points(A, kernel.columns, kernel.a, M, by_A)
        _add_slopes(by_A, kernel, kernel.column_scale, False, out)
    if len(kernel.trend) > 0:
        _add_trend_slopes(X, kernel, M, A, by_A, out)


@fused
def radial_by_points(A: Floats, B: Floats, G: Floats, M: Floats, out: Floats) -> None:
    """out_ij (n, c) = sum_k M_ik dK_ik / dA_ij, where dK_ik / dA_ij = -G_ik (A_ij - B_jk)."""
    m = B.shape[1]
    terms = np.empty(m)
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            for k in range(m):
                terms[k] = M[i, k] * G[i, k] * (B[j, k] - A[i, j])
            out[i, j] = _total(terms, m)


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
            out[i, j] = -a[j] / 3.0 * _total(terms, m)


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
            by_scale[j] += 2.0 * a[j] * _total(scales, i)
            by_variance[j] += a[j] * (2.0 * _total(variances, i) + M[i, i])
