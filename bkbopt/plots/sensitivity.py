"""Importance of parameters: shares of the variance of the posterior mean (Sobol indices).

A lengthscale is not a measure of importance: it describes how fast the function varies along a column, not by how much.
A small ripple has a short lengthscale and hardly any variance, a steady slope a long lengthscale and most of it. Here
the parameters are drawn independently over the whole space, and the variance of the posterior mean is decomposed into
the parts of the parameters.

| symbol | shape  | units     | meaning                                                                     |
| ------ | ------ | --------- | --------------------------------------------------------------------------- |
| A, B   | (n, k) | -         | independent samples of the space, in the coordinates of `coordinates.py`    |
| AB_j   | (n, k) | -         | A with column j from B                                                      |
| f      | (n,)   | user's    | posterior mean                                                              |

    first_j = Var(E[f | x_j]) / Var(f)         = E[f(B) (f(AB_j) - f(A))] / Var(f)      (Saltelli et al. 2010)
    total_j = E[Var(f | all but x_j)] / Var(f) = E[(f(A) - f(AB_j))^2] / (2 Var(f))     (Jansen 1999)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bkbopt._support.checks import check_count
from bkbopt._support.settings import in_usual_settings
from bkbopt.optimizer import Optimizer
from bkbopt.plots.coordinates import coordinates_of
from bkbopt.plots.readings import predicted, told
from bkbopt.plots.signatures import picture
from bkbopt.plots.style import BLUE, as_optimizer, axes_of, legend_below, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Share", "draw_shares", "importance", "variance_shares"]

#: Deviation of a posterior mean that counts as flat, as a fraction of the range of the values between their deciles: a
#: single 1e10 among numbers of order one is clipped by the model.
FLAT = 1e-10
#: Smallest share that rounds to a percent, in percent.
SEEN = 0.5


@dataclass(frozen=True)
class Share:
    """Sobol indices of a parameter: its shares of the variance of the posterior mean.

    Attributes:
        first: first-order index, the share of the parameter alone, 0 to 1.
        total: total index, 0 to 1; total - first is the share of its interactions with other parameters.
    """

    first: float
    total: float


@in_usual_settings
def variance_shares(opt: Optimizer, *, n_samples: int = 2048) -> dict[str, Share]:
    """Sobol indices of the posterior mean over the space, by parameter; see the module's text.

    The parameters are uniform in the space's own scales; columns of a pool are drawn independently from its arms. The
    posterior mean is flat in regions without data, whatever the black box does there. If it is flat everywhere, or
    explains nothing of the values, all shares are 0. A conditional parameter contributes where it is active.

    Args:
        opt: an optimizer with at least one value.
        n_samples: number n of independent samples; the mean is computed at n (k + 2) points, and the error falls at
            least as 1 / sqrt(n).

    Raises:
        ArgumentTypeError: `opt` is not an optimizer.
        ArgumentError: a pool of objects, no parameter varies, or several objectives.
        NotReadyError: there are no values yet.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
        >>> opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], space, n_trials=12, seed=0)
        >>> shares = plots.variance_shares(opt, n_samples=256)
        >>> shares["y"].total > shares["x"].total
        True
    """
    opt, n_samples = as_optimizer(opt), check_count("n_samples", n_samples, 2)
    y = told(opt).y
    spread = float(np.ptp(np.quantile(y, [0.1, 0.9])) or np.ptp(y))
    coordinates = coordinates_of(opt)
    A, B = coordinates.shuffled(n_samples)
    f_A, f_B = (predicted(opt, coordinates.encoded(U))[0] for U in (A, B))
    center, scale = f_A.mean(), max(float(np.abs(f_A).max()), float(np.finfo(float).tiny))
    f_A, f_B = (f_A - center) / scale, (f_B - center) / scale
    variance = float(np.concatenate([f_A, f_B]).var())
    # A smaller deviation is that of a flat mean with rounding errors, of the model or of numbers of its size.
    flat = max(FLAT * spread / scale, float(8.0 * np.finfo(float).eps))
    dimensions = coordinates.dimensions(2)
    if variance**0.5 < flat or opt.explains_nothing:
        return {dimension.name: Share(0.0, 0.0) for dimension in dimensions}
    shares = {}
    for dimension in dimensions:
        U = A.clone()
        U[:, dimension.column] = B[:, dimension.column]
        f = (predicted(opt, coordinates.encoded(U))[0] - center) / scale
        first = float((f_B * (f - f_A)).mean()) / variance
        total = min(float(((f_A - f) ** 2).mean()) / (2.0 * variance), 1.0)
        shares[dimension.name] = Share(min(max(first, 0.0), total), total)
    return shares


@picture
def importance(opt: Optimizer, *, ax: "Axes | None" = None, n_samples: int = 2048) -> "Axes":
    """Importance of the parameters as bars, the largest on top: shares of the variance of the posterior mean.

    The solid bar is the share of the parameter alone, the hatched bar that of its interactions, which is counted for
    each of the interacting parameters. See `variance_shares`.

    Args:
        opt: an optimizer with at least one value.
        ax: Axes to draw on; None for a new figure.
        n_samples: as for `variance_shares`.

    Raises:
        ArgumentTypeError, ArgumentError, NotReadyError: as for `variance_shares`.

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
