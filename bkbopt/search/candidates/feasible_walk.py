"""Points of a feasible set that is too small for random points of the space to be in it.

| symbol | shape  | units   | meaning                                          |
| ------ | ------ | ------- | ------------------------------------------------ |
| X      | (n, d) | encoded | points of a space; numbers are in [0, 1]         |

A first point is looked for near the corners of the space: sums of many parameters below, or above, a limit hold there.
From known points a random walk goes on: hit-and-run (Smith, 1984, Operations Research 32:1296-1308) along lines in all
numeric columns, and draws of single columns. Both leave the uniform distribution on the feasible set as it is, up to
the rounding of discrete columns.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from bkbopt.search.candidates.base import BLOCK, TRIES
from bkbopt.spaces.space import Space

__all__ = ["KNOWN", "beside", "found", "near_corners", "small_set", "walked"]

#: Number of the latest taken points from which a walk may start.
KNOWN = 64
#: Walkers, and their steps for each column.
WALKERS, STEPS = 4, 8
#: Of discrete spaces, of which all these points may be taken: further walkers, and how often they go a step per column.
FURTHER, ROUNDS = 32, 8
#: Share of feasible candidates below which `beside` gives further ones, how many, and their steps for each column.
SMALL, N_BESIDE, STEPS_BESIDE = 0.2, 128, 4
#: Points of a line, or draws of a column, that are tried in one step; the interval of a line shrinks to the last one.
TRIES_OF_STEP = 16
#: Which rows of points `(n, d)` are feasible.
FeasibleRows = Callable[[Tensor], list[bool]]


def small_set(space: Space, known: Tensor, feasible: FeasibleRows, rng: np.random.Generator) -> Iterator[Tensor]:
    """Blocks `(n, d)` of random feasible points: those of `found`, and in discrete spaces further ones."""
    X = found(space, known, feasible, rng)
    yield X
    X = X.repeat(FURTHER // WALKERS, 1)
    for _ in range(ROUNDS if len(X) and space.is_discrete else 0):
        X = walked(space, X, feasible, rng, space.dim)
        yield X


def found(space: Space, known: Tensor, feasible: FeasibleRows, rng: np.random.Generator) -> Tensor:
    """Random feasible points `(n, d)` of a small set, from `known (m, d)` points that are feasible, if there are any.

    Without one a first point is looked for near corners; n is 0 if none is found.
    """
    start = known[known.new_tensor(feasible(known), dtype=torch.bool)] if len(known) else known
    for _ in range(0 if len(start) else TRIES // BLOCK):
        block = near_corners(space, BLOCK, rng)
        start = block[block.new_tensor(feasible(block), dtype=torch.bool)]
        if len(start):
            break
    if not len(start):
        return start
    X = start[torch.from_numpy(rng.integers(len(start), size=WALKERS))]
    return walked(space, X, feasible, rng, STEPS * space.dim)


def beside(space: Space, X: Tensor, usable: list[bool], feasible: FeasibleRows, rng: np.random.Generator) -> Tensor:
    """Random feasible points `(n, d)` from the `usable` ones of candidates `X (m, d)`; n is 0 if many are, or none."""
    start = X[X.new_tensor(usable, dtype=torch.bool)]
    if not 0 < len(start) < SMALL * len(X):
        return start[:0]
    starts = start[torch.from_numpy(rng.integers(len(start), size=N_BESIDE))]
    return walked(space, starts, feasible, rng, STEPS_BESIDE * space.dim)


def near_corners(space: Space, n: int, rng: np.random.Generator) -> Tensor:
    """Random points `(n, d)` on lines from corners to random points.

    Two of three corners have all lows or all highs, half of these in some of the columns, of which the others are
    random.
    """
    X, columns = space.sample(n, rng), list(space.numeric)
    shape = n, len(columns)
    ends = rng.integers(2, size=shape)
    ends[n // 3 :] = ends[n // 3 :, :1]
    share = np.repeat(rng.random((n, 1)) ** 2, len(columns), 1)
    share[2 * n // 3 :][rng.random(shape)[2 * n // 3 :] < rng.random((n, 1))[2 * n // 3 :] ** 2] = 1.0
    corners, shares = torch.from_numpy(ends).to(X.dtype), torch.from_numpy(share)
    X[:, columns] = corners + shares * (X[:, columns] - corners)
    return space.snap(X)


def walked(space: Space, X: Tensor, feasible: FeasibleRows, rng: np.random.Generator, n_steps: int) -> Tensor:
    """The feasible points `X (n, d)` after so many steps each."""
    numeric = list(space.numeric)
    for _ in range(n_steps):
        on_line = bool(numeric) and rng.random() < 0.5
        step = _line_step(space, X, numeric, rng) if on_line else _column_step(space, X, rng)
        X = _stepped(X, step, feasible)
    return X


def _stepped(X: Tensor, step: Callable[[], Tensor], feasible: FeasibleRows) -> Tensor:
    """The rows of `X` with the first feasible of the points that a step tries for them; others stay."""
    X, left = X.clone(), np.ones(len(X), np.bool_)
    for _ in range(TRIES_OF_STEP):
        tried, rows = step(), left.nonzero()[0]
        found = rows[feasible(tried[rows])]
        X[found], left[found] = tried[found], False
        if not left.any():
            break
    return X


def _line_step(space: Space, X: Tensor, numeric: list[int], rng: np.random.Generator) -> Callable[[], Tensor]:
    """Points of a random line through each row; each call shrinks the intervals to the points that it gave before."""
    x = X.numpy()[:, numeric]
    slopes = rng.standard_normal(x.shape)
    ends = np.stack([-x / slopes, (1.0 - x) / slopes])  # where a column reaches 0 and 1
    low, high = ends.min(0).max(1), ends.max(0).min(1)

    def step() -> Tensor:
        t = rng.uniform(np.minimum(low, 0.0), np.maximum(high, 0.0))
        low[:], high[:] = np.where(t < 0.0, t, low), np.where(t < 0.0, high, t)
        Y = X.clone()
        Y[:, numeric] = torch.from_numpy(np.clip(x + t[:, None] * slopes, 0.0, 1.0))
        return space.snap(Y)

    return step


def _column_step(space: Space, X: Tensor, rng: np.random.Generator) -> Callable[[], Tensor]:
    """The rows with one column drawn anew, each time the same one."""
    drawn = torch.from_numpy(rng.integers(X.shape[1], size=(len(X), 1))) == torch.arange(X.shape[1])
    return lambda: space.snap(torch.where(drawn, space.sample(len(X), rng), X))
