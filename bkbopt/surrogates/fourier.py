"""Regression on random Fourier features, whose variance starves; for comparison."""

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.checks import check_count
from bkbopt.errors import ArgumentError
from bkbopt.kernels import Kernel
from bkbopt.posterior.features import RandomFourier
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.model import Model
from bkbopt.surrogates.base import SurrogateBase

__all__ = ["FourierGP"]


#: Largest number of frequencies; the state is a matrix with twice as many rows and columns.
MOST = 5_000


class FourierGP(SurrogateBase[GaussianState]):
    """Bayesian linear regression on 2 * `n_frequencies` random Fourier features (Rahimi and Recht 2007).

    Args:
        kernel: an `ARDKernel`; ARD Matern-5/2 by default.
        noise: noise variance lam, y squared.
        n_frequencies: number of frequencies D; there are 2 D features.
        seed: seed of the frequencies.
        device: torch device of all tensors.

    Raises:
        ArgumentError: the noise or the number of frequencies is out of range, or the kernel is not an `ARDKernel`.
        ArgumentTypeError: an option has the wrong type.

    The rank is finite and the residual zero, so the variance goes to zero everywhere once there are more observations
    than features: variance starvation. Use `BKB` for anything but a comparison.

    Example:
        >>> import numpy as np
        >>> import bkbopt as bo
        >>> X = np.linspace(0.0, 10.0, 200)[:, None]
        >>> for model in (bo.FourierGP(noise=0.01, n_frequencies=3), bo.ExactGP(noise=0.01)):
        ...     model.observe(X, np.sin(X[:, 0]))
        ...     print(model.posterior([[15.0]]).variance)  # more than five lengthscales from all data
        tensor([0.0015], dtype=torch.float64)
        tensor([1.0000], dtype=torch.float64)
    """

    takes_structure = False
    _OPTIONS = ("n_frequencies", "seed")

    def __init__(
        self,
        kernel: object = None,
        noise: float | None = None,
        *,
        n_frequencies: int = 100,
        seed: int = 0,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(kernel, noise, seed, device)
        self.n_frequencies = check_count("n_frequencies", n_frequencies, 1, "a whole number >= 1")
        if self.n_frequencies > MOST:
            raise ArgumentError(f"n_frequencies: expected a whole number from 1 to {MOST}, got {n_frequencies!r}.")
        if kernel is not None:
            self.check_kernel(self.kernel)
        self.seed = seed
        self._features: RandomFourier | None = None
        self._state: GaussianState | None = None

    def check_kernel(self, kernel: Kernel) -> None:
        """See `Surrogate`; the spectral density of the kernel must be known."""
        RandomFourier.from_kernel(kernel, 1, np.random.default_rng(0))  # type: ignore[arg-type]

    def _learn(self, X: Tensor, y: Tensor, weight: Tensor) -> None:
        self.observations.add(X, y, weight)
        if self._state is None or self._features is None or len(X) > 8:
            self._relearn()
            return
        for z, value, a in zip(self._features(X), y.tolist(), weight.tolist(), strict=True):
            self._state = self._state.update(z, value, a)

    def _relearn(self) -> None:
        if not len(self.observations):
            self._features = self._state = None
            return
        rng = np.random.default_rng(self.seed)  # the same frequencies at every rebuild
        kernel = self.kernel
        self._features = RandomFourier.from_kernel(kernel, self.n_frequencies, rng)  # type: ignore[arg-type]
        Z = self._features(self.observations.X)
        self._state = GaussianState.from_data(Z, self.observations.n, self.observations.s, self.noise)

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
        """An empty tensor (0, d), since there are no inducing points."""
        return self.observations.X[:0]

    def effective_dimension(self) -> float:
        """Sum of the leverages of all evaluations: d_eff of the features' kernel, which may be below the kernel's."""
        return 0.0 if self._state is None else self._state.effective_dimension()
