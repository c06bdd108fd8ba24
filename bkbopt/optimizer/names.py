"""The surrogates by the names that users write; this is the one place where names are resolved."""

from bkbopt.errors import ArgumentError
from bkbopt.learners.recipes import RECIPES
from bkbopt.learners.surrogate import LearnerSurrogate
from bkbopt.surrogates.base import Surrogate
from bkbopt.surrogates.bkb import BKB
from bkbopt.surrogates.exact import ExactGP
from bkbopt.surrogates.fourier import FourierGP

__all__ = ["NAMES", "surrogate_named"]

_OWN = {"bkb": BKB, "exact": ExactGP, "fourier": FourierGP}
#: The names that the optimizer accepts.
NAMES = (*_OWN, *RECIPES)


def surrogate_named(name: str) -> Surrogate:
    """A surrogate without data and with its defaults.

    Raises:
        ArgumentError: there is none of that name.

    Example:
        >>> from bkbopt.optimizer.names import surrogate_named
        >>> type(surrogate_named("exact")).__name__
        'ExactGP'
    """
    if name not in NAMES:
        raise ArgumentError(f"surrogate: expected one of {', '.join(NAMES)}, or an instance, got {name!r}.")
    return _OWN[name]() if name in _OWN else LearnerSurrogate(learner=name)
