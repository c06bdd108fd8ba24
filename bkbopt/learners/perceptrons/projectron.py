"""The Projectron and Projectron++ (Orabona, Keshet and Caputo 2009)."""

import math
from dataclasses import dataclass

import numpy as np

from bkbopt._support.checks import check_number, check_size
from bkbopt._support.compiled import compiled, fast
from bkbopt.learners.expansions.expansion import MatrixLearner
from bkbopt.learners.numerics._loops_kernel import Block, Support, append, axpy, inner, kernel_row
from bkbopt.learners.numerics.losses import Array

__all__ = ["Projectron", "ProjectronPP"]


@compiled
def projectron(
    block: Block,
    support: Support,
    first: int,
    start: int,
    room: int,
    root: Array,
    budget: int,
    threshold: float,
    margin: bool,
    p: Array,
) -> int:
    """Projectron, and with `margin` Projectron++ (Orabona, Keshet and Caputo 2009).

    `threshold` is the distance eta in the kernel's own space; `root (cap, cap)` is lower triangular, with root^T root
    the inverse of the terms' kernel matrix. A mistake costs O(B^2).
    """
    cap = support.weights.shape[0]
    k, v, d = np.empty(cap), np.empty(cap), np.empty(cap)
    for t in range(start, block.X.shape[0]):
        if support.size[0] >= room:
            return t
        kernel_row(block, t, support, k)
        n, y, kt = support.size[0], block.y[t], block.diagonal[t]
        p[t] = inner(k, support.weights, n)
        score = y * p[t]
        if score >= 1.0 or (score > 0.0 and not margin):
            continue
        inside = coordinates(root, k, n, v, d)
        outside = max(kt - inside, 0.0)
        # Below a relative 1e-10 the squared distance is rounding; its inverse would make the root inaccurate.
        near = outside <= max(threshold * threshold, 1e-10 * kt)
        if score > 0.0:
            step = margin_step(1.0 - score, math.sqrt(outside), inside, threshold)
            axpy(support.weights, y * step, d, n)
        elif near or n == budget > 0:
            axpy(support.weights, y, d, n)
        else:
            distance = math.sqrt(outside)
            for j in range(n):
                root[n, j] = -d[j] / distance
            root[n, n] = 1.0 / distance
            append(block, t, support, y, first)
    return block.X.shape[0]


@compiled
def margin_step(loss: float, distance: float, inside: float, threshold: float) -> float:
    """Projectron++'s step at a margin error of size `loss`; zero where the point is too far from the terms."""
    if inside <= 0.0:
        return 0.0
    if threshold <= 0.0:
        # The limit for threshold 0: points in the span get the whole step, others none.
        return min(loss / inside, 1.0) if distance == 0.0 else 0.0
    gain = loss - distance / threshold
    return max(0.0, min(loss / inside, 2.0 * gain / inside, 1.0))


@fast
def coordinates(root: Array, k: Array, n: int, v: Array, d: Array) -> float:
    """v = root k and d = K^-1 k = root^T v for the lower triangular root^T root = K^-1; returns |v|^2 = k.d."""
    total = 0.0
    for j in range(n):
        d[j] = 0.0
    for i in range(n):
        s = 0.0
        for j in range(i + 1):
            s += root[i, j] * k[j]
        v[i] = s
        total += s * s
        for j in range(i + 1):
            d[j] += root[i, j] * s
    return total


@dataclass(kw_only=True, eq=False)
class Projectron(MatrixLearner):
    """The Projectron (Orabona, Keshet and Caputo 2009).

    A mistake on a point within the distance eta of the span of the terms, or at full budget, adds y times the
    projection of x_t on that span; other mistakes add x_t itself. A mistake costs O(B^2).

    Args:
        eta: distance in the kernel's own space, in units of y (some programs have its square). With 0, points
            within the span up to rounding are projected.
        budget: the largest number of terms; None for none. With eta > 0 a bounded kernel needs no budget.
        kernel, lengthscale, scale: see `OnlineLearner`; for attributes `ExpansionLearner`.

    Example:
        >>> from bkbopt.learners import Projectron
        >>> learner = Projectron(lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 2)
    """

    loss = "hinge"
    eta: float = 0.1
    budget: int | None = None
    _margin = False
    _MATRIX = "root"

    def _check(self, d: int) -> None:
        self._eta = check_number("eta", self.eta, 0.0, "a distance >= 0")
        self._budget = None if self.budget is None else check_size("budget", self.budget)

    def _max_terms(self) -> int | None:
        return self._budget

    def _rounds(self, block: Block, p: Array) -> None:
        self._run_loop(projectron, block, self._budget or 0, self._eta, self._margin, p)


@dataclass(kw_only=True, eq=False)
class ProjectronPP(Projectron):
    """Projectron++: a Projectron that learns from small margins too (Orabona, Keshet and Caputo 2009).

    With 0 < y f_t < 1, l = 1 - y f_t and D the distance of x_t from the span of the terms, l > D / eta moves f by
    min(l / |P x_t|^2, 2 (l - D / eta) / |P x_t|^2, 1) y times the projection P x_t. Args and attributes: see
    `Projectron`.

    Example:
        >>> from bkbopt.learners import ProjectronPP
        >>> learner = ProjectronPP(lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 2)
    """

    _margin = True
