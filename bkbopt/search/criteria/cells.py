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
    k, dominated = len(reference), 0.0
    low, points = np.empty((1, k)), np.full((1, k, k), np.inf)
    for j in range(k):
        low[0, j] = points[0, j, j] = reference[j]
    for y in F:
        low, points, added = _with_point(low, points, y)
        dominated += added
    return low, points, dominated


@compiled
def _with_point(low: Floats, points: Floats, y: Floats) -> tuple[Floats, Floats, float]:
    """Local bounds and their points with another point `y (k,)`, and the volume of the boxes' parts below it."""
    c, k = low.shape
    splits = np.empty(c, np.bool_)
    for i in range(c):
        splits[i] = (y > low[i]).all()
    most = c + (k - 1) * splits.sum()
    new_low, new_points, high = np.empty((most, k)), np.empty((most, k, k)), np.empty(k)
    n, volume = 0, 0.0
    for i in range(c):
        if not splits[i]:
            new_low[n], new_points[n] = low[i], points[i]
            n += 1
            continue
        _write_upper_corner(points[i], high)
        volume += np.prod(np.minimum(y, high) - low[i])
        for j in range(k):
            if _is_needed(points[i], y, j):
                new_low[n], new_points[n] = low[i], points[i]
                new_low[n, j], new_points[n, j] = y[j], y
                n += 1
    return new_low[:n], new_points[:n], volume


@compiled
def _is_needed(points: Floats, y: Floats, j: int) -> bool:
    """Whether a local bound with these points (k, k) and coordinate j of `y (k,)` is not above another local bound."""
    needed = True
    for other in range(len(y)):
        needed = needed and (other == j or points[other, j] >= y[j])
    return needed


@compiled
def _write_upper_corner(points: Floats, high: Floats) -> None:
    """Write the upper corner (k,) of the box of a local bound with these points (k, k)."""
    for j in range(len(high)):
        high[j] = np.inf
        for before in range(j):
            high[j] = min(high[j], points[before, j])
