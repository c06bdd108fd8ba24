"""Ask and tell: the optimizer, the whole loop, the theory preset and the command line."""

from typing import TYPE_CHECKING

from bkbopt._support.lazy import lazy

if TYPE_CHECKING:
    from bkbopt.optimizer.optimizer import Optimizer

__all__ = ["Optimizer"]

if not TYPE_CHECKING:
    # The log of trials is read and written without the optimizer, and so without torch.
    __getattr__, __dir__ = lazy(__name__, {"Optimizer": "optimizer"})
