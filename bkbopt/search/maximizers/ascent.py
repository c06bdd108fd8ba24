"""Gradient ascent from many points in parallel: L-BFGS with projection onto the unit cube.

| symbol | shape  | units  | meaning                                      |
| ------ | ------ | ------ | -------------------------------------------- |
| X      | (n, c) | [0, 1] | points, one search each                      |
| f      | (n,)   | -      | scores, larger is better                     |
| g      | (n, c) | -      | gradient ("slopes") of a row's score         |

Each row has its own memory and step length, and all rows are evaluated together. A single run of SciPy's L-BFGS-B over
the sum of all scores would share both among the rows, and has an overhead of 0.2 ms per step. Upper confidence bounds
under kernels of the package are evaluated within the compiled loop.
"""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

if TYPE_CHECKING:
    from bkbopt.search.maximizers._loops import Rows
    from bkbopt.search.maximizers._loops_bound import PlainBound

__all__ = [
    "PlainScore",
    "Score",
    "SlopedScore",
    "ascend",
    "ascend_bound",
    "differences",
    "differentiated",
    "plain_bound_of",
    "slopes_of",
]

#: Maps points (n, d) to scores (n,), larger is better.
Score = Callable[[Tensor], Tensor]
Floats = npt.NDArray[np.float64]

#: Number of steps that a search stores (the memory of L-BFGS).
MEMORY = 10
#: Step of a difference, as a fraction of a column's range: its errors by curvature and by rounding are both about 1e-6.
STEP = 1e-6


@runtime_checkable
class SlopedScore(Protocol):
    """A score with gradients in closed form."""

    def __call__(self, X: Tensor) -> Tensor:
        """Scores `(n,)` of the points `X (n, d)`."""

    def with_slopes(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Scores `(n,)` and their gradients `(n, d)` at the points `X (n, d)`."""


@runtime_checkable
class PlainScore(Protocol):
    """A score that may be an upper confidence bound for compiled loops."""

    def plain(self) -> "PlainBound | None":
        """The bound as arrays; None where compiled loops do not have its kernel."""


def plain_bound_of(score: Score) -> "PlainBound | None":
    """The score as an upper confidence bound for compiled loops, or None."""
    return score.plain() if isinstance(score, PlainScore) else None


def slopes_of(score: Score) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """The function from points `(n, d)` to scores `(n,)` and their gradients `(n, d)`, NaN where it has none."""
    return score.with_slopes if isinstance(score, SlopedScore) else functools.partial(differentiated, score)


def differentiated(score: Score, X: Tensor) -> tuple[Tensor, Tensor]:
    """Scores and gradients by automatic differentiation; the score of a row must depend on that row only.

    The gradients are NaN if PyTorch cannot differentiate the score, as with kernels of numpy.
    """
    with torch.enable_grad():
        X = X.detach().clone().requires_grad_(True)
        scores = score(X)
        slopes = None
        if scores.requires_grad:
            (slopes,) = torch.autograd.grad(scores.sum(), X, allow_unused=True)
    return scores.detach(), torch.full_like(X, torch.nan) if slopes is None else slopes


def differences(score: Score, X: Tensor, columns: Sequence[int], scores: Tensor) -> Tensor:
    """Slopes `(n, c)` of the scores `(n,)` of the points `X (n, d)` in c columns, by one-sided differences.

    Steps go towards the middle of a column, since a user's kernel need not be defined outside of the space, and the
    other columns stay, since they may be codes of categories. The score is called once, with c copies of the points.
    """
    n, c = len(X), len(columns)
    Y, rows, moved = X.repeat(c, 1), torch.arange(n * c), torch.tensor(columns).repeat_interleave(n)
    before = Y[rows, moved]
    Y[rows, moved] += torch.where(before > 0.5, -STEP, STEP)
    return ((score(Y) - scores.repeat(c)) / (Y[rows, moved] - before)).reshape(c, n).T


def ascend(sloped: Callable[[Floats], tuple[Floats, Floats]], X: Floats, most: int) -> Floats:
    """Local maxima `(n, c)` of searches from the rows of `X (n, c)`; their scores are no worse than those of the rows.

    Args:
        sloped: scores (n,) and gradients (n, c) of points (n, c); row i of the points always belongs to search i.
        X: starting points.
        most: largest number of steps of a search.
    """
    from bkbopt.search.maximizers._loops import advance

    rows = _started(X)
    going = len(X)
    while going:
        going = advance(rows, *sloped(rows.trial), most)
    return rows.x


def ascend_bound(bound: "PlainBound", U: Floats, columns: Sequence[int], most: int) -> Floats:
    """`ascend` for an upper confidence bound, in one compiled loop: the maxima `(n, c)` in c columns of `U (n, k)`."""
    from bkbopt.search.maximizers._loops_bound import climb

    relaxed = np.array(columns, dtype=np.int64)
    X = np.tile(bound.base, (len(U), 1))
    X[:, bound.columns] = bound.low + bound.width * U
    rows = _started(U[:, relaxed])
    climb(rows, X, relaxed, bound, most)
    return rows.x


def _started(X: Floats) -> "Rows":
    """Searches from the rows of `X (n, c)`, before their first evaluation."""
    from bkbopt.search.maximizers._loops import Rows

    n, c = X.shape
    return Rows(
        x=X.copy(),
        f=np.full(n, -np.inf),
        g=np.zeros((n, c)),
        d=np.zeros((n, c)),
        trial=X.copy(),
        S=np.zeros((n, MEMORY, c)),
        Y=np.zeros((n, MEMORY, c)),
        step=np.ones(n),
        counts=np.zeros((n, 4), np.int64),
        done=np.zeros(n, np.int64),
    )
