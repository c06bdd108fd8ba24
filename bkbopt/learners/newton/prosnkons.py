"""PROS-N-KONS: online Newton steps on Nystrom features whose dictionary grows (Calandriello et al. 2017, NIPS).

| symbol | shape  | units     | meaning                                                                  |
| ------ | ------ | --------- | ------------------------------------------------------------------------ |
| S      | (m, d) | as X      | dictionary, rows accepted by KORS                                        |
| W      | (m, r) | 1/y       | W^T k(S, S) W = I_r, z(x) = W^T k_S(x)                                   |
| A      | (r, r) | -         | alpha I + sum of eta g^2 z z^T in this epoch; its inverse is kept        |
| u      | (r,)   | -         | iterate before projection                                                |
| g      | -      | -         | slope of the loss at the prediction z.u clipped to [-C, C]               |

An epoch is the time between two rows that KORS accepts into the dictionary. With `restart=True`, as in the paper, an
accepted row is still predicted and learnt with the old features; then A = alpha I and u = 0, so that the first
prediction of the new epoch is zero. Without restarts, the default, an accepted row enters the dictionary first and is
predicted and learnt with the new features. A new point adds one Gram-Schmidt direction to the features and leaves the
others unchanged, so that the hypothesis carries over: u gets a zero, A a row of alpha I.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bkbopt._support.checks import check_flag, check_number, check_size
from bkbopt._support.compiled import compiled
from bkbopt._support.state_forms import Floats, Form, Size
from bkbopt.learners.core.algorithm import in_blocks
from bkbopt.learners.newton.newton import NewtonLearner, Rule, step_weight
from bkbopt.learners.numerics._loops_kernel import axpy, inner, product
from bkbopt.learners.numerics.growing import GrowingRows
from bkbopt.learners.numerics.kors import KORS, Sampler, offer
from bkbopt.learners.numerics.losses import Array, growth, loss_slope
from bkbopt.learners.numerics.nystrom import grown_root

__all__ = ["ProsNKONS"]

_BLOCK = 256


# -- the rounds of an epoch --------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """b rows to learn after `first` others: kernel values `K (b, m)` with the dictionary, a uniform number a row."""

    first: int
    y: Array
    K: Array
    diagonal: Array
    uniforms: Array


class Epoch(NamedTuple):
    """The state between two new points, changed in place: the map `Wt (r, m)`, A's inverse `(r, r)`, and `u (r,)`."""

    Wt: Array
    A: Array
    u: Array


@compiled
def rounds(
    block: Block, start: int, offered: int, restart: bool, rule: Rule, kors: Sampler, epoch: Epoch, out: Array
) -> tuple[int, bool]:
    """Predict and learn rows from `start` on, up to one that KORS accepts: the next row, and whether one was accepted.

    With z = W^T k_S(x), v = A^-1 z and q = z.v a round moves u by -((ybar - yhat) / q + g / (1 + eta g^2 q)) v: the
    projection on the allowed predictions, then the Newton step. KORS has seen the rows below `offered` already.
    """
    m, r = kors.size[0], epoch.u.shape[0]
    v_kors, z, v = np.empty(m), np.empty(r), np.empty(r)
    for t in range(start, block.K.shape[0]):
        k = block.K[t, :m]
        if not restart and t >= offered and offer(kors, k, block.diagonal[t], block.uniforms[t], v_kors)[1]:
            return t, True
        product(epoch.Wt, k, z)
        product(epoch.A, z, v)
        q, ybar = inner(z, v, r), inner(z, epoch.u, r)
        yhat = min(max(ybar, -rule.C), rule.C)
        out[t] = yhat
        if q > 0.0:
            g = loss_slope(rule.loss, block.y[t], yhat)
            weight = growth(step_weight(rule, block.first + t + 1), g)
            axpy(epoch.u, -((ybar - yhat) / q + g / (1.0 + weight * q)), v, r)
            if weight > 0.0:
                factor = -weight / (1.0 + weight * q)
                for i in range(r):
                    axpy(epoch.A[i], factor * v[i], v, r)
        if restart and offer(kors, k, block.diagonal[t], block.uniforms[t], v_kors)[1]:
            return t + 1, True
    return block.K.shape[0], False


# -- the learner -------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False)
class ProsNKONS(NewtonLearner):
    """Second-order learning at O(m^2) a row with a dictionary of the size of the effective dimension.

    Regret, up to constants: J (alpha |w|^2 + d_eff log T / sigma) + T gamma eps / alpha, for J restarts and the
    ridge gamma of KORS.

    Args:
        kors_ridge: gamma, y squared; None for alpha, so that the last term of the regret is T eps.
        oversampling: beta of KORS.
        eps: accuracy of KORS.
        max_dictionary: KORS stops at this number of points; None, as in the paper, for no limit. Without a limit, rows
            with many columns may all enter the dictionary, and each costs O(m^2).
        restart: whether a new point resets A and u, as the paper's bound requires. Without restarts the learner forgets
            less and predicts more rows well.
        seed: of the uniform numbers, one a row.
        loss, clip, alpha, curvature: see `NewtonLearner`.
        kernel, lengthscale, scale: see `OnlineLearner`.

    Attributes:
        dictionary_size_: number of points m in the dictionary.
        n_restarts_: number of times that the dictionary grew.

    Example:
        >>> from bkbopt.learners import ProsNKONS
        >>> learner = ProsNKONS(lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 4)
    """

    kors_ridge: float | None = None
    oversampling: float = 1.0
    eps: float = 0.5
    max_dictionary: int | None = 200
    restart: bool = False
    seed: int | None = 0

    _SAMPLER: ClassVar[type[KORS]] = KORS
    _PAPER: ClassVar[dict[str, Any]] = {
        **NewtonLearner._PAPER,
        "kors_ridge": 1.0,
        "max_dictionary": None,
        "restart": True,
    }

    def _check(self, d: int) -> None:
        super()._check(d)
        given = self.alpha if self.kors_ridge is None else self.kors_ridge
        ridge = check_number("kors_ridge", given, 0.0, "a positive finite ridge of KORS (y squared)", strict=True)
        limit = None if self.max_dictionary is None else check_size("max_dictionary", self.max_dictionary)
        self._kors = self._SAMPLER(ridge, self.oversampling, self.eps, limit)
        self._restart = check_flag("restart", self.restart)

    def _start(self, d: int) -> None:
        self._S, self._W, self._t = GrowingRows(d), np.zeros((0, 0)), 0
        self._A, self._u = np.zeros((0, 0)), np.zeros(0)

    @property
    def dictionary_size_(self) -> int:
        """See the class."""
        return self._S.n

    @property
    def n_restarts_(self) -> int:
        """See the class; 0 before the first row."""
        return 0 if self._learnt is None else self.dictionary_size_

    def _stream(self, X: Array, y: Array) -> Array:
        return in_blocks(self._block, _BLOCK, X, y)

    def _block(self, X: Array, y: Array) -> Array:
        out = np.empty(len(X))
        K, diagonal, uniforms = self._gram(X, self._S.rows), self._gram.diag(X), self._rng.random(len(X))
        t = offered = 0
        while t < len(X):
            epoch = Epoch(np.ascontiguousarray(self._W.T), self._A, self._u)
            block = Block(self._t, y, K, diagonal, uniforms)
            t, accepted = rounds(block, t, offered, self._restart, self._rule, self._kors.sampler(), epoch, out)
            if accepted:
                new = t - 1 if self._restart else t
                offered = new + 1
                self._grow(X[new], K[new], float(diagonal[new]))
                K = np.concatenate([K, self._gram(X[new : new + 1], X).T], axis=1)
        self._t += len(X)
        return out

    def _grow(self, x: Array, k: Array, prior: float) -> None:
        """Add `x (d,)` with kernel values `k (m,)` to the dictionary, and begin a new epoch."""
        self._S.append(x[None])
        r = len(self._u)
        self._W, _ = grown_root(self._W, k @ self._W, prior)
        A, u = np.eye(self._W.shape[1]) / self._alpha, np.zeros(self._W.shape[1])
        if not self._restart:
            A[:r, :r], u[:r] = self._A, self._u
        self._A, self._u = A, u

    def _expansion(self) -> tuple[Array, Array]:
        return self._S.rows, self._W @ self._u

    def _state(self) -> dict[str, object]:
        return {
            "kors": self._kors.state_dict(),
            "S": self._S.rows,
            "W": self._W,
            "A": self._A,
            "u": self._u,
            "restarts": self._S.n,
            "rounds": self._t,
        }

    def _form(self) -> Form:
        root = {"S": Floats(("m", "d")), "W": Floats(("m", "r"))}
        newton = {"A": Floats(("r", "r")), "u": Floats(("r",))}
        return Form({"kors": self._kors.form(), **root, **newton, "restarts": Size("m"), "rounds": Size("t")})

    def _restore(self, state: dict[str, Any]) -> None:
        self._kors.load_state_dict(state["kors"])
        self._S.append(state["S"])
        self._W, self._A, self._u = state["W"], state["A"], state["u"]
        self._t = state["rounds"]
