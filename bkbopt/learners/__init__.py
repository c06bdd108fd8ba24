"""Online kernel learners: each predicts a row, reads its target, and learns. All implement `OnlineLearner`.

A learner is imported at its first use, not by `import bkbopt`.
"""

from typing import TYPE_CHECKING

from bkbopt._support.lazy import lazy

if TYPE_CHECKING:
    from bkbopt.learners.bandits.features import CBRAP, FeatureBandit
    from bkbopt.learners.bandits.linear import LinearBandit
    from bkbopt.learners.bandits.soful import SOFUL
    from bkbopt.learners.base import OnlineLearner
    from bkbopt.learners.expansions.descent import BOGD, KOGD
    from bkbopt.learners.newton.kons import KONS, SketchedKONS
    from bkbopt.learners.newton.prosnkons import ProsNKONS
    from bkbopt.learners.numerics.losses import LOSSES, Loss, get_loss
    from bkbopt.learners.on_features.forks import FORKS, SkeGD
    from bkbopt.learners.on_features.gradient import FOGD, NOGD
    from bkbopt.learners.perceptrons.forgetron import Forgetron
    from bkbopt.learners.perceptrons.passive_aggressive import BPAS
    from bkbopt.learners.perceptrons.plain import RBP, KernelPerceptron
    from bkbopt.learners.perceptrons.projectron import Projectron, ProjectronPP
    from bkbopt.learners.regression.pkawv import PKAWV
    from bkbopt.learners.regression.regression import KernelAWV, OnlineKRR

__all__ = [
    "BOGD",
    "BPAS",
    "CBRAP",
    "FOGD",
    "FORKS",
    "KOGD",
    "KONS",
    "LOSSES",
    "NOGD",
    "PKAWV",
    "RBP",
    "SOFUL",
    "FeatureBandit",
    "Forgetron",
    "KernelAWV",
    "KernelPerceptron",
    "LinearBandit",
    "Loss",
    "OnlineKRR",
    "OnlineLearner",
    "Projectron",
    "ProjectronPP",
    "ProsNKONS",
    "SkeGD",
    "SketchedKONS",
    "get_loss",
]

#: The module of each name.
_MODULES = {
    "OnlineLearner": "base",
    "BOGD": "expansions.descent",
    "BPAS": "perceptrons.passive_aggressive",
    "KOGD": "expansions.descent",
    "RBP": "perceptrons.plain",
    "Forgetron": "perceptrons.forgetron",
    "KernelPerceptron": "perceptrons.plain",
    "Projectron": "perceptrons.projectron",
    "ProjectronPP": "perceptrons.projectron",
    "CBRAP": "bandits.features",
    "FeatureBandit": "bandits.features",
    "FORKS": "on_features.forks",
    "SkeGD": "on_features.forks",
    "FOGD": "on_features.gradient",
    "NOGD": "on_features.gradient",
    "KONS": "newton.kons",
    "SketchedKONS": "newton.kons",
    "LinearBandit": "bandits.linear",
    "LOSSES": "numerics.losses",
    "Loss": "numerics.losses",
    "get_loss": "numerics.losses",
    "PKAWV": "regression.pkawv",
    "ProsNKONS": "newton.prosnkons",
    "KernelAWV": "regression.regression",
    "OnlineKRR": "regression.regression",
    "SOFUL": "bandits.soful",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _MODULES)
