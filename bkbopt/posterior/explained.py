"""The part of the prior covariance that the observations explain, as a root that follows single values in O(m^2).

| symbol | shape  | units | meaning                                                                      |
| ------ | ------ | ----- | ---------------------------------------------------------------------------- |
| root   | (k, r) | 1/y   | root^T root = V^-1                                                           |
| E      | (r, r) | -     | I - lam V^-1, the explained part                                             |
| W      | (m, r) | 1/y   | root of the Nystrom features                                                 |
| C      | (m, r) | 1/y   | C C^T = W E W^T, so that |C^T k_S(x)|^2 is the variance that x has lost      |
| R      | (m, m) | 1/y   | upper triangular root, R^T R = C C^T                                         |
| step   | (r,)   | -     | what a value at the features z adds to E: step step^T = lam v v^T / (1 + q)  |

A value at z turns V^-1 into V^-1 - v v^T / (1 + q), with v = V^-1 z and q = z . v (Sherman and Morrison). It adds a row
(W step)^T to R, which plane rotations take into the triangle.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bkbopt._support.compiled import fused
from bkbopt.posterior.linalg import eigh

__all__ = ["LONGEST", "Explained", "root_under", "upper_root"]

Floats = npt.NDArray[np.float64]

#: Number of values after which the root is computed anew from V^-1, so that rounding errors do not accumulate.
LONGEST = 32
#: Added to the diagonal of I - lam V^-1 before its factorisation, since its eigenvalues are zero in directions without
#: data. It lowers a variance by this multiple of |z|^2, no more than the variance's rounding error.
ROUNDING = 1e-14


class Explained:
    """The explained part after some of a sequence of at most `LONGEST` values; it is immutable but for its cache.

    The arithmetic depends only on the sequence and its start, not on which roots have been asked for.

    Args:
        root: see the module's table, at the start of the sequence.
        lam: noise variance, y squared.
        before: the explained part without the last value; None at the start.
        step: see the module's table, of the last value.
        keeps: whether `before` keeps its root of features, because other values may follow that.
    """

    def __init__(
        self,
        root: Tensor,
        lam: float,
        before: "Explained | None" = None,
        step: Floats | None = None,
        *,
        keeps: bool = False,
    ) -> None:
        self._start, self._lam, self._before, self._step, self._keeps = root, lam, before, step, keeps
        self.length: int = 0 if before is None else before.length + 1
        self._full: tuple[Tensor, Tensor] | None = None
        self._upper: tuple[Tensor, Floats] | None = None

    @property
    def left(self) -> int:
        """Number of values that may follow."""
        return LONGEST - self.length

    def __getstate__(self) -> dict[str, Any]:
        """The attributes, without what is cached."""
        return vars(self) | {"_full": None, "_upper": None}

    def after(self, step: Floats, *, keeps: bool = False) -> "Explained | None":
        """The explained part after another value; None if the sequence is complete."""
        return Explained(self._start, self._lam, self, step, keeps=keeps) if self.left else None

    def full(self, W: Tensor) -> Tensor:
        """The root C `(m, r)` at the start of the sequence under `W (m, r)`: O(m r^2 + r^3)."""
        known = self._full
        if known is None or known[0] is not W:
            known = self._full = W, root_under(W, self._start, self._lam)
        return known[1]

    def upper(self, W: Tensor) -> Floats:
        """The root R `(m, m)` under `W (m, r)`: O(m^2) a value after one whose root is kept, else also O(m^3)."""
        one, later = self, list[Explained]()
        while (known := one._upper) is None or known[0] is not W:  # another thread may take `_upper` away
            if one._before is None:
                known = one._upper = W, upper_root(one.full(W))
                one._full = None
                break
            later.append(one)
            one = one._before
        R = known[1]
        while later:
            # A root is needed of the last value, and of those after which several sequences may go on.
            group = [later.pop()]
            while later and not later[-1]._keeps:
                group.append(later.pop())
            R = R.copy()
            _add_rows(R, np.stack([following._row(W) for following in group]))
            if not group[0]._keeps:
                one._upper = None
            one = group[-1]
            one._upper = W, R
        return R

    def _row(self, W: Tensor) -> Floats:
        """The row W step (m,) that the last value adds to R."""
        assert self._step is not None
        return (W @ torch.from_numpy(self._step)).numpy()


def root_under(W: Tensor, root: Tensor, lam: float) -> Tensor:
    """The root C `(m, r)` under `W (m, r)` for `root (k, r)`, of which k = 0 is that of known weights."""
    return W @ _explained_root(root, lam) if len(root) else W


def _explained_root(root: Tensor, lam: float) -> Tensor:
    """A root `(r, r)` of I - lam V^-1 from `root (k, r)`: O(r^3)."""
    A = root.T @ root
    B = (-lam * A).diagonal_scatter(1.0 + ROUNDING - lam * A.diagonal())
    R, info = torch.linalg.cholesky_ex(B)
    if int(info) == 0:
        return R
    # Where the counts span many orders of magnitude, lam V^-1 may exceed I by rounding.
    e, Q = eigh(A)
    return Q * (1.0 - lam * e).clamp_min(0.0).sqrt()


def upper_root(C: Tensor) -> Floats:
    """The root R `(m, m)` of C C^T for `C (m, r)`; with r < m its last rows are zero."""
    R = torch.linalg.qr(C.T, mode="r").R
    return torch.nn.functional.pad(R, (0, 0, 0, max(len(C) - len(R), 0))).contiguous().numpy()


@fused
def _add_rows(R: Floats, C: Floats) -> None:
    """Change the upper triangular `R (m, m)` to that of R^T R + C^T C, by plane rotations; `C (q, m)` is spent.

    A row of R meets all rows of C before the next one, and each number is rounded as if these came alone, in turn.
    """
    for k in range(len(R)):
        r = R[k]
        for i in range(len(C)):
            c = C[i]
            diagonal = np.hypot(r[k], c[k])
            if diagonal > 0.0:
                cosine, sine = r[k] / diagonal, c[k] / diagonal
                for j in range(k, len(R)):
                    old = r[j]
                    r[j] = cosine * old + sine * c[j]
                    c[j] = cosine * c[j] - sine * old
