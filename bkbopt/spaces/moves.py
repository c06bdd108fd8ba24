"""Moves to the neighbours of points: to another value in one discrete column."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bkbopt.spaces.base import Column
from bkbopt.spaces.scales import Scale, Scales

__all__ = ["neighbours"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

#: Up to this size all other values of a grid are neighbours.
SMALL_GRID = 12
#: The longest move on a larger grid, a fraction of the encoded range, and the other moves, in steps of the grid.
LEAP, STEPS = 0.1, np.array([-2, -1, 1, 2])


def neighbours(
    scales: Scales, columns: Sequence[Column], X: Array, active: Mapping[str, NDArray[np.bool_]]
) -> tuple[Array, Rows]:
    """Neighbours of snapped points `X (n, d)`, those of the first point first, and the row of X of each.

    Args:
        scales: of the columns.
        columns: their names and kinds.
        X: the points.
        active: where columns are active, (n,), by name; the others are everywhere.
    """
    every, moves = np.arange(len(X)), [(np.zeros(0, dtype=np.int64), np.zeros(0), 0)]
    for j, scale in scales.gridded:
        column = columns[j]
        here = np.flatnonzero(active[column.name]) if column.name in active else every
        at, codes = _moves_on(scale, X[here, j], column.n_values or 0, unordered=column.kind == "categorical")
        moves.append((here[at], codes, j))
    rows = np.concatenate([at for at, _, _ in moves])
    moved = np.repeat([j for _, _, j in moves], [len(at) for at, _, _ in moves])
    found = X[rows]
    found[np.arange(len(rows)), moved] = np.concatenate([codes for _, codes, _ in moves])
    order = np.argsort(rows, kind="stable")
    return found[order], rows[order]


def _moves_on(scale: Scale, codes: Array, n: int, *, unordered: bool) -> tuple[Rows, Array]:
    """For the neighbours of grid points with `codes (k,)` on a grid of `n`: which one each belongs to, and its code."""
    here = scale.nearest(codes)[:, None]
    if unordered or n <= SMALL_GRID:
        others = np.broadcast_to(np.arange(n), (len(codes), n))
        is_move = others != here
    else:
        leaps = scale.nearest(np.stack([codes - LEAP, codes + LEAP], 1).ravel()).reshape(-1, 2)
        others = np.sort(np.concatenate([here + STEPS, leaps], 1), 1)
        is_move = (others != here) & (others >= 0) & (others < n)
        is_move[:, 1:] &= others[:, 1:] != others[:, :-1]
    at, which = np.nonzero(is_move)
    return at, scale.encoded(others[at, which])
