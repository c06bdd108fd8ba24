"""Feature maps: R^d -> R^r, each with what it cannot see (the residual). Maps are immutable."""

from bkbopt.features.base import FeatureMap, WithoutResidual
from bkbopt.features.fourier import RandomFourier
from bkbopt.features.nystrom import Nystrom

__all__ = ["FeatureMap", "Nystrom", "RandomFourier", "WithoutResidual"]
