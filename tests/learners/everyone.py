"""Every online learner, on data that all of them can learn, for the tests of their common behaviour.

One that `bkbopt.learners` exports joins by itself, in its paper's parameters; options and small budgets by a line
below.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bkbopt import learners
from bkbopt.learners import (
    BOGD,
    BPAS,
    FOGD,
    FORKS,
    KOGD,
    KONS,
    NOGD,
    PKAWV,
    RBP,
    Forgetron,
    KernelAWV,
    KernelPerceptron,
    OnlineKRR,
    OnlineLearner,
    Projectron,
    ProjectronPP,
    ProsNKONS,
    SkeGD,
    SketchedKONS,
    get_loss,
)
from tests.learners.streams import surface

Factory = Callable[..., OnlineLearner]


def made(cls: type[OnlineLearner], **fixed: object) -> Factory:
    return lambda **more: cls.paper(**{**fixed, **more})


def exported() -> dict[str, type[OnlineLearner]]:
    """The learners that the package exports, by name."""
    values = {name: getattr(learners, name) for name in learners.__all__}
    kinds = {name: c for name, c in values.items() if isinstance(c, type) and issubclass(c, OnlineLearner)}
    return {name: kinds[name] for name in kinds if name != "OnlineLearner"}


#: Small budgets: what happens when one is full is what the tests are to meet.
LEARNERS: dict[str, Factory] = {
    "KONS": made(KONS),
    "KONS, squared": made(KONS, loss="squared"),
    "SketchedKONS": made(SketchedKONS, min_probability=0.2),
    "ProsNKONS": made(ProsNKONS),
    "ProsNKONS, no restart": made(ProsNKONS, loss="logistic", restart=False, max_dictionary=20),
    "ProsNKONS, absolute": made(ProsNKONS, loss="absolute"),
    "OnlineKRR": made(OnlineKRR),
    "KernelAWV": made(KernelAWV),
    "PKAWV": made(PKAWV),
    "PKAWV, ridge": made(PKAWV, forward=False, degree=3),
    "PKAWV, nystrom": made(PKAWV, features="nystrom"),
    "KernelPerceptron": made(KernelPerceptron),
    "KOGD": made(KOGD),
    "RBP": made(RBP, budget=20, seed=0),
    "Forgetron": made(Forgetron, budget=20),
    "BPAS": made(BPAS, budget=20),
    "Projectron": made(Projectron, budget=20),
    "ProjectronPP": made(ProjectronPP, budget=20),
    "BOGD": made(BOGD, budget=20, seed=0),
    "FOGD": made(FOGD, frequencies=30, seed=0),
    "NOGD": made(NOGD, budget=20),
    "SkeGD": made(SkeGD, budget=20, seed=0),
    "FORKS": made(FORKS, budget=20, seed=0),
}
LEARNERS |= {name: made(cls) for name, cls in exported().items() if name not in LEARNERS}
#: One of either task, for what `OnlineLearner` does for all of them.
SPOKESMEN = ("KONS", "PKAWV")
#: Learners without a `kernel` that may be anything: Taylor and Fourier features are those of one kernel.
OWN_KERNEL = {"PKAWV", "PKAWV, ridge", "FOGD"}

N = 240
X, NUMBERS, SIGNS = surface(N, seed=8)
LABELS = np.where(SIGNS > 0.0, "yes", "no")


def classifies(make: Factory) -> bool:
    return get_loss(make().loss).task == "classification"


def targets(make: Factory) -> np.ndarray:
    return LABELS if classifies(make) else NUMBERS


def told(make: Factory, n: int = N, **more: object) -> OnlineLearner:
    return make(**more).partial_fit(X[:n], targets(make)[:n])


def file_of(learner: OnlineLearner, path: Path) -> bytes:
    """All that a learner is, as bytes: the same state gives the same file."""
    learner.save(path / "state")
    return (path / "state").read_bytes()


CLASSIFIERS = [name for name, factory in LEARNERS.items() if classifies(factory)]
REGRESSIONS = [name for name, factory in LEARNERS.items() if not classifies(factory)]

NAMES = ("height", "age", "weight")


def as_dict(x: np.ndarray) -> dict[str, float]:
    return dict(zip(NAMES, x.tolist(), strict=True))


def gaussian(A: Tensor, B: Tensor) -> Tensor:
    return torch.exp(-0.5 * torch.cdist(A, B, compute_mode="donot_use_mm_for_euclid_dist") ** 2)
