"""Small searches that several tests read."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import bkbopt as bo

__all__ = ["arms_searched", "line_searched", "mixed_searched", "searched", "true_cost"]

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
