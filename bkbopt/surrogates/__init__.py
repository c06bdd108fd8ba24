"""Surrogates: posteriors over the black box. Each is a feature map, a residual and a linear-Gaussian state."""

from typing import Any

from bkbopt.surrogates.base import Surrogate, SurrogateBase
from bkbopt.surrogates.bkb import BKB
from bkbopt.surrogates.exact import ExactGP
from bkbopt.surrogates.fourier import FourierGP

__all__ = ["BKB", "ExactGP", "FourierGP", "Surrogate", "SurrogateBase"]

#: Surrogates by the names that users write; `Optimizer` also takes the names of online learners.
NAMED: dict[str, Any] = {"bkb": BKB, "exact": ExactGP, "fourier": FourierGP}
