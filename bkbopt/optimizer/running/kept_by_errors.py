"""The trials of a run that an exception ends."""

import contextlib
from collections.abc import Iterator

from bkbopt.optimizer.optimizer import Optimizer

__all__ = ["kept_by_errors"]


@contextlib.contextmanager
def kept_by_errors(optimizer: Optimizer | None) -> Iterator[None]:
    """Let an exception that ends a run have its optimizer, to which nothing else refers; None for one of the user."""
    try:
        yield
    except BaseException as error:
        if optimizer is not None and len(optimizer.trials):
            with contextlib.suppress(AttributeError):  # of exceptions that take no attributes
                error.optimizer = optimizer  # type: ignore[attr-defined]
                error.add_note(
                    f"The run had {len(optimizer.trials)} trials. They are in the optimizer of this exception, "
                    "error.optimizer (in a console import sys; sys.last_value.optimizer), with which minimize goes on: "
                    "minimize(f, error.optimizer, n_trials)."
                )
        raise
