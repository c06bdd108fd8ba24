"""Compiled kernel rows: k(x, s) for one point x and all support points s, a few nanoseconds each.

| symbol | shape    | units         | meaning                                                              |
| ------ | -------- | ------------- | -------------------------------------------------------------------- |
| X      | (b, d)   | l sqrt 2      | a block of points, divided by sqrt(2) lengthscales (Gaussian kernel) |
| points | (d, cap) | as X          | support points, one a column: sums over features then run along rows |
| K      | (b, c)   | y squared     | the block's kernel values; empty where the Gaussian is computed here |
| place  | (cap,)   | -             | the column of K that belongs to each support point                   |

Everything is computed point by point, in an order that depends only on the number of support points. So predictions
are the same to the last bit whether a stream is learnt in blocks or row by row.
"""

from typing import NamedTuple

import numpy as np

from bkbopt._support.compiled import compiled, fast, fused
from bkbopt._support.exponential import exp_of_negative
from bkbopt.learners.numerics.losses import Array, Indices

__all__ = [
    "Block",
    "Support",
    "append",
    "axpy",
    "expand",
    "gaussian_matrix",
    "gaussian_row",
    "inner",
    "kernel_row",
    "product",
    "put",
    "remove",
    "scale",
]


class Block(NamedTuple):
    """Rows of a stream as the loops read them; `diagonal (b,)` holds k(x, x), `height` the Gaussian's largest value."""

    X: Array
    y: Array
    K: Array
    diagonal: Array
    height: float


class Support(NamedTuple):
    """A kernel expansion f(x) = sum_j weights_j k(points_j, x), changed in place; `size` holds the number of terms.

    `born (cap,)` is the round in which a term was added, `diagonal (cap,)` its k(s, s).
    """

    points: Array
    weights: Array
    diagonal: Array
    place: Indices
    born: Indices
    size: Indices


@fused
def gaussian_row(points: Array, n: int, x: Array, height: float, out: Array) -> None:
    """out[j] = height exp(-|x - points_j|^2) for the first n points."""
    for j in range(n):
        out[j] = 0.0
    for i in range(x.shape[0]):
        xi = x[i]
        for j in range(n):
            e = points[i, j] - xi
            out[j] += e * e
    for j in range(n):
        out[j] = height * exp_of_negative(-out[j])


@compiled
def gaussian_matrix(points: Array, X: Array, height: float, out: Array) -> None:
    """Row t of `out (n, m)` is the row of x_t, for `points (d, m)`."""
    for t in range(X.shape[0]):
        gaussian_row(points, points.shape[1], X[t], height, out[t])


@compiled
def kernel_row(block: Block, t: int, support: Support, out: Array) -> None:
    """out[j] = k(x_t, s_j) for every term j of the expansion."""
    n = support.size[0]
    if block.K.shape[1] == 0:
        gaussian_row(support.points, n, block.X[t], block.height, out)
    else:
        for j in range(n):
            out[j] = block.K[t, support.place[j]]


@fast
def inner(a: Array, b: Array, n: int) -> float:
    """sum_j a_j b_j over the first n places."""
    total = 0.0
    for j in range(n):
        total += a[j] * b[j]
    return total


@fast
def product(M: Array, x: Array, out: Array) -> None:
    """out <- M x, of the first places of x where it has more than M has columns."""
    for i in range(M.shape[0]):
        out[i] = inner(M[i], x, M.shape[1])


@fast
def axpy(a: Array, factor: float, d: Array, n: int) -> None:
    """Add factor times d to the first n places of a."""
    for j in range(n):
        a[j] += factor * d[j]


@compiled
def put(block: Block, t: int, support: Support, j: int, weight: float, first: int) -> None:
    """Store x_t as term j with this weight; `first` is the round of the block's first row.

    Columns of K are the support points at the start of the block, then the block's own rows.
    """
    for i in range(block.X.shape[1]):
        support.points[i, j] = block.X[t, i]
    support.weights[j] = weight
    support.diagonal[j] = block.diagonal[t]
    support.place[j] = block.K.shape[1] - block.X.shape[0] + t
    support.born[j] = first + t


@compiled
def append(block: Block, t: int, support: Support, weight: float, first: int) -> int:
    """Add x_t as the last term and return its place."""
    j = support.size[0]
    put(block, t, support, j, weight, first)
    support.size[0] = j + 1
    return j


@compiled
def remove(support: Support, j: int) -> None:
    """Delete term j; the last term takes its place."""
    last = support.size[0] - 1
    for i in range(support.points.shape[0]):
        support.points[i, j] = support.points[i, last]
    support.weights[j] = support.weights[last]
    support.diagonal[j] = support.diagonal[last]
    support.place[j] = support.place[last]
    support.born[j] = support.born[last]
    support.size[0] = last


@fast
def scale(weights: Array, n: int, factor: float) -> None:
    """Multiply the first n weights."""
    for j in range(n):
        weights[j] *= factor


@compiled
def expand(block: Block, support: Support, p: Array) -> None:
    """Predict only."""
    k = np.empty(support.weights.shape[0])
    for t in range(block.X.shape[0]):
        kernel_row(block, t, support, k)
        p[t] = inner(k, support.weights, support.size[0])
