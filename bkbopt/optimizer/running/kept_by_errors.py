"""The trials of a run that an exception ends."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from bkbopt.optimizer.optimizer import Optimizer

__all__ = ["kept_by_errors"]


@contextlib.contextmanager
def kept_by_errors(optimizer: Optimizer | None) -> Iterator[None]:
    """Let an exception that ends a run have its optimizer, to which nothing else refers; None for one of the user."""
    try:
        yield
    except BaseException as error:
        if optimizer is not None and len(optimizer.trials):
            note = (
                f"The run had {len(optimizer.trials)} trials. They are in the optimizer of this exception, "
                "error.optimizer (in a console import sys; sys.last_value.optimizer), with which minimize goes on: "
                "minimize(f, error.optimizer, n_trials)."
            )
            with contextlib.suppress(AttributeError):  # of exceptions that take no attributes
                error.__reduce_ex__ = functools.partial(_pickled, error, note)  # type: ignore[method-assign]
                error.optimizer = optimizer  # type: ignore[attr-defined]
                error.add_note(note)
        raise


def _pickled(error: BaseException, note: str, protocol: int) -> Any:
    """The parts of a pickle without the optimizer, which has none: worker processes send exceptions to their parent."""
    made = type(error).__reduce_ex__(error, protocol)
    if not (isinstance(made, tuple) and len(made) > 2 and isinstance(made[2], dict)):
        return made
    state = {name: item for name, item in made[2].items() if name not in ("optimizer", "__reduce_ex__")}
    if "__notes__" in state:
        state["__notes__"] = [other for other in state["__notes__"] if other != note]
    return (*made[:2], state, *made[3:])
