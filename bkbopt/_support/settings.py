"""Settings of torch and NumPy that a program has changed for its own work, and that computations here do not expect."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

__all__ = ["usual_settings"]

#: NumPy's own treatment of floating point.
USUAL: Any = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


@contextlib.contextmanager
def usual_settings() -> Iterator[None]:
    """Run the block, or a function as a decorator, with the settings with which torch and NumPy start.

    They are the device of new tensors (also "cuda" leaves the optimizer on the CPU, where its surrogate has no device
    of its own), inference mode, in which there are no gradients, half precision as the type of new tensors, and
    warnings or errors of NumPy for floating point that underflows, overflows or is no number.
    """
    changed: list[contextlib.AbstractContextManager[Any]] = []
    if torch.get_default_device().type != "cpu":
        changed.append(torch.device("cpu"))
    if torch.is_inference_mode_enabled():
        changed.append(torch.inference_mode(False))
    if torch.get_default_dtype().itemsize < torch.float32.itemsize:
        changed.append(_default_dtype(torch.float32))
    if np.geterr() != USUAL:
        changed.append(np.errstate(**USUAL))
    with contextlib.ExitStack() as stack:
        for context in changed:
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
