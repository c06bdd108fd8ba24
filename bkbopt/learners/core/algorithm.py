"""An algorithm: one pass over rows in units of its own, whose targets are numbers, or the signs of two classes.

| symbol | shape  | units     | meaning                                                                           |
| ------ | ------ | --------- | --------------------------------------------------------------------------------- |
| Z      | (n, d) | -         | rows in the learner's units (`units.py`)                                          |
| y      | (n,)   | -         | targets in these units, or signs -1 and +1                                        |
| raw    | (n,)   | -         | predictions, or margins of the sign +1                                            |

`OnlineLearner` has the methods for users, `Learnt` all between these and an algorithm: units, labels, several classes.
Both call only what `Algorithm` declares.
"""

import copy
import dataclasses
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from bkbopt._support.checks import check_count
from bkbopt._support.state_forms import Form, Kept, checked, generator_state
from bkbopt.errors import ArgumentError
from bkbopt.learners.core.hypothesis import Hypothesis
from bkbopt.learners.core.rows import within_floats
from bkbopt.learners.core.scikit_learn import join
from bkbopt.learners.numerics.gram import Gram, as_gram, is_scale
from bkbopt.learners.numerics.losses import Array, Loss, get_loss

__all__ = ["Algorithm", "in_blocks"]

_SAVED = Form({"rng": Kept(), "state": Kept()})


def in_blocks(f: Callable[..., Array], size: int, *arrays: Array) -> Array:
    """The results `(n,)` of `f` for blocks of at most `size` rows of all arrays, joined."""
    parts = [f(*(A[a : a + size] for A in arrays)) for a in range(0, len(arrays[0]), size)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class _Root:
    """An empty class, which can be exchanged for scikit-learn's base class (`scikit_learn.join`)."""


class Algorithm(_Root, metaclass=ABCMeta):
    """Parameters, what is derived from them, and what the pass has left; subclasses implement seven methods.

    `_prepared` makes one of the same parameters, which are no longer changed, and calls `_check`; `_start` allocates.
    """

    loss: str = "squared"
    kernel: Any
    lengthscale: Any
    scale: Any
    _loss: Loss
    _d: int
    _lengthscale: float
    _gram: Gram
    _rng: np.random.Generator
    #: Parameters of the paper that differ from the defaults.
    _PAPER: ClassVar[dict[str, Any]] = {}
    #: Whether margins of labels are clipped, so that they are no log odds under the logistic loss either.
    _CLIPS: ClassVar[bool] = False

    def __new__(cls, *_: object, **__: object) -> Self:
        """Join scikit-learn's classes if scikit-learn has been imported."""
        join(cls, Algorithm)
        return super().__new__(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    # -- implemented by subclasses ------------------------------------------------------------------------------------

    @abstractmethod
    def _check(self, d: int) -> None:
        """Check the parameters for rows of `d` features, before memory is allocated."""

    @abstractmethod
    def _start(self, d: int) -> None:
        """Allocate for rows of `d` features."""

    @abstractmethod
    def _stream(self, X: Array, y: Array) -> Array:
        """Predict, then learn, one row of `X (n, d)`, `y (n,)` after the other; the raw predictions `(n,)`."""

    @abstractmethod
    def _raw(self, X: Array) -> Array:
        """Raw predictions `(n,)` of the rows `X (n, d)`; changes nothing."""

    @abstractmethod
    def _state(self) -> dict[str, object]:
        """All that `_start` does not compute, except the generator, in a form for `bkbopt._support.files`."""

    @abstractmethod
    def _form(self) -> Form:
        """The form of `_state`, after `_check`; the symbols "d" and "t", the number of rows learnt, are known."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """The inverse of `_state`, after `_start`, for a state of `_form`, whose arrays are not shared."""

    # -- with an implementation that some replace ---------------------------------------------------------------------

    def _next(self, X: Array) -> Array:
        """The prediction of `_stream` for the one row `X (1, d)`; it differs from `_raw` if x itself changes it."""
        return self._raw(X)

    def _may_fail(self, n: int) -> bool:
        """Whether learning `n` rows may fail half-way."""
        return self._runs_user_code()

    def _runs_user_code(self) -> bool:
        """Whether learning runs user code."""
        return hasattr(self, "_gram") and not self._gram.is_builtin

    def hypothesis(self) -> Hypothesis:
        """The function learnt, before predictions are clipped or shrunk, in copies; for labels coded as -1 and +1.

        Raises:
            ArgumentError: it is not an expansion in the kernel, as with features that approximate the kernel.
        """
        raise ArgumentError(f"learner: expected one whose hypothesis is an expansion in its kernel, got {self!r}.")

    # -- common to all ------------------------------------------------------------------------------------------------

    @property
    def _classifies(self) -> bool:
        return self._loss.task == "classification"

    def _prepared(self, d: int, lengthscale: float) -> Self:
        """One of the same parameters, checked for rows of `d` features; `lengthscale` is the number for "scale"."""
        other = type(self)(**self.get_params())
        with within_floats(other._runs_user_code):
            other._prepare(d, lengthscale)
        return other

    def _prepare(self, d: int, lengthscale: float) -> None:
        self._loss, self._d = get_loss(self.loss), d
        self._lengthscale = lengthscale if is_scale(self.lengthscale) else self.lengthscale
        self._gram = as_gram(self.kernel, self._lengthscale, d)
        if hasattr(self, "seed"):
            self._rng = np.random.default_rng(None if self.seed is None else check_count("seed", self.seed, 0))
        self._check(d)

    def _alike(self) -> Self:
        """One of the same parameters, prepared for the same rows."""
        return self._prepared(self._d, self._lengthscale)

    def _started(self) -> Self:
        """This one, prepared before, now ready for its first row."""
        with within_floats(self._runs_user_code):
            self._start(self._d)
        return self

    def _copy(self) -> Self:
        """An independent copy; what does not change, parameters and kernel, is shared."""
        return copy.deepcopy(self, self._fixed())

    def _fixed(self) -> dict[int, object]:
        """Parameters and kernel, for the memory of `copy.deepcopy`."""
        return {id(value): value for value in (*self.get_params().values(), getattr(self, "_gram", None))}

    def _saved(self) -> dict[str, object]:
        """The state and the generator, for a state file."""
        return {"rng": self._rng.bit_generator.state if hasattr(self, "_rng") else None, "state": self._state()}

    def _resume(self, saved: object, rounds: int) -> None:
        """The inverse of `_saved` after this number of rows, for one that `_prepared` made.

        Raises:
            StateFileError: another state.
        """
        whole = checked(saved, _SAVED, where="what was learnt")
        state = checked(whole["state"], self._form(), {"d": self._d, "t": rounds}, "what was learnt")
        self._start(self._d)
        if hasattr(self, "_rng"):
            self._rng.bit_generator.state = generator_state(whole["rng"])
        self._restore(state)
