"""Ask and tell: the optimizer, the whole loop, the theory preset and the command line."""

from bkbopt.optimizer.optimizer import Optimizer

__all__ = ["Optimizer"]
