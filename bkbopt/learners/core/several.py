"""Several classes, one against the rest, in one pass.

Internally classes are numbered by order of appearance. The first algorithm codes class 0 as -1 and all others as +1.
For two classes this is all. At the first row of a third class it becomes that of class 0 against the rest, a copy
with the opposite sign that of class 1, and a new one begins for class 2; each further class begins another one. A
class's algorithm has learnt the rows from the first row of the class on, whether the class was announced or not, and
however rows are divided among calls. Each costs as much as a learner of two classes. Algorithms that began together
share random features and samples of rows, since they have the same seed.
"""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from bkbopt._support.state_forms import Count, Form, Kept, checked, refused
from bkbopt.learners.core.algorithm import Algorithm
from bkbopt.learners.numerics.losses import Array

__all__ = ["OneAgainstRest", "joined"]

_HEAD = Form({"rounds": Count(1, "t"), "own": Kept()})


class OneAgainstRest:
    """The algorithms of all classes, or the one of two classes or of numbers; all rows are in the learner's units.

    Args:
        first: the first one, before its first row, or restored.
        rounds: the number of rows that it has learnt.
    """

    def __init__(self, first: Algorithm, rounds: int = 0) -> None:
        self.first = first
        #: Those of the classes from 1 on, once there are more than two.
        self.heads: list[Algorithm] = []
        #: The numbers of rows that `first` and `heads` have learnt.
        self.rounds = [rounds]

    def learn_numbers(self, Z: Array, y: Array) -> Array:
        """Predict and learn rows with targets `y (n,)`: the raw predictions `(n,)`."""
        self.rounds[0] += len(Z)
        return self.first._stream(Z, y)

    def learn_classes(self, Z: Array, codes: npt.NDArray[Any]) -> Array:
        """Predict and learn rows of the classes `codes (n,)`: raw predictions `(n,)`, or margins `(n, K)` of K > 2.

        For two classes the codes may be bools. Margins are minus infinity for a class that has not appeared in earlier
        rows.
        """
        if codes.dtype == np.bool_:
            return self.learn_numbers(Z, _signs(codes))
        heads, top = self.heads, int(codes.max())
        if not heads and top < 2:
            return self.learn_numbers(Z, _signs(codes != 0))
        begun = len(heads) + 1 if heads else 2
        first = [int(np.argmax(codes == k)) for k in range(begun, top + 1)]
        out = np.full((len(Z), max(begun, top + 1)), -np.inf)
        for a, b in itertools.pairwise(sorted({0, *first, len(Z)})):
            rows, own = Z[a:b], codes[a:b]
            if a in first:
                self._begin_class()
            raw = self.learn_numbers(rows, _signs(own != 0))
            out[a:b, 0], out[a:b, 1] = -raw, raw
            for k, head in enumerate(heads, 1):
                out[a:b, k] = head._stream(rows, _signs(own == k))
                self.rounds[k] += b - a
            if a in first:
                # The row is predicted before its label is known.
                out[a, len(heads)] = -np.inf
        return out

    def _begin_class(self) -> None:
        """Begin an algorithm for one more class, and for the second one if there were two classes."""
        if not self.heads:
            self.heads.append(self.first._copy())
            self.rounds.append(self.rounds[0])
        self.heads.append(self.first._alike()._started())
        self.rounds.append(0)

    def raw(self, Z: Array, *, one: bool = False) -> Array:
        """Raw predictions `(n,)`, or margins `(n, K)`; with `one` those of the next row of the stream."""
        raw = self.first._next(Z) if one else self.first._raw(Z)
        if not self.heads:
            return raw
        return np.column_stack([-raw, *(head._next(Z) if one else head._raw(Z) for head in self.heads)])

    def may_fail(self, n: int) -> bool:
        """Whether learning `n` rows may fail half-way."""
        return any(one._may_fail(n) for one in (self.first, *self.heads))

    def fixed(self) -> dict[int, object]:
        """What copies share, for the memory of `copy.deepcopy`."""
        return {key: value for one in (self.first, *self.heads) for key, value in one._fixed().items()}

    def head_states(self) -> list[dict[str, object]]:
        """The algorithms of the classes from 1 on, for a state file."""
        return [{"rounds": t, "own": head._saved()} for t, head in zip(self.rounds[1:], self.heads, strict=True)]

    def restore_heads(self, states: object, classes: int) -> None:
        """The inverse of `head_states`, where this number of classes has appeared.

        Raises:
            StateFileError: other states.
        """
        if not isinstance(states, list) or len(states) != (classes - 1 if classes > 2 else 0):
            raise refused(
                "the learners of further classes", f"a list of as many as {classes} classes need", type(states).__name__
            )
        for state in states:
            saved = checked(state, _HEAD, {"t": self.rounds[0]}, "the learner of a further class")
            head = self.first._alike()
            head._resume(saved["own"], saved["rounds"])
            self.heads.append(head)
            self.rounds.append(saved["rounds"])


def _signs(positive: npt.NDArray[np.bool_]) -> Array:
    return np.where(positive, 1.0, -1.0)


def joined(parts: list[Array]) -> Array:
    """Predictions of parts of a stream, joined; later parts may have more classes."""
    if len(parts) == 1:
        return parts[0]
    most = max((part.shape[1] for part in parts if part.ndim == 2), default=0)
    if not most:
        return np.concatenate(parts)
    out = np.full((sum(map(len, parts)), most), -np.inf)
    a = 0
    for part in parts:
        columns = np.column_stack([-part, part]) if part.ndim == 1 else part
        out[a : a + len(part), : columns.shape[1]] = columns
        a += len(part)
    return out
