"""The lock of an optimizer: its methods run in one thread at a time."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch

from bkbopt._support.settings import usual_settings

if TYPE_CHECKING:
    from bkbopt.optimizer.readings import Readings

__all__ = ["locked"]

F = TypeVar("F", bound=Callable[..., Any])


def locked(method: F) -> F:
    """Decorate a method: one thread at a time, after reading what other processes have written."""

    @functools.wraps(method)
    def call(self: "Readings", *args: Any, **kwargs: Any) -> Any:
        with self._lock, usual_settings():
            is_within = self._core.is_in_use  # a nested call: a user's function, called by ask, may read the trials
            threads, gradients = torch.get_num_threads(), torch.is_grad_enabled()
            try:
                self._core.refresh()
                return method(self, *args, **kwargs)
            finally:  # an interrupt may have skipped the end of a block in the call
                if torch.get_num_threads() != threads:
                    torch.set_num_threads(threads)
                torch.set_grad_enabled(gradients)
                if not is_within:
                    self._core.release()

    return cast(F, call)
