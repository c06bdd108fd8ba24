"""Settings of torch and NumPy that a program has changed for its own work, and that computations here do not expect."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numpy as np
import torch

__all__ = ["in_usual_settings", "usual_settings"]

#: NumPy's own treatment of floating point.
USUAL: Any = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
NOTHING = contextlib.nullcontext()

F = TypeVar("F", bound=Callable[..., Any])


def usual_settings() -> contextlib.AbstractContextManager[None]:
    """Run the block with the settings with which torch and NumPy start.

    They are the device of new tensors (where the program's is "cuda", the optimizer stays on the CPU unless its
    surrogate has a device), inference mode, in which there are no gradients, half precision as the type of new tensors,
    and warnings or errors of NumPy for floating point that underflows, overflows or is no number.
    """
    changed: list[contextlib.AbstractContextManager[Any]] = []
    if torch.empty(0).device.type != "cpu":
        changed.append(torch.device("cpu"))
    if torch.is_inference_mode_enabled():
        changed.append(torch.inference_mode(False))
    if torch.get_default_dtype().itemsize < torch.float32.itemsize:
        changed.append(_default_dtype(torch.float32))
    if np.geterr() != USUAL:
        changed.append(np.errstate(**USUAL))
    return _all_of(changed) if changed else NOTHING


def in_usual_settings(function: F) -> F:
    """Decorate a function: each call runs with `usual_settings`."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with usual_settings():
            return function(*args, **kwargs)

    return cast(F, call)


@contextlib.contextmanager
def _all_of(contexts: list[contextlib.AbstractContextManager[Any]]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
