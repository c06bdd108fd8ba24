"""Kernel ridge regression, online and exact, and its forward variant, Kernel-AWV (Jezequel et al. 2019).

| symbol | shape  | units     | meaning                                                             |
| ------ | ------ | --------- | ------------------------------------------------------------------- |
| K      | (t, t) | y squared | kernel matrix of the rows learnt                                    |
| L      | (t, t) | y         | Cholesky factor of K + lam I                                        |
| e      | (t,)   | -         | L^-1 y, the innovations                                             |
| V      | (t, b) | y         | L^-1 k(X, new rows)                                                 |
| p      | (b,)   | y         | prediction of ridge regression                                      |
| h      | (b,)   | -         | k(x, x) less its projection on the rows learnt, over lam (leverage) |

A block of rows is one bordering of L: row t of the new corner of L holds the influence of the earlier rows of the block
on row t, so that all predictions are those of one row after the other.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bkbopt._support.checks import check_number
from bkbopt._support.state_forms import Floats, Form, Number
from bkbopt.learners.base import OnlineLearner
from bkbopt.learners.core.algorithm import in_blocks
from bkbopt.learners.core.hypothesis import Hypothesis
from bkbopt.learners.numerics.growing import GrowingCholesky, GrowingRows, lower_factor, lower_solve
from bkbopt.learners.numerics.losses import Array

__all__ = ["KernelAWV", "OnlineKRR"]

_BLOCK = 256


@dataclass(kw_only=True, eq=False)
class OnlineKRR(OnlineLearner):
    """Online kernel ridge regression: min over f of sum_s (y_s - f(x_s))^2 + lam |f|^2 after every row.

    O(t^2) time a row and memory in all: for streams of some thousand rows, and as a reference for other learners.

    Args:
        lam: ridge, y squared over the squared norm of f.
        kernel, lengthscale, scale: see `OnlineLearner`.

    Example:
        >>> import numpy as np
        >>> from bkbopt.learners import OnlineKRR
        >>> X = np.random.default_rng(0).random((200, 1))
        >>> y = np.sin(6.0 * X[:, 0])
        >>> errors = np.abs(OnlineKRR(lengthscale=0.3, lam=0.01).progressive(X, y) - y)
        >>> bool(errors[100:].max() < 0.1)
        True
    """

    lam: float = 1.0
    _forward: ClassVar[bool] = False

    def _check(self, d: int) -> None:
        self._lam = check_number("lam", self.lam, 0.0, "a positive finite ridge", strict=True)

    def _start(self, d: int) -> None:
        self._X, self._y, self._e, self._square = GrowingRows(d), GrowingRows(), GrowingRows(), 0.0
        self._cholesky = GrowingCholesky()
        self._cache: dict[str, Array] = {}

    @property
    def dictionary_size_(self) -> int:
        """Number of rows that predictions need: all."""
        return self._X.n

    @property
    def logdet_(self) -> float:
        """log det(I + K / lam)."""
        return 2.0 * float(np.log(np.diag(self._cholesky.factor)).sum()) - self._X.n * float(np.log(self._lam))

    @property
    def regularised_minimum_(self) -> float:
        """The least value of sum_s (y_s - f(x_s))^2 + lam |f|^2 over all f, y squared."""
        return self._lam * float(self._e.rows @ self._e.rows)

    @property
    def regret_(self) -> float:
        """Sum of squared errors of the predictions so far, less `regularised_minimum_`."""
        return self._square - self.regularised_minimum_

    @property
    def regret_bound_(self) -> float:
        """For Kernel-AWV, an upper bound of `regret_`: max y^2 log det(I + K / lam); for ridge regression infinite."""
        if not self._forward:
            return float("inf")
        return float(np.max(self._y.rows**2, initial=0.0)) * self.logdet_

    def _stream(self, X: Array, y: Array) -> Array:
        out = in_blocks(self._block, _BLOCK, X, y)
        self._square += float(np.sum((out - y) ** 2))
        return out

    def _block(self, X: Array, y: Array) -> Array:
        V = self._cholesky.solve(self._gram(self._X.rows, X))
        S, prior = self._gram(X, X), self._gram.diag(X)
        S[np.diag_indices_from(S)] = prior + self._lam
        L = lower_factor(S - V.T @ V, float(prior.mean()))
        before = V.T @ self._e.rows
        e = lower_solve(L, y - before)
        p = before + np.tril(L, -1) @ e
        self._cholesky.append(V, L)
        for grown, rows in ((self._X, X), (self._y, y), (self._e, e)):
            grown.append(rows)
        self._cache.clear()
        # L_tt^2 = lam (1 + h_t); the forward prediction is p / (1 + h) (Eq. 3 with f(x_t)^2 added).
        return p * self._lam / np.diag(L) ** 2 if self._forward else p

    def _dual(self) -> Array:
        """Weights `(t,)` of the rows in the ridge regression."""
        if "dual" not in self._cache:
            self._cache["dual"] = self._cholesky.solve_transposed(self._e.rows)
        return self._cache["dual"]

    def hypothesis(self) -> Hypothesis:
        """The function of ridge regression, which forward predictions shrink."""
        return Hypothesis(self._X.rows.copy(), self._dual().copy())

    def _raw(self, X: Array) -> Array:
        return in_blocks(self._raw_block, _BLOCK, X)

    def _raw_block(self, X: Array) -> Array:
        K = self._gram(self._X.rows, X)
        p = K.T @ self._dual()
        if not self._forward:
            return p
        V = self._cholesky.solve(K)
        h = np.maximum(self._gram.diag(X) - np.einsum("ij,ij->j", V, V), 0.0) / self._lam
        return p / (1.0 + h)

    def _state(self) -> dict[str, object]:
        return {
            "X": self._X.rows,
            "y": self._y.rows,
            "e": self._e.rows,
            "factor": np.ascontiguousarray(self._cholesky.factor),
            "square": self._square,
        }

    def _form(self) -> Form:
        rows = {"X": Floats(("t", "d")), "y": Floats(("t",)), "e": Floats(("t",))}
        return Form({**rows, "factor": Floats(("t", "t"), diagonal=0.0), "square": Number(0.0)})

    def _restore(self, state: dict[str, Any]) -> None:
        for grown, name in ((self._X, "X"), (self._y, "y"), (self._e, "e")):
            grown.append(state[name])
        self._cholesky.factor = state["factor"]
        self._square = state["square"]


@dataclass(kw_only=True, eq=False)
class KernelAWV(OnlineKRR):
    """The kernel Azoury-Vovk-Warmuth forecaster: ridge regression that includes the new row with the target 0.

    The prediction for x is that of min over f of sum_s (y_s - f(x_s))^2 + f(x)^2 + lam |f|^2. For all targets its
    regret is at most max y^2 log det(I + K / lam); compare the attributes `regret_` and `regret_bound_` (Jezequel et
    al. 2019, Proposition 1 and section 2). No bound on the targets has to be known.

    Args:
        lam: ridge, y squared over the squared norm of f.
        kernel, lengthscale, scale: see `OnlineLearner`.

    Example:
        >>> import numpy as np
        >>> from bkbopt.learners import KernelAWV
        >>> X = np.random.default_rng(0).random((200, 1))
        >>> learner = KernelAWV(lengthscale=0.3, lam=0.01).partial_fit(X, np.sin(6.0 * X[:, 0]))
        >>> learner.regret_ < learner.regret_bound_
        True
    """

    _forward: ClassVar[bool] = True
