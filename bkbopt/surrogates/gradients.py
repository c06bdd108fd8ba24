"""The exact marginal likelihood of our own kernels with its gradient, in closed form.

| symbol | shape  | units | meaning                                                        |
| ------ | ------ | ----- | -------------------------------------------------------------- |
| U      | (u, d) | enc.  | unique points                                                  |
| E      | (u, u) | y^2   | K_UU + lam N^-1                                                |
| v      | (u,)   | 1/y   | E^-1 (ybar - c), c the best constant mean                      |
| M      | (u, u) | 1/y^2 | derivative of the log likelihood by E: (v v^T - E^-1) / 2      |

Automatic differentiation gives the same numbers and takes longer, most of the time for other things than arithmetic:
the matrices of a fit have a hundred rows or a few.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from bkbopt.kernels import ARDKernel
from bkbopt.posterior.linalg import safe_cholesky
from bkbopt.posterior.observations import Observations

__all__ = ["CLOSED_FORMS", "FitData", "likelihood_and_gradient"]

#: Forms of kernels that are differentiated here; the distance of "matern12" has no gradient at zero.
CLOSED_FORMS = ("matern32", "matern52", "rbf")


@dataclass(frozen=True)
class FitData:
    """What a likelihood needs of the observations.

    Attributes:
        U: unique points (u, d).
        n: counts (u,).
        ybar: mean value of each unique point (u,), units of y.
        within: Y2 - sum s_i^2 / n_i, the spread of the repeats, y squared.
        repeats: number of evaluations less u.
    """

    U: Tensor
    n: Tensor
    ybar: Tensor
    within: float
    repeats: float

    @classmethod
    def of(cls, obs: Observations) -> "FitData":
        """All of it."""
        within = max(obs.Y2 - float((obs.s * obs.s / obs.n).sum()), 0.0)
        return cls(obs.X, obs.n, obs.s / obs.n, within, float(obs.repeats.sum()))


def likelihood_and_gradient(
    data: FitData, kernel: ARDKernel, lam: float, mean_precision: float | None
) -> tuple[float, Tensor]:
    """`log_marginal_likelihood`, and its gradient by `kernel.theta` and log(lam), `(p + 1,)`.

    The kernel is of a form in `CLOSED_FORMS`; the other arguments are those of `log_marginal_likelihood`.

    Raises:
        KernelError: the kernel matrix is not positive definite.
    """
    U, n, ybar, within, repeats = data.U, data.n, data.ybar, data.within, data.repeats
    K, G, A = _kernel_and_slope(kernel, U)
    L = safe_cholesky(K.diagonal_scatter(K.diagonal() + lam / n))
    inverse = torch.cholesky_inverse(L)
    both = inverse @ torch.stack([ybar, torch.ones_like(ybar)], 1)
    quadratic, v = ybar @ both[:, 0], both[:, 0]
    if mean_precision is not None:
        by_one = both[:, 0].sum()
        c = by_one / (both[:, 1].sum() + mean_precision)
        quadratic, v = quadratic - c * by_one, v - c * both[:, 1]
    rest = 0.5 * within / lam + 0.5 * repeats * math.log(2.0 * math.pi * lam) + 0.5 * float(n.log().sum())
    logdet = 2.0 * L.diagonal().log().sum()
    value = -0.5 * float(quadratic + logdet + len(n) * math.log(2.0 * math.pi)) - rest

    M = 0.5 * (torch.outer(v, v) - inverse)
    MK = M * K
    N = M * G
    # sum_ab N_ab (A_aj - A_bj)^2 for all columns j by one product.
    by_lengthscale = 2.0 * (N.sum(1) @ (A * A) - (A * (N @ A)).sum(0))
    by_hamming = [
        (MK * (U[:, j, None] != U[None, :, j])).sum() * torch.exp(-log_h)
        for j, log_h in zip(kernel.categorical, kernel.log_hamming, strict=True)
    ]
    by_noise = lam * (M.diagonal() / n).sum() + 0.5 * within / lam - 0.5 * repeats
    gradient = torch.cat([by_lengthscale, torch.stack([*by_hamming, MK.sum(), by_noise])])
    return value, gradient


def _kernel_and_slope(kernel: ARDKernel, U: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """K; G with dK / d log lengthscale_j = G (A_aj - A_bj)^2; and A, the numeric columns over their lengthscales."""
    numeric = [j for j in range(U.shape[1]) if j not in kernel.categorical]
    A = U[:, numeric] / kernel.lengthscale  # no columns where all are categorical
    squares = (A * A).sum(1)
    r2 = torch.addmm(squares[:, None] + squares, A, A.T, alpha=-2.0).clamp_min_(0.0)
    r2.fill_diagonal_(0.0)
    if kernel.form == "rbf":
        K = torch.exp(-0.5 * r2)
        G = K.clone()
    else:
        a = (r2 * (5.0 if kernel.form == "matern52" else 3.0)).sqrt_()
        e = torch.exp(-a)
        if kernel.form == "matern52":
            G = (1.0 + a).mul_(e)
            K = G + a.square_().mul_(e).div_(3.0)
            G.mul_(5.0 / 3.0)
        else:
            K, G = (1.0 + a).mul_(e), 3.0 * e
    factor = kernel.outputscale.expand_as(K)
    for j, log_h in zip(kernel.categorical, kernel.log_hamming, strict=True):
        differ = U[:, j, None] != U[None, :, j]
        factor = factor * torch.where(differ, torch.exp(-torch.exp(-log_h)), 1.0)
    return K * factor, G * factor, A
