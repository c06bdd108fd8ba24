"""The kernel perceptron, without a budget and with a budget kept by random removal."""

from dataclasses import dataclass

import numpy as np

from bkbopt._support.compiled import compiled
from bkbopt.learners.expansions.expansion import Budgeted, ExpansionLearner
from bkbopt.learners.numerics._loops_kernel import Block, Support, append, inner, kernel_row, remove
from bkbopt.learners.numerics.losses import Array

__all__ = ["RBP", "KernelPerceptron"]


@compiled
def perceptron(
    block: Block, support: Support, first: int, start: int, room: int, budget: int, u: Array, p: Array
) -> int:
    """The kernel perceptron; with a budget > 0 a mistake at full budget deletes a random term first (RBP).

    Cavallanti, Cesa-Bianchi and Gentile 2007.
    """
    k = np.empty(support.weights.shape[0])
    for t in range(start, block.X.shape[0]):
        if support.size[0] >= room:
            return t
        kernel_row(block, t, support, k)
        p[t] = inner(k, support.weights, support.size[0])
        if block.y[t] * p[t] <= 0.0:
            if support.size[0] == budget > 0:
                remove(support, int(u[t] * budget))
            append(block, t, support, block.y[t], first)
    return block.X.shape[0]


@dataclass(kw_only=True, eq=False)
class KernelPerceptron(ExpansionLearner):
    """The kernel perceptron: a mistake (y f_t <= 0) adds x_t with weight y.

    The number of terms, and with it the cost of a round, grows with the number of mistakes. Args and attributes: see
    `ExpansionLearner`.

    Example:
        >>> from bkbopt.learners import KernelPerceptron
        >>> learner = KernelPerceptron(lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 2)
    """

    loss = "hinge"

    def _rounds(self, block: Block, p: Array) -> None:
        self._run_loop(perceptron, block, 0, np.empty(0), p)


@dataclass(kw_only=True, eq=False)
class RBP(Budgeted):
    """The randomised budget perceptron (Cavallanti, Cesa-Bianchi and Gentile 2007).

    A perceptron with a budget: at B terms it deletes a random one before it adds another.

    Args:
        budget: B.
        seed: of the draws, one a round.
        kernel, lengthscale, scale: see `OnlineLearner`; for attributes `ExpansionLearner`.

    Example:
        >>> from bkbopt.learners import RBP
        >>> learner = RBP(budget=2, lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 2)
    """

    loss = "hinge"
    seed: int | None = 0

    def _rounds(self, block: Block, p: Array) -> None:
        self._run_loop(perceptron, block, self._budget, self._rng.random(len(p)), p)
