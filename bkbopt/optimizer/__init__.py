"""The optimizer with ask and tell, its log of trials, `minimize` and `maximize`, and the theory preset."""

from typing import TYPE_CHECKING

from bkbopt._support.lazy import lazy

if TYPE_CHECKING:
    from bkbopt.optimizer.optimizer import Optimizer

__all__ = ["Optimizer"]

if not TYPE_CHECKING:
    # Lazy, so that modules of the log can be imported without torch.
    __getattr__, __dir__ = lazy(__name__, {"Optimizer": "optimizer"})
