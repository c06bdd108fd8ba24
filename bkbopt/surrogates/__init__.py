"""Surrogates: posteriors over the black box. Each is a feature map, a residual and a linear-Gaussian state."""

from bkbopt.surrogates.base import Surrogate
from bkbopt.surrogates.bkb import BKB
from bkbopt.surrogates.exact import ExactGP
from bkbopt.surrogates.fourier import FourierGP
from bkbopt.surrogates.model import Model, Posterior
from bkbopt.surrogates.names import NAMES, surrogate_named
from bkbopt.surrogates.online import Online

__all__ = [
    "BKB",
    "NAMES",
    "ExactGP",
    "FourierGP",
    "Model",
    "Online",
    "Posterior",
    "Surrogate",
    "surrogate_named",
]
