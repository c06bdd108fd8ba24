"""Small searches that several tests read."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import bkbopt as bo

__all__ = [
    "arms_searched",
    "line_searched",
    "mixed_searched",
    "searched",
    "stretched_told",
    "tailed_searched",
    "true_cost",
]

MIXED = {
    "rate": bo.Float(1e-4, 1.0, log=True),
    "layers": bo.Int(1, 6),
    "kind": ["adam", "sgd", "rmsprop"],
    "drop": (0.0, 0.6),
    "fixed": 7,
}


def true_cost(params: Mapping[str, Any]) -> float:
    """Smooth in the logarithm of the rate, a step between two kinds; `drop` does nothing."""
    return (np.log10(params["rate"]) + 2.0) ** 2 + 0.1 * params["layers"] + (params["kind"] == "sgd")


def searched(space: Any, f: Callable[[Any], float], n: int, **options: Any) -> bo.Optimizer:
    """Search a space for so many noisy evaluations."""
    rng = np.random.default_rng(0)
    options = {"seed": 0, "n_startup_trials": 8} | options
    return bo.minimize(lambda p: f(p) + 0.1 * rng.standard_normal(), space, n, **options)


def line_searched() -> bo.Optimizer:
    """One parameter."""
    return searched({"x": (0.0, 2.0)}, lambda p: float(np.sin(5.0 * p["x"])), 14)


def mixed_searched() -> bo.Optimizer:
    """Parameters of all kinds, with a failed trial."""
    opt = searched(MIXED, true_cost, 16)
    opt.fail(opt.ask())
    return opt


def arms_searched() -> bo.Optimizer:
    """A pool in which larger is better; one arm has been measured twice, one is running."""
    rows = np.random.default_rng(1).random((60, 3)) * [1.0, 10.0, 100.0]
    opt = searched(rows, lambda p: float(p["x0"] - 0.01 * p["x2"]), 14, direction="maximize")
    opt.tell({"index": opt.trials[0].index}, 0.1)
    opt.ask()
    return opt


def stretched_told() -> bo.Optimizer:
    """Ranges of which ends are stretched: the lower one of a rate, the upper one of a momentum."""
    opt, rng = (
        bo.Optimizer({"rate": (1e-6, 1.0), "momentum": (0.0, 0.9999), "n": bo.Int(1, 5000)}, seed=0),
        np.random.default_rng(0),
    )
    close = 10.0 ** -rng.uniform(0.0, 4.0, (80, 2))
    points = [
        {"rate": a, "momentum": 0.9999 - 0.9999 * b, "n": int(n)}
        for (a, b), n in zip(close, rng.integers(1, 5000, 80), strict=True)
    ]
    losses = [(math.log10(p["rate"]) + 2.5) ** 2 + (math.log10(1.0 - p["momentum"]) + 2.0) ** 2 for p in points]
    opt.tell(points, losses)
    assert {name: by.is_low for name, by in opt.stretched_ends.items()} == {"rate": True, "momentum": False}
    return opt


def tailed_searched() -> bo.Optimizer:
    """A pool whose columns have long tails."""
    X = np.random.default_rng(0).standard_normal((500, 2))
    X[:, 0] = np.exp(2.0 * X[:, 0])
    X[3, 1] = -9999.0
    opt = bo.Optimizer(bo.Pool(X), seed=0)
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, float(abs(trial.params["x1"])))
    return opt
