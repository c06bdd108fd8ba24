"""Values over two parameters as colours."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bkbopt.analysis.dimensions import Dimension
from bkbopt.plots.dimensions import room_below
from bkbopt.plots.style import MAP, in_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar

__all__ = ["MISSING", "colour_grid"]

#: What is hatched where one of the two parameters is inactive at the value of the other.
MISSING = "combinations that do not exist"


def colour_grid(ax: "Axes", across: Dimension, up: Dimension, surface: np.ndarray, label: str) -> "Colorbar":
    """Draw values `surface (n_up * n_across,)` with a colour bar: as contours for two continua, otherwise as cells.

    Where values are NaN, as at combinations that do not exist, the area is hatched; a legend of the Axes says so.
    """
    surface = np.ma.masked_invalid(surface.reshape(len(up.values), len(across.values)))
    if across.is_continuum and up.is_continuum:
        places = across.place(across.values), up.place(up.values)
        drawn: Any = ax.contourf(*places, surface, levels=14, cmap=MAP)
    else:
        drawn = ax.pcolormesh(across.edges(), up.edges(), surface, cmap=MAP)
    bar = ax.figure.colorbar(drawn, ax=ax)
    bar.set_label(in_lines(label, ax, room_below(across, ax)), parse_math=False)
    if np.ma.getmaskarray(surface).any():
        look: Any = {"facecolor": "0.95", "edgecolor": "0.75", "hatch": "///"}
        ax.patch.set(**look)
        ax.fill_between([], [], label=MISSING, linewidth=0.0, **look)
    return bar
