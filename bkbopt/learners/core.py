"""The internal path of rows to a learner and of predictions back, common to all learners.

| symbol | shape  | units     | meaning                                                                           |
| ------ | ------ | --------- | --------------------------------------------------------------------------------- |
| X      | (n, d) | as given  | rows of features                                                                  |
| y      | (n,)   | as given  | targets: numbers, or the numbers of classes (`classes.py`)                        |
| Z      | (n, d) | -         | rows in the learner's units (`units.py`)                                          |
| raw    | (n,)   | y, margin | predictions before they become labels; margins `(n, K)` of more than two classes  |

All public methods call the one method `_stream`. Before it, rows and targets are converted to the learner's units, and
rows of many classes are passed to one learner a class (`several.py`); predictions are converted back.
"""

import contextlib
import copy
import dataclasses
import inspect
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bkbopt._support.checks import check_count, check_flag
from bkbopt._support.states import Form
from bkbopt.errors import ArgumentError
from bkbopt.learners.classes import Classes
from bkbopt.learners.gram import Gram, as_gram, is_scale
from bkbopt.learners.hypothesis import Hypothesis
from bkbopt.learners.interop import half_learnt, join, method_for_labels, not_ready
from bkbopt.learners.losses import Array, Loss, get_loss
from bkbopt.learners.probabilities import Recent
from bkbopt.learners.rows import Names, as_labels, as_numbers, as_row, as_rows, within_floats
from bkbopt.learners.several import joined, learn_classes, margins
from bkbopt.learners.units import Units

__all__ = ["LearnerCore", "in_blocks"]

_CHUNK = 1000
#: With as many rows a copy of the state takes little of the time of learning them.
MANY_ROWS = 256
#: Largest absolute target in the learner's units.
LARGEST_TARGET = 1e50
#: The automatic lengthscale of labels over that of numbers: classes need narrower kernels (docs/design/learners.md).
LABELS_WIDTH = 0.5**0.5
#: Attributes that are kept when a learner begins anew in other units.
_KEPT = ("n_features_in_", "n_rounds_", "_units", "_classes")


def in_blocks(f: Callable[..., Array], size: int, *arrays: Array) -> Array:
    """The results `(n,)` of `f` for blocks of at most `size` rows of all arrays, joined."""
    parts = [f(*(A[a : a + size] for A in arrays)) for a in range(0, len(arrays[0]), size)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class _Root:
    """An empty class, which can be exchanged for scikit-learn's base class (`interop.join`)."""


class LearnerCore(_Root, metaclass=ABCMeta):
    """See the module; `OnlineLearner`, its only subclass, says what learners implement."""

    loss: str = "squared"
    kernel: Any
    lengthscale: Any
    scale: Any
    n_features_in_: int
    n_rounds_: int
    classes_: npt.NDArray[Any]
    feature_names_in_: npt.NDArray[Any]
    _params: Any
    _loss: Loss
    _lengthscale: float
    _gram: Gram
    _rng: np.random.Generator
    _units: Units | None
    _classes: Classes = Classes.none()
    #: The learners of further classes (`several.py`).
    _heads: "list[LearnerCore]"
    #: For probabilities; None if the loss has its own, or for a regression.
    _recent: Recent | None
    #: Whether learning has begun and not ended; after an interrupt the state is a mixture, which loops must not read.
    _is_half_learnt = False
    #: Parameters of the paper that differ from the defaults.
    _PAPER: ClassVar[dict[str, Any]] = {}

    def __new__(cls, *_: object, **__: object) -> Self:
        """Join scikit-learn's classes if scikit-learn has been imported."""
        join(cls, LearnerCore)
        return super().__new__(cls)

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

    def _next(self, X: Array) -> Array:
        """The prediction of `_stream` for the one row `X (1, d)`; it differs from `_raw` if x itself changes it."""
        return self._raw(X)

    def hypothesis(self) -> Hypothesis:
        """The function learnt, before predictions are clipped or shrunk, in copies; for labels coded as -1 and +1.

        Raises:
            ArgumentError: it is not an expansion in the kernel, as with features that approximate the kernel.
        """
        raise ArgumentError(f"learner: expected one whose hypothesis is an expansion in its kernel, got {self!r}.")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    # -- inside -------------------------------------------------------------------------------------------------------

    if not TYPE_CHECKING:  # so that names are checked

        def __getattr__(self, name: str) -> Any:
            """What is computed from rows is no attribute before the first row, as scikit-learn has it."""
            if isinstance(inspect.getattr_static(type(self), name, None), method_for_labels):
                self._need_classification(name)
            if name.startswith("__") or "n_features_in_" in vars(self):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(str(not_ready(type(self).__name__)))

    @property
    def _dim(self) -> int | None:
        return vars(self).get("n_features_in_")  # `__getattr__` takes longer than a prediction

    @property
    def _names(self) -> Names | None:
        names = vars(self).get("feature_names_in_")
        return None if names is None else tuple(names)

    @property
    def _classifies(self) -> bool:
        return self._loss.task == "classification"

    @property
    def _present_loss(self) -> Loss:
        """The loss of what was learnt; before the first row that of the parameter."""
        return get_loss(self.loss) if self._dim is None else self._loss

    def _rows(self, X: object, *, one: bool = False) -> Array:
        return (as_row if one else as_rows)(X, self._names, self._dim, type(self).__name__)

    def _need_rows(self) -> None:
        self._need_whole()
        if self._dim is None:
            raise not_ready(type(self).__name__)

    def _need_whole(self) -> None:
        if self._is_half_learnt:
            raise half_learnt(type(self).__name__)

    def _begin(self, d: int, names: Names | None) -> None:
        self._prepare(d, 1.0)
        self._units = self._new_units(d)
        self._start(d)
        self._set_features(d, names)

    def _prepare(self, d: int, lengthscale: float) -> None:
        """All steps but `_start`; `lengthscale` is the number for "scale"."""
        self._params = type(self)(**self.get_params())
        self._loss, self._units, self._heads = get_loss(self.loss), None, []
        self._recent = Recent() if self._classifies and self._loss.name != "logistic" else None
        self._classes = Classes.none()
        self._lengthscale = lengthscale if is_scale(self.lengthscale) else self.lengthscale
        self._gram = as_gram(self.kernel, self._lengthscale, d)
        if hasattr(self, "seed"):
            self._rng = np.random.default_rng(None if self.seed is None else check_count("seed", self.seed, 0))
        self._check(d)

    def _new_units(self, d: int) -> Units | None:
        """Units before the first row; None if rows are not scaled."""
        scale, automatic = check_flag("scale", self._params.scale), is_scale(self._params.lengthscale)
        if not scale and (not automatic or self._params.kernel is not None):
            return None
        width = LABELS_WIDTH if self._classifies else 1.0
        return Units(d, standardise=scale, targets=not self._classifies, width=width)

    def _set_features(self, d: int, names: Names | None) -> None:
        self.n_features_in_, self.n_rounds_ = d, 0
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _clone(self) -> Self:
        """A learner of the same parameters, in the same units, before `_start`."""
        other = type(self)(**self._params.get_params())
        other._prepare(self.n_features_in_, 1.0 if self._units is None else self._units.lengthscale)
        return other

    def _started_clone(self) -> Self:
        """The same, ready for its first row."""
        other = self._clone()
        other._start(self.n_features_in_)
        other._set_features(self.n_features_in_, None)
        return other

    def _learn(self, X: Array, y: object, names: Names | None, classes: object = None, progress: bool = False) -> Array:
        """Check everything, then learn: the raw predictions. A refused call changes nothing.

        An interrupt is undone if there is a copy; else the learner is not used any more.
        """
        self._need_whole()
        loss = self._present_loss
        known: Classes | None = None
        target: npt.NDArray[Any]
        if loss.task == "classification":
            known, target = self._classes.with_labels(as_labels(y, len(X)), classes)
        else:
            target = as_numbers(y, len(X), loss.name)
        # A user's kernel may raise any error; all changes are undone.
        with contextlib.ExitStack() as undo, within_floats(self._runs_user_code):
            if self._dim is None:
                undo.callback(self._set_attributes, vars(self).copy())
                self._begin(X.shape[1], names)
            elif self._may_fail(len(X)) or (self._units is not None and not self._units.are_fixed):
                undo.callback(self._set_attributes, vars(self._copy()))
            if self._units is None or self._units.are_fixed:
                self._check_size(target)
            self._is_half_learnt = True
            raw = self._learn_chunks(X, target, progress)
            if known is not None:
                self._classes, self.classes_ = known, known.labels
            self.n_rounds_ += len(X)
            del self._is_half_learnt
            undo.pop_all()
        return raw

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        vars(self).clear()
        vars(self).update(attributes)

    def _may_fail(self, n: int) -> bool:
        """Whether learning `n` rows may fail half-way: user code may, and many rows may be interrupted."""
        return n >= MANY_ROWS or self._runs_user_code()

    def _runs_user_code(self) -> bool:
        """Whether learning runs user code."""
        return hasattr(self, "_gram") and not self._gram.is_builtin

    def _copy(self) -> Self:
        """An independent copy; what does not change, parameters and kernel, is shared."""
        fixed = (*self.get_params().values(), getattr(self, "_gram", None))
        return copy.deepcopy(self, {id(value): value for value in fixed})

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
        """Predict and learn rows, with targets or numbers of classes, in the user's units."""
        units, parts, a = self._units, [], 0
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
                other = vars(self._started_clone())
                params = self.get_params()
                vars(self).update({name: other[name] for name in other if name not in params and name not in _KEPT})
                self._learn_scaled(units.scaled_rows(first[0]), units.scaled_targets(first[1]))
            a = b
        return joined(parts)

    def _check_size(self, y: npt.NDArray[Any]) -> None:
        """Refuse targets `(n,)` whose fourth powers, which steps of second order have, may overflow.

        Raises:
            ArgumentError: such a target; nothing was learnt.
        """
        if self._classifies:
            return
        z = y if self._units is None else self._units.scaled_targets(y)
        i = int(np.argmax(np.abs(z)))
        if not abs(z[i]) <= LARGEST_TARGET:
            unit = "standard deviations of the first targets" if self._units is not None else "units"
            raise ArgumentError(
                f"y: expected targets within {LARGEST_TARGET:g} {unit}, got {y[i]} at position {i}; drop such rows, or "
                "clip their targets."
            )

    def _learn_scaled(self, Z: Array, y: npt.NDArray[Any]) -> Array:
        """The same in the learner's units."""
        if not self._classifies:
            return self._stream(Z, y)
        # Targets from `units.store` are floats.
        y = y if y.dtype == np.bool_ else y.astype(np.int64, copy=False)
        raw = learn_classes(self, Z, y)
        if self._recent is not None:
            self._recent.add(raw, y)
        return raw

    def _predicted(self, X: object, *, one: bool = False) -> Array:
        """Raw predictions in the user's units of rows, or with `one` of the next row of the stream."""
        self._need_rows()
        with within_floats(self._runs_user_code):
            rows, units = self._rows(X, one=one), self._units
            if units is None:
                return margins(self, rows, one=one)
            return units.unscaled_targets(margins(self, units.scaled_rows(rows), one=one))
