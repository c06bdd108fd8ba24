"""Surrogates: posteriors over the black box. Each is a feature map, a residual and a linear-Gaussian state."""

from bkbopt.surrogates.base import Surrogate
from bkbopt.surrogates.bkb import BKB
from bkbopt.surrogates.exact import ExactGP
from bkbopt.surrogates.fourier import FourierGP

__all__ = ["BKB", "ExactGP", "FourierGP", "Surrogate"]
