"""Online kernel learners: predict a row, see its target, learn. All of them keep to `OnlineLearner`."""

from bkbopt.learners.base import OnlineLearner
from bkbopt.learners.losses import LOSSES, Loss, get_loss
from bkbopt.learners.pkawv import PKAWV
from bkbopt.learners.regression import KernelAWV, OnlineKRR

__all__ = ["LOSSES", "PKAWV", "KernelAWV", "Loss", "OnlineKRR", "OnlineLearner", "get_loss"]
