"""Compiled loops of a kernel as a function of one of its two points; the symbols are those of `_loops.py`."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import fused, inlined
from bkbopt.kernels._loops import add_columns, by_points, radial, radial_by_points, radial_gram, total
from bkbopt.kernels.spherical import MIDDLE

__all__ = ["FixedKernel", "fixed_by_points", "sloped_to_fixed", "to_fixed"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: What a kernel has in place of a part that it lacks.
NONE, NO_ROWS = np.zeros(0), np.zeros((0, 0))


class FixedKernel(NamedTuple):
    """A kernel as a function of one of its two points; the m others are fixed. See `kernels/fixed.py`.

    A radial kernel of the numeric columns, rotated or not, times a factor for each category that differs, plus another
    such kernel without rotation (ripples), a sum of one-column kernels, a trend, or nothing.

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
        ripple_form: as `form`, for ripples.
        ripple_height: prior variance of the ripples, y squared; zero for none.
        ripple_scale: one over their lengthscales, (c,).
        ripples: numeric columns of the other points over these lengthscales, transposed, (c, m).
        ripple_factor: of the ripples where a category differs, (q,).
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
    ripple_form: int = 0
    ripple_height: float = 0.0
    ripple_scale: Floats = NONE
    ripples: Floats = NO_ROWS
    ripple_factor: Floats = NONE


@fused
def _place(X: Floats, columns: Ints, R: Floats, scale: Floats, A: Floats) -> None:
    """A `(n, c)`: numeric columns of `X (n, d)`, rotated or not, times a scale `(c,)`."""
    for i in range(X.shape[0]):
        for j in range(len(columns)):
            column = columns[j]
            x = X[i, column]
            if len(R) > 0:
                x = 0.0
                for k in range(X.shape[1]):
                    x += X[i, k] * R[k, column]
            A[i, j] = x * scale[j]


@fused
def _add_slopes(by_A: Floats, columns: Ints, R: Floats, scale: Floats, out: Floats) -> None:
    """Add to `out (n, d)` the derivatives by X, given those by the A of `_place`."""
    for i in range(out.shape[0]):
        for j in range(len(columns)):
            column, slope = columns[j], by_A[i, j] * scale[j]
            if len(R) > 0:
                for k in range(out.shape[1]):
                    out[i, k] += slope * R[k, column]
            else:
                out[i, column] += slope


@fused
def _by_category(X: Floats, columns: Ints, codes: Floats, factor: Floats, K: Floats) -> None:
    """Multiply K or G `(n, m)` by the factors `(q,)` of the categories that differ."""
    for q in range(len(columns)):
        for i in range(X.shape[0]):
            code = X[i, columns[q]]
            for k in range(K.shape[1]):
                K[i, k] *= 1.0 if codes[q, k] == code else factor[q]


@inlined
def _add_ripples(X: Floats, kernel: FixedKernel, A: Floats, K: Floats) -> None:
    """Add the ripples to K `(n, m)`; `A (n, c)` is scratch memory."""
    if kernel.ripple_height == 0.0:
        return
    _place(X, kernel.numeric, kernel.R[:0], kernel.ripple_scale, A)
    T = np.empty(K.shape)
    radial_gram(A, kernel.ripples, kernel.ripple_form, kernel.ripple_height, T)
    _by_category(X, kernel.categorical, kernel.codes, kernel.ripple_factor, T)
    for i in range(K.shape[0]):
        for k in range(K.shape[1]):
            K[i, k] += T[i, k]


@inlined
def _add_ripple_slopes(X: Floats, kernel: FixedKernel, M: Floats, A: Floats, by_A: Floats, out: Floats) -> None:
    """Add the ripples' part of sum_k M_ik dK_ik / dX_ij to `out (n, d)`; K and G are computed anew."""
    T, G = np.empty(M.shape), np.empty(M.shape)
    _place(X, kernel.numeric, kernel.R[:0], kernel.ripple_scale, A)
    radial(A, kernel.ripples, kernel.ripple_form, kernel.ripple_height, T, G)
    _by_category(X, kernel.categorical, kernel.codes, kernel.ripple_factor, G)
    radial_by_points(A, kernel.ripples, G, M, by_A)
    _add_slopes(by_A, kernel.numeric, kernel.R[:0], kernel.ripple_scale, out)


@inlined
def _add_columns_part(X: Floats, kernel: FixedKernel, A: Floats, K: Floats) -> None:
    """Add the sum of one-column kernels to K `(n, m)`; `A (n, c)` is scratch memory."""
    if len(kernel.a) > 0:
        _place(X, kernel.numeric, kernel.R[:0], kernel.column_scale, A)
        add_columns(A, kernel.columns, kernel.a, K)
    for q in range(len(kernel.match)):
        for i in range(X.shape[0]):
            code = X[i, kernel.categorical[q]]
            for k in range(K.shape[1]):
                K[i, k] += kernel.match[q] if kernel.codes[q, k] == code else 0.0


@inlined
def _add_trend(X: Floats, kernel: FixedKernel, A: Floats, K: Floats) -> None:
    """Add the trend a_0 + a_1 u . u' to K `(n, m)`; A `(n, c)` becomes the z of the points."""
    if len(kernel.trend) == 0:
        return
    c = len(kernel.numeric)
    _place(X, kernel.numeric, kernel.R[:0], kernel.trend_scale, A)
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


@inlined
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
        along = total(terms, m)
        for j in range(c):
            for k in range(m):
                terms[k] = M[i, k] * kernel.sphere[j, k]
            by_A[i, j] = 2.0 * (kernel.trend[1] * total(terms, m) + along * A[i, j]) / (1.0 + square)
    _add_slopes(by_A, kernel.numeric, kernel.R[:0], kernel.trend_scale, out)


@fused
def to_fixed(X: Floats, kernel: FixedKernel, A: Floats, K: Floats) -> None:
    """K (n, m) between the points `X (n, d)` and the fixed ones; `A (n, c)` is scratch memory."""
    _place(X, kernel.numeric, kernel.R, kernel.scale, A)
    radial_gram(A, kernel.B, kernel.form, kernel.height, K)
    _by_category(X, kernel.categorical, kernel.codes, kernel.factor, K)
    _add_ripples(X, kernel, A, K)
    _add_columns_part(X, kernel, A, K)
    _add_trend(X, kernel, A, K)


@fused
def sloped_to_fixed(X: Floats, kernel: FixedKernel, A: Floats, K: Floats, G: Floats) -> None:
    """`to_fixed`; also G (n, m), dK / dA = -G (A_ij - B_jk) of the radial kernel."""
    _place(X, kernel.numeric, kernel.R, kernel.scale, A)
    radial(A, kernel.B, kernel.form, kernel.height, K, G)
    _by_category(X, kernel.categorical, kernel.codes, kernel.factor, K)
    _by_category(X, kernel.categorical, kernel.codes, kernel.factor, G)
    _add_ripples(X, kernel, A, K)
    _add_columns_part(X, kernel, A, K)
    _add_trend(X, kernel, A, K)


@fused
def fixed_by_points(X: Floats, kernel: FixedKernel, G: Floats, M: Floats, A: Floats, by_A: Floats, out: Floats) -> None:
    """out_ij (n, d) = sum_k M_ik dK_ik / dX_ij; `A` and `by_A (n, c)` are scratch memory."""
    out[:] = 0.0
    _place(X, kernel.numeric, kernel.R, kernel.scale, A)
    radial_by_points(A, kernel.B, G, M, by_A)
    _add_slopes(by_A, kernel.numeric, kernel.R, kernel.scale, out)
    if kernel.ripple_height > 0.0:
        _add_ripple_slopes(X, kernel, M, A, by_A, out)
    if len(kernel.a) > 0:
        _place(X, kernel.numeric, kernel.R[:0], kernel.column_scale, A)
        by_points(A, kernel.columns, kernel.a, M, by_A)
        _add_slopes(by_A, kernel.numeric, kernel.R[:0], kernel.column_scale, out)
    if len(kernel.trend) > 0:
        _add_trend_slopes(X, kernel, M, A, by_A, out)
