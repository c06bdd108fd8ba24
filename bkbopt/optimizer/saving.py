"""An optimizer to and from a file: the arguments it was made with, the spaces or pools it had, and its log."""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from bkbopt import confidence
from bkbopt._support import files
from bkbopt.errors import ArgumentError, reading_state
from bkbopt.kernels import ARDKernel
from bkbopt.learners.surrogate import LearnerSurrogate
from bkbopt.optimizer.trials import Trial, TrialLog
from bkbopt.search.acquisition import Acquisition
from bkbopt.search.reports import Diagnostics
from bkbopt.spaces.pool import Pool
from bkbopt.spaces.space import Space
from bkbopt.surrogates import BKB, ExactGP, FourierGP, Surrogate

if TYPE_CHECKING:
    from bkbopt.optimizer.optimizer import Optimizer
    from bkbopt.optimizer.vocabulary import Params

__all__ = ["load", "save"]

KIND = "optimizer log"
SURROGATES: dict[str, Any] = {c.__name__: c for c in (BKB, ExactGP, FourierGP, LearnerSurrogate)}
SCHEDULES: dict[str, Any] = {
    c.__name__: c
    for c in (confidence.Constant, confidence.Practical, confidence.Theorem2, confidence.Srinivas, confidence.Chowdhury)
}


def save(optimizer: "Optimizer", path: str | os.PathLike[str]) -> None:
    raise NotImplementedError


def load(*args: Any) -> "Optimizer":
    raise NotImplementedError
