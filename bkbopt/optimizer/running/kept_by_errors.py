"""The trials of a run that an exception ends."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bkbopt.optimizer.optimizer import Optimizer

__all__ = ["EndedRun", "kept_by_errors"]


@dataclass(frozen=True)
class EndedRun:
    """A run that an exception has ended, as the exception's attribute `bkbopt_run`.

    Attributes:
        optimizer: its optimizer; None in pickles and copies of the exception, as where a worker process sends it.
    """

    optimizer: Optimizer | None = None

    def __reduce__(self) -> Any:
        """Without the optimizer, of which there are no copies."""
        return EndedRun, ()


@contextlib.contextmanager
def kept_by_errors(optimizer: Optimizer | None) -> Iterator[None]:
    """Let an exception that ends a run have its optimizer, to which nothing else refers; None for one of the user."""
    try:
        yield
    except BaseException as error:
        if optimizer is not None and len(optimizer.trials):
            with contextlib.suppress(AttributeError):  # of exceptions that take no attributes
                error.bkbopt_run = EndedRun(optimizer)  # type: ignore[attr-defined]
                error.add_note(
                    f"The run had {len(optimizer.trials)} trials. They are in error.bkbopt_run.optimizer (in a console "
                    "import sys; sys.last_value.bkbopt_run.optimizer), with which minimize goes on: "
                    "minimize(f, error.bkbopt_run.optimizer, n_trials)."
                )
        raise
