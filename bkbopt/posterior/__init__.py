"""The posterior: feature maps with their residual, the linear-Gaussian state, and the formula that combines them.

All computations are in float64. Where the kernel matrix K of the m inducing points is singular to working precision
(few dimensions, a smooth kernel, long lengthscales), *small* variances lose digits. Their relative errors are about
n c / lam: n is the largest number of evaluations of a point, lam the noise variance, and c = m eps ||K||,
eps = 2.2e-16, the threshold below which `thin_root` cuts eigenvalues. For 80 points on a line under an RBF kernel,
each evaluated up to 200 times, with lam 1e-6 of the prior variance, variances of 1e-9 of the prior variance keep 4
digits.
"""

from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.model import Model, Posterior, Predictor
from bkbopt.posterior.observations import Observations

__all__ = ["GaussianState", "Model", "Observations", "Posterior", "Predictor"]
