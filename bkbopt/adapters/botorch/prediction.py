"""The optimizer's posterior for tensors as BoTorch has them: batches of points, batches of models, conditioning.

| symbol | shape          | units     | meaning                                                              |
| ------ | -------------- | --------- | -------------------------------------------------------------------- |
| X      | (..., q, d)    | model's   | points, after the input transforms                                   |
| R      | (..., n)       | y         | targets less the prior mean, after the outcome transform             |
| noise  | (..., n)       | y squared | noise variances; observation i counts lam / noise_i times            |
| C      | (..., p, p)    | y squared | posterior covariance of the points conditioned on, plus their noise  |
| c(x)   | (..., q, p)    | y squared | posterior covariance of x with them                                  |

The posterior is `bkbopt.surrogates.model.Model`, one a batch element, padded to one size and stacked: a feature that is
zero everywhere changes nothing. Conditioning on further points is the conditioning of a Gaussian process, and exact:

    mean'(x) = mean(x) + c(x) C^-1 (R - mean),   cov'(x, x') = cov(x, x') - c(x) C^-1 c(x')^T
"""

import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from gpytorch.kernels import Kernel as Module
from linear_operator.operators import LinearOperator, to_linear_operator
from torch import Tensor

from bkbopt.adapters.botorch.covariance import JointCovariance, part_of
from bkbopt.data import Observations
from bkbopt.features import Nystrom
from bkbopt.kernels import GPyTorchKernel
from bkbopt.linalg import safe_cholesky
from bkbopt.surrogates import BKB
from bkbopt.surrogates.model import Model

__all__ = ["Options", "Prediction", "learn"]

#: More points than this at once have a lazy covariance: most callers of many points want variances only.
DENSE_UP_TO = 128
#: Oversampling that draws every point.
ALL = 1e300


@dataclass(frozen=True)
class Options:
    """How inducing points are chosen; see `BKBModel`."""

    qbar: float
    max_inducing: int | None
    seed: int


@dataclass(frozen=True)
class _ModuleKernel:
    """A GPyTorch kernel, batch dimensions included, as a kernel of ours; a copy in float64 without gradients."""

    module: Module

    @classmethod
    def frozen(cls, module: Module) -> "_ModuleKernel":
        return cls(copy.deepcopy(module).double().eval().requires_grad_(False))

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """K `(..., n1, n2)`; against unbatched `X2` all batches are one product."""
        if X1.ndim > 2 and X2.ndim == 2 and not len(self.module.batch_shape):
            K = self(X1.reshape(-1, X1.shape[-1]), X2)
            return K.reshape(*X1.shape[:-1], len(X2))
        return cast(Tensor, self.module(X1, X2).to_dense())

    def diag(self, X: Tensor) -> Tensor:
        """k(x, x) `(..., n)`."""
        return cast(Tensor, self.module(X, diag=True))


@dataclass(frozen=True)
class Prediction:
    """Means and covariances of a model that has learnt its data, and of the points that it was conditioned on.

    Attributes:
        model: of the training data; leading dimensions are batches of models.
        theta: the hyper-parameters that it was made with.
        X: points conditioned on, (..., p, d), or None.
        L: lower Cholesky factor of C, (..., p, p).
        alpha: C^-1 (R - mean), (..., p).
        given: R and noise of the points conditioned on.
    """

    model: Model
    theta: Tensor
    X: Tensor | None = None
    L: Tensor | None = None
    alpha: Tensor | None = None
    given: tuple[Tensor, Tensor] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> "Prediction":
        """Itself: nothing in it changes."""
        return self

    @property
    def inducing(self) -> Tensor:
        """Inducing points (..., m, d)."""
        return cast(Nystrom, self.model.features).S

    def __call__(self, X: Tensor) -> tuple[Tensor, LinearOperator]:
        """Mean less the prior mean `(..., q)` and joint covariance `(..., q, q)` of the points `X (..., q, d)`.

        Computed in float64, and given in the dtype of `X`. The covariance is never a mere tensor, of which GPyTorch
        would have a Cholesky factor at once: it may be singular.
        """
        U, shapes = X.double(), [X.shape[:-2], self.inducing.shape[:-2]]
        if self.alpha is not None:
            shapes.append(self.alpha.shape[:-1])
        batch = torch.broadcast_shapes(*shapes)
        if self.inducing.ndim > 2:
            U = U.expand(*batch, *U.shape[-2:])
        if U.shape[-2] > DENSE_UP_TO:
            return self._many(U, X, batch)
        mean, covariance = self.model.joint(U)
        shift, A = self._correction(U)
        mean, covariance = mean + shift, covariance - A @ A.mT
        covariance = covariance.expand(*batch, *covariance.shape[-2:]).to(X.dtype)
        return mean.expand(*batch, mean.shape[-1]).to(X.dtype), to_linear_operator(covariance)

    def _many(self, U: Tensor, X: Tensor, batch: torch.Size) -> tuple[Tensor, LinearOperator]:
        """The same with nothing of size q squared until somebody asks for it."""
        features = cast(Nystrom, self.model.features)
        kernel = cast(_ModuleKernel, features.kernel)
        Z = features(U)
        P = Z @ self.model.root.mT * self.model.lam**0.5
        mean = (Z @ self.model.w[..., None])[..., 0]
        shift, A = self._correction(U)
        mean, Q = mean + shift, torch.cat(_alike(Z, A, keep=2), -1)
        X, P, Q = (T.expand(*batch, *T.shape[-2:]) for T in (X, P, Q))
        return mean.expand(*batch, mean.shape[-1]).to(X.dtype), JointCovariance(X, P, Q, kernel=kernel.module)

    def _correction(self, U: Tensor) -> tuple[Tensor, Tensor]:
        """What the points conditioned on add to the mean `(..., q)`, and a root `(..., q, p)` of what they explain."""
        if self.X is None or self.L is None or self.alpha is None:
            return U.new_zeros(U.shape[:-1]), U.new_zeros(*U.shape[:-1], 0)
        c = self.model.cross_covariance(U, self.X)
        A = torch.linalg.solve_triangular(self.L, c.mT, upper=False).mT
        return (c @ self.alpha[..., None])[..., 0], A

    def conditioned(self, X: Tensor, R: Tensor, noise: Tensor) -> "Prediction":
        """The same conditioned on targets `R (..., q)` with variances `noise (..., q)` at `X (..., q, d)` as well.

        Differentiable in all three.
        """
        X, R, noise = X.double(), R.double(), noise.double()
        if self.X is not None and self.given is not None:
            X = torch.cat(_alike(self.X, X, keep=2), -2)
            R = torch.cat(_alike(self.given[0], R, keep=1), -1)
            noise = torch.cat(_alike(self.given[1], noise, keep=1), -1)
        if self.inducing.ndim > 2:
            X = X.expand(*torch.broadcast_shapes(X.shape[:-2], self.inducing.shape[:-2]), *X.shape[-2:])
        mean, C = self.model.joint(X)
        L = safe_cholesky(C + torch.diag_embed(noise))
        alpha = torch.cholesky_solve((R - mean)[..., None], L)[..., 0]
        return replace(self, X=X, L=L, alpha=alpha, given=(R, noise))


def learn(module: Module, X: Tensor, R: Tensor, noise: Tensor, theta: Tensor, options: Options) -> Prediction:
    """The BKB posterior of each batch element, from the observations alone.

    Args:
        module: the kernel; its batch dimensions are the last of those of `R`.
        X: points (..., n, d).
        R: targets less the prior mean, (..., n).
        noise: noise variances, (..., n).
        theta: the hyper-parameters behind all that.
        options: of the dictionary.
    """
    batch = R.shape[:-1]
    kernel = _ModuleKernel.frozen(module)
    X, R, noise = (T.detach().double() for T in (X.expand(*batch, *X.shape[-2:]), R, noise.expand(R.shape)))
    with torch.no_grad():
        models = [_learn_one(part_of(kernel.module, i), X[i], R[i], noise[i], options) for i in np.ndindex(*batch)]
        return Prediction(_stacked(kernel, models, batch), theta)


def _learn_one(module: Module, X: Tensor, R: Tensor, noise: Tensor, options: Options) -> Model:
    rate = 1.0 / noise
    lam = 1.0 / float(rate.mean())
    observations = Observations(X.shape[-1], X.device)
    observations.add(X, R, lam * rate)
    kernel, most = GPyTorchKernel.wrap(module), options.max_inducing
    # Where all points fit into the dictionary, they are all taken: the posterior is then exact.
    whole = most is not None and len(observations) <= most
    surrogate = BKB(
        kernel,
        noise=lam,
        qbar=ALL if whole else options.qbar,
        max_inducing=None if whole else most,
        seed=options.seed,
        device=X.device,
    )
    surrogate.rebuild(observations, kernel, lam)
    return surrogate.model


def _stacked(kernel: _ModuleKernel, models: list[Model], batch: torch.Size) -> Model:
    """One model with batch dimensions, of models that may differ in their numbers of inducing points and features."""
    if not len(batch):
        one = models[0]
        S, W = cast(Nystrom, one.features).S, cast(Nystrom, one.features).W
        return Model(Nystrom(kernel, S, W), one.w, one.root, one.lam)
    parts = [cast(Nystrom, model.features) for model in models]
    m, r = max(len(part.S) for part in parts), max(part.size for part in parts)
    S = torch.stack([torch.cat([part.S, part.S[:1].expand(m - len(part.S), -1)]) for part in parts])
    W = torch.stack([_padded(part.W, m, r) for part in parts])
    w = torch.stack([torch.nn.functional.pad(model.w, (0, r - len(model.w))) for model in models])
    # lam differs from element to element; it goes into the roots.
    root = torch.stack([_padded(model.root * model.lam**0.5, r, r) for model in models])
    shaped = [T.reshape(*batch, *T.shape[1:]) for T in (S, W, w, root)]
    return Model(Nystrom(kernel, shaped[0], shaped[1]), shaped[2], shaped[3], 1.0)


def _padded(A: Tensor, rows: int, columns: int) -> Tensor:
    return torch.nn.functional.pad(A, (0, columns - A.shape[1], 0, rows - A.shape[0]))


def _alike(A: Tensor, B: Tensor, keep: int) -> list[Tensor]:
    """Both with the same leading dimensions; the last `keep` stay."""
    batch = torch.broadcast_shapes(A.shape[:-keep], B.shape[:-keep])
    return [T.expand(*batch, *T.shape[-keep:]) for T in (A, B)]
