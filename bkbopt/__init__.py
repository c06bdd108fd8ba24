"""Bayesian optimisation by ask and tell with budgeted kernel bandits (BKB): the inducing points bound an ask's cost.

A name is imported when it is first asked for, and torch with it: commands that only keep a log do without.
"""

from typing import TYPE_CHECKING

from bkbopt._support.lazy import lazy

if TYPE_CHECKING:
    from bkbopt import analysis, confidence, errors, kernels
    from bkbopt.learners.as_surrogate.surrogate import LearnerSurrogate
    from bkbopt.optimizer.log.trials import Trial
    from bkbopt.optimizer.optimizer import Optimizer
    from bkbopt.optimizer.running.minimizing import maximize, minimize
    from bkbopt.optimizer.theory import theory
    from bkbopt.search.trials.reports import Diagnostics, FrontPoint, Recommendation, RegretCertificate, Residual
    from bkbopt.spaces.pool import Pool
    from bkbopt.spaces.space import Categorical, Float, Int, Ordinal, Space
    from bkbopt.surrogates import BKB, ExactGP, FourierGP

__version__ = "0.1.0"

__all__ = [
    "BKB",
    "Categorical",
    "Diagnostics",
    "ExactGP",
    "Float",
    "FourierGP",
    "FrontPoint",
    "Int",
    "LearnerSurrogate",
    "Optimizer",
    "Ordinal",
    "Pool",
    "Recommendation",
    "RegretCertificate",
    "Residual",
    "Space",
    "Trial",
    "analysis",
    "confidence",
    "errors",
    "kernels",
    "maximize",
    "minimize",
    "theory",
]

#: The module of each name.
_HOMES = {
    "BKB": "surrogates",
    "Categorical": "spaces.space",
    "Diagnostics": "search.trials.reports",
    "ExactGP": "surrogates",
    "Float": "spaces.space",
    "FourierGP": "surrogates",
    "FrontPoint": "search.trials.reports",
    "Int": "spaces.space",
    "LearnerSurrogate": "learners.as_surrogate.surrogate",
    "Optimizer": "optimizer.optimizer",
    "Ordinal": "spaces.space",
    "Pool": "spaces.pool",
    "Recommendation": "search.trials.reports",
    "RegretCertificate": "search.trials.reports",
    "Residual": "search.trials.reports",
    "Space": "spaces.space",
    "Trial": "optimizer.log.trials",
    "maximize": "optimizer.running.minimizing",
    "minimize": "optimizer.running.minimizing",
    "theory": "optimizer.theory",
}
#: Modules that need no import statement of their own; `plots` and `adapters` do, since they need an extra.
_SUBMODULES = (
    "analysis",
    "confidence",
    "errors",
    "kernels",
    "learners",
    "optimizer",
    "posterior",
    "search",
    "spaces",
    "surrogates",
)

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _HOMES, _SUBMODULES)
