"""Feature maps: R^d -> R^r, each with what it cannot see (the residual). Maps are immutable."""

from bkbopt.features.base import FeatureMap, WithoutResidual
from bkbopt.features.fourier import RandomFourier
from bkbopt.features.nystrom import Nystrom
from bkbopt.features.quadrature import QuadratureFourier
from bkbopt.features.sketched import SketchedFeatures
from bkbopt.features.taylor import Taylor

__all__ = [
    "FeatureMap",
    "Nystrom",
    "QuadratureFourier",
    "RandomFourier",
    "SketchedFeatures",
    "Taylor",
    "WithoutResidual",
]
