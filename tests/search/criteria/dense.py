"""The score of several objectives with dense tensors, for automatic differentiation."""

import torch
from torch import Tensor

from bkbopt.search.criteria.pareto import Improvement


def score(improvement: Improvement, Y: Tensor) -> Tensor:
    """Log volume that the bounds `Y (n, k)` add, minus their distances behind the front and the reference, (n,)."""
    low, high = improvement.cells
    volume = (torch.minimum(Y[:, None], high) - low).clamp_min(0.0).prod(2).sum(1)
    behind = (improvement.front - Y[:, None]).amin(2).amax(1).clamp_min(0.0)
    return volume.clamp_min(1e-12).log() - behind - (improvement.reference - Y).clamp_min(0.0).sum(1)
