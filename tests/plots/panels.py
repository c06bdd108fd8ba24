"""The panels of `pairwise_dependence`."""

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["panels_of"]


def panels_of(figure: "Figure") -> np.ndarray:
    """The Axes of the parameters and of their pairs, (k, k), None above the diagonal; a colour bar is no panel."""
    k = math.isqrt(len(figure.axes))  # as many colour bars as there are pairs
    panels = np.full((k, k), None, dtype=object)
    panels[np.tril_indices(k)] = figure.axes[: k * (k + 1) // 2]
    return panels
