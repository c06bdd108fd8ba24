"""Optimizers to draw, and readers of the pictures."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import bkbopt as bo

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    rng = np.random.default_rng(0)
    options = {"seed": 0, "n_startup_trials": 8} | options
    return bo.minimize(lambda p: f(p) + 0.1 * rng.standard_normal(), space, n, **options)


@pytest.fixture(scope="session")
def line() -> bo.Optimizer:
    return searched({"x": (0.0, 2.0)}, lambda p: float(np.sin(5.0 * p["x"])), 14)


@pytest.fixture(scope="session")
def mixed() -> bo.Optimizer:
    opt = searched(MIXED, true_cost, 16)
    opt.fail(opt.ask())
    return opt


@pytest.fixture(scope="session")
def arms() -> bo.Optimizer:
    """A pool in which larger is better; one arm has been measured twice, one is running."""
    rows = np.random.default_rng(1).random((60, 3)) * [1.0, 10.0, 100.0]
    opt = searched(rows, lambda p: float(p["x0"] - 0.01 * p["x2"]), 14, direction="maximize")
    opt.tell({"index": opt.trials[0].index}, 0.1)
    opt.ask()
    return opt


@pytest.fixture(scope="session")
def run() -> Callable[..., bo.Optimizer]:
    """Search a space for so many noisy evaluations."""
    return searched


@pytest.fixture(scope="session")
def cost() -> Callable[[Mapping[str, Any]], float]:
    """The noise-free values behind `mixed`."""
    return true_cost


@pytest.fixture(scope="session")
def scattered() -> Callable[["Axes"], list[np.ndarray]]:
    """Places of the points of each scatter that is not empty, (n, 2)."""

    def read(ax: "Axes") -> list[np.ndarray]:
        found = [np.asarray(c.get_offsets()) for c in ax.collections if type(c).__name__ == "PathCollection"]
        return [places for places in found if len(places)]

    return read


@pytest.fixture(scope="session")
def band_of() -> Callable[["Axes"], tuple[float, float]]:
    """Lowest and highest point of the first filled band."""

    def read(ax: "Axes") -> tuple[float, float]:
        y = ax.collections[0].get_paths()[0].vertices[:, 1]
        return float(y.min()), float(y.max())

    return read
