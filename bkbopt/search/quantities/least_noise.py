"""The least noise of values of few kinds, such as labels and ratings."""

import torch
from torch import Tensor

__all__ = ["least_noise"]

#: Values are of few kinds if there are at most MOST_KINDS, and at most one kind for OF_EACH points. Largest least noise
#: variance of such values, standardised units squared; see docs/design/fits.md.
MOST_KINDS, OF_EACH, LARGEST_LEAST = 10, 5, 0.1


def least_noise(y: Tensor, n_points: int) -> float:
    """The least noise variance of the values `y (n,)` of some points, standardised units squared.

    It is above zero for values of few kinds, such as labels and ratings. Among many equal ones they look free of noise,
    and a fit without noise extrapolates beyond the best kind. Rounding to one of k kinds, at equal distances and
    equally frequent, is 1 / (k^2 - 1) of their variance.
    """
    kinds = len(torch.unique(y))
    if not 1 < kinds <= min(MOST_KINDS, n_points // OF_EACH):
        return 0.0
    return min(1.0 / (kinds**2 - 1.0), LARGEST_LEAST)
