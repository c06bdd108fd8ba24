"""Online learners as river's classifiers and regressors, for its pipelines, metrics and evaluations.

The features are those of the first row. One that a later row lacks is taken for its mean so far, and one that is new is
ignored, with a warning the first time, since a kernel needs rows of one length. So the first row has to have all of
them: encoders need their categories, `OneHotEncoder(categories={"shop": {"a", "b"}})`.

Rows may also come in data frames, for `learn_many` and its like, with the same result as row by row, and faster. An
empty cell (NaN, None) of a frame is a feature that the row lacks.
"""

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bkbopt.errors import ArgumentError, ArgumentTypeError, extra
from bkbopt.learners import BPAS, KOGD, PKAWV, OnlineLearner, get_loss

with extra("river"):
    from river import base

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RiverClassifier", "RiverRegressor"]

Row = dict[Hashable, Any]
Table = np.ndarray[tuple[int, int], np.dtype[np.float64]]


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
        self._warn_of_new(x)

    def learn_many(self, X: "pd.DataFrame", y: "pd.Series[Any]") -> None:
        """Learn the rows of a frame with the targets `y`, in their order; if they are refused, nothing is learnt.

        The errors are those of `OnlineLearner.partial_fit`, and an `ArgumentError` where the first row of all lacks a
        feature.

        Warns:
            UserWarning: as `learn_one`.
        """
        if not len(X):
            return
        names = list(self._means) if self._n else sorted(X.columns, key=str)
        rows = _numbers(X, names)
        lacking = [name for name, value in zip(names, rows[0], strict=True) if np.isnan(value)]
        if lacking and not self._n:
            raise ArgumentError(f"X: expected all features in the first row, got none for {_some(lacking)}.")
        n, means = self._n, np.array([self._means.get(name, 0.0) for name in names])
        for row in rows:
            n += 1
            row[:] = np.where(np.isnan(row), means, row)
            means = means + (row / n - means / n)
        self._taught.partial_fit(rows, np.asarray(y))
        self._n, self._means = n, dict(zip(names, means.tolist(), strict=True))
        self._warn_of_new(X.columns)

    def _table(self, X: "pd.DataFrame") -> Table:
        """The rows `(n, d)` of a frame, with means for what is missing, to be predicted."""
        rows = _numbers(X, list(self._means))
        return np.where(np.isnan(rows), list(self._means.values()), rows)

    def _warn_of_new(self, names: Iterable[Hashable]) -> None:
        new = [] if self._warned else [name for name in names if name not in self._means]
        if new:
            self._warned = True
            warnings.warn(
                f"x: features that the first row had not are ignored, here {_some(new)}; give the first row all of "
                "them, for OneHotEncoder by categories=.",
                UserWarning,
                stacklevel=3,
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


def _some(names: list[Hashable]) -> str:
    return ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")


def _numbers(X: "pd.DataFrame", names: list[Hashable]) -> Table:
    """The columns of a frame with these names, `(n, len(names))`; NaN where there is no value.

    Raises:
        ArgumentError: two columns with one name, or values that are not finite numbers.
    """
    if not X.columns.is_unique:
        raise ArgumentError(f"X: expected different names of columns, got {_some(list(X.columns))}.")
    out = np.full((len(X), len(names)), np.nan)
    for j, name in enumerate(names):
        if name in X.columns:
            column = X[name].dropna()
            bad = [value for value in column if not _is_finite(value)]
            if bad:
                raise ArgumentError(
                    f"X: expected finite numbers, got {name!r}: {bad[0]!r}; put OneHotEncoder before the learner for "
                    "categories, or leave such columns out."
                )
            out[:, j] = (
                X[name]
                .astype("float64" if len(column) == len(X) else "Float64")
                .to_numpy(dtype=np.float64, na_value=np.nan)
            )
    return out


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except (TypeError, ValueError, OverflowError):
        return False


class RiverClassifier(_Wrapped, base.MiniBatchClassifier):
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

    def predict_many(self, X: "pd.DataFrame") -> "pd.Series[Any]":
        """The predicted labels of the rows of a frame; None before the first row."""
        import pandas as pd

        if not self._n:
            return pd.Series([None] * len(X), index=X.index, dtype=object)
        return pd.Series(self._taught.predict(self._table(X)) if len(X) else [], index=X.index)

    def predict_proba_many(self, X: "pd.DataFrame") -> "pd.DataFrame":
        """The probabilities of the labels seen, a column each; no column before the first row."""
        import pandas as pd

        if not (self._n and len(X)):
            return pd.DataFrame(index=X.index)
        return pd.DataFrame(self._taught.predict_proba(self._table(X)), index=X.index, columns=self._taught.classes_)


class RiverRegressor(_Wrapped, base.MiniBatchRegressor):
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

    def predict_many(self, X: "pd.DataFrame") -> "pd.Series[Any]":
        """The predicted numbers of the rows of a frame; 0 before the first row."""
        import pandas as pd

        if not (self._n and len(X)):
            return pd.Series(np.zeros(len(X)), index=X.index)
        rows = self._table(X)
        # The next row of PKAWV may become an inducing point before it is predicted.
        is_different_alone = isinstance(self._taught, PKAWV)
        values = [*map(self._taught.predict_one, rows)] if is_different_alone else self._taught.predict(rows)
        return pd.Series(values, index=X.index)
