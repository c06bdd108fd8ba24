"""Online kernel learners: predict a row, see its target, learn. All of them keep to `OnlineLearner`."""

from bkbopt.learners.base import OnlineLearner
from bkbopt.learners.losses import LOSSES, Loss, get_loss

__all__ = ["LOSSES", "Loss", "OnlineLearner", "get_loss"]
