"""Compiled ascent of an upper confidence bound: the loop of `ascent.ascend`, with the posterior in closed form."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import fused
from bkbopt.kernels._fixed_loops import FixedKernel
from bkbopt.posterior._loops import predict_sloped
from bkbopt.search.maximizers._loops import Rows, advance

__all__ = ["PlainBound", "climb"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class PlainBound(NamedTuple):
    """The score mean + beta sd of a `Collapsed` posterior as arrays; see `collapsed.py` for the symbols.

    It is a score of points u (k,) of a space within the encoding: x = base, with x[columns] = low + width u.

    Attributes:
        kernel: the kernel with the inducing points.
        a: weights of the mean, (m,).
        roots: C (m, r) and its transpose, by rows.
        beta: multiplies the standard deviation.
        floor: lower bound of the variance, y squared.
        base: (d,) see above.
        columns: (k,) see above.
        low: (k,) see above.
        width: (k,) see above.
    """

    kernel: FixedKernel
    a: Floats
    roots: tuple[Floats, Floats]
    beta: float
    floor: float
    base: Floats
    columns: Ints
    low: Floats
    width: Floats

    @classmethod
    def over_encoding(
        cls, kernel: FixedKernel, a: Floats, roots: tuple[Floats, Floats], beta: float, floor: float, *, d: int
    ) -> "PlainBound":
        """The score of all points of the encoding, of dimension d."""
        return cls(kernel, a, roots, beta, floor, np.zeros(d), np.arange(d), np.zeros(d), np.ones(d))


@fused
def climb(rows: Rows, X: Floats, relaxed: Ints, bound: PlainBound, most: int) -> None:
    """Ascend from `rows` in the columns `relaxed (c,)` of u.

    The other columns are those of the encoded points `X (n, d)`, which is scratch memory in these.
    """
    n, c = rows.x.shape
    mean, variance, slopes, f, g = np.empty(n), np.empty(n), np.empty((2, n, X.shape[1])), np.empty(n), np.empty((n, c))
    columns, low, width = bound.columns[relaxed], bound.low[relaxed], bound.width[relaxed]
    going = n
    while going > 0:
        for i in range(n):
            for j in range(c):
                X[i, columns[j]] = low[j] + width[j] * rows.trial[i, j]
        predict_sloped(X, bound.kernel, bound.a, bound.roots, mean, variance, slopes)
        for i in range(n):
            sd = np.sqrt(max(variance[i], bound.floor))
            by_variance = 0.5 * bound.beta / sd if variance[i] > bound.floor else 0.0
            f[i] = mean[i] + bound.beta * sd
            for j in range(c):
                g[i, j] = width[j] * (slopes[0, i, columns[j]] + by_variance * slopes[1, i, columns[j]])
        going = advance(rows, f, g, most)
