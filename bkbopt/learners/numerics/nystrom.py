"""Nystrom features whose inducing points grow while a stream is learnt.

| symbol | shape  | units     | meaning                                                                    |
| ------ | ------ | --------- | -------------------------------------------------------------------------- |
| S      | (m, d) | as X      | inducing points, in the order in which KORS accepted them                  |
| W      | (m, r) | 1/y       | W^T k(S, S) W = I_r, upper triangular; points within the span add no column |
| Z      | (t, r) | y         | features of all rows learnt, z(x) = W^T k_S(x)                             |
"""

import copy
import itertools
from typing import Any

import numpy as np

from bkbopt._support.state_forms import Floats, Form
from bkbopt.learners.numerics.gram import Gram
from bkbopt.learners.numerics.growing import GrowingRows
from bkbopt.learners.numerics.kors import KORS
from bkbopt.learners.numerics.losses import Array
from bkbopt.learners.numerics.ridge import Ridge

__all__ = ["GrowingNystrom", "grown_root"]

#: A point whose residual is a smaller fraction of its prior variance is in the span: a direction would be rounding.
_WITHIN = 1e-10


def grown_root(W: Array, z: Array, prior: float) -> tuple[Array, float]:
    """The root for one more point, and the length of its new direction (0 if the point is in the span).

    Args:
        W: root so far, `(m, r)`.
        z: features of the point, `(r,)`.
        prior: k(x, x) of the point.
    """
    m, r = W.shape
    left = prior - float(z @ z)
    grows = left > _WITHIN * prior
    out = np.pad(W, ((0, 1), (0, int(grows))))
    if not grows:
        return out, 0.0
    # Gram-Schmidt: the new feature is (k(x, .) - z.z(.)) / sqrt(left). `linalg.append_to_thin_root` multiplies by an
    # inverse root instead; its rounding differs, which would change the runs of the papers.
    root = left**0.5
    out[:m, r], out[m, r] = -(W @ z) / root, 1.0 / root
    return out, root


class GrowingNystrom:
    """Features, their sampler, and the rows learnt; see the module's table.

    Args:
        gram: the kernel.
        d: number of columns of X.
        kors: the sampler, empty.
    """

    def __init__(self, gram: Gram, d: int, kors: KORS) -> None:
        self.gram, self.kors = gram, kors
        self.S, self.W = GrowingRows(d), np.zeros((0, 0))
        self.X, self.y = GrowingRows(d), GrowingRows()
        self._Z = np.zeros((16, 16))

    @property
    def Z(self) -> Array:
        """Features of all rows learnt, a view."""
        return self._Z[: self.X.n, : self.W.shape[1]]

    def would_accept(self, X: Array, uniforms: Array) -> bool:
        """Whether the one row `X (1, d)` would become an inducing point; nothing is changed."""
        return bool(copy.deepcopy(self.kors).select(self._values(X), self.gram.diag(X), uniforms)[0])

    def _values(self, X: Array) -> Array:
        """Kernel values `(b, m + b)` of a block of rows with the inducing points and with itself."""
        return self.gram(X, np.concatenate([self.S.rows, X]))

    def features(self, X: Array) -> Array:
        """Z `(n, r)` of the rows `X (n, d)`."""
        return self.gram(X, self.S.rows) @ self.W

    def learn(self, X: Array, y: Array, uniforms: Array, ridge: Ridge, *, forward: bool) -> Array:
        """Predict and learn a block of rows by `ridge`: the predictions `(n,)`, see `Ridge.learn`.

        A row that KORS accepts becomes an inducing point before it is predicted (Algorithm 2), and begins a new run of
        rows with the same features.
        """
        m, K, out = self.S.n, self._values(X), np.empty(len(X))
        accepted = np.flatnonzero(self.kors.select(K, self.gram.diag(X), uniforms)).tolist()
        columns = list(range(m))  # of K, for the inducing points
        for start, stop in itertools.pairwise(sorted({0, *accepted, len(X)})):
            if start in accepted:
                self._grow(X[start], K[start, columns], float(K[start, m + start]), ridge)
                columns.append(m + start)
            rows = slice(start, stop)
            Z = K[rows, columns] @ self.W
            self._store(X[rows], y[rows], Z)
            out[rows] = ridge.learn(Z, y[rows], forward=forward)
        return out

    def _store(self, X: Array, y: Array, Z: Array) -> None:
        n, r = self.X.n + len(X), Z.shape[1]
        self._reserve(n, r)
        self._Z[self.X.n : n, :r] = Z
        self.X.append(X)
        self.y.append(y)

    def _grow(self, x: Array, k: Array, prior: float, ridge: Ridge) -> None:
        """Make `x (d,)` with kernel values `k (m,)` and k(x, x) = `prior` an inducing point."""
        z = k @ self.W
        self.S.append(x[None])
        r = self.W.shape[1]
        self.W, root = grown_root(self.W, z, prior)
        if root > 0.0:
            column = (self.gram(x[None], self.X.rows)[0] - self._Z[: self.X.n, :r] @ z) / root
            self._reserve(self.X.n, r + 1)
            ridge.grow(self._Z[: self.X.n, :r].T @ column, float(column @ column), float(column @ self.y.rows))
            self._Z[: self.X.n, r] = column

    def _reserve(self, n: int, r: int) -> None:
        """Make room for that many rows and features."""
        rows, columns = self._Z.shape
        more_rows = max(n, 2 * rows) - rows if n > rows else 0
        more_columns = max(r, 3 * columns // 2) - columns if r > columns else 0
        if more_rows or more_columns:
            self._Z = np.pad(self._Z, ((0, more_rows), (0, more_columns)))

    def state_dict(self) -> dict[str, object]:
        """For a state file."""
        return {
            "S": self.S.rows,
            "W": self.W,
            "X": self.X.rows,
            "y": self.y.rows,
            "Z": np.ascontiguousarray(self.Z),
            "kors": self.kors.state_dict(),
        }

    def form(self) -> Form:
        """The form of `state_dict`."""
        rows = {"X": Floats(("t", "d")), "y": Floats(("t",)), "Z": Floats(("t", "r"))}
        return Form({"S": Floats(("m", "d")), "W": Floats(("m", "r")), **rows, "kors": self.kors.form()})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of `state_dict`."""
        for grown, name in ((self.S, "S"), (self.X, "X"), (self.y, "y")):
            grown.append(state[name])
        self.W, self._Z = state["W"], state["Z"]
        self.kors.load_state_dict(state["kors"])
