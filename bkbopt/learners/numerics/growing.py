"""Arrays that grow: rows of a history, and the Cholesky factor of a matrix that is bordered by blocks.

| symbol | shape  | meaning                                                            |
| ------ | ------ | ------------------------------------------------------------------ |
| L      | (t, t) | lower Cholesky factor of a matrix of t rows so far                 |
| V      | (t, b) | L^-1 B for the columns B that b new rows add                       |
| S      | (b, b) | Schur complement of the new rows, C - V^T V                        |
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bkbopt.learners.numerics.losses import Array
from bkbopt.posterior.linalg import safe_cholesky

__all__ = ["GrowingCholesky", "GrowingRows", "finite", "lower_factor", "lower_solve"]

#: Rows and columns of the tiles in which triangular systems are solved; the rest are matrix products.
TILE = 256


class GrowingRows:
    """An array `(n, ...)` that grows along its first axis, at constant amortised cost a row."""

    def __init__(self, *shape: int, dtype: npt.DTypeLike = np.float64) -> None:
        self._store: npt.NDArray[Any] = np.empty((16, *shape), dtype=dtype)
        self.n = 0

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Add `rows (b, ...)` at the end."""
        need = self.n + len(rows)
        if need > len(self._store):
            store = np.empty((max(need, 2 * len(self._store)), *self._store.shape[1:]), dtype=self._store.dtype)
            store[: self.n] = self.rows
            self._store = store
        self._store[self.n : need] = rows
        self.n = need

    @property
    def rows(self) -> npt.NDArray[Any]:
        """The rows so far, a view."""
        return self._store[: self.n]


class GrowingCholesky:
    """The factor L `(t, t)` of a growing matrix; see the module's table."""

    def __init__(self) -> None:
        self._store = np.zeros((16, 16))
        self.t = 0

    @property
    def factor(self) -> Array:
        """L `(t, t)`, a view."""
        return self._store[: self.t, : self.t]

    @factor.setter
    def factor(self, L: Array) -> None:
        self._store, self.t = L, len(L)

    def solve(self, B: Array) -> Array:
        """V = L^-1 B for `B (t, b)` or `(t,)`."""
        V = np.array(B)
        for a in range(0, self.t, TILE):
            e = min(a + TILE, self.t)
            V[a:e] -= self._store[a:e, :a] @ V[:a]
            V[a:e] = lower_solve(self._store[a:e, a:e], V[a:e])
        return V

    def solve_transposed(self, b: Array) -> Array:
        """L^-T b for `b (t,)`."""
        v = np.array(b)
        for a in range((self.t - 1) // TILE * TILE, -1, -TILE):
            e = min(a + TILE, self.t)
            v[a:e] -= self._store[e : self.t, a:e].T @ v[e:]
            v[a:e] = lower_solve(self._store[a:e, a:e], v[a:e], transposed=True)
        return v

    def append(self, V: Array, L_new: Array) -> None:
        """Border the factor by `V (t, b)` and the factor `L_new (b, b)` of the Schur complement."""
        need = self.t + len(L_new)
        if need > len(self._store):
            self._store = np.pad(self.factor, (0, max(need, 2 * len(self._store)) - self.t))
        self._store[self.t : need, : self.t] = V.T
        self._store[self.t : need, self.t : need] = L_new
        self.t = need


def finite(A: Array) -> Array:
    """`A`, checked before a factorisation.

    Raises:
        LinAlgError: it has NaN or infinite entries, for which LAPACK's singular values may not terminate.
    """
    if not np.isfinite(A).all():
        raise np.linalg.LinAlgError("a matrix with NaN or infinity")
    return A


def lower_solve(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """L^-1 B, or L^-T B, for a lower triangular `L (m, m)` and `B (m, b)` or `(m,)`."""
    from scipy.linalg import solve_triangular

    return solve_triangular(L, B, lower=True, trans=1 if transposed else 0, check_finite=False)


def lower_factor(S: Array, size: float | None = None) -> Array:
    """Lower Cholesky factor of `S (b, b)`.

    Args:
        S: the matrix.
        size: magnitude of the matrices whose difference S is, which determines its rounding; None for S's own diagonal.

    Raises:
        KernelError: it is not positive semi-definite, by more than rounding.
    """
    try:
        return np.asarray(np.linalg.cholesky(S), dtype=np.float64)
    except np.linalg.LinAlgError:
        return safe_cholesky(torch.from_numpy(np.ascontiguousarray(S)), size).numpy()
