"""Optimizers to draw, and readers of the pictures."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import bkbopt as bo
from tests.searched import arms_searched, line_searched, mixed_searched, searched, true_cost

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@pytest.fixture(scope="session")
def line() -> bo.Optimizer:
    return line_searched()


@pytest.fixture(scope="session")
def mixed() -> bo.Optimizer:
    return mixed_searched()


@pytest.fixture(scope="session")
def arms() -> bo.Optimizer:
    return arms_searched()


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
