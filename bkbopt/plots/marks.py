"""Marks of single points of a scatter."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.collections import PathCollection

__all__ = ["point_out"]

#: Area of a triangle that is as visible as a dot, relative to the dot's.
AREA = 2.0


def point_out(drawn: "PathCollection", away: np.ndarray) -> None:
    """Make points of a scatter triangles where `away (n,)` is not zero: up where it is positive, down elsewhere.

    All remain in one scatter, with their own colours.
    """
    from matplotlib.markers import MarkerStyle

    (own,), sizes = drawn.get_paths(), np.asarray(drawn.get_sizes(), dtype=float)
    up, down = (style.get_path().transformed(style.get_transform()) for style in map(MarkerStyle, "^v"))
    drawn.set_paths([own if gap == 0.0 else up if gap > 0.0 else down for gap in away])
    drawn.set_sizes(np.where(away == 0.0, 1.0, AREA) * sizes)
