"""Gradient descent in the kernel's own space: KOGD, or NORMA, and BOGD with a budget.

y is the target, f_t = f(x_t) the prediction, l the loss, l' its derivative in the prediction, B the budget. A round
costs one kernel row, O(B d).
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bkbopt._support.checks import check_number, check_size
from bkbopt._support.compiled import compiled, fast
from bkbopt._support.state_forms import Form, Number
from bkbopt.errors import ArgumentError
from bkbopt.learners.expansions.expansion import Budgeted, ExpansionLearner, check_step
from bkbopt.learners.numerics._loops_kernel import Block, Support, append, inner, kernel_row, remove, scale
from bkbopt.learners.numerics.losses import Array, loss_slope

__all__ = ["BOGD", "KOGD"]


@compiled
def kogd(
    block: Block,
    support: Support,
    first: int,
    start: int,
    room: int,
    loss: int,
    step: float,
    ridge: float,
    window: int,
    p: Array,
) -> int:
    """Kernel gradient descent (Kivinen et al. 2001); NORMA with `ridge` and a window of rounds, 0 for no end."""
    k = np.empty(support.weights.shape[0])
    keep = 1.0 - step * ridge
    for t in range(start, block.X.shape[0]):
        if support.size[0] >= room:
            return t
        kernel_row(block, t, support, k)
        n = support.size[0]
        p[t] = inner(k, support.weights, n)
        g = loss_slope(loss, block.y[t], p[t])
        if keep != 1.0:
            scale(support.weights, n, keep)
        if g != 0.0:
            append(block, t, support, -step * g, first)
        if window > 0:
            drop_older(support, first + t + 1 - window)
    return block.X.shape[0]


@compiled
def drop_older(support: Support, born: int) -> None:
    """Drop the terms added before round `born`."""
    j = 0
    while j < support.size[0]:
        if support.born[j] < born:
            remove(support, j)
        else:
            j += 1


@compiled
def bogd(
    block: Block,
    support: Support,
    first: int,
    start: int,
    room: int,
    loss: int,
    step: float,
    ridge: float,
    bound: float,
    budget: int,
    uniform: bool,
    u: Array,
    p: Array,
) -> int:
    """Budgeted online gradient descent (Zhao et al. 2012): a random term is removed, and the others are rescaled."""
    k = np.empty(support.weights.shape[0])
    a = support.weights
    for t in range(start, block.X.shape[0]):
        if support.size[0] >= room:
            return t
        kernel_row(block, t, support, k)
        n = support.size[0]
        p[t] = inner(k, a, n)
        g = loss_slope(loss, block.y[t], p[t])
        scale(a, n, 1.0 - step * ridge)
        if g == 0.0:
            continue
        if n == budget:
            drop_at_random(support, uniform, u[t])
        append(block, t, support, -step * g, first)
        m = largest(a, support.size[0])
        if m > step * bound:
            scale(a, support.size[0], step * bound / m)
    return block.X.shape[0]


@compiled
def drop_at_random(support: Support, uniform: bool, u: float) -> None:
    """Delete term i with probability q_i and divide every other weight by 1 - q_j: the expectation is the same."""
    n, a = support.size[0], support.weights
    if n == 1:
        remove(support, 0)
        return
    if uniform:
        remove(support, int(u * n))
        scale(a, n - 1, n / (n - 1.0))
        return
    total = 0.0
    for j in range(n):
        total += abs(a[j]) * math.sqrt(support.diagonal[j])
    chosen, reached = n - 1, 0.0
    for j in range(n):
        share = abs(a[j]) * math.sqrt(support.diagonal[j]) / total if total > 0.0 else 1.0 / n
        q = (1.0 - share) / (n - 1)
        if reached <= u < reached + q:
            chosen = j
        reached += q
        if q < 1.0:  # else it is the one to go
            a[j] /= 1.0 - q
    remove(support, chosen)


@fast
def largest(a: Array, n: int) -> float:
    """The largest absolute value among the first n."""
    m = 0.0
    for j in range(n):
        m = max(m, abs(a[j]))
    return m


def check_ridge(ridge: object, step: float) -> float:
    """The ridge of gradient descent, checked not to change the weights' signs, which it multiplies by 1 - step ridge.

    Raises:
        ArgumentError: out of range.
        ArgumentTypeError: not a number.
    """
    regulariser = check_number("ridge", ridge, 0.0, "a regulariser >= 0")
    if step * regulariser >= 1.0:
        raise ArgumentError(f"ridge: expected step * ridge below 1, got {step * regulariser:g}; lower one of them.")
    return regulariser


@dataclass(kw_only=True, eq=False)
class KOGD(ExpansionLearner):
    """Kernel online gradient descent; NORMA with `ridge` or `window` (Kivinen, Smola and Williamson 2001).

    Weights shrink by 1 - step ridge each round; if l' is not zero, x_t is added with weight -step l'. Terms older than
    `window` rounds are dropped, with an error of at most step L kappa (1 - step ridge)^window.

    Args:
        loss: "hinge", "squared_hinge", "logistic", "squared" or "absolute".
        step: the learning rate, positive; for the squared loss below 1 / k(x, x), above which f diverges.
        ridge: the regulariser, with step ridge < 1.
        window: rounds for which a term is kept; None for no limit, and then the cost of a round grows with the terms.
        kernel, lengthscale, scale: see `OnlineLearner`; for attributes `ExpansionLearner`.

    Example:
        >>> from bkbopt.learners import KOGD
        >>> learner = KOGD(lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 4)
    """

    loss: str = "hinge"
    step: float = 0.2
    ridge: float = 0.0
    window: int | None = None

    def _check(self, d: int) -> None:
        self._step = check_step(self.step)
        self._ridge = check_ridge(self.ridge, self._step)
        self._window = 0 if self.window is None else check_size("window", self.window)

    def _start(self, d: int) -> None:
        super()._start(d)
        self._squares = 0.0

    def _rounds(self, block: Block, p: Array) -> None:
        self._run_loop(kogd, block, self._loss.code, self._step, self._ridge, self._window, p)
        self._squares += float(block.diagonal @ self._loss.slope(block.y, p) ** 2)

    def regret_bound(self, norm: float) -> float:
        """The largest excess of the loss so far over that of any f with |f| <= `norm`, in the loss's units.

        |f|^2 / (2 step) + (step / 2) sum_t l'_t^2 k(x_t, x_t), by the usual telescoping sum.

        Raises:
            ArgumentError: `norm` is negative, or there is a ridge or a window, for which this does not hold.
            NotReadyError: nothing was learnt yet.
        """
        self._need_rows()
        radius = check_number("norm", norm, 0.0, "a norm >= 0")
        if self._ridge or self._window:
            raise ArgumentError("ridge, window: expected neither, since this bound is for plain gradient descent.")
        return radius**2 / (2.0 * self._step) + 0.5 * self._step * self._squares

    def _state(self) -> dict[str, object]:
        return {**super()._state(), "squares": self._squares}

    def _form(self) -> Form:
        return super()._form().extended({"squares": Number(0.0)})

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._squares = state["squares"]


@dataclass(kw_only=True, eq=False)
class BOGD(Budgeted):
    """Budgeted online gradient descent (Zhao, Wang, Wu, Jin and Hoi 2012).

    Weights shrink by 1 - step ridge. If l' is not zero and the budget is full, term i is deleted with probability p_i
    and the other weights are divided by 1 - p_j, which keeps the expectation of f. Then x_t is added with weight
    -step l', and all weights are scaled so that none exceeds step gamma.

    Args:
        loss: as in `KOGD`.
        budget: B.
        step: the learning rate, positive.
        ridge: the regulariser, with step ridge < 1.
        max_weight: gamma, the bound of the weights in units of the step.
        removal: "uniform", p_i = 1/B; or "weighted", p_i = (1 - c_i / sum c) / (B - 1), c_i = |a_i| sqrt(k(s_i, s_i)).
        seed: of the draws, one a round.
        kernel, lengthscale, scale: see `OnlineLearner`; for attributes `ExpansionLearner`.

    Example:
        >>> from bkbopt.learners import BOGD
        >>> learner = BOGD(budget=4, lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 4)
    """

    loss: str = "hinge"
    step: float = 0.2
    ridge: float = 0.0
    max_weight: float = 10.0
    removal: Literal["uniform", "weighted"] = "uniform"
    seed: int | None = 0

    def _check(self, d: int) -> None:
        super()._check(d)
        self._step = check_step(self.step)
        self._ridge = check_ridge(self.ridge, self._step)
        self._max_weight = check_number("max_weight", self.max_weight, 0.0, "a positive bound", strict=True)
        if self.removal not in ("uniform", "weighted"):
            raise ArgumentError(f'removal: expected "uniform" or "weighted", got {self.removal!r}.')
        self._uniform = self.removal == "uniform"

    def _rounds(self, block: Block, p: Array) -> None:
        rule, u = (self._step, self._ridge, self._max_weight, self._budget, self._uniform), self._rng.random(len(p))
        self._run_loop(bogd, block, self._loss.code, *rule, u, p)
