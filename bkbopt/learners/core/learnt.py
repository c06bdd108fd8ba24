"""All that a learner has learnt: what lies between the user's rows and the algorithm, and the algorithm.

| symbol | shape  | units     | meaning                                                                           |
| ------ | ------ | --------- | --------------------------------------------------------------------------------- |
| X      | (n, d) | as given  | rows of features                                                                  |
| y      | (n,)   | as given  | targets: numbers, or the numbers of classes (`classes.py`)                        |
| Z      | (n, d) | -         | rows in the learner's units (`units.py`)                                          |
| raw    | (n,)   | y, margin | predictions before they become labels; margins `(n, K)` of more than two classes  |

Rows and targets are converted to the learner's units, and go to the algorithms of the classes (`several.py`);
predictions are converted back.
"""

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bkbopt._support.checks import check_flag
from bkbopt._support.state_forms import Count, Form, Kept, checked, refused
from bkbopt.errors import ArgumentError
from bkbopt.learners.core.algorithm import Algorithm
from bkbopt.learners.core.classes import Classes
from bkbopt.learners.core.probabilities import Recent, logistic, softmax
from bkbopt.learners.core.rows import Names, within_floats
from bkbopt.learners.core.several import OneAgainstRest, joined
from bkbopt.learners.core.state_parts import (
    check_dimension,
    classes_from_state,
    classes_to_state,
    names_from_state,
    params_to_state,
)
from bkbopt.learners.core.units import Units
from bkbopt.learners.numerics.gram import is_scale
from bkbopt.learners.numerics.losses import Array, get_loss

__all__ = ["LEARNT", "Learnt"]

_CHUNK = 1000
#: With as many rows a copy of the state takes little of the time of learning them.
MANY_ROWS = 256
#: Largest absolute target in the learner's units.
LARGEST_TARGET = 1e50
#: The automatic lengthscale of labels over that of numbers: classes need narrower kernels (docs/design/learners.md).
LABELS_WIDTH = 0.5**0.5
#: The form of `state_dict`.
LEARNT = Form(
    {
        "params": Kept(),
        "d": Count(1),
        "rounds": Count(1),
        "classes": Kept(),
        "order": Kept(),
        "names": Kept(),
        "units": Kept(),
        "recent": Kept(),
        "own": Kept(),
        "heads": Kept(),
    }
)


class Learnt:
    """See the module.

    Args:
        first: the algorithm, prepared.
        d: number of features.
        units: those of rows and targets; None if these are not scaled.
    """

    def __init__(self, first: Algorithm, d: int, units: Units | None) -> None:
        self.d, self.units = d, units
        self.loss = get_loss(first.loss)
        self.runs = OneAgainstRest(first)
        self.names: Names | None = None
        self.classes = Classes.none()
        own = self.loss.name == "logistic" and not first._CLIPS
        #: For probabilities; None if margins are log odds, or for a regression.
        self.recent = Recent() if self.classifies and not own else None
        #: Whether learning has begun and not ended: the state is a mixture, which compiled loops must not read.
        self.is_half_done = False

    @classmethod
    def none(cls, params: Algorithm, d: int, names: Names | None = None) -> Self:
        """Before the first row, with parameters checked.

        Raises:
            ArgumentError: a parameter is out of range.
            ArgumentTypeError: one has a wrong type.
        """
        first = params._prepared(d, 1.0)
        new = cls(first, d, _new_units(first, d))
        first._started()
        new.names = names
        return new

    @property
    def rounds(self) -> int:
        """Number of rows."""
        return self.runs.rounds[0]

    @property
    def classifies(self) -> bool:
        """Whether targets are labels."""
        return self.loss.task == "classification"

    def runs_user_code(self) -> bool:
        """Whether learning and predicting run user code."""
        return self.runs.first._runs_user_code()

    # -- learning -----------------------------------------------------------------------------------------------------

    def to_change(self, n: int) -> Self:
        """This, or a copy if learning `n` rows may have to be undone: it may fail, or is worth it.

        Copying takes longer than learning a row. User code may raise any error, many rows are likely to be interrupted.
        """
        fails = n >= MANY_ROWS or self.runs.may_fail(n) or (self.units is not None and not self.units.are_fixed)
        return copy.deepcopy(self, self.runs.fixed()) if fails else self

    def learn(self, X: Array, y: npt.NDArray[Any], classes: Classes, progress: bool) -> Array:
        """Learn rows, after which the classes are `classes`: the raw predictions made before.

        Raises:
            ArgumentError: a target that is too large, or floating point overflowed.
        """
        with within_floats(self.runs_user_code):
            if self.units is None or self.units.are_fixed:
                self._check_size(y)
            self.is_half_done = True
            raw = self._learn_chunks(X, y, progress)
            self.classes, self.is_half_done = classes, False
        return raw

    def _learn_chunks(self, X: Array, y: npt.NDArray[Any], progress: bool) -> Array:
        if not progress:
            return self._learn_rows(X, y)
        from tqdm import tqdm

        parts = []
        with tqdm(total=len(X), unit="row") as bar:
            for a in range(0, len(X), _CHUNK):
                parts.append(self._learn_rows(X[a : a + _CHUNK], y[a : a + _CHUNK]))
                bar.update(len(parts[-1]))
        return joined(parts)

    def _learn_rows(self, X: Array, y: npt.NDArray[Any]) -> Array:
        """Predict and learn rows in the user's units."""
        units, parts, a = self.units, [], 0
        if units is None:
            return self._learn_scaled(X, y)
        while a < len(X):
            b = units.valid_until(a, len(X))
            units.scale_constant_columns(X[a:b], y[a:b])
            if not units.are_fixed:
                self._check_size(y[a:b])
            raw = self._learn_scaled(units.scaled_rows(X[a:b]), units.scaled_targets(y[a:b]))
            parts.append(units.unscaled_targets(raw))
            first = units.store(X[a:b], y[a:b])
            if first is not None:
                self._begin_again(units.lengthscale)
                self._learn_scaled(units.scaled_rows(first[0]), units.scaled_targets(first[1]))
            a = b
        return joined(parts)

    def _begin_again(self, lengthscale: float) -> None:
        """Forget the rows, whose units have changed."""
        self.runs = OneAgainstRest(self.runs.first._prepared(self.d, lengthscale)._started())
        self.recent = None if self.recent is None else Recent()

    def _check_size(self, y: npt.NDArray[Any]) -> None:
        """Refuse targets `(n,)` whose fourth powers, which steps of second order have, may overflow.

        Raises:
            ArgumentError: such a target; nothing was learnt.
        """
        if self.classifies:
            return
        z = y if self.units is None else self.units.scaled_targets(y)
        i = int(np.argmax(np.abs(z)))
        if not abs(z[i]) <= LARGEST_TARGET:
            unit = "standard deviations of the first targets" if self.units is not None else "units"
            raise ArgumentError(
                f"y: expected targets within {LARGEST_TARGET:g} {unit}, got {y[i]} at position {i}; drop such rows, or "
                "clip their targets."
            )

    def _learn_scaled(self, Z: Array, y: npt.NDArray[Any]) -> Array:
        """The same in the learner's units."""
        if not self.classifies:
            return self.runs.learn_numbers(Z, y)
        # Targets from `units.store` are floats.
        y = y if y.dtype == np.bool_ else y.astype(np.int64, copy=False)
        raw = self.runs.learn_classes(Z, y)
        if self.recent is not None:
            self.recent.add(raw, y)
        return raw

    # -- predictions --------------------------------------------------------------------------------------------------

    def raw(self, X: Array, *, one: bool = False) -> Array:
        """Raw predictions of the rows `X (n, d)`, or with `one` of the next row of the stream."""
        if self.units is None:
            return self.runs.raw(X, one=one)
        return self.units.unscaled_targets(self.runs.raw(self.units.scaled_rows(X), one=one))

    def decisions(self, raw: Array) -> Array:
        """Margins of the second label `(n,)`, or of all labels `(n, K)`."""
        classes = self.classes
        return classes.sign * raw if len(classes.labels) <= 2 and raw.ndim == 1 else classes.margins(raw)

    def probabilities(self, raw: Array) -> Array:
        """Probabilities of the labels `(n, K)`."""
        if len(self.classes.labels) == 1:
            return np.ones((len(raw), 1))
        F = self.classes.margins(raw)
        if self.recent is None:
            return logistic(F)
        # With two classes their margins are f and -f, while f is to be counted once.
        return softmax(0.5 * F if raw.ndim == 1 else F, self.recent.slope())

    # -- state files --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, object]:
        """For a state file."""
        return {
            "params": params_to_state(self.runs.first.get_params()),
            "d": self.d,
            "rounds": self.rounds,
            "classes": classes_to_state(self.classes.labels) if self.classifies else None,
            "order": self.classes.order.tolist(),
            "names": self.names,
            "units": None if self.units is None else self.units.state_dict(),
            "recent": None if self.recent is None else self.recent.state_dict(),
            "own": self.runs.first._saved(),
            "heads": self.runs.head_states(),
        }

    @classmethod
    def from_state(cls, params: Algorithm, state: dict[str, Any]) -> Self:
        """The inverse of `state_dict`, with its parameters, for a state of the form `LEARNT`.

        Raises:
            StateFileError: parts that do not fit.
            ArgumentError: a parameter is out of range.
        """
        d, t = state["d"], state["rounds"]
        check_dimension(d, state)
        first = params._prepared(d, 1.0)
        units = _new_units(first, d)
        if units is not None:
            saved = checked(state["units"], units.form(), {"d": d}, "the units")
        elif state["units"] is not None:
            raise refused("the units", "None for a learner without", type(state["units"]).__name__)
        labels = get_loss(params.loss).task == "classification"
        classes = classes_from_state(state["classes"], state["order"], labels)
        if units is not None:
            units.load_state_dict(saved, t, len(classes.order) if labels else None)
            first = params._prepared(d, units.lengthscale)
        first._resume(state["own"], t)
        new = cls(first, d, units)
        new.names, new.classes, new.runs = names_from_state(state["names"], d), classes, OneAgainstRest(first, t)
        new.runs.restore_heads(state["heads"], len(classes.order))
        if new.recent is not None:
            recent = new.recent.form(len(classes.order))
            new.recent.load_state_dict(checked(state["recent"], recent, where="the last margins"))
        elif state["recent"] is not None:
            raise refused("the last margins", "None for a learner without", type(state["recent"]).__name__)
        return new


def _new_units(algorithm: Algorithm, d: int) -> Units | None:
    """Units before the first row; None if rows are not scaled."""
    scale, automatic = check_flag("scale", algorithm.scale), is_scale(algorithm.lengthscale)
    if not scale and (not automatic or algorithm.kernel is not None):
        return None
    labels = get_loss(algorithm.loss).task == "classification"
    return Units(d, standardise=scale, targets=not labels, width=LABELS_WIDTH if labels else 1.0)
