"""What has a log with its designer: the parts of `Optimizer`, whose methods run in one thread at a time."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

import torch

from bkbopt._support.settings import usual_settings
from bkbopt.optimizer.designers.logged_designer import LoggedDesigner
from bkbopt.optimizer.log.aims import Aims
from bkbopt.search.criteria.acquisition import Acquisition

__all__ = ["HasLog", "locked"]

F = TypeVar("F", bound=Callable[..., Any])


class HasLog:
    """An object with a log and its designer; `Optimizer` sets the attributes, which are for modules of its package."""

    _acquisition: str | Acquisition
    _core: LoggedDesigner
    _lock: AbstractContextManager[Any]

    @property
    def _aims(self) -> Aims:
        return self._core.aims


def locked(method: F) -> F:
    """Decorate a method: one thread at a time, after reading what other processes have written."""

    @functools.wraps(method)
    def call(self: HasLog, *args: Any, **kwargs: Any) -> Any:
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
