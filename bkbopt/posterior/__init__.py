"""The posterior: feature maps with their residual, the linear-Gaussian state, and the one formula over them.

All is float64. Where a kernel matrix K of m inducing points is singular to working precision (few dimensions, a smooth
kernel, long lengthscales), digits of *small* variances are lost: relative errors are about n c / lam, where n is the
largest number of evaluations of a point, lam the noise variance and c = m eps ||K||, eps = 2.2e-16, what `thin_root`
cuts. For 80 points on a line under an RBF kernel, each evaluated up to 200 times with lam a millionth of the prior
variance, 4 digits are left of variances a billion times smaller than the prior's.
"""

from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.model import Model, Posterior, Predictor
from bkbopt.posterior.observations import Observations

__all__ = ["GaussianState", "Model", "Observations", "Posterior", "Predictor"]
