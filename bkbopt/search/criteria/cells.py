"""The region that a front does not dominate, as disjoint boxes, and the volume that the front dominates.

| symbol    | shape     | units | meaning                                                                              |
| --------- | --------- | ----- | ------------------------------------------------------------------------------------ |
| F         | (p, k)    | y     | points, larger is better in each column                                              |
| reference | (k,)      | y     | reference point of the hypervolume                                                   |
| low       | (c, k)    | y     | local bounds: the regions above them hold all that is above the reference and that   |
|           |           |       | no point dominates, and nothing else                                                 |
| points    | (c, k, k) | y     | points[i, j] is the point that low[i, j] is a coordinate of; for the reference's     |
|           |           |       | coordinates it is infinite in all others                                             |

The local bounds follow single points (Klamroth, Lacour and Vanderpooten 2015, "On the representation of the search
region in multi-objective optimization", EJOR 245, Algorithm 3). The regions above them overlap; the box of each is the
part that belongs to it alone (Lacour, Klamroth and Fonseca 2017, "A box decomposition algorithm to compute the
hypervolume indicator", Computers and Operations Research 79). Two objectives have p + 1 boxes, three have 2 p + 1.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import compiled

__all__ = ["Cells", "cells_of"]

Floats = npt.NDArray[np.float64]


class Cells(NamedTuple):
    """Boxes of what a front does not dominate.

    Attributes:
        low: lower corners, (c, k).
        high: upper corners, (c, k), which may be infinite.
        dominated: the volume above the reference that the front dominates.
    """

    low: Floats
    high: Floats
    dominated: float


def cells_of(F: Floats, reference: Floats) -> Cells:
    """The boxes above the `reference (k,)` that no row of `F (p, k)` dominates.

    Rows that others dominate, or that are not above the reference, have no effect.
    """
    low, points, dominated = _followed(np.ascontiguousarray(F), reference)
    high = np.empty_like(low)
    for i in range(len(low)):
        _write_upper_corner(points[i], high[i])
    return Cells(low, high, dominated)


@compiled
def _followed(F: Floats, reference: Floats) -> tuple[Floats, Floats, float]:
    """Local bounds, their points, and the dominated volume, after all rows of F in turn."""
    k, c, dominated = len(reference), 1, 0.0
    low, points, high = np.empty((64, k)), np.full((64, k, k), np.inf), np.empty(k)
    for j in range(k):
        low[0, j] = points[0, j, j] = reference[j]
    for y in F:
        i, old = 0, c  # bounds that y has not made come first
        while i < old:
            if not _is_above(y, low[i]):
                i += 1
                continue
            above, of_points = low[i].copy(), points[i].copy()
            _write_upper_corner(of_points, high)
            dominated += np.prod(np.minimum(y, high) - above)
            # The last old bound takes the place of this one, and the last new bound the place of that.
            old, c = old - 1, c - 1
            low[i], points[i] = low[old], points[old]
            low[old], points[old] = low[c], points[c]
            while c + k > len(low):
                low, points = np.concatenate((low, low)), np.concatenate((points, points))
            for j in range(k):
                if _is_needed(of_points, y, j):
                    low[c], points[c] = above, of_points
                    low[c, j], points[c, j] = y[j], y
                    c += 1
    return low[:c], points[:c], dominated


@compiled
def _is_above(y: Floats, low: Floats) -> bool:
    """Whether all coordinates of `y (k,)` are larger than those of a local bound (k,)."""
    for j in range(len(y)):  # noqa: SIM110  numba has no `all` of a generator
        if y[j] <= low[j]:
            return False
    return True


@compiled
def _is_needed(points: Floats, y: Floats, j: int) -> bool:
    """Whether a local bound with these points (k, k) and coordinate j of `y (k,)` is not above another local bound."""
    for other in range(len(y)):  # noqa: SIM110
        if other != j and points[other, j] < y[j]:
            return False
    return True


@compiled
def _write_upper_corner(points: Floats, high: Floats) -> None:
    """Write the upper corner (k,) of the box of a local bound with these points (k, k)."""
    for j in range(len(high)):
        high[j] = np.inf
        for before in range(j):
            high[j] = min(high[j], points[before, j])
