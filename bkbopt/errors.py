"""The exceptions of bkbopt.

Every error is a `BkbError` and also the matching builtin, so both `except BkbError` and `except ValueError` work. A
message names the argument, what was expected, what was given and what to do. A call that raises one of these errors
leaves its object unchanged.
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
        True parameter 'x': expected a number in [0.0, 1.0], got 2.0
        >>> len(opt.trials)
        0
    """


class ArgumentError(BkbError, ValueError):
    """An argument has the right type but a value that cannot be used (NaN, out of range, wrong shape)."""


class ArgumentTypeError(BkbError, TypeError):
    """An argument has a type that cannot be used."""


class KernelError(BkbError, ValueError):
    """A kernel returned the wrong shape, values that are not finite, or no symmetric positive semi-definite matrix."""


class UnknownTrialError(BkbError, KeyError):
    """The optimizer has no trial with this id."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put the message in quotes.
        return str(self.args[0]) if self.args else ""


class TrialStateError(BkbError, RuntimeError):
    """The trial exists, but its state does not allow the call (it has been told already, for example)."""


class SpaceExhaustedError(BkbError, RuntimeError):
    """Every point that may be proposed has been proposed already."""


class NotReadyError(BkbError, RuntimeError):
    """The call needs observations, and there are none yet."""


class StateFileError(BkbError, ValueError):
    """A state file is corrupt, was not written by bkbopt, or was written by a newer version of it."""


class StorageError(BkbError, OSError):
    """The file of a log could not be read or written: permissions, a full disk, or a lock of another process."""


class MissingPackageError(BkbError, ImportError):
    """The call needs a package that is not installed; the message names the extra of bkbopt that installs it."""


@contextlib.contextmanager
def extra(name: str) -> Iterator[None]:
    """A block that imports packages of the extra `name`.

    Raises:
        MissingPackageError: one of the packages is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise MissingPackageError(
            f'{package}: this call needs the package, which is not installed; run pip install "bkbopt[{name}]", or in '
            f'a checkout pip install ".[{name}]".'
        ) from error


@contextlib.contextmanager
def reading_state(what: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """A block that restores `what` ("an optimizer", say) from the state loaded from `path`.

    Raises:
        StateFileError: a part of the state is missing or invalid.
    """
    try:
        yield
    except BkbError:
        raise
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        # The builtin errors that the block raises for missing or invalid parts.
        raise StateFileError(
            f"path: expected the state of {what}, got a file whose state does not fit together: {path}"
        ) from error
