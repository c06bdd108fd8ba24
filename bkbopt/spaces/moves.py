"""Moves to the neighbours of points: to another value in one discrete column."""

import numpy as np
from numpy.typing import NDArray

from bkbopt.spaces.scales import Array, Codes, Scale, Scales

__all__ = ["Moves"]

Rows = NDArray[np.int64]

#: Up to this size all other values of a grid are neighbours.
SMALL_GRID = 12
#: The longest move on a larger grid, a fraction of the encoded range, and the other moves, in steps of the grid.
LEAP, STEPS = 0.1, np.array([-2, -1, 1, 2])


class Moves:
    """The moves in a table of columns.

    Args:
        scales: of the columns.
    """

    def __init__(self, scales: Scales) -> None:
        listed = [(j, scale) for j, scale in scales.gridded if isinstance(scale, Codes) or scale.n <= SMALL_GRID]
        self._long = [(j, scale) for j, scale in scales.gridded if (j, scale) not in listed]
        #: The columns in which each other value is a neighbour, one entry for each value, and the codes of these.
        self._columns = np.repeat([j for j, _ in listed], [scale.n for _, scale in listed]).astype(np.int64)
        self._codes = np.concatenate([np.zeros(0), *(scale.encoded(np.arange(scale.n)) for _, scale in listed)])

    def neighbours(self, X: Array, active: NDArray[np.bool_] | None) -> tuple[Array, Rows]:
        """Neighbours of snapped points `X (n, d)`, those of the first point first, and the row of X of each.

        Args:
            X: the points.
            active: where columns are active, (n, d); None for everywhere.
        """
        is_move = X[:, self._columns] != self._codes
        if active is not None:
            is_move &= active[:, self._columns]
        rows, at = np.nonzero(is_move)
        moves = [(rows, self._columns[at], self._codes[at])]
        for j, scale in self._long:
            here = np.arange(len(X)) if active is None else np.flatnonzero(active[:, j])
            at, codes = _moves_on(scale, X[here, j], scale.n)
            moves.append((here[at], np.full(len(at), j), codes))
        rows, columns, codes = (np.concatenate(parts) for parts in zip(*moves, strict=True))
        found = X[rows]
        found[np.arange(len(rows)), columns] = codes
        order = np.argsort(rows * X.shape[1] + columns, kind="stable")
        return found[order], rows[order]


def _moves_on(scale: Scale, codes: Array, n: int) -> tuple[Rows, Array]:
    """For the neighbours of grid points with `codes (k,)` on a grid of `n`: which one each belongs to, and its code."""
    here = scale.nearest(codes)[:, None]
    leaps = scale.nearest(np.stack([codes - LEAP, codes + LEAP], 1).ravel()).reshape(-1, 2)
    others = np.sort(np.concatenate([here + STEPS, leaps], 1), 1)
    is_move = (others != here) & (others >= 0) & (others < n)
    is_move[:, 1:] &= others[:, 1:] != others[:, :-1]
    at, which = np.nonzero(is_move)
    return at, scale.encoded(others[at, which])
