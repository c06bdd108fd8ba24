"""The probability of an improvement."""

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["LogPI"]


@dataclass(frozen=True)
class LogPI:
    """Logarithm of the probability that a value exceeds `threshold` (Kushner 1964).

    Example:
        >>> LogPI(0.0)(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor([-0.6931])
    """

    threshold: float

    def __call__(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Scores `(n,)`, without unit."""
        return torch.special.log_ndtr((mean - self.threshold) / variance.clamp_min(1e-16).sqrt())
