"""Ridge regression on features, in blocks of rows with the predictions of one row after the other.

| symbol | shape  | units     | meaning                                                       |
| ------ | ------ | --------- | ------------------------------------------------------------- |
| Z      | (b, r) | y         | features of a block of rows                                   |
| A, R   | (r, r) | y squared | sum of z z^T + lam I, and its upper factor, R^T R = A         |
| b      | (r,)   | y squared | sum of y z                                                    |
| w      | (r,)   | -         | A^-1 b                                                        |
| V      | (r, b) | -         | R^-T Z^T                                                      |
| L      | (b, b) | -         | lower factor of I + V^T V                                     |
| e      | (b,)   | y         | L^-1 (y - Z w), the innovations                               |

Row t of L holds the influence of the earlier rows of the block: row t's ridge prediction is z.w + sum_{s<t} L_ts e_s,
its leverage h = L_tt^2 - 1 given all rows before it, and its forward prediction the ridge prediction over 1 + h.
"""

import contextlib
import math

import numpy as np

from bkbopt._support.compiled import fast
from bkbopt._support.state_forms import Floats, Form, Number
from bkbopt._support.threads import small_scipy_work
from bkbopt.learners.numerics.losses import Array

__all__ = ["Ridge"]

#: Relative rounding error of a sum of squares, with some margin.
ROUNDING = 1e-14

#: Up to this fraction of r, rows are learnt by rank-one steps instead of a new factor for the block.
_FEW = 0.1


class Ridge:
    """The state of a ridge regression; see the module's table. It is changed in place.

    Args:
        lam: ridge, positive.
        r: initial number of features.
    """

    def __init__(self, lam: float, r: int = 0) -> None:
        self.lam = lam
        self.A = lam * np.eye(r)
        self.R = math.sqrt(lam) * np.eye(r)
        self.w, self.b = np.zeros(r), np.zeros(r)
        self.y_squared = 0.0

    @property
    def r(self) -> int:
        """Number of features."""
        return len(self.w)

    @property
    def logdet(self) -> float:
        """log det(A / lam)."""
        return 2.0 * float(np.log(np.diag(self.R)).sum()) - self.r * math.log(self.lam)

    @property
    def minimum(self) -> float:
        """The least value of sum_s (y_s - z_s.w)^2 + lam |w|^2 over all w, y squared."""
        return self.y_squared - float(self.b @ self.w)

    def learn(self, Z: Array, y: Array, *, forward: bool) -> Array:
        """Predict and learn the rows `Z (n, r)` with targets `y (n,)`: the predictions `(n,)`, forward or ridge."""
        self.y_squared += float(y @ y)
        if not self.r:
            return np.zeros(len(y))
        few = len(Z) <= _FEW * self.r or len(Z) < 4
        predictions = None if few else self._block(Z, y, forward)
        return self._rows(Z, y, forward) if predictions is None else predictions

    def _rows(self, Z: Array, y: Array, forward: bool) -> Array:
        """Rank-one steps by plane rotations, which do not fail."""
        out = np.empty(len(Z))
        ridge_rows(self.A, self.R, self.w, self.b, np.ascontiguousarray(Z), y, forward, out)
        return out

    def _block(self, Z: Array, y: Array, forward: bool) -> Array | None:
        """One step for all rows; None, and no change, if lam is so small that rounding makes a factorisation fail."""
        from scipy.linalg import blas, lapack

        # Matrices are upper triangles by rows here, which LAPACK reads as lower ones by columns: no copies.
        Zt = Z.T
        V = blas.dtrsm(1.0, self.R.T, Zt, lower=1)
        G = blas.dsyrk(1.0, V, trans=1, lower=1)
        G[np.diag_indices_from(G)] += 1.0
        L, failed = lapack.dpotrf(G, lower=1, clean=1, overwrite_a=1)
        if failed:
            return None
        A = blas.dsyrk(1.0, Zt, beta=1.0, c=self.A.T, lower=1)
        R, failed = lapack.dpotrf(A, lower=1, clean=1)
        if failed:
            return None
        ridge = Z @ self.w
        e = blas.dtrsv(L, y - ridge, lower=1)
        p = ridge + np.tril(L, -1) @ e
        self.w += blas.dtrsv(self.R.T, V @ blas.dtrsv(L, e, lower=1, trans=1), lower=1, trans=1)
        self.b += Zt @ y
        self.A, self.R = A.T, R.T
        return p / np.diag(L) ** 2 if forward else p

    def grow(self, c: Array, d: float, s: float) -> None:
        """Add a feature.

        Args:
            c: sum of z z_new.
            d: sum of z_new^2.
            s: sum of y z_new.
        """
        from scipy.linalg import solve_triangular

        r = self.r
        A, R = np.pad(self.A, (0, 1)), np.pad(self.R, (0, 1))
        A[:r, r], A[r, r] = c, d + self.lam
        R[:r, r] = u = solve_triangular(self.R, c, trans=1, check_finite=False) if r else c
        # At least lam in exact arithmetic; a difference below the rounding of d has no correct digit.
        R[r, r] = math.sqrt(max(d + self.lam - float(u @ u), self.lam, ROUNDING * d))
        self.A, self.R, self.b = A, R, np.append(self.b, s)
        v = solve_triangular(R, self.b, trans=1, check_finite=False)
        self.w = solve_triangular(R, v, check_finite=False)

    def leverage(self, Z: Array) -> Array:
        """h = z^T A^-1 z `(n,)` of the rows `Z (n, r)`."""
        from scipy.linalg import solve_triangular

        V = solve_triangular(self.R, Z.T, trans=1, check_finite=False)
        return np.einsum("ij,ij->j", V, V)

    def state_dict(self) -> dict[str, object]:
        """For a state file."""
        return {"A": self.A, "R": self.R, "w": self.w, "b": self.b, "y_squared": self.y_squared}

    def form(self) -> Form:
        """The form of `state_dict`, for any number of features r."""
        matrices = {"w": Floats(("r",)), "b": Floats(("r",)), "A": Floats(("r", "r"))}
        return Form({**matrices, "R": Floats(("r", "r"), diagonal=0.0), "y_squared": Number(0.0)})

    def load_state_dict(self, state: dict[str, object]) -> None:
        """The inverse of `state_dict`."""
        vars(self).update(state)


def one_thread(n: int, r: int) -> contextlib.AbstractContextManager[None]:
    """One BLAS thread for a stream of `n` rows whose matrices are too small to be shared out."""
    return small_scipy_work() if n > 32 and r <= 512 else contextlib.nullcontext()


# -- compiled ----------------------------------------------------------------------------------------------------------


@fast
def ridge_rows(A: Array, R: Array, w: Array, b: Array, Z: Array, y: Array, forward: bool, out: Array) -> None:
    """Predict and learn the rows of `Z (n, r)`; A and R are upper triangles, R^T R = A. Changes A, R, w and b."""
    r = R.shape[0]
    v = np.empty(r)
    x = np.empty(r)
    for t in range(Z.shape[0]):
        z = Z[t]
        # A sum has a loop of its own: next to a store the compiler's order of addition depends on the addresses.
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
def solve_transposed(R: Array, v: Array) -> float:
    """v <- R^-T v; its squared norm."""
    total = 0.0
    for i in range(R.shape[0]):
        v[i] /= R[i, i]
        total += v[i] * v[i]
        for j in range(i + 1, R.shape[0]):
            v[j] -= v[i] * R[i, j]
    return total


@fast
def solve(R: Array, v: Array) -> None:
    """v <- R^-1 v."""
    for i in range(R.shape[0] - 1, -1, -1):
        total = v[i]
        for j in range(i + 1, R.shape[0]):
            total -= R[i, j] * v[j]
        v[i] = total / R[i, i]


@fast
def update(R: Array, x: Array) -> None:
    """R <- the factor of R^T R + x x^T by plane rotations; `x` is overwritten."""
    for i in range(R.shape[0]):
        rho = math.sqrt(R[i, i] * R[i, i] + x[i] * x[i])
        c = rho / R[i, i]
        s = x[i] / R[i, i]
        R[i, i] = rho
        for j in range(i + 1, R.shape[0]):
            R[i, j] = (R[i, j] + s * x[j]) / c
            x[j] = c * x[j] - s * R[i, j]
