"""Fits of hyper-parameters: maximum a posteriori, with the exact marginal likelihood of a few hundred points.

| symbol | shape  | units | meaning                                                              |
| ------ | ------ | ----- | -------------------------------------------------------------------- |
| U      | (u, d) | enc.  | unique points (or a subset of `max_points` of them)                  |
| N      | (u, u) | -     | counts (weights, see `Observations`)                                 |
| ybar   | (u,)   | y     | mean value of each point                                             |
| lam    | scalar | y^2   | noise variance                                                       |
| E      | (u, u) | y^2   | K + lam N^-1, the covariance of ybar                                 |

log p(y) = log N(ybar; 0, E) - (Y2 - sum s_i^2 / n_i) / (2 lam) - sum (repeats_i log(2 pi lam) + log n_i) / 2,

up to half the sum of the logarithms of the weights, which is constant. The cost does not depend on the number of
repeats. Known noise variances take the place of lam / n_i, and have no other terms. The priors assume standardised
values.

Of more points a subset is fitted (see `fit_data.py`). A variational bound on all points was tried instead: with 128
inducing points it fitted the ripples of a function as noise, where an exact fit to a subset had resolved them, and the
search lost the best basin.
"""

import itertools
import logging
import math
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.threads import small_scipy_work, small_work
from bkbopt.errors import KernelError
from bkbopt.kernels import ClosedFormKernel, FittableKernel, Kernel
from bkbopt.kernels.base import ByTheta, NormalPrior, has_closed_form, is_fittable, noisy_gram
from bkbopt.posterior.linalg import safe_cholesky
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.fit_data import FitData
from bkbopt.surrogates.gradients import likelihood_and_gradient

__all__ = [
    "GIVEN_UP_AFTER",
    "Fit",
    "FitSettings",
    "LogPosterior",
    "constant_mean",
    "fit_data",
    "fit_from",
    "fit_hyperparameters",
    "gain_over_constant",
    "log_evidence",
    "log_marginal_likelihood",
]

log = logging.getLogger(__name__)

#: Lower limit of a sample variance, for values that are all equal, y squared.
SMALLEST = 1e-12
#: Number of iterations after which a fit that is worse than required is given up; see docs/design/fits.md.
GIVEN_UP_AFTER = 12
#: Number of steps from which L-BFGS-B estimates curvatures: as many as a fit has hyper-parameters, or more.
STEPS_KEPT = 30


@dataclass(frozen=True)
class FitSettings:
    """Limits and priors of a fit.

    Attributes:
        max_points: largest number of unique points of a fit; of more points a subset is fitted, which bounds the cost.
        max_iterations: iterations of L-BFGS-B for each start.
        noise_loc: mean of the normal prior on log(noise variance).
        noise_scale: standard deviation of that prior.
        mean_precision: 1 / variance of the normal prior on the constant mean.
        noise_bounds: smallest and largest noise variance.
        least: log posterior of interest: a fit with less after `GIVEN_UP_AFTER` iterations ends there.
    """

    max_points: int = 400
    max_iterations: int = 50
    noise_loc: float = -5.0
    noise_scale: float = 1.5
    mean_precision: float = 1.0
    noise_bounds: tuple[float, float] = (1e-8, 10.0)
    least: float = -math.inf


@dataclass(frozen=True)
class Fit:
    """Fitted hyper-parameters.

    Attributes:
        kernel: the kernel.
        noise: noise variance, y squared.
        value: log likelihood + log(prior density / its maximum); -inf if no usable kernel was found.
    """

    kernel: Kernel
    noise: float
    value: float


def fit_hyperparameters(
    observations: Observations | FitData,
    kernel: Kernel,
    noise: float,
    *,
    fit_noise: bool = True,
    rng: np.random.Generator | None = None,
    with_mean: bool = False,
    settings: FitSettings | None = None,
) -> tuple[Kernel, float]:
    """Kernel and noise variance that maximise the marginal likelihood times the priors.

    Args:
        observations: the data, standardised; `FitData` where some noise variances are known and others are not.
        kernel: the start; a kernel without hyper-parameters is returned unchanged.
        noise: noise variance at the start, y squared.
        fit_noise: whether the noise is fitted too.
        rng: generator for the choice of the subset.
        with_mean: whether the values have an unknown constant mean, which is profiled out; see `constant_mean`.
        settings: see `FitSettings`.
    """
    settings = settings or FitSettings()
    fittable = is_fittable(kernel) and len(kernel.theta) > 0
    if not len(FitData.of(observations).U) or not (fittable or fit_noise):
        return kernel, noise
    data = fit_data(observations, settings, rng)
    fit = fit_from(data, kernel, noise, fit_noise=fit_noise, with_mean=with_mean, settings=settings)
    return (fit.kernel, fit.noise) if math.isfinite(fit.value) else (kernel, noise)


def fit_data(
    obs: Observations | FitData, settings: FitSettings | None = None, rng: np.random.Generator | None = None
) -> FitData:
    """The data of a fit: all observations, or those of a random subset of the points; see `FitSettings`."""
    settings = settings or FitSettings()
    rng = rng or np.random.default_rng(0)
    return FitData.of(obs).subset(settings.max_points, rng)


@dataclass(frozen=True)
class LogPosterior:
    """The log posterior density, up to a constant, of the variables `x (p,)`: the kernel's `theta` and log(noise).

    Attributes:
        data: the observations.
        kernel: any kernel of the form to fit; a kernel without hyper-parameters is the same for all x.
        noise: noise variance if it is not among the variables, y squared.
        fit_noise: whether log(noise) is the last of the variables.
        mean_precision: prior precision of the constant mean; None for a zero mean.
        settings: priors and limits.
        prior_power: exponent of the prior density of the kernel's hyper-parameters; 1/4 doubles standard deviations.
    """

    data: FitData
    kernel: Kernel
    noise: float
    fit_noise: bool
    mean_precision: float | None
    settings: FitSettings
    prior_power: float = 1.0

    @cached_property
    def _fittable(self) -> FittableKernel | None:
        return self.kernel if is_fittable(self.kernel) else None

    @cached_property
    def _has_closed_form(self) -> bool:
        return has_closed_form(self.kernel, self.data.U)

    @cached_property
    def _by_theta(self) -> ByTheta:
        return cast(ClosedFormKernel, self.kernel).by_theta(self.data.U)

    @cached_property
    def _prior(self) -> NormalPrior:
        """The prior of the variables, for a kernel with closed form: it does not depend on the hyper-parameters."""
        prior = cast(ClosedFormKernel, self.kernel).prior
        return NormalPrior.join([prior.to_the_power(self.prior_power), self._noise_prior])

    @cached_property
    def _noise_prior(self) -> NormalPrior:
        """The prior of log(noise); of no variables if the noise is not fitted."""
        both = self.data.U.new_tensor([[self.settings.noise_loc], [self.settings.noise_scale]])
        return NormalPrior.independent(*both[:, : self.fit_noise])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The smallest and the largest value of each variable."""
        n = 0 if self._fittable is None else len(self._fittable.theta)
        # exp(+-7) is a lengthscale of 1/1000 or 1000 times the unit cube, beyond which the kernel hardly changes.
        low, high = max(self.settings.noise_bounds[0], self.data.least_noise), self.settings.noise_bounds[1]
        return [(-7.0, 7.0)] * n + [(math.log(low), math.log(high))] * self.fit_noise

    def variables(self) -> np.ndarray:
        """The variables of `kernel` and `noise`, clipped to the bounds."""
        theta = np.zeros(0) if self._fittable is None else self._fittable.theta.detach().cpu().numpy()
        x = np.append(theta, math.log(self.noise)) if self.fit_noise else theta
        bounds = self.bounds
        return np.clip(x, [low for low, _ in bounds], [high for _, high in bounds])

    def unpack(self, x: Tensor) -> tuple[Kernel, Tensor]:
        """Kernel and noise variance for the variables `x (p,)`."""
        lam = torch.exp(x[-1]) if self.fit_noise else x.new_tensor(self.noise)
        theta = x[:-1] if self.fit_noise else x
        return (self.kernel if self._fittable is None else self._fittable.with_theta(theta)), lam

    def log_prior(self, x: Tensor, kernel: Kernel) -> Tensor:
        """Log prior density of `x (p,)`, up to a constant; `kernel` is that of `unpack(x)`. Differentiable."""
        if self._has_closed_form:
            return self._prior.log_density(x)
        value = x.new_zeros(()) if self._fittable is None else cast(FittableKernel, kernel).log_prior()
        return self.prior_power * value + self._noise_prior.log_density(x[len(x) - self.fit_noise :])

    def with_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray] | None:
        """The log density with the best constant mean, and its gradient `(p,)`; None if the kernel is not usable."""
        try:
            value, slope = self._closed(x) if self._has_closed_form else self._differentiated(x)
        except KernelError:
            return None
        return (value, slope) if np.isfinite(slope).all() else None

    def _closed(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient in closed form."""
        theta, lam = (x[:-1], math.exp(x[-1])) if self.fit_noise else (x, self.noise)
        value, slope = likelihood_and_gradient(self.data, self._by_theta, theta, lam, self.mean_precision)
        prior, prior_slope = self._prior.with_slope(x)
        return value + prior, slope[: len(x)] + prior_slope

    @torch.enable_grad()
    def _differentiated(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient by automatic differentiation, for any kernel."""
        t = torch.tensor(x, device=self.data.U.device, requires_grad=True)
        at, lam = self.unpack(t)
        value = log_marginal_likelihood(self.data, at, lam, self.mean_precision) + self.log_prior(t, at)
        (slope,) = torch.autograd.grad(value, t)
        return float(value.detach()), slope.cpu().numpy()

    @torch.no_grad()
    def over_means(self, x: np.ndarray) -> tuple[float, float, float]:
        """The log density with the unknown constant mean integrated out, and posterior mean and sd of the constant, y.

        The density is -inf if the kernel is not usable.
        """
        t = torch.as_tensor(x, device=self.data.U.device)
        at, lam = self.unpack(t)
        try:
            P, logdet = _products(self.data, at, lam)
        except KernelError:
            return -math.inf, 0.0, 0.0
        assert self.mean_precision is not None
        precision = float(P[1, 1]) + self.mean_precision
        value = _log_density(self.data, lam, P[0, 0] - P[0, 1] ** 2 / precision, logdet)
        value = value - 0.5 * math.log(precision / self.mean_precision)
        return float(value + self.log_prior(t, at)), float(P[0, 1]) / precision, precision**-0.5


def fit_from(
    data: FitData,
    kernel: Kernel,
    noise: float,
    *,
    fit_noise: bool = True,
    with_mean: bool = False,
    settings: FitSettings | None = None,
) -> Fit:
    """The maximum that L-BFGS-B finds from one start; the arguments are those of `fit_hyperparameters`."""
    from scipy.optimize import OptimizeResult, minimize

    settings = settings or FitSettings()
    target = LogPosterior(data, kernel, noise, fit_noise, settings.mean_precision if with_mean else None, settings)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        found = target.with_gradient(x)
        # For an unusable kernel the objective is huge, so that the line search steps back.
        return (1e300, np.zeros_like(x)) if found is None else (-found[0], -found[1])

    iterations = itertools.count(1)

    def give_up(intermediate_result: OptimizeResult) -> None:
        if next(iterations) == GIVEN_UP_AFTER and -intermediate_result.fun < settings.least:
            raise StopIteration

    with small_scipy_work():
        result = minimize(
            objective,
            target.variables(),
            jac=True,
            method="L-BFGS-B",
            bounds=target.bounds,
            callback=give_up,
            options={"maxiter": settings.max_iterations, "maxcor": STEPS_KEPT},
        )
    with torch.no_grad():
        fitted, lam = target.unpack(torch.tensor(result.x, device=data.U.device))
    value = -float(result.fun) if abs(float(result.fun)) < 1e299 else -math.inf
    log.debug("fit: log posterior %.6g on %d points, noise %.3g", value, len(data.U), lam)
    return Fit(fitted, float(lam), value)


def constant_mean(
    observations: Observations,
    kernel: Kernel,
    noise: float,
    *,
    rng: np.random.Generator | None = None,
    settings: FitSettings | None = None,
) -> float:
    """The constant mean for fitted hyper-parameters, units of y: generalised least squares, shrunk towards zero.

    The points of a search are dense near the best ones, which biases the sample mean; generalised least squares gives
    correlated points less weight. The arguments are those of `fit_hyperparameters`.
    """
    settings = settings or FitSettings()
    data = fit_data(observations, settings, rng)
    lam = data.U.new_tensor(noise)
    with torch.no_grad(), small_work():
        P, _ = _products(data, kernel, lam)
    return float(P[0, 1] / (P[1, 1] + settings.mean_precision))


def gain_over_constant(observations: Observations, kernel: Kernel, noise: float) -> float:
    """Log marginal likelihood minus that of independent normal values around a constant.

    Both models have the best constant mean, and the second one also the best variance. The gain is negative where the
    points do not explain the values.

    Args:
        observations: the data, standardised.
        kernel: the fitted kernel.
        noise: the fitted noise variance, y squared.
    """
    data = fit_data(observations)
    n = float(data.n.sum())
    with torch.no_grad(), small_work():
        value = float(log_marginal_likelihood(data, kernel, data.U.new_tensor(noise), FitSettings().mean_precision))
        mean = float(data.n @ data.ybar) / n
        variance = (float(data.within) + float(data.n @ (data.ybar - mean).square())) / n
    return value + 0.5 * n * (math.log(2.0 * math.pi * max(variance, SMALLEST)) + 1.0)


def log_marginal_likelihood(data: FitData, kernel: Kernel, lam: Tensor, mean_precision: float | None = None) -> Tensor:
    """Log marginal likelihood of all evaluations; a scalar, differentiable.

    Args:
        data: the observations.
        kernel: the kernel.
        lam: noise variance, y squared.
        mean_precision: None for a zero mean; otherwise the value is that of the best constant mean under a normal
            prior of this precision, and includes the prior's log density (up to a constant).
    """
    P, logdet = _products(data, kernel, lam)
    quadratic = P[0, 0]
    if mean_precision is not None:
        # min over c of (ybar - c)^T E^-1 (ybar - c) + precision c^2
        quadratic = quadratic - P[0, 1] ** 2 / (P[1, 1] + mean_precision)
    return _log_density(data, lam, quadratic, logdet)


@torch.no_grad()
def log_evidence(data: FitData, kernel: Kernel, noise: float) -> float:
    """Log marginal likelihood with the best constant mean, plus the log prior density of the kernel's hyper-parameters.

    It is -inf for an unusable kernel. `noise` is a variance, y squared; its prior is left out.
    """
    try:
        with small_work():
            value = log_marginal_likelihood(data, kernel, data.U.new_tensor(noise), FitSettings().mean_precision)
    except KernelError:
        return -math.inf
    return float(value + kernel.log_prior() if is_fittable(kernel) else value)


def _log_density(data: FitData, lam: Tensor, quadratic: Tensor, logdet: Tensor) -> Tensor:
    """log p(y) from log det E and `quadratic`: ybar^T E^-1 ybar, less the part explained by a constant mean."""
    n = data.n
    rest = 0.5 * data.within / lam + 0.5 * data.n_repeats * torch.log(2.0 * math.pi * lam) + 0.5 * data.log_counts
    return -0.5 * (quadratic + logdet + len(n) * math.log(2.0 * math.pi)) - rest


def _products(data: FitData, kernel: Kernel, lam: Tensor) -> tuple[Tensor, Tensor]:
    """[ybar, 1]^T E^-1 [ybar, 1] `(2, 2)` and log det E."""
    L = safe_cholesky(noisy_gram(kernel, data.U, data.noises(lam)))
    both = torch.stack([data.ybar, torch.ones_like(data.ybar)], 1)
    A = torch.linalg.solve_triangular(L, both, upper=False)
    return A.T @ A, 2.0 * L.diagonal().log().sum()
