"""What scikit-learn expects of an estimator beyond its methods; it is imported only where it is there already."""

import functools
import sys
import warnings
from typing import Any

from bkbopt.errors import NotReadyError

__all__ = ["not_ready", "tags", "warn_of_column"]


@functools.cache
def _not_fitted_class() -> type[NotReadyError]:
    from sklearn.exceptions import NotFittedError

    class LearnerNotFittedError(NotReadyError, NotFittedError):  # type: ignore[misc]
        """A `NotReadyError` that scikit-learn's tools know as theirs."""

    return LearnerNotFittedError


def not_ready(name: str) -> NotReadyError:
    """The error for a prediction of the learner `name` before it has learnt anything."""
    kind = _not_fitted_class() if "sklearn" in sys.modules else NotReadyError
    return kind(f"{name}: expected at least one learnt row first; call fit, partial_fit or learn_one.")


def warn_of_column() -> None:
    """Say that targets came as a column `(n, 1)`."""
    category: type[Warning] = UserWarning
    if "sklearn" in sys.modules:
        from sklearn.exceptions import DataConversionWarning

        category = DataConversionWarning
    warnings.warn("A column-vector y was passed when a 1d array was expected; pass y.ravel().", category, stacklevel=4)


def tags(task: str) -> Any:
    """scikit-learn's tags of a learner for "classification" (of two classes) or "regression"."""
    from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

    classifies = task == "classification"
    return Tags(
        estimator_type="classifier" if classifies else "regressor",
        target_tags=TargetTags(required=True),
        classifier_tags=ClassifierTags(multi_class=False) if classifies else None,
        regressor_tags=None if classifies else RegressorTags(),
        input_tags=InputTags(),
    )
