"""Budgeted passive-aggressive learning (Wang and Vucetic 2010)."""

from dataclasses import dataclass

import numpy as np

from bkbopt._support.checks import check_number
from bkbopt._support.compiled import compiled
from bkbopt.learners.expansions.expansion import Budgeted
from bkbopt.learners.numerics._loops_kernel import Block, Support, append, inner, kernel_row, put
from bkbopt.learners.numerics.losses import Array

__all__ = ["BPAS"]


@compiled
def bpas(block: Block, support: Support, first: int, start: int, room: int, budget: int, C: float, p: Array) -> int:
    """Budgeted passive-aggressive, the simple variant (Wang and Vucetic 2010): only one term is replaced.

    With the weight b_r below, f(x_t) is the same afterwards whichever term r is removed, and so is the loss. The change
    of f is smallest for the term whose part orthogonal to k(x_t, .) is smallest.
    """
    k = np.empty(support.weights.shape[0])
    for t in range(start, block.X.shape[0]):
        if support.size[0] >= room:
            return t
        kernel_row(block, t, support, k)
        n, y, kt = support.size[0], block.y[t], block.diagonal[t]
        p[t] = inner(k, support.weights, n)
        loss = 1.0 - y * p[t]
        if loss <= 0.0 or kt <= 0.0:
            continue
        tau = min(C, loss / kt)
        if n < budget:
            append(block, t, support, tau * y, first)
            continue
        best, chosen = np.inf, 0
        for r in range(n):
            left = support.weights[r] ** 2 * (support.diagonal[r] - k[r] * k[r] / kt)
            if left < best:
                best, chosen = left, r
        put(block, t, support, chosen, support.weights[chosen] * k[chosen] / kt + tau * y, first)
    return block.X.shape[0]


@dataclass(kw_only=True, eq=False)
class BPAS(Budgeted):
    """Budgeted passive-aggressive learning, the simple variant BPA-S (Wang and Vucetic 2010).

    A hinge loss l = max(0, 1 - y f_t) > 0 adds x_t with weight tau y, tau = min(C, l / k(x_t, x_t)), while there is
    room. Then x_t replaces the term r, with the weight a_r k(s_r, x_t) / k(x_t, x_t) + tau y, for which
    |change of f|^2 / 2 + C (loss after) is smallest. The loss after is the same for all, so that is the term with the
    smallest a_r^2 (k(s_r, s_r) - k(s_r, x_t)^2 / k(x_t, x_t)).

    Args:
        budget: B.
        C: the largest step.
        kernel, lengthscale, scale: see `OnlineLearner`; for attributes `ExpansionLearner`.

    Example:
        >>> from bkbopt.learners import BPAS
        >>> learner = BPAS(budget=2, lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 2)
    """

    loss = "hinge"
    C: float = 1.0

    def _check(self, d: int) -> None:
        super()._check(d)
        self._C = check_number("C", self.C, 0.0, "a positive largest step", strict=True)

    def _rounds(self, block: Block, p: Array) -> None:
        self._run_loop(bpas, block, self._budget, self._C, p)
