"""BKB's posterior on a dictionary that is never drawn: the first points."""

import torch
from torch import Tensor

from bkbopt.posterior import GaussianState, Model
from bkbopt.posterior.features import Nystrom
from bkbopt.surrogates import SurrogateBase

__all__ = ["FirstPoints"]


class FirstPoints(SurrogateBase[GaussianState]):
    """A posterior whose inducing points are the first unique points.

    Args:
        kernel: ARD Matern-5/2 by default.
        noise: noise variance lam, y squared.
        size: number of inducing points.
        seed: unused.
        device: torch device of all tensors.

    Example:
        >>> import numpy as np
        >>> X = np.linspace(0.0, 1.0, 50)[:, None]
        >>> gp = FirstPoints(noise=0.01, size=8)
        >>> gp.observe(X, np.sin(5.0 * X[:, 0]))
        >>> gp.inducing.shape
        torch.Size([8, 1])
    """

    _OPTIONS = ("size", "seed")

    def __init__(
        self,
        kernel: object = None,
        noise: float | None = None,
        *,
        size: int = 20,
        seed: int = 0,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(kernel, noise, seed, device)
        self.size, self.seed = size, seed
        self._features: Nystrom | None = None
        self._state: GaussianState | None = None

    def _learn(self, X: Tensor, y: Tensor, weight: Tensor) -> None:
        self.observations.add(X, y, weight)
        self._relearn()

    def _relearn(self) -> None:
        self._features = self._state = None
        if len(self.observations):
            obs = self.observations
            self._features = Nystrom.from_points(self.kernel, self.inducing)
            self._state = GaussianState.from_data(self._features(obs.X), obs.n, obs.s, self.noise)

    def _posterior(self) -> GaussianState:
        assert self._state is not None
        return self._state

    def _count(self, known: GaussianState, X: Tensor) -> GaussianState:
        assert self._features is not None
        return known.hallucinate(self._features(X))

    def _as_model(self, known: GaussianState) -> Model:
        assert self._features is not None
        return Model(self._features, known.w, known.root, known.lam, V=known.V)

    def fitted(self) -> Tensor:
        """Posterior mean at the unique observed points, (u,)."""
        return self._as_model(self._known())(self.observations.X)[0]

    @property
    def inducing(self) -> Tensor:
        """The first unique points, (m, d)."""
        return self.observations.X[: self.size].clone()

    def effective_dimension(self) -> float:
        """Sum of the leverages of all evaluations."""
        return 0.0 if self._state is None else self._state.effective_dimension()
