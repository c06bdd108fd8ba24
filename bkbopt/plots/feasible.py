"""Feasibility on pictures of the posterior: infeasible trials, and where the constraints probably do not hold."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from bkbopt.optimizer import Optimizer
from bkbopt.plots.dimensions import Dimension
from bkbopt.plots.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["INFEASIBLE", "draw_area", "draw_range", "probabilities"]

#: Label of areas where the constraints hold with a probability below one half.
INFEASIBLE = "probably infeasible"
#: The hatching of such areas.
LOOK: dict[str, Any] = {"facecolor": "none", "edgecolor": GREY, "hatch": "\\\\\\", "linewidth": 0.0}


def probabilities(opt: Optimizer, X: Tensor) -> np.ndarray | None:
    """Posterior probability that all constraints hold at encoded points `X (n, d)`, (n,).

    None without constraints, and while one of them has no value.
    """
    known = {name for trial in opt.trials for name in trial.constraints}
    if not opt.constraints or not known.issuperset(opt.constraints):
        return None
    return opt.feasibility_encoded(X)


def draw_range(ax: "Axes", dimension: Dimension, probability: np.ndarray | None) -> None:
    """Hatch the values of `dimension` where the constraints hold with `probability (n,)` < 1/2; nothing if None."""
    if probability is None or not (probability < 0.5).any():
        return
    edges = dimension.edges()
    low, high = dimension.limits()
    for start, stop in _runs(probability < 0.5):
        span = np.clip([edges[start], edges[stop]], low, high)
        ax.axvspan(*span, alpha=0.5, zorder=0, **LOOK)
    _draw_key(ax)


def draw_area(ax: "Axes", across: Dimension, up: Dimension, probability: np.ndarray | None, active: np.ndarray) -> None:
    """Hatch where the constraints hold with a `probability` < 1/2, among `active` cells; nothing if None.

    Both arrays are `(n_up * n_across,)`, those of `across` change fastest.
    """
    if probability is None or not (probability[active] < 0.5).any():
        return
    surface = np.where(active, probability, 1.0).reshape(len(up.values), len(across.values))
    if across.is_continuum and up.is_continuum:
        places = across.place(across.values), up.place(up.values)
        ax.contourf(*places, surface, levels=[-1.0, 0.5], colors="none", hatches=[LOOK["hatch"]])
        ax.contour(*places, surface, levels=[0.5], colors="black", linestyles="--", linewidths=1.0)
    else:
        x, y = across.edges(), up.edges()
        for i, column in enumerate(surface.T):
            for start, stop in _runs(column < 0.5):
                ax.fill_between(x[i : i + 2], y[start], y[stop], **{**LOOK, "edgecolor": "black"})
    _draw_key(ax)


def _runs(inside: np.ndarray) -> Sequence[tuple[int, int]]:
    """Start and end, exclusive, of each run of True."""
    steps = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(int)))
    return [(int(start), int(stop)) for start, stop in steps.reshape(-1, 2)]


def _draw_key(ax: "Axes") -> None:
    ax.fill_between([], [], label=INFEASIBLE, **LOOK)
