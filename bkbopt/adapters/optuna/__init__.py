"""`BKBSampler`: the search of bkbopt as an Optuna sampler."""

from bkbopt.errors import extra

with extra("optuna"):
    from bkbopt.adapters.optuna.sampler import BKBSampler

__all__ = ["BKBSampler"]
