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

import torch
from torch import Tensor

from bkbopt.kernels import ClosedFormKernel
from bkbopt.posterior.linalg import inverse_and_logdet
from bkbopt.surrogates.fit_data import FitData

__all__ = ["likelihood_and_gradient"]


def likelihood_and_gradient(
    data: FitData, kernel: ClosedFormKernel, lam: float, mean_precision: float | None
) -> tuple[float, Tensor]:
    """`log_marginal_likelihood`, and its gradient by `kernel.theta` and log(lam), `(p + 1,)`.

    The arguments are those of `log_marginal_likelihood`.

    Raises:
        KernelError: the kernel matrix is not positive definite.
    """
    K, pullback = kernel.with_pullback(data.U)
    K.diagonal().add_(data.noises(lam))
    inverse, logdet = inverse_and_logdet(K)
    # In NumPy: a call of torch for some hundred numbers takes three times as long.
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
    M = inverse.mul_(-0.5).addr_(V, V, alpha=0.5)  # in place: new memory costs as much as the arithmetic
    by_noise = lam * float(data.unknown(M.diagonal() / data.n).sum()) + 0.5 * within / lam - 0.5 * repeats
    slopes = pullback(M)
    return value, torch.cat([slopes, slopes.new_tensor([by_noise])])
