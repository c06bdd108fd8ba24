"""Random Fourier features (Rahimi and Recht 2007): a finite-rank stand-in for a stationary kernel.

| symbol | shape  | units      | meaning                                                   |
| ------ | ------ | ---------- | --------------------------------------------------------- |
| omega  | (D, d) | 1/encoded  | frequencies from the kernel's spectral density            |
| z(x)   | (2D,)  | y          | sqrt(outputscale / D) [cos(omega.x), sin(omega.x)]        |

z(x).z(x) = k(x, x) exactly, so the residual is zero everywhere: after more observations than features the variance
starves. That is the point of comparing with it (Calandriello et al. 2019, Figure 1; Wang et al. 2018).
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt.errors import ArgumentError
from bkbopt.kernels import ARDKernel
from bkbopt.posterior.features.base import ZeroResidual

__all__ = ["RandomFourier"]

#: Degrees of freedom 2 nu of the multivariate t that is a Matern kernel's spectral density.
DEGREES = {"matern12": 1.0, "matern32": 3.0, "matern52": 5.0}


@dataclass(frozen=True)
class RandomFourier(ZeroResidual):
    """2 D random Fourier features of a stationary kernel; see the module's table.

    Example:
        >>> import numpy as np
        >>> import torch
        >>> from bkbopt.posterior.features import RandomFourier
        >>> from bkbopt.kernels import rbf
        >>> features = RandomFourier.from_kernel(rbf(2), n_frequencies=50, rng=np.random.default_rng(0))
        >>> features(torch.zeros(3, 2, dtype=torch.float64)).shape
        torch.Size([3, 100])
    """

    omega: Tensor
    outputscale: float

    @classmethod
    def from_kernel(cls, kernel: ARDKernel, n_frequencies: int, rng: np.random.Generator) -> "RandomFourier":
        """Draw the frequencies of a numeric `ARDKernel`.

        Raises:
            ArgumentError: the kernel has categorical columns, or `n_frequencies` is not positive.
        """
        if not isinstance(kernel, ARDKernel) or kernel.categorical:
            raise ArgumentError(
                "kernel: expected an ARDKernel with numeric columns only, which has a known spectral density."
            )
        if n_frequencies < 1:
            raise ArgumentError(f"n_frequencies: expected at least 1, got {n_frequencies}.")
        omega = rng.standard_normal((n_frequencies, len(kernel.log_lengthscale)))
        if kernel.form in DEGREES:
            nu2 = DEGREES[kernel.form]
            omega *= np.sqrt(nu2 / rng.chisquare(nu2, size=(n_frequencies, 1)))
        scaled = torch.as_tensor(omega, device=kernel.log_lengthscale.device) / kernel.lengthscale
        return cls(scaled, float(kernel.outputscale))

    @property
    def size(self) -> int:
        """Number of features 2 D."""
        return 2 * self.omega.shape[0]

    def __call__(self, X: Tensor) -> Tensor:
        """See `FeatureMap`."""
        P = X @ self.omega.T
        return torch.cat([torch.cos(P), torch.sin(P)], 1) * math.sqrt(self.outputscale / self.omega.shape[0])
