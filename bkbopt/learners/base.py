"""The base of all online learners: scikit-learn's methods, one row at a time, whole streams, state files.

| symbol | shape  | units     | meaning                                                                           |
| ------ | ------ | --------- | --------------------------------------------------------------------------------- |
| X      | (n, d) | as given  | rows of features                                                                  |
| y      | (n,)   | as given  | targets: numbers, or labels                                                       |
| Z      | (n, d) | -         | rows in the learner's units (`core/units.py`)                                     |
| raw    | (n,)   | y, margin | predictions before they become labels; margins `(n, K)` of more than two classes  |

A learner predicts a row, then reads its target and learns. All public methods end in the one method `_stream` of an
algorithm, so rows one by one, in batches and as a whole stream give the same predictions (`core/learnt.py`). Learners
that compute rows in blocks round them differently.
"""

import inspect
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from bkbopt._support import files as storage
from bkbopt._support.state_forms import Form, Kept, checked
from bkbopt.errors import ArgumentError, reading_state
from bkbopt.learners.core.algorithm import Algorithm
from bkbopt.learners.core.classes import Classes
from bkbopt.learners.core.learnt import LEARNT, Learnt
from bkbopt.learners.core.rows import Names, as_labels, as_numbers, as_row, as_rows, as_weights, names_of, within_floats
from bkbopt.learners.core.scikit_learn import half_learnt, join, method_for_labels, not_ready, tags
from bkbopt.learners.core.state_parts import class_of, params_from_state, params_to_state
from bkbopt.learners.numerics.losses import Array, Loss, get_loss

if TYPE_CHECKING:
    from bkbopt.learners.as_surrogate.surrogate import LearnerSurrogate

__all__ = ["OnlineLearner"]

KIND = "learner"
_SAVED = Form({"class": Kept(), "params": Kept(), "learnt": Kept()})


@dataclass(kw_only=True, eq=False)
class OnlineLearner(Algorithm):
    """Base class of the learners; a subclass is a `@dataclass(kw_only=True, eq=False)` whose fields are its parameters.

    Args:
        kernel: None for the Gaussian, a kernel of `bkbopt.kernels`, one of GPyTorch, or a callable.
        lengthscale: of the Gaussian, in units of the features; not used with another kernel. "scale" is the root of the
            sum of the features' variances, for labels of half that sum; with standardised features that is the root of
            their number d, or of d / 2 (less where features mostly have one value).
        scale: whether features, and the targets of a regression, are standardised by the first 128 rows
            (`core/units.py`). If so, the kernel, a numeric lengthscale, bounds, regrets and features refer to these
            units.

    Fields are stored as given and checked when the first row is learnt, as scikit-learn demands; a change of one takes
    effect at the next `fit`. A learner of one fixed loss sets the class attribute `loss`.

    A learner has parameters and, after the first row, a `Learnt`. The algorithm in it is of the same class: a copy
    without data that keeps the parameters of the first row. A subclass implements the seven methods of `Algorithm`,
    which are called on that copy only. `_check` checks the parameters and sets what is derived from them; `_start`
    allocates. A state file is checked against `_form` between the two, so that a small file cannot request much memory.
    These attributes are set before the two are called: `_loss` (a `Loss`), `_lengthscale` (a number), `_gram` (a
    `Gram`), and `_rng` (a generator, if there is a field `seed`). State belongs into attributes with a leading
    underscore, results into those with one at the end. The learner itself reads its algorithm's attributes as its own;
    methods of a subclass that users call must not set any.

    Attributes:
        n_features_in_: d, once a row was learnt.
        n_rounds_: number of rows learnt.
        classes_: the labels seen or announced, sorted; classification only.
        feature_names_in_: names of the features in order; only if the first rows had names.
    """

    kernel: Any = None
    lengthscale: float | Literal["scale"] = "scale"
    scale: bool = True

    @classmethod
    def paper(cls, **params: object) -> Self:
        """The learner with its paper's parameters: rows and targets unscaled, lengthscale 1, and other differences.

        Args:
            **params: parameters that override these.
        """
        return cls(**{"scale": False, "lengthscale": 1.0, **cls._PAPER, **params})

    # -- scikit-learn's methods ---------------------------------------------------------------------------------------

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
        join(type(self), Algorithm)
        return tags(get_loss(self.loss).task)

    def fit(self, X: object, y: object) -> Self:
        """Forget everything, then learn the rows `X (n, d)` with targets `y (n,)` in one pass.

        Raises:
            ArgumentError: shapes that do not fit, values that are not finite, more than a thousand labels, a parameter
                out of range. What was learnt before is kept then.
            ArgumentTypeError: not numbers, or labels for a regression loss.
        """
        fresh = type(self)(**self.get_params())
        fresh.partial_fit(X, y)
        self._learnt = fresh._learnt
        return self

    def partial_fit(self, X: object, y: object, classes: object = None) -> Self:
        """Learn further rows `X (n, d)` with targets `y (n,)`; the errors are those of `fit`.

        An interrupt (Ctrl-C, a lack of memory) undoes the call if it has 256 rows or more, or is one of the first. A
        shorter one, also `learn_one`, may be stopped in the middle; the learner then raises a `NotReadyError` until it
        begins anew with `fit`.

        Args:
            X: rows of features.
            y: numbers, or labels.
            classes: labels to be in `classes_` whether rows have them or not; rows may have further ones.
        """
        self._learn(self._rows(X), y, names_of(X), classes)
        return self

    def predict(self, X: object) -> npt.NDArray[Any]:
        """Labels, or numbers in units of y, `(n,)` for the rows `X (n, d)`.

        Raises:
            NotReadyError: nothing was learnt yet.
            ArgumentError: another number of features, or values that are not finite.
        """
        learnt, raw = self._predicted(X)
        return learnt.classes.predicted(raw) if learnt.classifies else raw

    @method_for_labels
    def decision_function(self, X: object) -> Array:
        """For classification: margins `(n,)` of the rows `X (n, d)`, positive where `classes_[1]` is predicted.

        With more than two classes `(n, K)`, in the order of `classes_`, and the largest is predicted; minus infinity
        where no row of the class was learnt. The errors are those of `predict`.
        """
        learnt, raw = self._predicted(X)
        return learnt.decisions(raw)

    @method_for_labels
    def predict_proba(self, X: object) -> Array:
        """For classification: probabilities `(n, K)` of the rows `X (n, d)` in the order of `classes_`.

        The logistic loss has probabilities of its own, except for Newton learners and FORKS, which clip predictions.
        Other margins are calibrated on predictions of the last thousand rows made before learning them (see
        `core/probabilities.py`); the most probable class is the one that `predict` returns. The errors are those of
        `predict`.
        """
        learnt, raw = self._predicted(X)
        return learnt.probabilities(raw)

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Accuracy of the predicted labels, or the R^2 of the predicted numbers; rows may have weights `(n,)`."""
        predicted = self.predict(X)
        w = as_weights(sample_weight, len(predicted))
        if self._present_loss.task == "classification":
            return float(np.average(predicted == as_labels(y, len(predicted)), weights=w))
        target = as_numbers(y, len(predicted), self.loss)
        total = float(w @ (target - np.average(target, weights=w)) ** 2)
        error = float(w @ (target - predicted) ** 2)
        return 1.0 - error / total if total > 0.0 else float(error == 0.0)

    # -- one row at a time, and whole streams -------------------------------------------------------------------------

    def learn_one(self, x: object, y: object) -> Self:
        """Learn one row: an array `(d,)`, or a dict or a series, whose names at the first row fix the order.

        The errors are those of `fit`; other names are refused too.
        """
        self._learn(self._rows(x, one=True), [y], names_of(x), None)
        return self

    def predict_one(self, x: object) -> Any:
        """The label or the number predicted for one row; the errors are those of `predict` and `learn_one`."""
        learnt, raw = self._predicted(x, one=True)
        return learnt.classes.predicted(raw).tolist()[0] if learnt.classifies else float(raw[0])

    def predict_proba_one(self, x: object) -> dict[Any, float]:
        """The probability of each label for one row, as `predict_proba` has them."""
        self._need_classification("predict_proba_one")
        learnt, raw = self._predicted(x, one=True)
        return dict(zip(learnt.classes.labels.tolist(), learnt.probabilities(raw)[0].tolist(), strict=True))

    def progressive(
        self, X: object, y: object, *, classes: object = None, decision: bool = False, progress: bool = False
    ) -> npt.NDArray[Any]:
        """Predict each row of `X (n, d)`, then learn it with its target in `y (n,)`: the predictions `(n,)`.

        Args:
            X: rows of features, in the order of the stream.
            y: numbers, or labels.
            classes: see `partial_fit`.
            decision: for classification, return margins and not labels, as `decision_function` does. A margin of zero,
                as before the first row, is undecided, as are margins of minus infinity alone, which more than two
                classes have there; as a label it is `classes_[0]`.
            progress: show a progress bar.
        """
        known = self._known_classes
        learnt, raw = self._learn(self._rows(X), y, names_of(X), classes, progress)
        if not learnt.classifies:
            return raw
        out = learnt.decisions(raw) if decision else learnt.classes.predicted(raw)
        labels = learnt.classes.labels
        announced_pair = classes is not None and not len(known.labels) and len(labels) == 2
        if announced_pair or len(known.order) >= 2 or (decision and out.ndim == 1):
            return out
        correct = known.unseen_margins if decision else known.before_second
        return correct(out, as_labels(y, len(out)), labels)

    # -- other forms --------------------------------------------------------------------------------------------------

    def as_surrogate(self) -> "LearnerSurrogate":
        """A surrogate for `Optimizer` with a learner of these parameters; this learner must not have data.

        Raises:
            ArgumentError: it has data, or its hypothesis is not an expansion in a kernel, or it learns labels.
        """
        from bkbopt.learners.as_surrogate.surrogate import LearnerSurrogate

        return LearnerSurrogate(learner=self)

    # -- state files --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and all that was learnt to the file `path`; see `bkbopt._support.files.save`."""
        storage.save(path, self.state_dict(), kind=KIND)

    def state_dict(self) -> dict[str, object]:
        """Parameters and all that was learnt, as `bkbopt._support.files` can write it."""
        learnt, params = self._whole(), params_to_state(self.get_params())
        saved = None if learnt is None else learnt.state_dict()
        return {"class": type(self).__name__, "params": params, "learnt": saved}

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, kernel: object = None, features: object = None) -> Self:
        """The learner that `save` wrote; `OnlineLearner.load` reads any of them.

        Args:
            path: the file.
            kernel: the kernel, where the learner had one that is not of `bkbopt.kernels` (its code is not saved).
            features: the feature map, where it had one that `bkbopt.learners.features.map_states` does not know.

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
        whole = checked(saved, _SAVED, where="the state of a learner")
        kind: Any = class_of(whole["class"], cls)
        learner: Self = kind(**params_from_state(kind, whole["params"], kernel, features))
        if whole["learnt"] is not None:
            learnt = checked(whole["learnt"], LEARNT, where="what was learnt")
            then = kind(**params_from_state(kind, learnt["params"], kernel, features))
            learner._learnt = Learnt.from_state(then, learnt)
        return learner

    # -- what was learnt ----------------------------------------------------------------------------------------------

    @property
    def n_features_in_(self) -> int:
        """See the class."""
        return self._after_rows().d

    @property
    def n_rounds_(self) -> int:
        """See the class."""
        return self._after_rows().rounds

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """See the class."""
        learnt = self._after_rows()
        if not learnt.classifies:
            raise AttributeError("classes_: a regression has none.")
        return learnt.classes.labels

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """See the class."""
        names = self._after_rows().names
        if names is None:
            raise AttributeError("feature_names_in_: the rows had no names.")
        return np.array(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return self._learnt is not None

    if not TYPE_CHECKING:  # so that names are checked

        def __getattr__(self, name: str) -> Any:
            """What the algorithm has; before the first row there is nothing, as scikit-learn has it."""
            learnt = vars(self).get("_learnt")
            if learnt is not None and name in vars(learnt.runs.first):
                return vars(learnt.runs.first)[name]
            if isinstance(inspect.getattr_static(type(self), name, None), method_for_labels):
                self._need_classification(name)
            if name.startswith("__") or learnt is not None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(str(not_ready(type(self).__name__)))

    # -- inside -------------------------------------------------------------------------------------------------------

    @property
    def _learnt(self) -> Learnt | None:
        """None before the first row; not in `vars` then, where scikit-learn wants parameters only."""
        return vars(self).get("_learnt")

    @_learnt.setter
    def _learnt(self, learnt: Learnt | None) -> None:
        vars(self)["_learnt"] = learnt

    def _after_rows(self) -> Learnt:
        """What was learnt; an `AttributeError` before the first row."""
        if self._learnt is None:
            raise AttributeError(str(not_ready(type(self).__name__)))
        return self._learnt

    def _whole(self) -> Learnt | None:
        """What was learnt, if no interrupt left the half of it."""
        if self._learnt is not None and self._learnt.is_half_done:
            raise half_learnt(type(self).__name__)
        return self._learnt

    def _need_rows(self) -> Learnt:
        learnt = self._whole()
        if learnt is None:
            raise not_ready(type(self).__name__)
        return learnt

    @property
    def _present_loss(self) -> Loss:
        """The loss of what was learnt; before the first row that of the parameter."""
        return get_loss(self.loss) if self._learnt is None else self._learnt.loss

    @property
    def _known_classes(self) -> Classes:
        return Classes.none() if self._learnt is None else self._learnt.classes

    def _need_classification(self, name: str) -> None:
        loss = self._present_loss
        if loss.task != "classification":
            raise AttributeError(f"{name}: {type(self).__name__} with the {loss.name} loss is a regression.")

    def _rows(self, X: object, *, one: bool = False) -> Array:
        learnt = self._learnt
        names, d = (None, None) if learnt is None else (learnt.names, learnt.d)
        return (as_row if one else as_rows)(X, names, d, type(self).__name__)

    def _learn(
        self, X: Array, y: object, names: Names | None, classes: object = None, progress: bool = False
    ) -> tuple[Learnt, Array]:
        """Check everything, then learn: the raw predictions. A refused call changes nothing.

        An interrupt is undone if there is a copy; else the learner is not used any more.
        """
        learnt, loss, known = self._whole(), self._present_loss, self._known_classes
        target: npt.NDArray[Any]
        if loss.task == "classification":
            known, target = known.with_labels(as_labels(y, len(X)), classes)
        else:
            target = as_numbers(y, len(X), loss.name)
        changed = Learnt.none(self, X.shape[1], names) if learnt is None else learnt.to_change(len(X))
        raw = changed.learn(X, target, known, progress)
        self._learnt = changed
        return changed, raw

    def _predicted(self, X: object, *, one: bool = False) -> tuple[Learnt, Array]:
        """What was learnt, and its raw predictions in the user's units, or with `one` that of the next row."""
        learnt = self._need_rows()
        with within_floats(learnt.runs_user_code):
            return learnt, learnt.raw(self._rows(X, one=one), one=one)
