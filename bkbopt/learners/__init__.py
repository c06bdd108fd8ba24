"""Online kernel learners: predict a row, see its target, learn. All of them keep to `OnlineLearner`."""

from bkbopt.learners.base import OnlineLearner
from bkbopt.learners.budgeted import BOGD, BPAS, KOGD, RBP, Forgetron, KernelPerceptron, Projectron, ProjectronPP
from bkbopt.learners.feature_bandits import CBRAP, FeatureBandit
from bkbopt.learners.forks import FORKS, SkeGD
from bkbopt.learners.gradient import FOGD, NOGD
from bkbopt.learners.kons import KONS, SketchedKONS
from bkbopt.learners.linear_bandits import LinearBandit
from bkbopt.learners.losses import LOSSES, Loss, get_loss
from bkbopt.learners.pkawv import PKAWV
from bkbopt.learners.prosnkons import ProsNKONS
from bkbopt.learners.regression import KernelAWV, OnlineKRR
from bkbopt.learners.soful import SOFUL

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
