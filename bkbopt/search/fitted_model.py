"""The surrogate of an optimizer: scaled values in, hyper-parameters refitted as the data grow."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.arrays import DEFAULT_NOISE
from bkbopt.confidence import ScheduleContext
from bkbopt.errors import ArgumentError
from bkbopt.kernels import ARDKernel, FittableKernel, Kernel, ScaledKernel, matern52
from bkbopt.posterior.observations import Observations
from bkbopt.search.scaling import Scaler
from bkbopt.surrogates import Surrogate
from bkbopt.surrogates.fit import constant_mean, fit_hyperparameters

__all__ = ["FittedModel"]

#: The hyper-parameters are fitted again when the number of values has grown by this factor.
GROWTH = 1.15
#: Up to here a fit also starts from the default kernel: early posteriors have several modes.
RESTART_UP_TO = 100


class FittedModel:
    """A surrogate, the scaling of its values, and when to fit again.

    Args:
        surrogate: owned from here on.
        fit: whether kernel and noise are fitted to standardised values. If not, the values are taken as they are, and
            kernel and noise must be given in the user's units.
        sign: +1 to maximise, -1 to minimise.
        categorical: columns that hold category codes, for the default kernel.
        rng: the optimizer's generator.
        winsorised: whether very poor values are pulled up; where it matters how poor they are (a constraint, one of
            several objectives), they are not.
        noise_share: a noise variance as a share of the variance of the values, in place of a fitted one.

    Raises:
        ArgumentError: `fit` is False, and kernel or noise is missing.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        *,
        fit: bool,
        sign: float,
        categorical: tuple[int, ...],
        rng: np.random.Generator,
        winsorised: bool = True,
        noise_share: float | None = None,
    ) -> None:
        if not fit and not (surrogate.has_kernel and surrogate.fixed_noise):
            raise ArgumentError(
                "fit: expected a surrogate with kernel and noise given when fit=False, since nothing is fitted."
            )
        self.surrogate, self.fit, self.sign, self._categorical = surrogate, fit, sign, categorical
        self.rng = surrogate.rng = rng
        self.scaler = Scaler.identity(sign)
        self._user_noise = surrogate.noise if surrogate.fixed_noise else None
        self._winsorised, self._noise_share = winsorised, noise_share
        self._start: Kernel | None = None
        if surrogate.has_kernel:
            own = surrogate.kernel
            wrap = fit and not isinstance(own, FittableKernel)
            self._start = ScaledKernel(own, torch.zeros((), dtype=torch.float64)) if wrap else own
        self.n_fitted = 0

    @property
    def ready(self) -> bool:
        """Whether there is a posterior."""
        return len(self.surrogate.observations) > 0

    def tell(self, X: Tensor, y: Tensor) -> None:
        """New values `y (n,)`, in the user's units, of the points `X (n, d)`."""
        if not self.fit or self.n_fitted:
            self.surrogate.observe(X, self.scaler.transform(y))

    def fit_is_due(self, n: int) -> bool:
        """Whether `n` values ask for a new fit."""
        return self.fit and n > 0 and (not self.n_fitted or n >= GROWTH * self.n_fitted)

    def refit(self, X: Tensor, y: Tensor) -> None:
        """Scale anew, fit kernel and noise, and rebuild the surrogate: all `X (n, d)` and values `y (n,)`."""
        surrogate = self.surrogate
        self.scaler = Scaler.from_values(y, self.sign, winsorised=self._winsorised)
        observations = Observations(X.shape[1], X.device)
        observations.add(X, self.scaler.transform(y))
        default = self._start or matern52(X.shape[1], categorical=self._categorical)
        fitted = self.n_fitted > 0
        noise = surrogate.noise if fitted else DEFAULT_NOISE
        if self._user_noise is not None:
            # Below this the kernel matrix is singular in float64.
            noise = max(self.scaler.noise(self._user_noise), 1e-12)
        if self._noise_share is not None:
            noise = self._noise_share  # the scaled values have variance one
        inducing = surrogate.inducing if fitted else None
        kernel, noise = fit_hyperparameters(
            observations,
            surrogate.kernel if fitted else default,
            noise,
            fit_noise=self._user_noise is None and self._noise_share is None,
            inducing=inducing,
            rng=self.rng,
            starts=(default,) if fitted and len(y) <= RESTART_UP_TO else (),
            with_mean=True,
        )
        self.scaler = self.scaler.shifted(constant_mean(observations, kernel, noise, inducing=inducing, rng=self.rng))
        observations = Observations(X.shape[1], X.device)
        observations.add(X, self.scaler.transform(y))
        surrogate.rebuild(observations, kernel, noise)
        self.n_fitted = len(y)

    def lie(self) -> float:
        """What failed points are imagined to have returned: a poor value among those seen (the 10 % quantile)."""
        obs = self.surrogate.observations
        return float(torch.quantile((obs.s / obs.n)[-10_000:], 0.1))

    def progress(self, n_arms: int | None, batch: int) -> ScheduleContext:
        """What confidence schedules look at."""
        surrogate = self.surrogate
        obs = surrogate.observations
        return ScheduleContext(
            t=obs.total,
            dim=obs.dim,
            n_arms=n_arms,
            lam=surrogate.noise,
            kappa2=float(surrogate.kernel.diag(obs.X[:64]).max()),
            effective_dimension=surrogate.effective_dimension(),
            log_growth=float(getattr(surrogate, "log_growth", math.inf)),
            batch=batch,
        )

    def best_points(self, k: int) -> Tensor:
        """The `k` observed points with the largest posterior mean, best first, (<= k, d)."""
        fitted = self.surrogate.fitted()
        return self.surrogate.observations.X[fitted.topk(min(k, len(fitted))).indices]

    def state_dict(self) -> dict[str, object]:
        """For a state file; the kernel is described where it can be (see `kernel_state`)."""
        return {
            "surrogate": self.surrogate.state_dict(),
            "kernel": kernel_state(self.surrogate.kernel) if self.surrogate.has_kernel else None,
            "start": None if self._start is None else kernel_state(self._start),
            "user_noise": self._user_noise,
            "scaler": vars(self.scaler),
            "n_fitted": self.n_fitted,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state_dict`, bit for bit."""
        kernel = None
        if state["kernel"] is not None:
            own = self.surrogate.kernel if self.surrogate.has_kernel else None
            kernel = restored_kernel(state["kernel"], own)
        self._start = None if state["start"] is None else restored_kernel(state["start"], self._start)
        self._user_noise = state["user_noise"]
        self.scaler = Scaler(**state["scaler"])
        self.n_fitted = state["n_fitted"]
        self.surrogate.load_state_dict(state["surrogate"], kernel)


def kernel_state(kernel: Kernel) -> dict[str, object]:
    """A kernel for a state file: an `ARDKernel` whole, of others the hyper-parameters only."""
    if isinstance(kernel, ARDKernel):
        return kernel.state_dict()
    return {"theta": kernel.theta if isinstance(kernel, FittableKernel) else None}


def restored_kernel(state: Mapping[str, Any], given: Kernel | None) -> Kernel:
    """The kernel of `kernel_state`; `given` supplies the code of a kernel that is not ours.

    Raises:
        ArgumentError: such a kernel was saved and none is given.
    """
    theta = state["theta"]
    if "form" in state:
        return ARDKernel.from_state(state)
    if given is None:
        raise ArgumentError(
            "surrogate: this state was saved with a kernel of yours; pass surrogate= with the same kernel to load."
        )
    if theta is None:
        return given
    if not isinstance(given, FittableKernel):
        given = ScaledKernel(given, torch.zeros((), dtype=torch.float64))
    return given.with_theta(theta)
