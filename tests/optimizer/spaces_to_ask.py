"""Spaces, a pool and a table, with functions over them, for tests by ask and tell."""

import math
from typing import Any

import numpy as np
import pandas as pd

import bkbopt as bo

BOX = {"x": (0.0, 1.0), "y": (-2.0, 2.0)}
MIXED = {"x": (0.0, 1.0), "n": bo.Int(1, 5), "kind": ["a", "b", "c"], "k": 7}
BOX_POINT = {"x": 0.4, "y": 0.1}
POOL = np.random.default_rng(0).random((80, 2))
TREE = {
    "model": ["svm", "gp", "forest"],
    "C": bo.Float(1e-3, 1e3, log=True, when={"model": "svm"}),
    "kernel": bo.Categorical(["rbf", "poly"], when={"model": ["svm", "gp"]}),
    "degree": bo.Int(2, 5, when={"kernel": "poly"}),
    "x": (0.0, 1.0),
}
FRAME = pd.DataFrame(
    {"dose": np.random.default_rng(0).random(30), "day": ["mon", "tue", "wed"] * 10},
    index=[f"mix {i}" for i in range(30)],
)


def bowl(p: Any) -> float:
    return (p["x"] - 0.3) ** 2 + 0.1 * (p["y"] - 0.5) ** 2


def mixed(p: Any) -> float:
    return (p["x"] - 0.3) ** 2 + 0.1 * abs(p["n"] - 2) + {"a": 0.0, "b": 0.5, "c": 0.2}[p["kind"]]


def rows(p: Any) -> float:
    return float(np.sin(5.0 * p["x0"]) + p["x1"] ** 2)


def tree(p: Any) -> float:
    """Best: model "svm" with C = 1 and a kernel of degree 3."""
    base = {"svm": 0.0, "gp": 0.5, "forest": 0.7}[p["model"]]
    rate = 0.1 * abs(math.log10(p["C"])) if "C" in p else 0.0
    degree = 0.1 * abs(p["degree"] - 3) if "degree" in p else 0.2
    return base + rate + degree + (p["x"] - 0.3) ** 2


def optimizer(space: Any = None, **options: Any) -> bo.Optimizer:
    return bo.Optimizer(BOX if space is None else space, **{"seed": 0, "n_startup_trials": 5, **options})


def run(opt: bo.Optimizer, n: int, f: Any = bowl, noise: float = 0.0, seed: int = 1) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    asked = []
    for _ in range(n):
        trial = opt.ask()
        asked.append(dict(trial.params))
        opt.tell(trial, f(trial.params) + noise * rng.standard_normal())
    return asked


def active(p: Any) -> set[str]:
    """The names that belong to a point of the tree."""
    names = {"model", "x"} | ({"C"} if p["model"] == "svm" else set())
    if p["model"] != "forest":
        names |= {"kernel"} | ({"degree"} if p["kernel"] == "poly" else set())
    return names
