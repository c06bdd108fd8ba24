"""Kernel online Newton steps, exact and sketched (Calandriello et al. 2017, Algorithms 1 and 3).

| symbol | shape  | units     | meaning                                                                          |
| ------ | ------ | --------- | -------------------------------------------------------------------------------- |
| A      | -      | -         | alpha I + sum over J of eta_j g_j^2 phi_j phi_j^T, in the kernel's feature space |
| c      | (t,)   | -         | A u = sum_s c_s phi_s for the iterate u before projection                        |
| J      | (m,)   | -         | rows that are in A                                                               |
| L      | (m, m) | -         | Cholesky factor of K_JJ + alpha diag(1 / (eta_j g_j^2))                          |
| y_w    | (m,)   | -         | L^-1 K_J,: c                                                                     |
| V      | (m, b) | -         | L^-1 k(x_J, new rows)                                                            |

A round: v = L^-1 k_J(x), r = k(x, x) - |v|^2, ybar = (k(x, all).c - v.y_w) / alpha, the prediction is ybar clipped to
[-C, C], g the slope of the loss there. Then c_t = eta g^2 yhat - g - (ybar - yhat) alpha / r, the last term being the
projection on the predictions allowed. (The paper's Lemma 2 has -1/eta inside the bracket, and its Lemma 4 lacks the
coin on the term with yhat; both are corrected here.)

Kernel values and triangular solves are done for blocks of rows; what a row needs to know of those before it in the
block are inner products, and the rest of the round is a compiled loop.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bkbopt._support.checks import check_number
from bkbopt.errors import ArgumentError
from bkbopt.learners.growing import GrowingCholesky, GrowingRows
from bkbopt.learners.interop import not_ready
from bkbopt.learners.kors import KORS
from bkbopt.learners.losses import Array
from bkbopt.learners.newton import NewtonLearner
from bkbopt.learners.states import Floats, Form, Ints

__all__ = ["KONS", "SketchedKONS"]

_BLOCK = 128


@dataclass(kw_only=True, eq=False)
class KONS(NewtonLearner):
    """Kernel online Newton step: regret that grows with d_eff log T for losses with curvature.

    O(t^2) time and memory a row, as the exact method must. Args: see `NewtonLearner`.

    Attributes:
        dictionary_size_: number of rows in A.
        support_size_: number of rows that predictions need: all.

    Example:
        >>> from bkbopt.learners import KONS
        >>> learner = KONS(lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 4)
    """

    def _check(self, d: int) -> None:
        super()._check(d)
        self._sampler = self._new_sampler()

    def _start(self, d: int) -> None:
        self._X, self._c = GrowingRows(d), GrowingRows()
        self._J, self._y_w, self._cholesky = GrowingRows(dtype=np.intp), GrowingRows(), GrowingCholesky()
        self._picked, self._scale = GrowingRows(dtype=np.intp), GrowingRows()
        self._bound = np.zeros(2)
        self._cache: dict[str, Array] = {}

    def _new_sampler(self) -> KORS:
        return KORS(self._alpha)

    @property
    def _gamma(self) -> float:
        """The least probability that a row enters A."""
        return 1.0

    @property
    def dictionary_size_(self) -> int:
        """See the class."""
        return self._cholesky.t

    @property
    def support_size_(self) -> int:
        """See the class."""
        return self._X.n

    def regret_bound(self, norm: float) -> float:
        """What the regret so far cannot exceed against any f with |f| <= `norm` and |f(x_s)| <= C at all rows learnt.

        (alpha |f|^2 + sum_s g_s^2 phi_s^T A_s^-1 phi_s + 4 C^2 sum_s (eta_s - sigma)^+ g_s^2) / 2, which is
        Proposition 1 of the paper without the spare factor of two. For regression targets have to keep within [-C, C].

        Raises:
            ArgumentError: `norm` is negative.
            NotReadyError: nothing was learnt yet.
        """
        if self._dim is None:
            raise not_ready(type(self).__name__)
        norm = check_number("norm", norm, 0.0, "a norm >= 0")
        newton, excess = self._bound
        return 0.5 * float(self._alpha * norm**2 + newton + 4.0 * self._C**2 * excess)

    def _stream(self, X: Array, y: Array) -> Array:
        out = np.empty(len(X))
        for a in range(0, len(X), _BLOCK):
            self._block(X[a : a + _BLOCK], y[a : a + _BLOCK], out[a : a + _BLOCK])
        self._cache.clear()
        return out

    def _block(self, X: Array, y: Array, out: Array) -> None:
        from bkbopt.learners import _loops_kons as loops

        b = len(X)
        past = self._gram(X, self._X.rows)
        V = self._cholesky.solve(past[:, self._J.rows].T)
        K = self._gram(X, X)
        K[np.diag_indices_from(K)] = self._gram.diag(X)
        corner = loops.Corner(past @ self._c.rows, V.T @ self._y_w.rows, K, np.ascontiguousarray(V.T @ V))
        new = loops.Sketch(
            np.zeros((b, b)),
            np.zeros(b),
            np.zeros(b, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
            np.zeros(b),
            self._bound,
        )
        kors = self._offered(K, past)
        loops.newton_rounds(
            corner,
            y,
            self._X.n,
            self._loss.code,
            self._C,
            self._alpha,
            self._sigma,
            self._loss.curvature(self._C),
            self._loss.lipschitz(self._C),
            kors,
            self._sampler.beta,
            self._sampler.eps,
            self._gamma,
            new,
            out,
        )
        self._keep(X, V, new, kors)

    def _keep(self, X: Array, V: Array, new: Any, kors: Any) -> None:
        """Take over what the rounds of a block added."""
        m, t = new.size[0], self._X.n
        self._y_w.rows[:] += V @ new.c
        rows = new.rows[:m]
        self._cholesky.append(V[:, rows], new.L[:m, :m])
        self._y_w.append(new.y_w[:m])
        self._J.append(t + rows)
        self._X.append(X)
        self._c.append(new.c)
        before, self._sampler.m = self._sampler.m, int(kors.size[0])
        self._scale.append(kors.scale[before : self._sampler.m])
        self._picked.append(t + kors.place[before : self._sampler.m] - before)

    def _offered(self, K: Array, past: Array) -> Any:
        """The sampler as the rounds want it; with room for all rows of the block."""
        from bkbopt.learners import _loops_kons as loops

        m, b = self._sampler.m, len(K)
        sampled = self._gamma < 1.0
        self._sampler.reserve(max(len(self._sampler.p), m + b if sampled else 1))
        capacity = len(self._sampler.p)
        scale, place = np.zeros(capacity), np.zeros(capacity, dtype=np.int64)
        scale[:m], place[:m] = self._scale.rows, np.arange(m)
        return loops.Kors(
            np.concatenate([past[:, self._picked.rows], K], axis=1),
            self._sampler.L,
            self._sampler.p,
            scale,
            place,
            np.array([m]),
            self._rng.random((b, 2)) if sampled else np.zeros((b, 2)),
        )

    def _expansion(self) -> tuple[Array, Array]:
        if "dual" not in self._cache:
            dual = self._c.rows.copy()
            dual[self._J.rows] -= self._cholesky.solve_transposed(self._y_w.rows)
            self._cache["dual"] = dual / self._alpha
        return self._X.rows, self._cache["dual"]

    _GROWN = ("_X", "_c", "_J", "_y_w", "_picked", "_scale")

    def _state(self) -> dict[str, object]:
        grown: dict[str, object] = {name: getattr(self, name).rows for name in self._GROWN}
        factor = np.ascontiguousarray(self._cholesky.factor)
        return {**grown, "factor": factor, "sampler": self._sampler.state_dict(), "bound": self._bound}

    def _form(self) -> Form:
        rows = {"_X": Floats(("t", "d")), "_c": Floats(("t",)), "_J": Ints(("m",), "t"), "_y_w": Floats(("m",))}
        sampler = {"_picked": Ints(("q",), "t"), "_scale": Floats(("q",)), "sampler": self._sampler.form("q")}
        factor = {"factor": Floats(("m", "m"), diagonal=0.0), "bound": Floats((2,))}
        return Form({**rows, **sampler, **factor}, {} if self._gamma < 1.0 else {"q": 0})

    def _restore(self, state: dict[str, Any]) -> None:
        for name in self._GROWN:
            getattr(self, name).append(state[name])
        self._cholesky.factor = state["factor"]
        self._sampler.load_state_dict(state["sampler"])
        self._bound = state["bound"]


@dataclass(kw_only=True, eq=False)
class SketchedKONS(KONS):
    """KONS whose matrix A takes in only some of the rows: those that KORS asks for, and others by chance.

    A row enters with probability max(min(1, beta score), gamma). The cost of A falls by gamma^2 while the regret grows
    by 1 / gamma. The hypothesis itself is not budgeted: all rows are kept, and a row costs O(t) kernel values.

    Args:
        alpha: ridge A_0 = alpha I, and that of KORS.
        gamma: least probability, in [0, 1]; with 1 it is KONS.
        beta: oversampling of KORS.
        eps: accuracy of KORS.
        seed: of the coins, two a row.
        loss, kernel, lengthscale, C, eta: see `NewtonLearner`.

    Example:
        >>> from bkbopt.learners import SketchedKONS
        >>> learner = SketchedKONS(lengthscale=0.2, gamma=0.5).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.n_rounds_
        (array([-1,  1]), 4)
    """

    gamma: float = 0.1
    beta: float = 1.0
    eps: float = 0.5
    seed: int | None = 0

    def _new_sampler(self) -> KORS:
        self._least = check_number("gamma", self.gamma, 0.0, "a probability")
        if self._least > 1.0:
            raise ArgumentError(f"gamma: expected a probability, got {self.gamma!r}.")
        return KORS(self._alpha, self.beta, self.eps)

    @property
    def _gamma(self) -> float:
        return self._least
