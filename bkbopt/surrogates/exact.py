"""The exact Gaussian process, on unique points with counts.

| symbol | shape  | units | meaning                                          |
| ------ | ------ | ----- | ------------------------------------------------ |
| U      | (u, d) | enc.  | unique observed points                           |
| E      | (u, u) | y^2   | K_UU + lam N^-1                                  |
| G      | (u, u) | 1/y   | root of the inverse, G^T G = E^-1                |
| ybar   | (u,)   | y     | mean value of each unique point                  |

    mean(x) = k_U(x)^T E^-1 ybar,   variance(x) = k(x, x) - k_U(x)^T E^-1 k_U(x)

A new point adds a row and a column to G; a repeat changes one diagonal entry of E. Both cost O(u^2).
"""

from dataclasses import replace

import torch
from torch import Tensor

from bkbopt.kernels import Kernel, gram
from bkbopt.kernels.base import noisy_gram
from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.linalg import append_to_inverse_root, difference_root, downdate_inverse_root, inverse_root
from bkbopt.posterior.model import Model
from bkbopt.surrogates.base import SurrogateBase

__all__ = ["ExactGP", "exact_model"]

#: Number of rank-one steps between two factorisations from scratch, which remove accumulated rounding errors.
REFACTOR_EVERY = 512
#: A residual below this fraction of k(x, x) is more than the rounding error of one step.
NEGATIVE = -1e-6


class ExactGP(SurrogateBase[Model]):
    """Exact GP regression; the cost depends on the number of unique points, not of evaluations.

    Args:
        kernel: an `ARDKernel`, a GPyTorch kernel or a callable; ARD Matern-5/2 by default.
        noise: noise variance lam, y squared; 1e-2 by default (the optimizer then fits it).
        device: torch device of all tensors.

    Raises:
        ArgumentError: the noise is not positive and finite.
        ArgumentTypeError: the kernel is none of the above.

    Example:
        >>> import bkbopt as bo
        >>> model = bo.ExactGP(bo.kernels.rbf(1, lengthscale=0.3), noise=0.01)
        >>> model.observe([[0.1], [0.5], [0.5]], [1.0, 2.0, 2.2])
        >>> model.posterior([[0.5], [0.3]]).mean
        tensor([2.0899, 1.7524], dtype=torch.float64)
    """

    def __init__(
        self, kernel: object = None, noise: float | None = None, *, device: torch.device | str | None = None
    ) -> None:
        super().__init__(kernel, noise, 0, device)
        self._forget()

    def _forget(self) -> None:
        self._G, self._steps = torch.zeros(0, 0, dtype=torch.float64, device=self.device), 0

    def _learn(self, X: Tensor, y: Tensor, weight: Tensor) -> None:
        # O(u^2) a point, or one factorisation for many.
        if len(X) > 8 or self._steps >= REFACTOR_EVERY:
            self.observations.add(X, y, weight)
            self._refactor()
        else:
            for x, value, a in zip(X, y, weight, strict=True):
                self._observe_one(x, value, a)

    def _observe_one(self, x: Tensor, y: Tensor, a: Tensor) -> None:
        known, weight = self.observations.find(x), float(a)
        U = self.observations.X
        self._steps += 1
        if known is None:
            G, residual = _border(self.kernel, U, self._G, x[None], self.noise / weight)
        else:
            n = float(self.observations.n[known])
            G, residual = downdate_inverse_root(self._G, known, self.noise / n - self.noise / (n + weight)), 0.0
        self.observations.add(x[None], y[None], a[None])
        if residual < NEGATIVE:
            self._refactor()  # accumulated rounding errors, or an indefinite kernel, which this refuses
        else:
            self._G = G

    def _refactor(self) -> None:
        obs = self.observations
        self._G = inverse_root(noisy_gram(self.kernel, obs.X, self.noise / obs.n))
        self._steps = 0

    def _relearn(self) -> None:
        if len(self.observations):
            self._refactor()
        else:
            self._forget()

    def _posterior(self) -> Model:
        obs = self.observations
        return exact_model(self.kernel, obs.X, self._G, obs.s / obs.n, self.noise)

    def _count(self, known: Model, X: Tensor) -> Model:
        features, kernel = known.features, self.kernel
        assert isinstance(features, Nystrom)
        U = features.S
        G, _ = _border(kernel, U, features.W.T, X, self.noise)
        # Values equal to the mean have zero innovation, so the new weights are zero.
        w = torch.cat([known.w, known.w.new_zeros(len(X))])
        return replace(known, features=Nystrom(kernel, torch.cat([U, X]), G.T), w=w, root=G.new_zeros(0, len(w)))

    def _as_model(self, known: Model) -> Model:
        return known

    def fitted(self) -> Tensor:
        """Posterior mean at the unique observed points, (u,): ybar - lam N^-1 E^-1 ybar."""
        obs = self.observations
        return obs.s / obs.n - self.noise / obs.n * (self._G.T @ self._known().w)

    @property
    def inducing(self) -> Tensor:
        """All unique points, (u, d)."""
        return self.observations.X

    def effective_dimension(self) -> float:
        """Tr K (K + lam I)^-1 over all evaluations = sum_i (1 - lam / n_i (E^-1)_ii)."""
        inverse_diagonal = (self._G * self._G).sum(0)
        # In exact arithmetic each term is between 0 and 1; with a noise variance near the rounding of K it need not be.
        return float((1.0 - self.noise / self.observations.n * inverse_diagonal).clamp(0.0, 1.0).sum())


def exact_model(kernel: Kernel, U: Tensor, G: Tensor, ybar: Tensor, noise: float) -> Model:
    """The exact posterior from the root G; the symbols are those of the module's table."""
    w = G @ ybar
    return Model(Nystrom(kernel, U.clone(), G.T), w, G.new_zeros(0, len(w)), noise)


def _border(kernel: Kernel, U: Tensor, G: Tensor, X: Tensor, lam: float) -> tuple[Tensor, float]:
    """G with the points `X (q, d)` added, and the smallest of their residuals as a fraction of k(x, x)."""
    K = gram(kernel, X)
    A = G @ kernel(U, X) if len(U) else G.new_zeros(0, len(X))
    R = K - A.T @ A
    return append_to_inverse_root(G, G.T @ A, difference_root(R, lam)), float(
        (R.diagonal() / K.diagonal().clamp_min(lam)).min()
    )
