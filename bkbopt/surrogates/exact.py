"""The exact Gaussian process, on unique points with counts.

| symbol | shape  | units | meaning                                          |
| ------ | ------ | ----- | ------------------------------------------------ |
| U      | (u, d) | enc.  | unique observed points                           |
| E      | (u, u) | y^2   | K_UU + lam N^-1                                  |
| G      | (u, u) | 1/y   | root of the inverse, G^T G = E^-1                |
| ybar   | (u,)   | y     | mean value of each unique point                  |

    mean(x) = k_U(x)^T E^-1 ybar,   variance(x) = k(x, x) - k_U(x)^T E^-1 k_U(x)

A new point borders G in O(u^2), a repeat changes one diagonal entry of E, also in O(u^2); no step is cubic.
"""

import torch
from torch import Tensor

from bkbopt.kernels import Kernel, gram
from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.linalg import append_to_inverse_root, downdate_inverse_root, inverse_root
from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.base import SurrogateBase, not_ready

__all__ = ["ExactGP"]

#: Rank-one steps between two factorisations from scratch, which keep rounding from adding up.
REFACTOR_EVERY = 512
#: A residual below this part of k(x, x) is more than one step's rounding error.
NEGATIVE = -1e-6


class ExactGP(SurrogateBase):
    """Exact GP regression whose cost is in the number of unique points.

    Args:
        kernel: an `ARDKernel`, a GPyTorch kernel or a callable; ARD Matern-5/2 by default.
        noise: noise variance lam, y squared; 1e-2 by default (to be fitted by the optimizer).
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
        self._G = torch.zeros(0, 0, dtype=torch.float64, device=self.device)
        self._steps = 0
        self._model: Model | None = None

    def _learn(self, X: Tensor, y: Tensor) -> None:
        # O(u^2) a point, or one factorisation for many.
        if len(X) > 8 or self._steps >= REFACTOR_EVERY:
            self.observations.add(X, y)
            self._refactor()
        else:
            for x, value in zip(X, y, strict=True):
                self._observe_one(x, value)
        self._model = None
        self._epoch += 1

    def _observe_one(self, x: Tensor, y: Tensor) -> None:
        known = self.observations.find(x)
        U = self.observations.X
        self._steps += 1
        if known is None:
            G, residual = _border(self.kernel, U, self._G, x, self.noise)
        else:
            n = float(self.observations.n[known])
            G, residual = downdate_inverse_root(self._G, known, self.noise / n - self.noise / (n + 1.0)), 0.0
        self.observations.add(x[None], y[None])
        if residual < NEGATIVE:
            self._refactor()  # rounding has added up, or the kernel is not positive definite: this tells which
        else:
            self._G = G

    def _refactor(self) -> None:
        E = gram(self.kernel, self.observations.X)
        E = E.diagonal_scatter(E.diagonal() + self.noise / self.observations.n)
        self._G = inverse_root(E)
        self._steps = 0

    @property
    def model(self) -> Model:
        """See `Surrogate`."""
        if self._model is None:
            if not len(self.observations):
                raise not_ready()
            w = self._G @ (self.observations.s / self.observations.n)
            self._model = self._as_model(self.observations.X, self._G, w)
        return self._model

    def _as_model(self, U: Tensor, G: Tensor, w: Tensor) -> Model:
        return Model(Nystrom(self.kernel, U.clone(), G.T), w, G.new_zeros(0, len(w)), self.noise, self._epoch)

    @torch.no_grad()
    def hallucinate(self, pending: Tensor, failed: Tensor, lie: float) -> Model:
        """See `Surrogate`."""
        if not len(pending) and not len(failed):
            return self.model
        self._epoch += 1
        U, G = self.observations.X, self._G
        ybar = self.observations.s / self.observations.n
        mean, _ = self.model(pending)
        for x in torch.cat([pending, failed]):
            G, U = _border(self.kernel, U, G, x, self.noise)[0], torch.cat([U, x[None]])
        ybar = torch.cat([ybar, mean, mean.new_full((len(failed),), lie)])
        return self._as_model(U, G, G @ ybar)

    @torch.no_grad()
    def rebuild(self, observations: Observations, kernel: Kernel, noise: float) -> None:
        """See `Surrogate`."""
        self.observations, self._kernel, self.noise = observations, kernel, noise
        self._model = None
        self._epoch += 1
        if len(observations):
            self._refactor()

    def fitted(self) -> Tensor:
        """Posterior mean at the unique observed points, (u,): ybar - lam N^-1 E^-1 ybar."""
        obs = self.observations
        return obs.s / obs.n - self.noise / obs.n * (self._G.T @ self.model.w)

    @property
    def inducing(self) -> Tensor:
        """All unique points, (u, d)."""
        return self.observations.X

    def effective_dimension(self) -> float:
        """Tr K (K + lam I)^-1 over all evaluations = sum_i (1 - lam / n_i (E^-1)_ii)."""
        inverse_diagonal = (self._G * self._G).sum(0)
        return float((1.0 - self.noise / self.observations.n * inverse_diagonal).sum())

    def state_dict(self) -> dict[str, object]:
        """The state beyond the constructor's arguments, for a state file."""
        return {"observations": self.observations.state_dict(), "noise": self.noise, "G": self._G, "steps": self._steps}

    def load_state_dict(self, state: dict[str, object], kernel: Kernel | None) -> None:
        """The inverse of `state_dict`, bit for bit."""
        self.observations = Observations.from_state(state["observations"])  # type: ignore[arg-type]
        self._kernel = kernel
        self.noise = float(state["noise"])  # type: ignore[arg-type]
        self._G = state["G"]  # type: ignore[assignment]
        self._steps = int(state["steps"])  # type: ignore[call-overload]
        self._model = None


def _border(kernel: Kernel, U: Tensor, G: Tensor, x: Tensor, lam: float) -> tuple[Tensor, float]:
    """G for one more point, and its residual given the others, as a part of k(x, x)."""
    prior = float(gram(kernel, x[None]))
    a = G @ kernel(U, x[None])[:, 0] if len(U) else G.new_zeros(0)
    residual = prior - float(a @ a)
    return append_to_inverse_root(G, G.T @ a, max(residual, 0.0) + lam), residual / max(prior, lam)
