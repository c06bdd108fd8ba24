"""What every online learner shares: scikit-learn's methods, one row at a time, whole streams, state files.

| symbol | shape  | units     | meaning                                                        |
| ------ | ------ | --------- | -------------------------------------------------------------- |
| X      | (n, d) | as given  | rows of features                                               |
| y      | (n,)   | as given  | targets: numbers, or labels of two classes (inside -1 and +1)  |
| raw    | (n,)   | y, margin | predictions before they become labels                          |

A learner predicts a row, then sees its target and learns. All ways in lead to the one method `_stream`, so that rows
one by one, in batches and as a whole stream give the same predictions.
"""

import contextlib
import copy
import dataclasses
import os
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bkbopt._support import files as storage
from bkbopt._support.checks import check_count
from bkbopt.errors import ArgumentError, reading_state
from bkbopt.learners.gram import Gram, as_gram
from bkbopt.learners.hypothesis import Hypothesis
from bkbopt.learners.interop import not_ready, tags
from bkbopt.learners.learner_states import learner_from_state, learner_to_state
from bkbopt.learners.losses import Array, Loss, get_loss
from bkbopt.learners.rows import Names, as_labels, as_numbers, as_row, as_rows, merged_classes, names_of, within_floats
from bkbopt.learners.states import Form

__all__ = ["OnlineLearner"]

KIND = "learner"
_CHUNK = 1000


class OnlineLearner(ABC):
    """Base class of the learners; a subclass is a `@dataclass(kw_only=True, eq=False)` whose fields are its parameters.

    Fields are stored as given and checked when the first row is learnt (in `_start`), as scikit-learn demands; a change
    of a parameter takes effect at the next `fit`. A learner of one fixed loss sets the class attribute `loss`.

    A subclass gives seven methods. `_check` reads the parameters, checks them and sets what follows from them, and
    `_start` allocates; a file's state is held to `_form` between the two, so that a few bytes cannot ask for much
    memory. These are set before they are called: `_own` (an unlearnt twin that keeps the parameters as they are now,
    for methods called later), `_loss` (a `Loss`), `_gram` (a `Gram`, if there is a field `kernel`), `_rng` (a
    generator, if there is a field `seed`). State belongs into attributes with a leading underscore.

    Attributes:
        n_features_in_: d, once a row was learnt.
        n_rounds_: number of rows learnt.
        classes_: the labels seen or announced, sorted; classification only.
        feature_names_in_: names of the features in order; only if the first rows had names.
    """

    loss: str = "squared"
    n_features_in_: int
    n_rounds_: int
    classes_: npt.NDArray[Any]
    feature_names_in_: npt.NDArray[Any]
    _own: Any
    _loss: Loss
    _gram: Gram
    _rng: np.random.Generator
    #: The label that is -1 inside, as a position in `classes_`: the first one of those that the first rows announced or
    #: had. So rows can be learnt before the second label is known: margin losses do not change with the sign.
    _negative: int

    # -- what a subclass gives ----------------------------------------------------------------------------------------

    @abstractmethod
    def _check(self, d: int) -> None:
        """Check the parameters for rows of `d` features; little is allocated yet."""

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
        """All that `_start` does not make anew, as `bkbopt._support.files` can write it, but the generator."""

    @abstractmethod
    def _form(self) -> Form:
        """What `_state` has to be, after `_check`; the symbols "d" and "t", the number of rows learnt, are known."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """The inverse of `_state`, after `_start`, for a state of `_form` whose arrays nobody else has."""

    def _next(self, X: Array) -> Array:
        """What `_stream` would predict for the one row `X (1, d)`; differs from `_raw` where x itself changes it."""
        return self._raw(X)

    def hypothesis(self) -> Hypothesis:
        """What was learnt, before predictions are clipped or shrunk, in copies; raw units, so labels are -1 and +1.

        Raises:
            ArgumentError: it is no expansion in the kernel, as with features that the kernel only resembles.
        """
        raise ArgumentError(f"learner: expected one whose hypothesis is an expansion in its kernel, got {self!r}.")

    # -- scikit-learn's ways ------------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: object) -> Self:
        """Set parameters, with effect from the next `fit` on.

        Raises:
            ArgumentError: a name that is no parameter; nothing is set then.
        """
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ArgumentError(f"{name}: expected one of the parameters {', '.join(known)}.")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        return tags(get_loss(self.loss).task)

    def fit(self, X: object, y: object) -> Self:
        """Forget everything, then learn the rows `X (n, d)` with targets `y (n,)` in one pass.

        Raises:
            ArgumentError: shapes that do not fit, values that are not finite, more than two labels, a parameter out of
                range. What was learnt before stays then.
            ArgumentTypeError: not numbers, or labels for a regression loss.
        """
        fresh = type(self)(**self.get_params())
        fresh.partial_fit(X, y)
        # Not all attributes need be ours: scikit-learn's meta-estimators hang some on for the time of a fit.
        for name in ("classes_", "feature_names_in_"):
            vars(self).pop(name, None)
        vars(self).update(vars(fresh))
        return self

    def partial_fit(self, X: object, y: object, classes: object = None) -> Self:
        """Learn further rows `X (n, d)` with targets `y (n,)`; the errors are those of `fit`.

        Args:
            X: rows of features.
            y: numbers, or labels.
            classes: the two labels, if not both may be in the first rows.
        """
        self._learn(self._rows(X), y, names_of(X), classes)
        return self

    def predict(self, X: object) -> npt.NDArray[Any]:
        """Labels, or numbers in units of y, `(n,)` for the rows `X (n, d)`.

        Raises:
            NotReadyError: nothing was learnt yet.
            ArgumentError: another number of features, or values that are not finite.
        """
        raw = self._predicted(X)
        return self._labels(raw) if self._classifies else raw

    @property
    def decision_function(self) -> Any:
        """For classification: (X (n, d)) -> margins `(n,)`, positive where `classes_[1]` is predicted."""
        loss = get_loss(self.loss) if self._dim is None else self._loss
        if loss.task != "classification":
            raise AttributeError(f"decision_function: {type(self).__name__} with the {loss.name} loss is a regression.")
        return self._decision

    def _decision(self, X: object) -> Array:
        raw = self._predicted(X)
        return self._sign * raw

    def score(self, X: object, y: object) -> float:
        """Accuracy of the predicted labels, or the R^2 of the predicted numbers."""
        predicted = self.predict(X)
        if self._classifies:
            return float(np.mean(predicted == as_labels(y, len(predicted))))
        target = as_numbers(y, len(predicted), self.loss)
        total = float(np.sum((target - target.mean()) ** 2))
        error = float(np.sum((target - predicted) ** 2))
        return 1.0 - error / total if total > 0.0 else float(error == 0.0)

    # -- one row at a time, and whole streams -------------------------------------------------------------------------

    def learn_one(self, x: object, y: object) -> Self:
        """Learn one row: an array `(d,)` or a dict of features, whose names at the first row fix the order.

        The errors are those of `fit`; a dict with other names is refused too.
        """
        self._learn(as_row(x, self._names, self._dim, type(self).__name__), [y], names_of(x), None)
        return self

    def predict_one(self, x: object) -> Any:
        """The label or the number predicted for one row; the errors are those of `predict` and `learn_one`."""
        if self._dim is None:
            raise not_ready(type(self).__name__)
        with within_floats(self._foreign):
            raw = self._next(as_row(x, self._names, self._dim, type(self).__name__))
        return self._labels(raw)[0] if self._classifies else float(raw[0])

    def progressive(
        self, X: object, y: object, *, classes: object = None, decision: bool = False, progress: bool = False
    ) -> npt.NDArray[Any]:
        """Predict each row of `X (n, d)`, then learn it with its target in `y (n,)`: the predictions `(n,)`.

        Args:
            X: rows of features, in the order of the stream.
            y: numbers, or labels.
            classes: the two labels, if not both may be in `y`.
            decision: for classification, return margins and not labels. A margin of zero, as before the first row, says
                nothing; as a label it is `classes_[0]`.
            progress: show a progress bar.
        """
        raw = self._learn(self._rows(X), y, names_of(X), classes, progress)
        if not self._classifies:
            return raw
        return self._sign * raw if decision else self._labels(raw)

    # -- state files --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and all that was learnt to the file `path`; see `bkbopt._support.files.save`."""
        storage.save(path, self.state_dict(), kind=KIND)

    def state_dict(self) -> dict[str, object]:
        """Parameters and all that was learnt, as `bkbopt._support.files` can write it."""
        return learner_to_state(self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, kernel: object = None, features: object = None) -> Self:
        """The learner that `save` wrote; `OnlineLearner.load` reads any of them.

        Args:
            path: the file.
            kernel: the kernel, where the learner had one that is not of `bkbopt.kernels` (its code is not saved).
            features: the feature map, where it had one that `bkbopt.learners.features.saving` does not know.

        Raises:
            StateFileError: the file is damaged, or holds something else.
            ArgumentError: a kernel or a map is needed and was not given.
        """
        saved = storage.load(path, kind=KIND)
        with reading_state("a learner", path), within_floats(lambda: kernel is not None or features is not None):
            return cls.from_state(saved, kernel, features)

    @classmethod
    def from_state(cls, saved: object, kernel: object = None, features: object = None) -> Self:
        """The inverse of `state_dict`; the errors are those of `load`."""
        return learner_from_state(cls, saved, kernel, features)

    # -- inside -------------------------------------------------------------------------------------------------------

    @property
    def _dim(self) -> int | None:
        return getattr(self, "n_features_in_", None)

    @property
    def _names(self) -> Names | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

    @property
    def _classifies(self) -> bool:
        return self._loss.task == "classification"

    @property
    def _sign(self) -> float:
        """What turns raw predictions into margins of `classes_[1]`."""
        return 1.0 if self._negative == 0 else -1.0

    def _rows(self, X: object) -> Array:
        return as_rows(X, self._names, self._dim, type(self).__name__)

    def _begin(self, d: int, names: Names | None) -> None:
        self._prepare(d)
        self._start(d)
        self._became(d, names)

    def _prepare(self, d: int) -> None:
        self._own = type(self)(**self.get_params())
        self._loss = get_loss(self.loss)
        if hasattr(self, "kernel"):
            self._gram = as_gram(self.kernel, getattr(self, "lengthscale", 1.0), d)
        if hasattr(self, "seed"):
            self._rng = np.random.default_rng(None if self.seed is None else check_count("seed", self.seed, 0))
        self._check(d)

    def _became(self, d: int, names: Names | None) -> None:
        self.n_features_in_, self.n_rounds_, self._negative = d, 0, 0
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _learn(self, X: Array, y: object, names: Names | None, classes: object = None, progress: bool = False) -> Array:
        """Check everything, then learn: the raw predictions `(n,)`. A refused call leaves all as it was."""
        loss = get_loss(self.loss) if self._dim is None else self._loss
        labels = None
        if loss.task == "classification":
            labels = as_labels(y, len(X))
            known, negative, target = self._encoded(labels, classes)
        else:
            target = as_numbers(y, len(X), loss.name)
        # A user's kernel may raise any error; all of them are undone.
        with contextlib.ExitStack() as undo, within_floats(self._foreign):
            if self._dim is None:
                undo.callback(self._become, vars(self).copy())
                self._begin(X.shape[1], names)
            elif self._may_fail(len(X)):
                undo.callback(self._become, vars(self._twin()))
            raw = self._chunks(X, target, progress)
            undo.pop_all()
        if labels is not None:
            self.classes_, self._negative = known, negative
        self.n_rounds_ += len(X)
        return raw

    def _become(self, attributes: dict[str, Any]) -> None:
        vars(self).clear()
        vars(self).update(attributes)

    def _may_fail(self, n: int) -> bool:
        """Whether learning `n` rows may fail half-way, as the code of others may."""
        return self._foreign()

    def _foreign(self) -> bool:
        """Whether learning runs code of others."""
        return hasattr(self, "_gram") and not self._gram.ours

    def _twin(self) -> Self:
        """A copy that learns on its own; what does not change, parameters and kernel, is shared."""
        fixed = (*self.get_params().values(), getattr(self, "_gram", None))
        return copy.deepcopy(self, {id(value): value for value in fixed})

    def _chunks(self, X: Array, y: Array, progress: bool) -> Array:
        if not progress:
            return self._stream(X, y)
        from tqdm import tqdm

        out = np.empty(len(X))
        with tqdm(total=len(X), unit="row") as bar:
            for a in range(0, len(X), _CHUNK):
                b = min(a + _CHUNK, len(X))
                out[a:b] = self._stream(X[a:b], y[a:b])
                bar.update(b - a)
        return out

    def _encoded(self, labels: npt.NDArray[Any], classes: object) -> tuple[npt.NDArray[Any], int, Array]:
        """The classes with those of `labels`, the position of the one that is -1 inside, and the labels as -1, +1."""
        old = getattr(self, "classes_", None)
        known = old if classes is None else merged_classes(old, np.asarray(classes), "classes")
        if known is None or len(known) < 2 or not np.isin(labels, known).all():
            known = merged_classes(known, labels)
        negative = 0 if old is None else int(np.flatnonzero(known == old[self._negative])[0])
        return known, negative, np.where(labels == known[negative], -1.0, 1.0)

    def _labels(self, raw: Array) -> npt.NDArray[Any]:
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(raw))
        return self.classes_[(self._sign * raw > 0.0).astype(np.intp)]

    def _predicted(self, X: object) -> Array:
        if self._dim is None:
            raise not_ready(type(self).__name__)
        with within_floats(self._foreign):
            return self._raw(self._rows(X))
