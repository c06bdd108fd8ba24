"""`BKBSampler`: the optimizer's parts as a sampler of Optuna."""

from bkbopt.errors import extra

with extra("optuna"):
    from bkbopt.adapters.optuna.sampler import BKBSampler

__all__ = ["BKBSampler"]
