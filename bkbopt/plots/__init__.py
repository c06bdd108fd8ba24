"""Plots of runs and models with matplotlib (`pip install "bkbopt[plots]"`).

Every function draws on the given Axes, or on those of a new figure, and returns them. It neither reads nor changes
global state: no figure is registered with pyplot, nothing is shown, no style is set. In a notebook `ax.figure` as the
last line of a cell shows the plot; `ax.figure.savefig("name.png")` writes it to a file.

Lines differ in their style as well as in their colour, and colour maps increase in lightness, so that plots are
readable in grey and for colour-blind readers. Legends are below the axes and cover no data.
"""

from bkbopt.plots.arms import pool_ucb
from bkbopt.plots.cost import ask_time, complexity
from bkbopt.plots.coverage import calibration
from bkbopt.plots.dependence import pairwise_dependence, partial_dependence
from bkbopt.plots.front import pareto
from bkbopt.plots.overview import overview
from bkbopt.plots.posterior import posterior_contour, posterior_slice
from bkbopt.plots.runs import convergence, regret
from bkbopt.plots.sensitivity import Share, importance, variance_shares

__all__ = [
    "Share",
    "ask_time",
    "calibration",
    "complexity",
    "convergence",
    "importance",
    "overview",
    "pairwise_dependence",
    "pareto",
    "partial_dependence",
    "pool_ucb",
    "posterior_contour",
    "posterior_slice",
    "regret",
    "variance_shares",
]
