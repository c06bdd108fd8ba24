"""Climbing from many points at once: L-BFGS with projection onto the unit cube.

| symbol | shape  | units  | meaning                                      |
| ------ | ------ | ------ | -------------------------------------------- |
| X      | (n, c) | [0, 1] | points, one search each                      |
| f      | (n,)   | -      | scores, larger is better                     |
| g      | (n, c) | -      | slopes of the score of a row by its point    |

Each row has a memory and a step of its own, and all rows are evaluated together. One L-BFGS-B run of scipy over the sum
of all scores shares both among the rows, and spends a fifth of a millisecond a step outside of the score.
"""

import functools
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["Score", "SlopedScore", "ascend", "differentiated", "slopes_of"]

#: From points (n, d) to scores (n,), differentiable.
Score = Callable[[Tensor], Tensor]
Floats = npt.NDArray[np.float64]

#: Steps that a search remembers.
MEMORY = 10


@runtime_checkable
class SlopedScore(Protocol):
    """A score whose slopes are written out."""

    def __call__(self, X: Tensor) -> Tensor:
        """Scores `(n,)` of the points `X (n, d)`."""
        ...

    def with_slopes(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Scores `(n,)` and their slopes `(n, d)` at the points `X (n, d)`."""
        ...


def slopes_of(score: Score) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """The map from points `(n, d)` to scores `(n,)` and their slopes `(n, d)`."""
    return score.with_slopes if isinstance(score, SlopedScore) else functools.partial(differentiated, score)


def differentiated(score: Score, X: Tensor) -> tuple[Tensor, Tensor]:
    """The same by automatic differentiation; the score of a row depends on that row only."""
    with torch.enable_grad():
        X = X.detach().clone().requires_grad_(True)
        scores = score(X)
        (slopes,) = torch.autograd.grad(scores.sum(), X)
    return scores.detach(), slopes


def ascend(sloped: Callable[[Floats], tuple[Floats, Floats]], X: Floats, most: int) -> Floats:
    """Points `(n, c)` that are no worse than the rows of `X (n, c)`.

    Args:
        sloped: scores (n,) and slopes (n, c) of points (n, c); row i of the points always belongs to search i.
        X: where the searches start.
        most: steps of a search.
    """
    from bkbopt.search._loops import Rows, advance

    n, c = X.shape
    rows = Rows(
        x=X.copy(),
        f=np.full(n, -np.inf),
        g=np.zeros((n, c)),
        d=np.zeros((n, c)),
        trial=X.copy(),
        S=np.zeros((n, MEMORY, c)),
        Y=np.zeros((n, MEMORY, c)),
        step=np.ones(n),
        counts=np.zeros((n, 3), np.int64),
        done=np.zeros(n, np.int64),
    )
    going = n
    while going:
        going = advance(rows, *sloped(rows.trial), most)
    return rows.x
