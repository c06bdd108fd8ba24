"""Kernel online Newton steps, exact and sketched (Calandriello et al. 2017, Algorithms 1 and 3).

| symbol | shape  | units     | meaning                                                                          |
| ------ | ------ | --------- | -------------------------------------------------------------------------------- |
| A      | -      | -         | alpha I + sum over J of eta_j g_j^2 phi_j phi_j^T, in the kernel's feature space |
| c      | (t,)   | -         | A u = sum_s c_s phi_s for the iterate u before projection                        |
| J      | (m,)   | -         | rows that are in A: all of them in KONS                                          |
| L      | (m, m) | -         | Cholesky factor of K_JJ + alpha diag(1 / (eta_j g_j^2))                          |
| y_w    | (m,)   | -         | L^-1 K_J,: c                                                                     |
| V      | (m, b) | -         | L^-1 k(x_J, new rows)                                                            |

Round t, with v = L^-1 k_J(x_t) and r = k(x_t, x_t) - |v|^2 = alpha phi_t^T A^-1 phi_t:

    ybar = (k(x_t, all).c - v.y_w) / alpha             the iterate's value at x_t (Lemma 1)
    yhat = ybar clipped to [-C, C]                     the prediction
    g    = l'(yhat)                                    slope of the loss
    c_t  = eta g^2 yhat - g - (ybar - yhat) alpha / r  (Lemmas 2 and 4); the last term projects on the allowed
                                                       predictions
    A   += eta g^2 phi_t phi_t^T                       where the row enters A, else eta = 0 in c_t

(The paper's Lemma 2 has -1/eta inside the bracket, and its Lemma 4 lacks the coin on the term with yhat; both are
corrected here.)

Kernel values and triangular solves are done for blocks of rows. The influence of earlier rows of the block on a row is
given by inner products of block columns, `f`, `d`, `K` and `P` below, so that a round costs O(b^2) besides them.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bkbopt._support.checks import check_number
from bkbopt._support.compiled import compiled
from bkbopt._support.state_forms import Floats, Form, Ints
from bkbopt.errors import ArgumentError
from bkbopt.learners.core.algorithm import in_blocks
from bkbopt.learners.newton.newton import NewtonLearner, Rule, step_weight
from bkbopt.learners.numerics.growing import GrowingCholesky, GrowingRows
from bkbopt.learners.numerics.kors import KORS, Sampler, border, offer, residual
from bkbopt.learners.numerics.losses import Array, Indices, growth, loss_slope

__all__ = ["KONS", "SketchedKONS"]

_BLOCK = 128


# -- the rounds --------------------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """b rows to learn after `first` others: targets, and inner products with the rows before and with each other.

    `f (b,)` is k(x, earlier).c, `d (b,)` is V^T y_w, `K (b, b)` the kernel matrix and `P (b, b)` is V^T V.
    """

    first: int
    y: Array
    f: Array
    d: Array
    K: Array
    P: Array


class Coins(NamedTuple):
    """Which rows enter A: KORS on the rows scaled by g sqrt(eta), and two uniform numbers a row, `uniforms (b, 2)`.

    `K (b, q + b)` are kernel values with KORS's q points and the block, `place (q,)` the points' columns of it, and
    `scale (q,)` their g sqrt(eta). With `gamma` >= 1 every row enters, and all this is unused.
    """

    gamma: float
    kors: Sampler
    K: Array
    scale: Array
    place: Indices
    uniforms: Array


class Added(NamedTuple):
    """Output of the rounds: predictions `yhat (b,)`, `c (b,)`, and the rest for the `size[0]` rows that entered A.

    `bound` is the sum of the terms of the regret bound, g^2 phi^T A^-1 phi and (eta - curvature)^+ g^2.
    """

    yhat: Array
    c: Array
    L: Array
    y_w: Array
    rows: Indices
    size: Indices
    bound: Array


@compiled
def rounds(block: Block, rule: Rule, coins: Coins, new: Added) -> None:
    """Predict and learn the rows of a block, one after the other; the equations are those of the module."""
    b, alpha = block.y.shape[0], rule.alpha
    v, u = np.empty(b), np.empty(b)
    k, v_kors = np.empty(coins.scale.shape[0]), np.empty(coins.scale.shape[0])
    for t in range(b):
        # v here is the part of the block's own rows; f, d and P include the earlier ones.
        m = new.size[0]
        for j in range(m):
            u[j] = block.K[t, new.rows[j]] - block.P[t, new.rows[j]]
        r = residual(new.L, m, u, block.K[t, t] - block.P[t, t], v)
        f, inner = block.f[t], block.d[t]  # k(x_t, all).c and v.y_w
        for s in range(t):
            f += new.c[s] * block.K[t, s]
            inner += new.c[s] * block.P[t, s]
        for j in range(m):
            inner += v[j] * new.y_w[j]
        ybar = (f - inner) / alpha  # Lemma 1
        yhat = min(max(ybar, -rule.C), rule.C)
        new.yhat[t] = yhat
        g = loss_slope(rule.loss, block.y[t], yhat)
        weight = growth(step_weight(rule, block.first + t + 1), g)
        enters = coins.gamma >= 1.0 or coin(coins, t, math.copysign(math.sqrt(weight), g), k, v_kors)
        # Below that, alpha / weight would dominate the factor, and the row changes nothing.
        enters = enters and weight > 1e-14
        c = (weight * yhat if enters else 0.0) - g  # Lemmas 2 and 4
        if r > 0.0 and ybar != yhat:
            c -= (ybar - yhat) * alpha / r
        new.c[t] = c
        new.bound[0] += g * g * (r / (r * weight + alpha) if enters else r / alpha)
        new.bound[1] += max((weight if enters else 0.0) - growth(rule.curvature, g), 0.0)
        for j in range(m):  # not in the sum's loop: see ridge_rows
            new.y_w[j] += c * v[j]
        for j in range(m):
            inner += c * v[j] * v[j]
        if enters:
            inner += c * block.P[t, t]
            border(new.L, m, v, r, alpha / weight)
            new.y_w[m] = (f + c * block.K[t, t] - inner) / new.L[m, m]
            new.rows[m] = t
            new.size[0] = m + 1


@compiled
def coin(coins: Coins, t: int, scale: float, k: Array, v: Array) -> bool:
    """Whether row t enters A: with probability max(p, gamma), p being KORS's. KORS draws its own number first."""
    q = coins.kors.size[0]
    for j in range(q):
        k[j] = scale * coins.scale[j] * coins.K[t, coins.place[j]]
    own = coins.K.shape[1] - coins.K.shape[0] + t
    p, accepted = offer(coins.kors, k, scale * scale * coins.K[t, own], coins.uniforms[t, 0], v)
    if accepted:
        coins.scale[q] = scale
        coins.place[q] = own
    return coins.uniforms[t, 1] < max(p, coins.gamma)


# -- the learners ------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False)
class KONS(NewtonLearner):
    """Kernel online Newton step: regret that grows with d_eff log T for losses with curvature.

    The exact method costs O(t^2) time and memory a row. The iterate is a difference divided by alpha, so that digits
    are lost where alpha is small: with alpha = 1e-8 and the squared loss predictions have errors of 2e-5 standard
    deviations, where those of `OnlineKRR(lam=alpha / 2)`, the same function, have 8e-7. Args: see `NewtonLearner`.

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
        self._kors, self._gamma = self._new_sampler()

    def _start(self, d: int) -> None:
        self._X, self._c = GrowingRows(d), GrowingRows()
        self._J, self._y_w, self._cholesky = GrowingRows(dtype=np.intp), GrowingRows(), GrowingCholesky()
        self._picked, self._scale = GrowingRows(dtype=np.intp), GrowingRows()
        self._bound = np.zeros(2)
        self._cache: dict[str, Array] = {}

    def _new_sampler(self) -> tuple[KORS, float]:
        """The sampler, and the least probability that a row enters A."""
        return KORS(self._alpha), 1.0

    @property
    def dictionary_size_(self) -> int:
        """See the class."""
        return self._cholesky.t

    @property
    def support_size_(self) -> int:
        """See the class."""
        return self._X.n

    def regret_bound(self, norm: float) -> float:
        """An upper bound of the regret so far against any f with |f| <= `norm` and |f(x_s)| <= C at all rows learnt.

        (alpha |f|^2 + sum_s g_s^2 phi_s^T A_s^-1 phi_s + 4 C^2 sum_s (eta_s - sigma)^+ g_s^2) / 2, which is
        Proposition 1 of the paper without its superfluous factor of two. Regression targets must lie within [-C, C].
        Without a bound C it is infinite, but for weights that are the second derivative.

        Raises:
            ArgumentError: `norm` is negative.
            NotReadyError: nothing was learnt yet.
        """
        self._need_rows()
        norm = check_number("norm", norm, 0.0, "a norm >= 0")
        newton, excess = self._bound
        # Weights that are the second derivative exceed nothing.
        return 0.5 * float(self._alpha * norm**2 + newton + (4.0 * self._C**2 * excess if excess else 0.0))

    def _stream(self, X: Array, y: Array) -> Array:
        yhat = in_blocks(self._block, _BLOCK, X, y)
        self._cache.clear()
        return yhat

    def _block(self, X: Array, y: Array) -> Array:
        t, b = self._X.n, len(X)
        past = self._gram(X, self._X.rows)
        V = self._cholesky.solve(past[:, self._J.rows].T)
        K = self._gram(X, X)
        K[np.diag_indices_from(K)] = self._gram.diag(X)
        block = Block(t, y, past @ self._c.rows, V.T @ self._y_w.rows, K, np.ascontiguousarray(V.T @ V))
        index, size = np.zeros(b, dtype=np.int64), np.zeros(1, dtype=np.int64)
        new = Added(np.empty(b), np.zeros(b), np.zeros((b, b)), np.zeros(b), index, size, self._bound)
        q, coins = self._kors.m, self._coins(K, past)
        rounds(block, self._rule, coins, new)
        entered = new.rows[: size[0]]
        self._y_w.rows[:] += V @ new.c
        self._cholesky.append(V[:, entered], new.L[: len(entered), : len(entered)])
        self._y_w.append(new.y_w[: len(entered)])
        self._J.append(t + entered)
        self._X.append(X)
        self._c.append(new.c)
        self._scale.append(coins.scale[q : self._kors.m])
        self._picked.append(t + coins.place[q : self._kors.m] - q)
        return new.yhat

    def _coins(self, K: Array, past: Array) -> Coins:
        q, b = self._kors.m, len(K)
        sketches = self._gamma < 1.0
        kors = self._kors.sampler(b if sketches else 1)
        scale, place = np.zeros(len(kors.p)), np.zeros(len(kors.p), dtype=np.int64)
        scale[:q], place[:q] = self._scale.rows, np.arange(q)
        with_picked = np.concatenate([past[:, self._picked.rows], K], axis=1)
        uniforms = self._rng.random((b, 2)) if sketches else np.zeros((b, 2))
        return Coins(self._gamma, kors, with_picked, scale, place, uniforms)

    def _expansion(self) -> tuple[Array, Array]:
        if "dual" not in self._cache:
            dual = self._c.rows.copy()
            dual[self._J.rows] -= self._cholesky.solve_transposed(self._y_w.rows)
            self._cache["dual"] = dual / self._alpha
        return self._X.rows, self._cache["dual"]

    _GROWN: ClassVar[tuple[str, ...]] = ("_X", "_c", "_J", "_y_w", "_picked", "_scale")

    def _state(self) -> dict[str, object]:
        grown: dict[str, object] = {name: getattr(self, name).rows for name in self._GROWN}
        factor = np.ascontiguousarray(self._cholesky.factor)
        return {**grown, "factor": factor, "sampler": self._kors.state_dict(), "bound": self._bound}

    def _form(self) -> Form:
        rows = {"_X": Floats(("t", "d")), "_c": Floats(("t",)), "_J": Ints(("m",), "t"), "_y_w": Floats(("m",))}
        sampler = {"_picked": Ints(("q",), "t"), "_scale": Floats(("q",)), "sampler": self._kors.form("q")}
        factor = {"factor": Floats(("m", "m"), diagonal=0.0), "bound": Floats((2,))}
        return Form({**rows, **sampler, **factor}, {} if self._gamma < 1.0 else {"q": 0})

    def _restore(self, state: dict[str, Any]) -> None:
        for name in self._GROWN:
            getattr(self, name).append(state[name])
        self._cholesky.factor = state["factor"]
        self._kors.load_state_dict(state["sampler"])
        self._bound = state["bound"]


@dataclass(kw_only=True, eq=False)
class SketchedKONS(KONS):
    """KONS whose matrix A has only some of the rows: those that KORS accepts, and others at random.

    A row enters with probability max(min(1, beta score), gamma). The cost of A falls by gamma^2 while the regret grows
    by 1 / gamma. The hypothesis itself is not budgeted: all rows are kept, and a row costs O(t) kernel values.

    Args:
        alpha: ridge A_0 = alpha I, and the ridge of KORS.
        min_probability: gamma, the least probability, in [0, 1]; with 1 this is KONS.
        oversampling: beta of KORS.
        eps: accuracy of KORS.
        seed: of the coins, two a row.
        loss, clip, curvature: see `NewtonLearner`.
        kernel, lengthscale, scale: see `OnlineLearner`.

    Example:
        >>> from bkbopt.learners import SketchedKONS
        >>> learner = SketchedKONS(lengthscale=0.2, min_probability=0.5)
        >>> learner = learner.partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.n_rounds_
        (array([-1,  1]), 4)
    """

    min_probability: float = 0.1
    oversampling: float = 1.0
    eps: float = 0.5
    seed: int | None = 0

    def _new_sampler(self) -> tuple[KORS, float]:
        gamma = check_number("min_probability", self.min_probability, 0.0, "a probability")
        if gamma > 1.0:
            raise ArgumentError(f"min_probability: expected a probability, got {self.min_probability!r}.")
        return KORS(self._alpha, self.oversampling, self.eps), gamma
