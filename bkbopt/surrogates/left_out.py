"""The prediction of each evaluation from all others, and how much a noise variance of its own would gain.

| symbol | shape  | units | meaning                                                                          |
| ------ | ------ | ----- | -------------------------------------------------------------------------------- |
| X, y   | (n, .) | enc.  | evaluated points and their values, of which some are `kept`                      |
| U      | (u, d) | enc.  | unique points of X                                                               |
| D      | (k, d) | enc.  | points with kept values: all, or a subset of `MOST` of them                      |
| ybar   | (k,)   | y     | mean of the kept values of each point of D                                       |
| lam    | scalar | y^2   | noise variance                                                                   |
| m, c   | (u,)   | y,y^2 | mean and variance of f(U_i) given ybar at the points of D other than U_i         |
| z      | (n,)   | -     | a value minus its prediction from all other kept values, in standard deviations  |

At points of D m and c are those of `Model.left_out`, for all values of a point at once. The other kept values at the
same point are then added to them. An evaluation with a noise variance of its own has the largest likelihood where that
is the square of its residual; the log likelihood then gains (z^2 - 1 - log z^2) / 2 (Ament et al. 2024, "robust
Gaussian processes via relevance pursuit").
"""

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt._support.threads import small_work
from bkbopt.kernels import Kernel
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.exact import ExactGP
from bkbopt.surrogates.fit_data import FitData

__all__ = ["gains", "predictions_from_others"]

#: Largest number of points from which values are predicted.
MOST = 400
#: Number of points that are predicted at once.
BLOCK = 4096


def gains(y: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Gains `(n,)` of the log likelihood by a noise variance of its own for each value; at least 0.

    Args:
        y: values (n,).
        mean: their means (n,) given all other values.
        variance: their variances (n,) given all other values, noise included.

    Example:
        >>> import torch
        >>> from bkbopt.surrogates.left_out import gains
        >>> zero, one = torch.zeros(3), torch.ones(3)
        >>> gains(torch.tensor([0.5, 3.0, 5.0]), zero, one)
        tensor([ 0.0000,  2.9014, 10.3906])
    """
    z2 = ((y - mean).square() / variance).clamp_min(1.0)
    return 0.5 * (z2 - 1.0 - z2.log())


@torch.no_grad()
def predictions_from_others(
    X: Tensor, y: Tensor, kept: Tensor, kernel: Kernel, noise: float, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Mean and variance `(n,)` of each value given all other kept ones, noise included: O(MOST^3 + u MOST^2).

    Args:
        X: points (n, d).
        y: values (n,), whose mean under the model is zero.
        kept: which values predict others, (n,), boolean.
        kernel: the kernel.
        noise: noise variance lam, y squared.
        rng: generator for the choice of a subset.
    """
    every, taken = Observations(X.shape[1], X.device), Observations(X.shape[1], X.device)
    at = every.add(X, y, kept.to(y))
    taken.add(X[kept], y[kept])
    data = FitData.of(taken).subset(MOST, rng)
    with small_work():
        m, c = _at_points(every.X, data, kernel, noise)
    # Other kept values at the same point: their number and their sum.
    count, total = every.n[at] - kept.to(y), every.s[at] - kept.to(y) * y
    c = c[at].clamp_min(np.finfo(float).tiny)
    precision = 1.0 / c + count / noise
    return (m[at] / c + total / noise) / precision, 1.0 / precision + noise


def _at_points(U: Tensor, data: FitData, kernel: Kernel, noise: float) -> tuple[Tensor, Tensor]:
    """m and c at the points `U (u, d)`."""
    taken, gp = Observations(U.shape[1], U.device), ExactGP(device=U.device)
    taken.add(data.U, data.ybar, data.n)
    gp.rebuild(taken, kernel, noise)
    m, c = torch.empty_like(U[:, 0]), torch.empty_like(U[:, 0])
    for i in range(0, len(U), BLOCK):
        m[i : i + BLOCK], c[i : i + BLOCK] = gp.model(U[i : i + BLOCK])
    place = {key: i for i, key in enumerate(row_keys(U))}
    rows = torch.tensor([place[key] for key in row_keys(data.U)], device=U.device)
    m[rows], c[rows] = gp.model.left_out(data.U, data.ybar, data.n, taken)
    return m, c
