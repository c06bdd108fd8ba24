"""Bayesian optimisation whose cost stays flat: budgeted kernel bandits (BKB) and exact GP-UCB by ask and tell."""

from bkbopt import confidence, errors, kernels
from bkbopt.domains import Pool
from bkbopt.optimizer import Optimizer
from bkbopt.run import minimize
from bkbopt.space import Categorical, Float, Int, Space
from bkbopt.surrogates import BKB, ExactGP, FourierGP, Online
from bkbopt.theory import theory
from bkbopt.trials import Trial

__version__ = "0.1.0"

__all__ = [
    "BKB",
    "Categorical",
    "ExactGP",
    "Float",
    "FourierGP",
    "Int",
    "Online",
    "Optimizer",
    "Pool",
    "Space",
    "Trial",
    "confidence",
    "errors",
    "kernels",
    "minimize",
    "theory",
]
