"""What scikit-learn requires of an estimator beyond its methods; scikit-learn is not imported unless it already is."""

import functools
import sys
import warnings
from collections.abc import Callable
from types import MethodType
from typing import Any

from bkbopt.errors import NotReadyError

__all__ = ["half_learnt", "join", "method_for_labels", "not_ready", "tags", "warn_of_column"]


class method_for_labels:  # noqa: N801  # a decorator
    """A method that a regression does not have: scikit-learn's tools ask for it by `hasattr`, and use its name."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __get__(self, learner: Any, owner: type | None = None) -> Callable[..., Any]:
        """The method, bound to a learner of labels; for another one an `AttributeError`."""
        if learner is None:
            return self._method
        learner._need_classification(self._method.__name__)
        return MethodType(self._method, learner)


@functools.cache
def _not_fitted_class() -> type[NotReadyError]:
    from sklearn.exceptions import NotFittedError

    class LearnerNotFittedError(NotReadyError, NotFittedError):  # type: ignore[misc]
        """A `NotReadyError` that scikit-learn's tools recognise."""

    return LearnerNotFittedError


def join(cls: type, core: type) -> None:
    """Put scikit-learn's base class and mixins below `cls`, a learner below `core`, once scikit-learn is imported.

    A class's bases may be exchanged for others of the same layout, so `core` has an empty base. Learners of one loss
    get the mixin of their task; those with a parameter `loss` state their task by their tags. What scikit-learn does
    when a subclass is made, which adds `set_score_request` and the like, is done for those made before.
    """
    if "sklearn.base" not in sys.modules:
        return
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

    if not issubclass(core, BaseEstimator):
        core.__bases__ = (BaseEstimator,)
    for one in reversed(cls.__mro__):
        fixed = issubclass(one, core) and "loss" not in getattr(one, "__dataclass_fields__", {"loss": None})
        if fixed and not one.__abstractmethods__:  # type: ignore[attr-defined]
            mixin = RegressorMixin if one.loss == "squared" else ClassifierMixin  # type: ignore[attr-defined]
            if not issubclass(one, mixin):
                one.__bases__ = (mixin, *one.__bases__)
        if issubclass(one, core) and one is not core and "set_score_request" not in vars(one):
            BaseEstimator.__init_subclass__.__func__(one)


def not_ready(name: str) -> NotReadyError:
    """The error for a prediction of the learner `name` before it has learnt anything."""
    return _not_fitted(f"{name}: expected at least one learnt row first; call fit, partial_fit or learn_one.")


def half_learnt(name: str) -> NotReadyError:
    """The error for a use of the learner `name` after an interrupt that could not be undone."""
    return _not_fitted(
        f"{name}: expected a learner whose last call ended, got one that was stopped in the middle of learning "
        "(Ctrl-C, a lack of memory); load its state file, or begin anew with fit."
    )


def _not_fitted(message: str) -> NotReadyError:
    return (_not_fitted_class() if "sklearn" in sys.modules else NotReadyError)(message)


def warn_of_column() -> None:
    """Warn that targets came as a column `(n, 1)`."""
    category: type[Warning] = UserWarning
    if "sklearn" in sys.modules:
        from sklearn.exceptions import DataConversionWarning

        category = DataConversionWarning
    warnings.warn("A column-vector y was passed when a 1d array was expected; pass y.ravel().", category, stacklevel=4)


def tags(task: str) -> Any:
    """scikit-learn's tags of a learner for "classification" or "regression"."""
    from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

    classifies = task == "classification"
    return Tags(
        estimator_type="classifier" if classifies else "regressor",
        target_tags=TargetTags(required=True),
        classifier_tags=ClassifierTags() if classifies else None,
        regressor_tags=None if classifies else RegressorTags(),
        input_tags=InputTags(),
    )
