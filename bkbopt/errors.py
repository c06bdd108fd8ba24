"""The exceptions of bkbopt.

Every error is a `BkbError` and also the builtin that fits it, so both `except BkbError` and `except ValueError` work.
A message names the argument, says what was expected and what came, and what to do about it. A call that raises one
of these leaves the object it was called on as it was.
"""

import contextlib
import os
from collections.abc import Iterator

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "BkbError",
    "KernelError",
    "MissingPackageError",
    "NotReadyError",
    "SpaceExhaustedError",
    "StateFileError",
    "StorageError",
    "TrialStateError",
    "UnknownTrialError",
]


class BkbError(Exception):
    """Base class of every error that bkbopt raises on purpose.

    Example:
        >>> import bkbopt as bo
        >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
        >>> try:
        ...     opt.tell({"x": 2.0}, 0.1)
        ... except bo.errors.BkbError as error:
        ...     print(isinstance(error, ValueError), error)
        True parameter 'x' in row 0: expected a number in [0.0, 1.0], got 2.0
        >>> len(opt.trials)
        0
    """


class ArgumentError(BkbError, ValueError):
    """An argument has the right type but a value that cannot be used (NaN, out of range, wrong shape)."""


class ArgumentTypeError(BkbError, TypeError):
    """An argument has a type that cannot be used."""


class KernelError(BkbError, ValueError):
    """A kernel returned the wrong shape, non-finite values, or a matrix that is not positive semi-definite."""


class UnknownTrialError(BkbError, KeyError):
    """A trial id that this optimizer never gave out."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put our sentence in quotes.
        return str(self.args[0]) if self.args else ""


class TrialStateError(BkbError, RuntimeError):
    """The trial is known, but not in a state that allows the call (told twice, say)."""


class SpaceExhaustedError(BkbError, RuntimeError):
    """Every point that may be proposed has been proposed already."""


class NotReadyError(BkbError, RuntimeError):
    """The call needs observations, and there are none yet."""


class StateFileError(BkbError, ValueError):
    """A state file is corrupt, was not written by bkbopt, or was written by a newer version of it."""


class StorageError(BkbError, OSError):
    """The file of a log could not be read or written: permissions, a full disk, other processes that hold it."""


class MissingPackageError(BkbError, ImportError):
    """The call needs a package that is not installed; the message says which extra of bkbopt brings it."""


@contextlib.contextmanager
def extra(name: str) -> Iterator[None]:
    """A block that imports packages which come with the extra of that name.

    Raises:
        MissingPackageError: one of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise MissingPackageError(
            f'{package}: expected this package, which is not installed; pip install "bkbopt[{name}]" brings it.'
        ) from error


@contextlib.contextmanager
def reading_state(what: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """A block that makes `what`, "an optimizer" say, from the state that was loaded from `path`.

    Raises:
        StateFileError: a part is missing or is not what it should be.
    """
    try:
        yield
    except BkbError:
        raise
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        # What code raises where a part is missing or is not what it should be.
        raise StateFileError(
            f"path: expected the state of {what}, got a file whose state does not fit together: {path}"
        ) from error
