"""Learners whose hypothesis is a kernel expansion f(x) = sum_i a_i k(s_i, x), and the kernel values for their loops.

| symbol  | shape  | units     | meaning                                             |
| ------- | ------ | --------- | --------------------------------------------------- |
| X       | (b, d) | as given  | rows of a block of the stream                       |
| s, a    | n      | as X, y   | support points and weights, in a `Support`          |

Gaussian kernels are computed inside the compiled loops. That is faster than a matrix product for each block, since
support points change all the time. Other kernels are called once a block, on the block against support and block.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bkbopt._support.checks import check_number, check_size
from bkbopt._support.state_forms import Floats, Form, Ints, Size
from bkbopt.learners.base import OnlineLearner
from bkbopt.learners.core.algorithm import in_blocks
from bkbopt.learners.core.hypothesis import Hypothesis
from bkbopt.learners.numerics._loops_kernel import Block, Support, expand
from bkbopt.learners.numerics.gram import GaussianGram, Gram
from bkbopt.learners.numerics.losses import Array, Indices

__all__ = [
    "Budgeted",
    "ExpansionLearner",
    "MatrixLearner",
    "block_of",
    "check_step",
    "new_support",
    "restored_support",
    "rows_of",
    "some_terms",
    "support_state",
]

#: Number of terms allocated at first; larger arrays are allocated when they are needed, up to the budget.
FIRST_ROOM = 64
#: Rows of a block: few enough to stay in the cache.
GAUSSIAN_ROWS = 4096
#: The kernel is computed for all pairs of a block's rows, most of which are not needed: blocks are small.
OTHER_ROWS = 128


def block_of(gram: Gram, X: Array, y: Array, points: Array) -> Block:
    """The rows `X (b, d)` with targets `y (b,)` for the loops; `points (d, n)` are those of the support."""
    diagonal = gram.diag(X)
    if isinstance(gram, GaussianGram):
        return Block(X / gram.scale, y, np.empty((len(X), 0)), diagonal, gram.height)
    return Block(X, y, gram(X, np.vstack([points.T, X])), diagonal, 1.0)


def rows_of(gram: Gram, points: Array) -> Array:
    """Points `(d, n)` in the loops' form as rows `(n, d)` in units of the features."""
    return np.ascontiguousarray(points.T * gram.scale if isinstance(gram, GaussianGram) else points.T)


def new_support(d: int, room: int) -> Support:
    """An expansion without terms, with room for `room` of them."""
    one, index = np.zeros(room), np.zeros(room, dtype=np.int64)
    return Support(np.zeros((d, room)), one, one.copy(), index, index.copy(), np.zeros(1, dtype=np.int64))


def some_terms(support: Support, chosen: Indices, room: int) -> Support:
    """These terms of an expansion `(n,)`, with room for `room` of them."""
    new = new_support(len(support.points), room)
    for old, copied in zip(support[:-1], new[:-1], strict=True):
        copied[..., : len(chosen)] = old[..., chosen]
    new.size[0] = len(chosen)
    return new


def support_state(support: Support) -> dict[str, object]:
    """The terms of an expansion, for a state file."""
    n = int(support.size[0])
    arrays = support._asdict()
    return {name: arrays[name][..., :n].copy() for name in ("points", "weights", "diagonal", "born")}


def restored_support(state: dict[str, Any], room: int) -> Support:
    """The inverse of `support_state`, with room for at least `room` terms."""
    d, n = state["points"].shape
    support = new_support(d, max(room, n))
    arrays = support._asdict()
    for name, values in state.items():
        arrays[name][..., :n] = values
    support.size[0] = n
    number_places(support)
    return support


def number_places(support: Support) -> None:
    """Number the terms as the first columns of the next block's kernel matrix."""
    support.place[:] = np.arange(len(support.place))


def check_step(step: object) -> float:
    """A learning rate, checked to be positive and finite."""
    return check_number("step", step, 0.0, "a positive learning rate", strict=True)


@dataclass(kw_only=True, eq=False)
class ExpansionLearner(OnlineLearner):
    """Base class: streams in blocks, predictions and state files of an expansion.

    Args:
        kernel, lengthscale, scale: see `OnlineLearner`.

    Attributes:
        dictionary_size_: number of terms.
        support_: the points of the terms `(n, d)`, in no particular order.
        weights_: their weights `(n,)`, in units of y; for labels those of `decision_function`, positive for
            `classes_[1]`. With more than two classes those of the first class's learner: all others against that class.
    """

    def _check(self, d: int) -> None:
        """Nothing is to be checked without further parameters."""

    def _start(self, d: int) -> None:
        most = self._max_terms()
        room = FIRST_ROOM if most is None else min(FIRST_ROOM, most)
        self._support, self._t = new_support(d, room), 0

    def _max_terms(self) -> int | None:
        """The largest number of terms, including temporary ones; None for no limit."""
        return None

    @abstractmethod
    def _rounds(self, block: Block, p: Array) -> None:
        """Learn a block, whose first row is round `_t`; predictions go to `p (b,)`."""

    @property
    def _rows_at_once(self) -> int:
        return GAUSSIAN_ROWS if isinstance(self._gram, GaussianGram) else OTHER_ROWS

    def _as_block(self, X: Array, y: Array) -> Block:
        """The rows for the loops."""
        return block_of(self._gram, X, y, self._points())

    def _stream(self, X: Array, y: Array) -> Array:
        return in_blocks(self._learn_block, self._rows_at_once, X, y)

    def _learn_block(self, X: Array, y: Array) -> Array:
        p = np.empty(len(X))
        self._rounds(self._as_block(X, y), p)
        number_places(self._support)
        self._t += len(X)
        return p

    def _raw(self, X: Array) -> Array:
        return in_blocks(self._raw_block, self._rows_at_once, X)

    def _raw_block(self, X: Array) -> Array:
        p = np.empty(len(X))
        expand(self._as_block(X, p), self._support, p)
        return p

    def _run_loop(self, loop: Callable[..., int], block: Block, *args: Any) -> None:
        """Run a compiled loop over a block; it returns the next row where that needs more terms than there is room for.

        It gets the block, the support, the round of the first row, the row to begin with, the room, the arrays of
        `_beside` and `args`.
        """
        t = 0
        while True:
            t = loop(block, self._support, self._t, t, self._full_size(), *self._beside(), *args)
            if t == len(block.X):
                return
            self._grow()

    def _beside(self) -> tuple[Array, ...]:
        """What loops change beside the support."""
        return ()

    def _full_size(self) -> int:
        """The number of terms at which more room is needed: never reached once there is room for the largest."""
        room, most = len(self._support.weights), self._max_terms()
        return room if most is None or room < most else most + 1

    def _grow(self) -> None:
        room, most = 2 * len(self._support.weights), self._max_terms()
        terms = np.arange(self.dictionary_size_)
        self._support = some_terms(self._support, terms, room if most is None else min(room, most))

    def _points(self) -> Array:
        return self._support.points[:, : self._support.size[0]]

    @property
    def dictionary_size_(self) -> int:
        """See the class."""
        return int(self._support.size[0])

    @property
    def support_(self) -> Array:
        """See the class."""
        points, units = self._scaled_points(), self._after_rows().units
        return points if units is None else units.original(points)

    def _scaled_points(self) -> Array:
        """The points `(n, d)` in the learner's units."""
        return rows_of(self._gram, self._points())

    @property
    def weights_(self) -> Array:
        """See the class."""
        learnt = self._after_rows()
        return learnt.classes.sign * self._weights() * (1.0 if learnt.units is None else learnt.units.slope)

    def _weights(self) -> Array:
        """Weights `(n,)` of raw predictions, a copy."""
        return self._support.weights[: self._support.size[0]].copy()

    def hypothesis(self) -> Hypothesis:
        """The expansion; in a second stage within the span of the features."""
        return Hypothesis(self._scaled_points().copy(), self._weights())

    def _state(self) -> dict[str, object]:
        return {"t": self._t, "support": support_state(self._support)}

    def _form(self) -> Form:
        lists = {"points": Floats(("d", "n")), "weights": Floats(("n",)), "diagonal": Floats(("n",))}
        terms = self._terms()
        most = {} if terms is None else {"n": terms}
        return Form({"t": Size("t"), "support": Form({**lists, "born": Ints(("n",), "t")}, most)})

    def _terms(self) -> int | None:
        """The largest number of terms between two rows; None for no limit."""
        return self._max_terms()

    def _restore(self, state: dict[str, Any]) -> None:
        self._t, self._support = state["t"], restored_support(state["support"], len(self._support.weights))


@dataclass(kw_only=True, eq=False)
class Budgeted(ExpansionLearner):
    """Base class of learners with at most `budget` terms."""

    budget: int = 100

    def _check(self, d: int) -> None:
        self._budget = check_size("budget", self.budget)

    def _max_terms(self) -> int:
        return self._budget


@dataclass(kw_only=True, eq=False)
class MatrixLearner(ExpansionLearner):
    """Base class of learners with a matrix of all pairs of terms; `_MATRIX` is its name in state files."""

    _MATRIX: ClassVar[str]

    def _start(self, d: int) -> None:
        super()._start(d)
        self._matrix = self._with_room(np.empty((0, 0)))

    def _with_room(self, A: Array) -> Array:
        """A matrix for as many terms as the support has room for, with `A` in its corner."""
        return np.pad(A, (0, len(self._support.weights) - len(A)))

    def _beside(self) -> tuple[Array, ...]:
        return (self._matrix,)

    def _grow(self) -> None:
        super()._grow()
        self._matrix = self._with_room(self._matrix)

    def _state(self) -> dict[str, object]:
        n = self.dictionary_size_
        return {**super()._state(), self._MATRIX: self._matrix[:n, :n].copy()}

    def _form(self) -> Form:
        return super()._form().extended({self._MATRIX: Floats(("n", "n"))})

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._matrix = self._with_room(state[self._MATRIX])
