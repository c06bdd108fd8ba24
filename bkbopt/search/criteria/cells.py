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
    low, points, above, of_points = np.empty((64, k)), np.empty((64, k, k)), np.empty((1, k)), np.empty((1, k, k))
    high = np.empty(k)
    for j in range(k):
        low[0, j] = reference[j]
        for t in range(k):
            points[0, j, t] = reference[j] if t == j else np.inf
    for y in F:
        i, old = 0, c  # bounds that y has not made come first
        while i < old:
            if not _is_above(y, low[i]):
                i += 1
                continue
            _put(low, points, i, above, of_points, 0)
            _write_upper_corner(of_points[0], high)
            volume = 1.0
            for j in range(k):
                volume *= min(y[j], high[j]) - above[0, j]
            dominated += volume
            # The last old bound takes the place of this one, and the last new bound the place of that.
            old, c = old - 1, c - 1
            _put(low, points, old, low, points, i)
            _put(low, points, c, low, points, old)
            while c + k > len(low):
                smaller, of_smaller = low, points
                low, points = np.empty((2 * len(low), k)), np.empty((2 * len(low), k, k))
                for b in range(c):
                    _put(smaller, of_smaller, b, low, points, b)
            for j in range(k):
                if _is_needed(of_points[0], y, j):
                    _put(above, of_points, 0, low, points, c)
                    low[c, j] = y[j]
                    for t in range(k):
                        points[c, j, t] = y[t]
                    c += 1
    return low[:c], points[:c], dominated


@compiled
def _put(low: Floats, points: Floats, i: int, others: Floats, of_others: Floats, at: int) -> None:
    """Write local bound i as bound `at` of others. Assignments of whole rows would take five seconds to compile."""
    for j in range(low.shape[1]):
        others[at, j] = low[i, j]
        for t in range(low.shape[1]):
            of_others[at, j, t] = points[i, j, t]


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
