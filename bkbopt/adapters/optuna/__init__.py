"""`BKBSampler`: the search as an Optuna sampler; `optimizer_of`: a study as an `Optimizer`; an importance evaluator."""

from bkbopt.errors import extra

with extra("optuna"):
    from bkbopt.adapters.optuna.importance import BKBImportanceEvaluator
    from bkbopt.adapters.optuna.sampler import BKBSampler
    from bkbopt.adapters.optuna.studies import optimizer_of

__all__ = ["BKBImportanceEvaluator", "BKBSampler", "optimizer_of"]
