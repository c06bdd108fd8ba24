"""All surrogates: by the names that users write, and by the names of their classes, as in logs."""

from typing import Any

from bkbopt.errors import ArgumentError
from bkbopt.surrogates import NAMED, Surrogate

__all__ = ["classes_by_name", "surrogate_named"]

# The learners are imported in the functions: an optimizer does without them until one is named, or a log is opened.


def surrogate_named(name: str) -> Surrogate:
    """A surrogate without data, by the name that users write: one of `NAMED`, or that of an online learner.

    Raises:
        ArgumentError: there is none of that name.
    """
    if name in NAMED:
        surrogate: Surrogate = NAMED[name]()
        return surrogate
    from bkbopt.learners.as_surrogate.recipes import RECIPES
    from bkbopt.learners.as_surrogate.surrogate import LearnerSurrogate

    if name not in RECIPES:
        raise ArgumentError(
            f"surrogate: expected one of {', '.join([*NAMED, *RECIPES])}, or an instance, got {name!r}."
        )
    return LearnerSurrogate(learner=name)


def classes_by_name() -> dict[str, Any]:
    """The classes of surrogates by their own names."""
    from bkbopt.learners.as_surrogate.surrogate import LearnerSurrogate

    return {cls.__name__: cls for cls in (*NAMED.values(), LearnerSurrogate)}
