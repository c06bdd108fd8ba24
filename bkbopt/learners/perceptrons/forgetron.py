"""The self-tuned Forgetron (Dekel, Shalev-Shwartz and Singer 2008)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bkbopt._support.compiled import compiled
from bkbopt._support.state_forms import Floats, Form
from bkbopt.learners.expansions.expansion import Budgeted, MatrixLearner
from bkbopt.learners.numerics._loops_kernel import Block, Support, append, inner, kernel_row, remove, scale
from bkbopt.learners.numerics.losses import Array

__all__ = ["Forgetron"]


@compiled
def forgetron(
    block: Block,
    support: Support,
    first: int,
    start: int,
    room: int,
    gram: Array,
    budget: int,
    sums: Array,
    p: Array,
) -> int:
    """The self-tuned Forgetron (Dekel, Shalev-Shwartz and Singer 2008).

    `gram (cap, cap)` are the kernel values among the terms, `sums` holds Q and the number of mistakes.
    """
    k = np.empty(support.weights.shape[0])
    for t in range(start, block.X.shape[0]):
        if support.size[0] >= room:
            return t
        kernel_row(block, t, support, k)
        n, y = support.size[0], block.y[t]
        p[t] = inner(k, support.weights, n)
        if y * p[t] > 0.0:
            continue
        sums[1] += 1.0
        k[n] = block.diagonal[t]
        for j in range(n + 1):
            gram[n, j] = gram[j, n] = k[j]
        append(block, t, support, y, first)
        if n < budget:
            continue
        r = int(np.argmin(support.born[: n + 1]))
        a = support.weights[r]
        size = abs(a)
        margin = inner(gram[r], support.weights, n + 1) * (1.0 if a > 0.0 else -1.0)
        phi = shrinkage(size, margin, sums[0], sums[1])
        scale(support.weights, n + 1, phi)
        sums[0] += (size * phi) ** 2 + 2.0 * size * phi * (1.0 - phi * margin)
        for j in range(n + 1):
            gram[r, j] = gram[n, j]
        for j in range(n + 1):
            gram[j, r] = gram[j, n]
        remove(support, r)
    return block.X.shape[0]


@compiled
def shrinkage(size: float, margin: float, Q: float, mistakes: float) -> float:
    """The largest factor phi <= 1 for which the damage is at most 15/32 a mistake.

    a phi^2 + b phi + c <= 0 with a = d^2 - 2 d mu, b = 2 d, c = Q - (15/32) M.
    """
    a, b, c = size * size - 2.0 * size * margin, 2.0 * size, Q - 15.0 / 32.0 * mistakes
    if a + b + c <= 0.0 or b == 0.0:
        return 1.0
    if a == 0.0:
        return min(1.0, -c / b)
    # The root between 0 and 1 for either sign of a, without cancellation: (-b + sqrt(D)) / (2 a).
    return -2.0 * c / (b + math.sqrt(b * b - 4.0 * a * c))


@dataclass(kw_only=True, eq=False)
class Forgetron(Budgeted, MatrixLearner):
    """The self-tuned Forgetron (Dekel, Shalev-Shwartz and Singer 2008).

    A perceptron that, when there are B + 1 terms, shrinks all weights and deletes the oldest term. The factor is the
    largest that keeps the damage of the deletions within 15/32 of the number of mistakes so far.

    Args:
        budget: B.
        kernel, lengthscale, scale: see `OnlineLearner`; for attributes `ExpansionLearner`.

    Example:
        >>> from bkbopt.learners import Forgetron
        >>> learner = Forgetron(budget=50, lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 2)
    """

    loss = "hinge"
    _MATRIX = "matrix"

    def _max_terms(self) -> int:
        return self._budget + 1

    def _terms(self) -> int:
        return self._budget

    def _start(self, d: int) -> None:
        super()._start(d)
        self._sums = np.zeros(2)

    def _rounds(self, block: Block, p: Array) -> None:
        self._run_loop(forgetron, block, self._budget, self._sums, p)

    def _state(self) -> dict[str, object]:
        return {**super()._state(), "sums": self._sums.copy()}

    def _form(self) -> Form:
        return super()._form().extended({"sums": Floats((2,), 0.0)})

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._sums = state["sums"]
