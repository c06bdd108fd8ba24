"""The exact log marginal likelihood and its gradient in closed form, for kernels with closed-form derivatives.

| symbol | shape  | units | meaning                                                        |
| ------ | ------ | ----- | -------------------------------------------------------------- |
| U      | (u, d) | enc.  | unique points                                                  |
| C      | (u, u) | y^2   | K_UU + lam N^-1; known noise variances where there are any     |
| E      | (u, u) | 1/y^2 | C^-1                                                           |
| v      | (u,)   | 1/y   | E (ybar - c), c the best constant mean                         |
| M      | (u, u) | 1/y^2 | derivative of the log likelihood by C: (v v^T - E) / 2         |

Automatic differentiation gives the same numbers but is slower: the matrices of a fit have only a few hundred rows, so
most of its time is overhead.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray

from bkbopt.kernels.base import ByTheta
from bkbopt.posterior.linalg import inverse_and_logdet
from bkbopt.surrogates.fit_data import FitData

__all__ = ["likelihood_and_gradient"]

Floats = NDArray[np.float64]


def likelihood_and_gradient(
    data: FitData, kernel: ByTheta, theta: Floats, lam: float, mean_precision: float | None
) -> tuple[float, Floats]:
    """`log_marginal_likelihood`, and its gradient by theta and log(lam), `(p + 1,)`.

    Args:
        data: the observations.
        kernel: the kernel matrix of their points, see `ClosedFormKernel.by_theta`.
        theta: hyper-parameters of the kernel, (p,).
        lam: noise variance, y squared.
        mean_precision: as for `log_marginal_likelihood`.

    Raises:
        KernelError: the kernel matrix is not positive definite.
    """
    K, pullback = kernel(theta)
    noises = data.noises(lam)
    K.reshape(-1)[:: len(K) + 1] += noises.numpy()
    inverse, logdet = inverse_and_logdet(torch.from_numpy(K))
    E, ybar, within, repeats = inverse.numpy(), data.ybar.numpy(), data.within, data.n_repeats
    v = E @ ybar
    quadratic = float(ybar @ v)
    if mean_precision is not None:
        of_one, by_one = E.sum(1), float(v.sum())
        c = by_one / (float(of_one.sum()) + mean_precision)
        quadratic, v = quadratic - c * by_one, v - c * of_one
    rest = 0.5 * within / lam + 0.5 * repeats * math.log(2.0 * math.pi * lam) + 0.5 * data.log_counts
    value = -0.5 * (quadratic + logdet + len(v) * math.log(2.0 * math.pi)) - rest

    V = torch.from_numpy(v)
    # In place: new memory costs as much as the arithmetic.
    M = inverse.mul_(-0.5).addr_(V, V, alpha=0.5).numpy()
    by_noise = float(M.diagonal() @ data.unknown(noises).numpy()) + 0.5 * within / lam - 0.5 * repeats
    return value, np.append(pullback(M), by_noise)
