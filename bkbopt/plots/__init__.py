"""Plots of runs and models with matplotlib (`pip install ".[plots]"` in a checkout).

A picture is drawn on the Axes or the figure that are given, or on new ones, and they are returned. Nothing global is
changed: no figure is registered with pyplot, nothing is shown, and the style is the user's. In a notebook `ax.figure`
as the last line of a cell shows the picture; `ax.figure.savefig("name.png")` writes it.

All functions have the same form:

- The data come first: `opt`, an optimizer, or `runs` or `times`, which may also be numbers. At most two more arguments
  are positional. They say which parameters are on the axes (`x`, `y`, `names`), or with what the data are compared
  (`optimum`; `test` and `values`). All others are keywords, and have defaults.
- A picture with one Axes, and the colour bar beside it, takes `ax=` and returns these Axes. A picture with several Axes
  takes `figure=`, an empty figure or subfigure, and returns it. Without them there is a new figure.
- Numbers of things begin with `n_`: `n_grid` points along a continuum, `n_samples` random settings, `n_folds` groups.
- `value_name` names the values of a single objective, with their unit. Where there may be several objectives,
  `value_names` is a text, or a list with one name for each objective, in their order.

`bkbopt.analysis` has numbers behind the pictures, without matplotlib.

`report` writes a whole run as one page of HTML, and `LivePlot` follows a run in a notebook.

Lines differ in their style as well as in their colour, and colour maps increase in lightness, so that plots are
readable in grey and for colour-blind readers. Legends are below the axes and cover no data. Values beyond +-1e150 are
drawn at +-1e150: of larger ones neither squares nor axes are within floats.
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
from bkbopt.plots.sensitivity import importance

__all__ = [
    "LivePlot",
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
]
