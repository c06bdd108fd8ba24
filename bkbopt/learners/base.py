"""The base of all online learners: scikit-learn's methods, one row at a time, whole streams, state files.

| symbol | shape  | units     | meaning                                                                           |
| ------ | ------ | --------- | --------------------------------------------------------------------------------- |
| X      | (n, d) | as given  | rows of features                                                                  |
| y      | (n,)   | as given  | targets: numbers, or labels                                                       |
| Z      | (n, d) | -         | rows in the learner's units (`units.py`)                                          |
| raw    | (n,)   | y, margin | predictions before they become labels; margins `(n, K)` of more than two classes  |

A learner predicts a row, then reads its target and learns. All public methods call the one method `_stream`, so rows
one by one, in batches and as a whole stream give the same predictions (`core.py`). Learners that compute rows in blocks
round them differently.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from bkbopt._support import files as storage
from bkbopt.errors import ArgumentError, reading_state
from bkbopt.learners.core import LearnerCore
from bkbopt.learners.interop import join, method_for_labels, tags
from bkbopt.learners.learner_states import learner_from_state, learner_to_state
from bkbopt.learners.losses import Array, get_loss
from bkbopt.learners.probabilities import logistic, softmax
from bkbopt.learners.rows import as_labels, as_numbers, names_of, within_floats

if TYPE_CHECKING:
    from bkbopt.learners.surrogate import LearnerSurrogate

__all__ = ["OnlineLearner"]

KIND = "learner"


@dataclass(kw_only=True, eq=False)
class OnlineLearner(LearnerCore):
    """Base class of the learners; a subclass is a `@dataclass(kw_only=True, eq=False)` whose fields are its parameters.

    Args:
        kernel: None for the Gaussian, a kernel of `bkbopt.kernels`, one of GPyTorch, or a callable.
        lengthscale: of the Gaussian, in units of the features; not used with another kernel. "scale" is the root of the
            sum of the features' variances, for labels of half that sum; with standardised features that is the root of
            their number d, or of d / 2.
        scale: whether features, and the targets of a regression, are standardised by the first 128 rows (`units.py`).
            If so, the kernel, a numeric lengthscale, bounds, regrets and features refer to these units.

    Fields are stored as given and checked when the first row is learnt (in `_start`), as scikit-learn demands; a change
    of a parameter takes effect at the next `fit`. A learner of one fixed loss sets the class attribute `loss`.

    A subclass implements seven methods. `_check` checks the parameters and sets what is derived from them; `_start`
    allocates. A state file is checked against `_form` between the two, so that a small file cannot request much memory.
    These attributes are set before the two are called: `_params` (a copy without data that keeps the present parameters
    for methods called later), `_loss` (a `Loss`), `_lengthscale` (a number), `_gram` (a `Gram`), and `_rng` (a
    generator, if there is a field `seed`). State belongs into attributes with a leading underscore.

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
        join(type(self), LearnerCore)
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
        # Not all attributes are the learner's: scikit-learn's meta-estimators set some for the duration of a fit.
        vars(self).update(vars(fresh))
        for name in ("classes_", "feature_names_in_", "_is_half_learnt"):
            if name not in vars(fresh):
                vars(self).pop(name, None)
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
        raw = self._predicted(X)
        return self._classes.predicted(raw) if self._classifies else raw

    @method_for_labels
    def decision_function(self, X: object) -> Array:
        """For classification: margins `(n,)` of the rows `X (n, d)`, positive where `classes_[1]` is predicted.

        With more than two classes `(n, K)`, in the order of `classes_`, and the largest is predicted; minus infinity
        where no row of the class was learnt. The errors are those of `predict`.
        """
        return self._decisions(self._predicted(X))

    @method_for_labels
    def predict_proba(self, X: object) -> Array:
        """For classification: probabilities `(n, K)` of the rows `X (n, d)` in the order of `classes_`.

        The logistic loss has probabilities of its own. Margins of the other losses are calibrated on predictions of the
        last thousand rows made before learning them (see `probabilities.py`); the most probable class is the one that
        `predict` returns. The errors are those of `predict`.
        """
        return self._probabilities(self._predicted(X))

    def _need_classification(self, name: str) -> None:
        loss = self._present_loss
        if loss.task != "classification":
            raise AttributeError(f"{name}: {type(self).__name__} with the {loss.name} loss is a regression.")

    def _decisions(self, raw: Array) -> Array:
        return self._classes.sign * raw if len(self.classes_) <= 2 and raw.ndim == 1 else self._classes.margins(raw)

    def _probabilities(self, raw: Array) -> Array:
        if len(self.classes_) == 1:
            return np.ones((len(raw), 1))
        F = self._classes.margins(raw)
        if self._recent is None:
            return logistic(F)
        # With two classes their margins are f and -f, while f is to be counted once.
        return softmax(0.5 * F if raw.ndim == 1 else F, self._recent.slope())

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
        """Learn one row: an array `(d,)`, or a dict or a series, whose names at the first row fix the order.

        The errors are those of `fit`; other names are refused too.
        """
        self._learn(self._rows(x, one=True), [y], names_of(x), None)
        return self

    def predict_one(self, x: object) -> Any:
        """The label or the number predicted for one row; the errors are those of `predict` and `learn_one`."""
        raw = self._predicted(x, one=True)
        return self._classes.predicted(raw).tolist()[0] if self._classifies else float(raw[0])

    def predict_proba_one(self, x: object) -> dict[Any, float]:
        """The probability of each label for one row, as `predict_proba` has them."""
        self._need_classification("predict_proba_one")
        raw = self._predicted(x, one=True)
        return dict(zip(self.classes_.tolist(), self._probabilities(raw)[0].tolist(), strict=True))

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
        known = self._classes
        raw = self._learn(self._rows(X), y, names_of(X), classes, progress)
        if not self._classifies:
            return raw
        out = self._decisions(raw) if decision else self._classes.predicted(raw)
        announced_pair = classes is not None and not len(known.labels) and len(self._classes.labels) == 2
        if announced_pair or len(known.order) >= 2 or (decision and out.ndim == 1):
            return out
        correct = known.unseen_margins if decision else known.before_second
        return correct(out, as_labels(y, len(out)), self._classes.labels)

    # -- other forms --------------------------------------------------------------------------------------------------

    def as_surrogate(self) -> "LearnerSurrogate":
        """A surrogate for `Optimizer` with a learner of these parameters; this learner must not have data.

        Raises:
            ArgumentError: it has data, or its hypothesis is not an expansion in a kernel, or it learns labels.
        """
        from bkbopt.learners.surrogate import LearnerSurrogate

        return LearnerSurrogate(learner=self)

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
