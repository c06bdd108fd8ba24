"""Pictures of runs and models, by matplotlib (`pip install "bkbopt[plots]"`).

A picture is drawn on the Axes that are given, or on those of a new figure, and its Axes are returned. Nothing global is
read or changed: no figure is registered with pyplot, nothing is shown, no style is set. In a notebook `ax.figure` as
the last line of a cell shows the picture; `ax.figure.savefig("name.png")` writes it.

`report` writes a whole run as one page of HTML, and `LivePlot` follows a run in a notebook.

Series differ by their line as well as by their colour, maps of colour grow in lightness, legends stand below the
axes: the pictures can be read in grey and by the colour-blind, and no legend covers data.
"""

from bkbopt.plots.arms import pool_ucb
from bkbopt.plots.cost import ask_time, complexity
from bkbopt.plots.coverage import calibration
from bkbopt.plots.dependence import pairwise_dependence, partial_dependence
from bkbopt.plots.front import pareto
from bkbopt.plots.live import LivePlot
from bkbopt.plots.overview import overview
from bkbopt.plots.posterior import posterior_contour, posterior_slice
from bkbopt.plots.report import report
from bkbopt.plots.runs import convergence, regret
from bkbopt.plots.sensitivity import Share, importance, variance_shares

__all__ = [
    "LivePlot",
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
    "report",
    "variance_shares",
]
