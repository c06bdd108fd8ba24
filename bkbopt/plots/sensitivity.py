"""The importance of parameters as bars."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bkbopt._support.showing import shortened
from bkbopt.analysis.sensitivity import Share, variance_shares
from bkbopt.optimizer import Optimizer
from bkbopt.plots.signatures import picture
from bkbopt.plots.style import BLUE, axes_of, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_shares", "importance"]

#: Smallest share that rounds to a percent, in percent.
SEEN = 0.5


@picture
def importance(opt: Optimizer, *, ax: "Axes | None" = None, n_samples: int = 2048) -> "Axes":
    """Importance of the parameters as bars, the largest on top: shares of the variance of the posterior mean.

    The solid bar is the share of the parameter alone, the hatched bar that of its interactions, which is counted for
    each of the interacting parameters. See `bkbopt.analysis.variance_shares`.

    Args:
        opt: an optimizer with at least one value.
        ax: Axes to draw on; None for a new figure.
        n_samples: as for `bkbopt.analysis.variance_shares`.

    Raises:
        ArgumentTypeError, ArgumentError, NotReadyError: as for `bkbopt.analysis.variance_shares`.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
        >>> opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], space, n_trials=12, seed=0)
        >>> [label.get_text() for label in plots.importance(opt).get_yticklabels()]
        ['x', 'y']
    """
    shares = variance_shares(opt, n_samples=n_samples)
    return draw_shares(axes_of(ax, height=1.8 + 0.4 * len(shares)), shares)


def draw_shares(ax: "Axes", shares: Mapping[str, Share]) -> "Axes":
    """Draw the bars of `importance`."""
    ranked = sorted(shares.items(), key=lambda item: item[1].total)
    names = [name for name, _ in ranked]
    first = 100.0 * np.array([share.first for _, share in ranked])
    total = 100.0 * np.array([share.total for _, share in ranked])
    rows = np.arange(len(names))
    ax.barh(rows, first, color=BLUE, height=0.62, label="main effect")
    ax.barh(
        rows,
        total - first,
        left=first,
        facecolor="white",
        edgecolor=BLUE,
        hatch="////",
        height=0.62,
        label="interactions, counted for each of their parameters" if np.any(total - first > SEEN) else None,
    )
    for row, value in zip(rows, total, strict=True):
        text = "<1 %" if 0.0 < value <= SEEN else f"{value:.0f} %"
        ax.annotate(text, (value, row), (4, 0), textcoords="offset points", va="center", fontsize="small")
    ax.set_xlabel("share of the posterior mean's variance (%)", loc="right")  # names may take the left
    ax.set(xlim=(0.0, 112.0), ylim=(-0.6, len(names) - 0.4))
    ax.set_xticks(range(0, 101, 20))
    ax.set_yticks(rows, shortened(names), parse_math=False)
    ax.grid(axis="x", alpha=0.3)
    ax.set_axisbelow(True)
    legend_below(ax)
    return ax
