"""Bayesian optimisation whose cost stays flat: budgeted kernel bandits (BKB) and exact GP-UCB by ask and tell."""

from bkbopt import confidence, errors, kernels
from bkbopt.learners.surrogate import LearnerSurrogate
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.minimizing import maximize, minimize
from bkbopt.optimizer.theory import theory
from bkbopt.optimizer.trials import Trial
from bkbopt.spaces.pool import Pool
from bkbopt.spaces.space import Categorical, Float, Int, Ordinal, Space
from bkbopt.surrogates import BKB, ExactGP, FourierGP

__version__ = "0.1.0"

__all__ = [
    "BKB",
    "Categorical",
    "ExactGP",
    "Float",
    "FourierGP",
    "Int",
    "LearnerSurrogate",
    "Optimizer",
    "Ordinal",
    "Pool",
    "Space",
    "Trial",
    "confidence",
    "errors",
    "kernels",
    "maximize",
    "minimize",
    "theory",
]
