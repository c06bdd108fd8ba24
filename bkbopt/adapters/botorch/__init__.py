"""BKB as a native BoTorch model: `BKBModel` where `SingleTaskGP` stood."""

from bkbopt.adapters.botorch import paths as _paths  # noqa: F401  registers the sampler of paths with BoTorch
from bkbopt.adapters.botorch.fit import fit_bkb_model
from bkbopt.adapters.botorch.mll import BKBMarginalLogLikelihood
from bkbopt.adapters.botorch.model import BKBModel

__all__ = ["BKBMarginalLogLikelihood", "BKBModel", "fit_bkb_model"]
