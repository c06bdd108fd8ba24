"""Perceptrons and gradient descent in the kernel's own space, without a budget and with one.

Each class is one line of the table in its docstring: what a round does *after* the prediction f_t = f(x_t) was made. y
is -1 or +1, l the loss, l' its derivative in the prediction, B the budget. The rounds themselves are compiled
(`_loops_budgeted.py`); each costs one kernel row, O(B d), unless said otherwise.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bkbopt._support.checks import check_number, check_size
from bkbopt.errors import ArgumentError
from bkbopt.learners.expansion import ExpansionLearner, check_step, square
from bkbopt.learners.interop import not_ready
from bkbopt.learners.losses import Array
from bkbopt._support.states import Floats, Form, Number

if TYPE_CHECKING:
    from bkbopt.learners._loops_kernel import Block

__all__ = ["BOGD", "BPAS", "KOGD", "RBP", "Forgetron", "KernelPerceptron", "Projectron", "ProjectronPP"]


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

    def _rounds(self, block: "Block", p: Array) -> None:
        from bkbopt.learners._loops_budgeted import perceptron

        def run(start: int, room: int) -> int:
            return perceptron(block, self._support, self._t, start, 0, room, np.empty(0), p)

        self._with_room(block, run)


@dataclass(kw_only=True, eq=False)
class KOGD(ExpansionLearner):
    """Kernel online gradient descent; NORMA with `ridge` or `window` (Kivinen, Smola and Williamson 2001).

    Weights shrink by 1 - step ridge each round; where l' is not zero, x_t comes in with weight -step l'. Terms older
    than `window` rounds are dropped, at an error of at most step L kappa (1 - step ridge)^window.

    Args:
        loss: "hinge", "squared_hinge", "logistic", "squared" or "absolute".
        step: the learning rate, positive; for the squared loss below 1 / k(x, x), beyond which f grows without end.
        ridge: the regulariser, with step ridge < 1.
        window: how many rounds a term lives; None for ever, and then a round costs as much as there are terms.
        kernel, lengthscale: see `ExpansionLearner`, also for the attributes.

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
        check_step(self.step, self.ridge)
        if self.window is not None:
            check_size("window", self.window)

    def _start(self, d: int) -> None:
        super()._start(d)
        self._squares = 0.0

    def _rounds(self, block: "Block", p: Array) -> None:
        from bkbopt.learners._loops_budgeted import kogd

        window, loss = int(self._own.window or 0), self._loss.code
        step, ridge = float(self._own.step), float(self._own.ridge)

        def run(start: int, room: int) -> int:
            return kogd(block, self._support, self._t, start, loss, step, ridge, window, room, p)

        self._with_room(block, run)
        self._squares += float(block.diagonal @ self._loss.slope(block.y, p) ** 2)

    def regret_bound(self, norm: float) -> float:
        """What the loss so far exceeds that of any f with |f| <= `norm` by at most, in the loss's units.

        |f|^2 / (2 step) + (step / 2) sum_t l'_t^2 k(x_t, x_t), by the usual telescoping sum.

        Raises:
            ArgumentError: `norm` is negative, or there is a ridge or a window, for which this does not hold.
            NotReadyError: nothing was learnt yet.
        """
        if self._dim is None:
            raise not_ready(type(self).__name__)
        radius = check_number("norm", norm, 0.0, "a norm >= 0")
        if self._own.ridge or self._own.window is not None:
            raise ArgumentError("ridge, window: expected neither, since this bound is for plain gradient descent.")
        return radius**2 / (2.0 * float(self._own.step)) + 0.5 * float(self._own.step) * self._squares

    def _state(self) -> dict[str, object]:
        return {**super()._state(), "squares": self._squares}

    def _form(self) -> Form:
        return super()._form().extended({"squares": Number(0.0)})

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._squares = state["squares"]


@dataclass(kw_only=True, eq=False)
class _Budgeted(ExpansionLearner):
    budget: int = 100

    def _check(self, d: int) -> None:
        check_size("budget", self.budget)

    def _most(self) -> int:
        return int(self._own.budget)


@dataclass(kw_only=True, eq=False)
class RBP(_Budgeted):
    """The randomised budget perceptron (Cavallanti, Cesa-Bianchi and Gentile 2007).

    A perceptron that deletes a random term before it adds one to B others.

    Args:
        budget: B.
        seed: of the draws, one a round.
        kernel, lengthscale: see `ExpansionLearner`, also for the attributes.

    Example:
        >>> from bkbopt.learners import RBP
        >>> learner = RBP(budget=2, lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 2)
    """

    loss = "hinge"
    seed: int | None = 0

    def _rounds(self, block: "Block", p: Array) -> None:
        from bkbopt.learners._loops_budgeted import perceptron

        budget, u = int(self._own.budget), self._rng.random(len(p))

        def run(start: int, room: int) -> int:
            return perceptron(block, self._support, self._t, start, budget, room, u, p)

        self._with_room(block, run)


@dataclass(kw_only=True, eq=False)
class Forgetron(_Budgeted):
    """The self-tuned Forgetron (Dekel, Shalev-Shwartz and Singer 2008).

    A perceptron that, when there are B + 1 terms, shrinks all weights by the largest factor that keeps the damage of
    forgetting within 15/32 of the mistakes so far, and deletes the oldest term.

    Args:
        budget: B.
        kernel, lengthscale: see `ExpansionLearner`, also for the attributes.

    Example:
        >>> from bkbopt.learners import Forgetron
        >>> learner = Forgetron(budget=50, lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 2)
    """

    loss = "hinge"

    def _most(self) -> int:
        return int(self._own.budget) + 1

    def _terms(self) -> int:
        return int(self._own.budget)

    def _start(self, d: int) -> None:
        super()._start(d)
        self._matrix, self._sums = square(self._support), np.zeros(2)

    def _rounds(self, block: "Block", p: Array) -> None:
        from bkbopt.learners._loops_budgeted import forgetron

        def run(start: int, room: int) -> int:
            budget = int(self._own.budget)
            return forgetron(block, self._support, self._t, start, budget, room, self._matrix, self._sums, p)

        self._with_room(block, run)

    def _grow(self) -> None:
        super()._grow()
        self._matrix = square(self._support, self._matrix)

    def _state(self) -> dict[str, object]:
        n = self.dictionary_size_
        return {**super()._state(), "matrix": self._matrix[:n, :n].copy(), "sums": self._sums.copy()}

    def _form(self) -> Form:
        return super()._form().extended({"matrix": Floats(("n", "n")), "sums": Floats((2,), 0.0)})

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._matrix, self._sums = square(self._support, state["matrix"]), state["sums"]


@dataclass(kw_only=True, eq=False)
class BPAS(_Budgeted):
    """Budgeted passive-aggressive learning, the simple variant BPA-S (Wang and Vucetic 2010).

    A hinge loss l = max(0, 1 - y f_t) > 0 adds x_t with weight tau y, tau = min(C, l / k(x_t, x_t)), while there is
    room. Then x_t replaces the term r, with the weight a_r k(s_r, x_t) / k(x_t, x_t) + tau y, for which
    |change of f|^2 / 2 + C (loss after) is smallest. The loss after is the same for all, so that is the term with the
    smallest a_r^2 (k(s_r, s_r) - k(s_r, x_t)^2 / k(x_t, x_t)).

    Args:
        budget: B.
        C: the largest step.
        kernel, lengthscale: see `ExpansionLearner`, also for the attributes.

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
        check_number("C", self.C, 0.0, "a positive largest step", strict=True)

    def _rounds(self, block: "Block", p: Array) -> None:
        from bkbopt.learners._loops_budgeted import bpas

        def run(start: int, room: int) -> int:
            return bpas(block, self._support, self._t, start, int(self._own.budget), room, float(self._own.C), p)

        self._with_room(block, run)


@dataclass(kw_only=True, eq=False)
class Projectron(ExpansionLearner):
    """The Projectron (Orabona, Keshet and Caputo 2009).

    A mistake on a point within the distance eta of the span of the terms, or at full budget, adds y times the
    projection of x_t on that span; other mistakes add x_t itself. A mistake costs O(B^2).

    Args:
        eta: distance in the kernel's own space, in units of y; not its square, which some programs take. 0 projects
            what lies in the span up to rounding.
        budget: the largest number of terms; None for none. With eta > 0 a bounded kernel needs no budget.
        kernel, lengthscale: see `ExpansionLearner`, also for the attributes.

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

    def _check(self, d: int) -> None:
        check_number("eta", self.eta, 0.0, "a distance >= 0")
        if self.budget is not None:
            check_size("budget", self.budget)

    def _most(self) -> int | None:
        return None if self._own.budget is None else int(self._own.budget)

    def _start(self, d: int) -> None:
        super()._start(d)
        self._root = square(self._support)

    def _rounds(self, block: "Block", p: Array) -> None:
        from bkbopt.learners._loops_budgeted import projectron

        budget = int(self._own.budget or 0)

        def run(start: int, room: int) -> int:
            eta, margin = float(self._own.eta), self._margin
            return projectron(block, self._support, self._t, budget, room, start, eta, margin, self._root, p)

        self._with_room(block, run)

    def _grow(self) -> None:
        super()._grow()
        self._root = square(self._support, self._root)

    def _state(self) -> dict[str, object]:
        n = self.dictionary_size_
        return {**super()._state(), "root": self._root[:n, :n].copy()}

    def _form(self) -> Form:
        return super()._form().extended({"root": Floats(("n", "n"))})

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._root = square(self._support, state["root"])


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


@dataclass(kw_only=True, eq=False)
class BOGD(_Budgeted):
    """Budgeted online gradient descent (Zhao, Wang, Wu, Jin and Hoi 2012).

    Weights shrink by 1 - step ridge. Where l' is not zero a full budget deletes term i with probability p_i and divides
    the other weights by 1 - p_j, which keeps the expectation of f; then x_t comes in with weight -step l', and all
    weights are scaled so that none exceeds step gamma.

    Args:
        loss: as in `KOGD`.
        budget: B.
        step: the learning rate, positive.
        ridge: the regulariser, with step ridge < 1.
        gamma: bound of the weights in units of the step.
        removal: "uniform", p_i = 1/B; or "weighted", p_i = (1 - c_i / sum c) / (B - 1), c_i = |a_i| sqrt(k(s_i, s_i)).
        seed: of the draws, one a round.
        kernel, lengthscale: see `ExpansionLearner`, also for the attributes.

    Example:
        >>> from bkbopt.learners import BOGD
        >>> learner = BOGD(budget=4, lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 4)
    """

    loss: str = "hinge"
    step: float = 0.2
    ridge: float = 0.0
    gamma: float = 10.0
    removal: Literal["uniform", "weighted"] = "uniform"
    seed: int | None = 0

    def _check(self, d: int) -> None:
        super()._check(d)
        check_step(self.step, self.ridge)
        check_number("gamma", self.gamma, 0.0, "a positive bound", strict=True)
        if self.removal not in ("uniform", "weighted"):
            raise ArgumentError(f'removal: expected "uniform" or "weighted", got {self.removal!r}.')

    def _rounds(self, block: "Block", p: Array) -> None:
        from bkbopt.learners._loops_budgeted import bogd

        step, ridge, gamma = float(self._own.step), float(self._own.ridge), float(self._own.gamma)
        uniform, u = self._own.removal == "uniform", self._rng.random(len(p))
        loss, budget = self._loss.code, int(self._own.budget)

        def run(start: int, room: int) -> int:
            support = self._support
            return bogd(block, support, self._t, start, loss, step, ridge, gamma, budget, room, uniform, u, p)

        self._with_room(block, run)
