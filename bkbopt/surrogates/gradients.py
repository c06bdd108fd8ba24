"""The exact log marginal likelihood and its gradient in closed form, for kernels with closed-form derivatives.

| symbol | shape  | units | meaning                                                        |
| ------ | ------ | ----- | -------------------------------------------------------------- |
| U      | (u, d) | enc.  | unique points                                                  |
| E      | (u, u) | y^2   | K_UU + lam N^-1; known noise variances where there are any     |
| v      | (u,)   | 1/y   | E^-1 (ybar - c), c the best constant mean                      |
| M      | (u, u) | 1/y^2 | derivative of the log likelihood by E: (v v^T - E^-1) / 2      |

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
    U, n, ybar, within, repeats = data.U, data.n, data.ybar, data.within, float(data.repeats.sum())
    K, pullback = kernel.with_pullback(U)
    K.diagonal().add_(data.noises(lam))
    inverse, logdet = inverse_and_logdet(K)
    v = inverse @ ybar
    quadratic = ybar @ v
    if mean_precision is not None:
        of_one, by_one = inverse @ torch.ones_like(ybar), v.sum()
        c = by_one / (of_one.sum() + mean_precision)
        quadratic, v = quadratic - c * by_one, v - c * of_one
    rest = 0.5 * within / lam + 0.5 * repeats * math.log(2.0 * math.pi * lam) + 0.5 * float(n.log().sum())
    value = -0.5 * (float(quadratic) + logdet + len(n) * math.log(2.0 * math.pi)) - rest

    M = inverse.mul_(-0.5).addr_(v, v, alpha=0.5)  # in place: new memory costs as much as the arithmetic
    by_noise = lam * data.unknown(M.diagonal() / n).sum() + 0.5 * within / lam - 0.5 * repeats
    return value, torch.cat([pullback(M), by_noise.reshape(1)])
