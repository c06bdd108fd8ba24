"""Several classes, one against the rest, in one pass.

Internally classes are numbered by order of appearance. The learner itself codes class 0 as -1 and all others as +1. For
two classes this is all. At the first row of a third class the learner becomes that of class 0 against the rest, a copy
with the opposite sign that of class 1, and a new one begins for class 2; each further class begins another one. A
class's learner has learnt the rows from the first row of the class on, whether the class was announced or not, and
however rows are divided among calls. Each costs as much as a learner of two classes. Learners that began together share
random features and samples of rows, since they have the same seed.
"""

import copy
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bkbopt._support.states import Count, Form, Kept, checked, generator_state, refused
from bkbopt.learners.losses import Array

if TYPE_CHECKING:
    from bkbopt.learners.core import LearnerCore

__all__ = ["head_states", "joined", "learn_classes", "margins", "restore_heads"]

_INNER = Form({"rng": Kept(), "state": Kept()})
_HEAD = Form({"rounds": Count(1, "t"), "own": Kept()})


def learn_classes(learner: "LearnerCore", X: Array, codes: npt.NDArray[Any]) -> Array:
    """Predict and learn rows of the classes `codes (n,)`: raw predictions `(n,)`, or margins `(n, K)` of K > 2 classes.

    For two classes the codes may be bools. Margins are minus infinity for a class that has not appeared in earlier
    rows.
    """
    if codes.dtype == np.bool_:
        return learner._stream(X, _signs(codes))
    heads, top = learner._heads, int(codes.max())
    if not heads and top < 2:
        return learner._stream(X, _signs(codes != 0))
    begun = len(heads) + 1 if heads else 2
    first = [int(np.argmax(codes == k)) for k in range(begun, top + 1)]
    out = np.full((len(X), max(begun, top + 1)), -np.inf)
    for a, b in itertools.pairwise(sorted({0, *first, len(X)})):
        rows, own = X[a:b], codes[a:b]
        if a in first:
            _begin_class(learner)
        raw = learner._stream(rows, _signs(own != 0))
        out[a:b, 0], out[a:b, 1] = -raw, raw
        for k, head in enumerate(heads, 1):
            out[a:b, k] = head._stream(rows, _signs(own == k))
            head.n_rounds_ += b - a
        if a in first:
            # The row is predicted before its label is known.
            out[a, len(heads)] = -np.inf
    return out


def margins(learner: "LearnerCore", X: Array, *, one: bool = False) -> Array:
    """Raw predictions `(n,)`, or margins `(n, K)`; with `one` those of the next row of the stream."""
    raw = learner._next(X) if one else learner._raw(X)
    if not learner._heads:
        return raw
    heads = [head._next(X) if one else head._raw(X) for head in learner._heads]
    return np.column_stack([-raw, *heads])


def _begin_class(learner: "LearnerCore") -> None:
    """Begin a learner for one more class, and for the second one if there were two classes."""
    if not learner._heads:
        alike = copy.copy(learner)
        alike._heads, alike._units, alike._recent = [], None, None
        learner._heads.append(alike._copy())
    learner._heads.append(learner._started_clone())
    learner._heads[-1]._recent = None


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


def head_states(learner: "LearnerCore") -> list[dict[str, object]]:
    """The learners of the classes from 1 on, for a state file."""
    # That of class 1 began as a copy of the learner, and has learnt as many rows.
    rounds = [learner.n_rounds_ if k == 1 else head.n_rounds_ for k, head in enumerate(learner._heads, 1)]
    return [{"rounds": t, "own": inner_state(head)} for t, head in zip(rounds, learner._heads, strict=True)]


def restore_heads(learner: "LearnerCore", states: object) -> None:
    """The inverse of `head_states`, for a learner whose classes are known.

    Raises:
        StateFileError: other states.
    """
    seen = len(learner._classes.order)
    if not isinstance(states, list) or len(states) != (seen - 1 if seen > 2 else 0):
        raise refused(
            "the learners of further classes", f"a list of as many as {seen} classes need", type(states).__name__
        )
    for state in states:
        saved = checked(state, _HEAD, {"t": learner.n_rounds_}, "the learner of a further class")
        head = learner._clone()
        restore_inner(head, saved["own"], learner.n_features_in_, saved["rounds"])
        head._set_features(learner.n_features_in_, None)
        head.n_rounds_, head._recent = saved["rounds"], None
        learner._heads.append(head)


def inner_state(learner: "LearnerCore") -> dict[str, object]:
    """The state of a learner alone, and its generator."""
    rng = learner._rng.bit_generator.state if hasattr(learner, "_rng") else None
    return {"rng": rng, "state": learner._state()}


def restore_inner(learner: "LearnerCore", state: object, d: int, rounds: int) -> None:
    """The inverse of `inner_state`, for a learner that is prepared for `d` features but has allocated nothing yet."""
    saved = checked(state, _INNER, where="what was learnt")
    own = checked(saved["state"], learner._form(), {"d": d, "t": rounds}, "what was learnt")
    learner._start(d)
    if hasattr(learner, "_rng"):
        learner._rng.bit_generator.state = generator_state(saved["rng"])
    learner._restore(own)
