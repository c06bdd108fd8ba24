"""The marginal likelihood that `BKBModel` is fitted by: exact while small, the collapsed bound on some points after.

| symbol | shape       | units     | meaning                                                          |
| ------ | ----------- | --------- | ---------------------------------------------------------------- |
| X      | (..., u, d) | model's   | at most `max_points` of the training points                      |
| S      | (..., m, d) | model's   | inducing points of the bound, drawn from X by leverage           |
| R      | (..., u)    | y         | targets less the prior mean                                      |
| noise  | (..., u)    | y squared | noise variances                                                  |

    log p >= log N(R; 0, Q + noise) - sum_i (k_ii - Q_ii) / (2 noise_i),   Q = K_XS K_SS^-1 K_SX    (Titsias 2009)
"""

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from botorch.models import SingleTaskGP
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel as Module
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

from bkbopt.adapters.botorch.prediction import Options, learn
from bkbopt.data import row_keys
from bkbopt.errors import KernelError
from bkbopt.surrogates.fit import bound_terms

__all__ = ["BKBMarginalLogLikelihood"]


@dataclass(frozen=True)
class _LiveKernel:
    """A GPyTorch kernel with its gradients, as a kernel of ours."""

    module: Module

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        return cast(Tensor, self.module(X1, X2).to_dense())

    def diag(self, X: Tensor) -> Tensor:
        return cast(Tensor, self.module(X, diag=True))


class BKBMarginalLogLikelihood(ExactMarginalLogLikelihood):
    """Log marginal likelihood a point of a `BKBModel`, with the priors, at a bounded cost.

    Args:
        likelihood: the model's.
        model: the model.
        exact_up_to: training points up to which it is exact.
        max_points: training points that the bound looks at; more are subsampled.
        max_inducing: inducing points of the bound.
        seed: of the subsample.
    """

    def __init__(
        self,
        likelihood: GaussianLikelihood,
        model: SingleTaskGP,
        *,
        exact_up_to: int = 500,
        max_points: int = 2000,
        max_inducing: int = 128,
        seed: int = 0,
    ) -> None:
        super().__init__(likelihood, model)
        self.exact_up_to, self.max_points, self.max_inducing, self.seed = exact_up_to, max_points, max_inducing, seed
        self._rows: Tensor | None = None
        self._inducing: Tensor | None = None

    @torch.no_grad()
    def refresh(self) -> None:
        """Draw the points and the bound's inducing points anew, these by leverage under the hyper-parameters of now."""
        model = self.model
        n = model.train_targets.shape[-1]
        rng = np.random.default_rng([self.seed, n])
        rows = np.sort(rng.choice(n, min(n, self.max_points), replace=False))
        self._rows = torch.as_tensor(rows, device=model.train_targets.device)
        X, R, noise = self._data(model(*model.train_inputs), model.train_targets)
        options = Options(2.0, self.max_inducing, self.seed)
        S = learn(model.covar_module, X, R, noise, R.new_zeros(0), options).inducing
        self._inducing = _find(S, X.expand(*R.shape[:-1], *X.shape[-2:]))

    def forward(self, function_dist: MultivariateNormal, target: Tensor, *params: Any, **kwargs: Any) -> Tensor:
        """The value a point `(batch_shape) x (m)`.

        Args:
            function_dist: the model's prior at its training inputs.
            target: the training targets.
            params: as for `ExactMarginalLogLikelihood`.
            kwargs: as for `ExactMarginalLogLikelihood`.
        """
        if target.shape[-1] <= self.exact_up_to:
            return super().forward(function_dist, target, *params, **kwargs)
        if self._rows is None or self._inducing is None:
            self.refresh()
        assert self._inducing is not None
        X, R, noise = self._data(function_dist, target)
        X = X.expand(*R.shape[:-1], *X.shape[-2:])
        S = X.gather(-2, self._inducing[..., None].expand(*self._inducing.shape, X.shape[-1]))
        try:
            P, logdet, trace = bound_terms(_LiveKernel(self.model.covar_module), S, X, noise, R[..., None])
        except KernelError as error:
            raise NotPSDError(str(error)) from error  # what BoTorch's optimisers step back from
        u = R.shape[-1]
        bound = -0.5 * (P[..., 0, 0] + logdet + trace + u * math.log(2.0 * math.pi))
        return self._add_other_terms(bound, params) / u

    def _data(self, function_dist: MultivariateNormal, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """X, R and noise; the points are those after the input transforms, and carry their gradients."""
        assert self._rows is not None
        X = function_dist.lazy_covariance_matrix.x1[..., self._rows, :]
        R = (target - function_dist.mean)[..., self._rows]
        noise = self.likelihood.noise.expand(target.shape)[..., self._rows]
        return X, R, noise


def _find(S: Tensor, X: Tensor) -> Tensor:
    """For each of the points `S (..., m, d)`, the first row of `X (..., u, d)` that holds it: (..., m)."""
    found = torch.empty(S.shape[:-1], dtype=torch.int64, device=X.device)
    for index in np.ndindex(*S.shape[:-2]):
        first: dict[bytes, int] = {}
        for row, key in enumerate(row_keys(X[index].double())):
            first.setdefault(key, row)
        found[index] = torch.tensor([first[key] for key in row_keys(S[index])], device=X.device)
    return found
