"""BKBSampler as a package of OptunaHub: the sampler itself is installed with `pip install "bkbopt[optuna]"`."""

from bkbopt.adapters.optuna import BKBSampler

__all__ = ["BKBSampler"]
