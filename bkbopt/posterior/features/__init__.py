"""Feature maps R^d -> R^r with their residual, the prior variance outside of the features. Maps are immutable."""

from bkbopt.posterior.features.base import FeatureMap, WithoutResidual
from bkbopt.posterior.features.explicit import Spherical
from bkbopt.posterior.features.fourier import RandomFourier, WideFourier
from bkbopt.posterior.features.nystrom import Extension, Nystrom

__all__ = [
    "Extension",
    "FeatureMap",
    "Nystrom",
    "RandomFourier",
    "Spherical",
    "WideFourier",
    "WithoutResidual",
]
