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
    from bkbopt.learners.descent import BOGD, KOGD
    from bkbopt.learners.forks import FORKS, SkeGD
    from bkbopt.learners.gradient import FOGD, NOGD
    from bkbopt.learners.kons import KONS, SketchedKONS
    from bkbopt.learners.losses import LOSSES, Loss, get_loss
    from bkbopt.learners.perceptrons.forgetron import Forgetron
    from bkbopt.learners.perceptrons.passive_aggressive import BPAS
    from bkbopt.learners.perceptrons.plain import RBP, KernelPerceptron
    from bkbopt.learners.perceptrons.projectron import Projectron, ProjectronPP
    from bkbopt.learners.pkawv import PKAWV
    from bkbopt.learners.prosnkons import ProsNKONS
    from bkbopt.learners.regression import KernelAWV, OnlineKRR

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
    "BOGD": "descent",
    "BPAS": "perceptrons.passive_aggressive",
    "KOGD": "descent",
    "RBP": "perceptrons.plain",
    "Forgetron": "perceptrons.forgetron",
    "KernelPerceptron": "perceptrons.plain",
    "Projectron": "perceptrons.projectron",
    "ProjectronPP": "perceptrons.projectron",
    "CBRAP": "bandits.features",
    "FeatureBandit": "bandits.features",
    "FORKS": "forks",
    "SkeGD": "forks",
    "FOGD": "gradient",
    "NOGD": "gradient",
    "KONS": "kons",
    "SketchedKONS": "kons",
    "LinearBandit": "bandits.linear",
    "LOSSES": "losses",
    "Loss": "losses",
    "get_loss": "losses",
    "PKAWV": "pkawv",
    "ProsNKONS": "prosnkons",
    "KernelAWV": "regression",
    "OnlineKRR": "regression",
    "SOFUL": "bandits.soful",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _MODULES)
