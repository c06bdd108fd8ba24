"""`BKBSampler`: the search of bkbopt as an Optuna sampler; `optimizer_of`: a study as an `Optimizer`, for pictures."""

from bkbopt.errors import extra

with extra("optuna"):
    from bkbopt.adapters.optuna.sampler import BKBSampler
    from bkbopt.adapters.studies import optimizer_of

__all__ = ["BKBSampler", "optimizer_of"]
