"""Ridge regression on features one row at a time, compiled; symbols are those of `ridge.py`."""

import math

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import fast

__all__ = ["ridge_rows"]

Floats = npt.NDArray[np.float64]


@fast
def ridge_rows(A: Floats, R: Floats, w: Floats, b: Floats, Z: Floats, y: Floats, forward: bool, out: Floats) -> None:
    """Predict and learn the rows of `Z (n, r)`; A and R are upper triangles, R^T R = A. Changes A, R, w and b."""
    r = R.shape[0]
    v = np.empty(r)
    x = np.empty(r)
    for t in range(Z.shape[0]):
        z = Z[t]
        # A sum has a loop of its own: next to a store the compiler adds up in an order that hangs on the addresses.
        p = 0.0
        for i in range(r):
            p += z[i] * w[i]
        for i in range(r):
            v[i] = z[i]
            x[i] = z[i]
        h = solve_transposed(R, v)
        out[t] = p / (1.0 + h) if forward else p
        solve(R, v)
        step = (y[t] - p) / (1.0 + h)
        for i in range(r):
            w[i] += step * v[i]
            b[i] += y[t] * z[i]
            for j in range(i, r):
                A[i, j] += z[i] * z[j]
        update(R, x)


@fast
def solve_transposed(R: Floats, v: Floats) -> float:
    """v <- R^-T v; its squared norm."""
    total = 0.0
    for i in range(R.shape[0]):
        v[i] /= R[i, i]
        total += v[i] * v[i]
        for j in range(i + 1, R.shape[0]):
            v[j] -= v[i] * R[i, j]
    return total


@fast
def solve(R: Floats, v: Floats) -> None:
    """v <- R^-1 v."""
    for i in range(R.shape[0] - 1, -1, -1):
        total = v[i]
        for j in range(i + 1, R.shape[0]):
            total -= R[i, j] * v[j]
        v[i] = total / R[i, i]


@fast
def update(R: Floats, x: Floats) -> None:
    """R <- the factor of R^T R + x x^T by plane rotations; `x` is used up."""
    for i in range(R.shape[0]):
        rho = math.sqrt(R[i, i] * R[i, i] + x[i] * x[i])
        c = rho / R[i, i]
        s = x[i] / R[i, i]
        R[i, i] = rho
        for j in range(i + 1, R.shape[0]):
            R[i, j] = (R[i, j] + s * x[j]) / c
            x[j] = c * x[j] - s * R[i, j]
