"""Online learners as river's classifiers and regressors, for its pipelines, metrics and evaluations.

The features are those of the first row. One that a later row lacks is taken for its mean so far, and one that is new is
ignored, with a warning the first time, since a kernel needs rows of one length. So the first row has to have all of
them: encoders need their categories, `OneHotEncoder(categories={"shop": {"a", "b"}})`.
"""

import math
import warnings
from collections.abc import Callable, Hashable, Iterator
from typing import Any, ClassVar

from bkbopt.errors import ArgumentError, ArgumentTypeError, extra
from bkbopt.learners import BPAS, KOGD, OnlineLearner, get_loss

with extra("river"):
    from river import base

__all__ = ["RiverClassifier", "RiverRegressor"]

Row = dict[Hashable, Any]


class _Wrapped:
    """A learner for one task, as both of river's kinds have it, with the means of the features told so far."""

    _task: ClassVar[str]

    def __init__(self, learner: OnlineLearner) -> None:
        if not isinstance(learner, OnlineLearner) or get_loss(learner.loss).task != self._task:
            raise ArgumentTypeError(f"learner: expected one of bkbopt.learners for {self._task}, got {learner!r}.")
        self.learner = learner
        self._taught = type(learner)(**learner.get_params())
        self._n = 0
        self._means: dict[Hashable, float] = {}
        self._warned = False

    def learn_one(self, x: Row, y: Any) -> None:
        """Learn one row; a refused one changes nothing. The errors are those of `OnlineLearner.learn_one`.

        Warns:
            UserWarning: at the first row with features that the first one of all had not, which are ignored.
        """
        row = self._row(x)
        _of_numbers(self._taught.learn_one, row, y)
        self._n += 1
        n, old = self._n, self._means
        self._means = {name: (m := old.get(name, 0.0)) + (float(v) / n - m / n) for name, v in row.items()}
        if not self._warned and not x.keys() <= self._means.keys():
            self._warned = True
            new = [name for name in x if name not in self._means]
            warnings.warn(
                f"x: features that the first row had not are ignored, here {', '.join(map(repr, new[:3]))}"
                f"{', ...' if len(new) > 3 else ''}; give the first row all of them, for OneHotEncoder by categories=.",
                UserWarning,
                stacklevel=2,
            )

    def _row(self, x: Row) -> Row:
        """The features of the first row, in one order, with means for those that are missing."""
        if not self._n:
            # In an order of its own: random features belong to the columns in theirs.
            return {name: x[name] for name in sorted(x, key=str)}
        return {name: x.get(name, mean) for name, mean in self._means.items()}


def _of_numbers(method: Callable[..., Any], row: Row, *y: Any) -> Any:
    """What a learner's method returns for a row without names, which in river need not be strings as a learner's do.

    Raises:
        ArgumentError: features that are not finite numbers, by their names, or what the method refuses.
        ArgumentTypeError: likewise.
    """
    try:
        return method(list(row.values()), *y)
    except (ArgumentError, ArgumentTypeError) as error:
        bad = [f"{name!r}: {value!r}" for name, value in row.items() if not _is_finite(value)]
        if not bad:
            raise
        more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
        raise type(error)(
            f"x: expected finite numbers, got {', '.join(bad[:3])}{more}; put OneHotEncoder before the learner for "
            "categories, StatImputer for what is missing, or leave such features out."
        ) from error


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except (TypeError, ValueError, OverflowError):
        return False


class RiverClassifier(_Wrapped, base.Classifier):
    """A learner of labels, of two or more classes, as a classifier of river.

    Args:
        learner: of `bkbopt.learners`; it is not changed, and its parameters are what counts.

    Raises:
        ArgumentTypeError: not a learner of labels.

    Example:
        >>> from river import datasets, evaluate, metrics
        >>> from bkbopt.adapters.river import RiverClassifier
        >>> from bkbopt.learners import BPAS
        >>> model = RiverClassifier(BPAS())
        >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.85
        True
    """

    _task = "classification"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"learner": BPAS()}

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_one(self, x: Row, **kwargs: Any) -> Any:
        """The predicted label; None before the first row."""
        return _of_numbers(self._taught.predict_one, self._row(x)) if self._n else None

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Any, float]:
        """The probability of each label seen; no label before the first row."""
        return _of_numbers(self._taught.predict_proba_one, self._row(x)) if self._n else {}


class RiverRegressor(_Wrapped, base.Regressor):
    """A learner of numbers as a regressor of river.

    Args:
        learner: of `bkbopt.learners`; it is not changed, and its parameters are what counts.

    Raises:
        ArgumentTypeError: not a learner of numbers.

    Example:
        >>> from river import datasets, evaluate, metrics
        >>> from bkbopt.adapters.river import RiverRegressor
        >>> from bkbopt.learners import KOGD
        >>> model = RiverRegressor(KOGD(loss="squared"))
        >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE()).get() < 0.4
        True
    """

    _task = "regression"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"learner": KOGD(loss="squared")}

    def predict_one(self, x: Row) -> float:
        """The predicted number; 0 before the first row."""
        return float(_of_numbers(self._taught.predict_one, self._row(x))) if self._n else 0.0
