"""Feasibility on pictures of the posterior: where constraints probably do not hold, or trials probably fail."""

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from bkbopt.analysis.dimensions import Dimension
from bkbopt.errors import NotReadyError
from bkbopt.optimizer import Optimizer
from bkbopt.plots.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FAILING", "INFEASIBLE", "Odds", "draw_area", "draw_range", "odds"]

#: Label of areas where the constraints hold with a probability below one half, and of those where trials succeed with
#: such a probability. Where there are both, it is the probability of a feasible value.
INFEASIBLE, FAILING = "probably infeasible", "probably fails"
#: The hatching of such areas.
LOOK: dict[str, Any] = {"facecolor": "none", "edgecolor": GREY, "hatch": "\\\\\\", "linewidth": 0.0}


@dataclass(frozen=True)
class Odds:
    """The probability of a feasible value at points.

    Attributes:
        probability: (n,), in [0, 1].
        label: what an area is called where it is below one half.
    """

    probability: np.ndarray
    label: str

    @property
    def low(self) -> np.ndarray:
        """Whether the probability is below one half, (n,)."""
        return self.probability < 0.5


def odds(opt: Optimizer, X: Tensor) -> Odds:
    """Posterior probability that a trial at encoded points `X (n, d)` has a value, and that all constraints hold.

    Constraints are left out while one of them has no value.
    """
    success = opt.success_probability_encoded(X)
    with contextlib.suppress(NotReadyError):
        if opt.constraints:
            feasible, is_certain = opt.feasibility_encoded(X), bool((success == 1.0).all())
            return Odds(success * feasible, INFEASIBLE if is_certain else f"{INFEASIBLE}, or fails")
    return Odds(success, FAILING)


def draw_range(ax: "Axes", dimension: Dimension, found: Odds) -> None:
    """Hatch the values of `dimension` where a feasible value is improbable."""
    if not found.low.any():
        return
    from matplotlib.cbook import contiguous_regions

    edges = dimension.edges()
    low, high = dimension.limits()
    for start, stop in contiguous_regions(found.low):
        span = np.clip([edges[start], edges[stop]], low, high)
        ax.axvspan(*span, alpha=0.5, zorder=0, **LOOK)
    _draw_key(ax, found.label)


def draw_area(ax: "Axes", across: Dimension, up: Dimension, found: Odds, active: np.ndarray) -> None:
    """Hatch where a feasible value is improbable, among `active` cells.

    Arrays are `(n_up * n_across,)`, those of `across` change fastest.
    """
    if not found.low[active].any():
        return
    from matplotlib.cbook import contiguous_regions

    surface = np.where(active, found.probability, 1.0).reshape(len(up.values), len(across.values))
    if across.is_continuum and up.is_continuum:
        places = across.place(across.values), up.place(up.values)
        ax.contourf(*places, surface, levels=[-1.0, 0.5], colors="none", hatches=[LOOK["hatch"]])
        ax.contour(*places, surface, levels=[0.5], colors="black", linestyles="--", linewidths=1.0)
    else:
        x, y = across.edges(), up.edges()
        for i, column in enumerate(surface.T):
            for start, stop in contiguous_regions(column < 0.5):
                ax.fill_between(x[i : i + 2], y[start], y[stop], **{**LOOK, "edgecolor": "black"})
    _draw_key(ax, found.label)


def _draw_key(ax: "Axes", label: str) -> None:
    ax.fill_between([], [], label=label, **LOOK)
