"""Feature maps of the online learners: Taylor, quadrature Fourier, and sketched Nystrom features."""

from bkbopt.learners.features.quadrature import QuadratureFourier
from bkbopt.learners.features.sketched import SketchedFeatures
from bkbopt.learners.features.taylor import Taylor

__all__ = ["QuadratureFourier", "SketchedFeatures", "Taylor"]
