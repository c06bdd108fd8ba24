"""The posterior: feature maps with their residual, the linear-Gaussian state, and the one formula over them."""

from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.model import Model, Posterior, Predictor
from bkbopt.posterior.observations import Observations

__all__ = ["GaussianState", "Model", "Observations", "Posterior", "Predictor"]
