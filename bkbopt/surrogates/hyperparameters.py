"""Draws from the posterior of the hyper-parameters: kernel, noise variance and constant mean.

| symbol | shape  | units | meaning                                                                                 |
| ------ | ------ | ----- | --------------------------------------------------------------------------------------- |
| x      | (p,)   | log   | hyper-parameters of the kernel (`theta`) and, where it is fitted, the log noise variance |
| H      | (p, p) | -     | minus the Hessian of the log posterior density at the fitted x                          |
| q      |        | -     | proposal: multivariate t about the fitted x, with scale matrix H^-1                     |
| c      | scalar | y     | constant mean, normal a priori with the variance 1 / `FitSettings.mean_precision`       |

The method is sampling importance resampling (Rubin 1987): proposals are resampled with weights posterior / proposal
density. A fit uses the most likely hyper-parameters only, and its credible bands are too narrow: with 25 to 300 values
of a search the 68 and 95 % bands covered 59 and 89 % of fresh points (`python -m benchmarks.calibration`).
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.threads import small_scipy_work, small_work
from bkbopt.kernels import Kernel
from bkbopt.kernels.base import noisy_gram
from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.features.table import FeatureTable
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.linalg import eigh, inverse_root
from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.exact import exact_model
from bkbopt.surrogates.fit import FitSettings, LogPosterior, fit_data

__all__ = ["Hyperparameters", "draw_hyperparameters", "posterior_under"]

#: Degrees of freedom of the proposals, whose tails are to be wider than those of the posterior.
DEGREES = 5.0
#: Step of the finite differences for H.
STEP = 0.05
#: Eigenvalues of H are clipped to this interval; those of the priors alone lie between 0.3 and 4.
CURVATURES = (0.3, 1e4)
#: Every second proposal is this many times as far from the fitted hyper-parameters, to reach other modes.
WIDE = 2.5
#: The number of proposals is POINTS / number of data points, at least LEAST and at most MOST.
POINTS, LEAST, MOST = 10_000, 64, 200
#: Exponent of the prior density, which doubles its standard deviations. The priors of a fit lead it to a good optimum,
#: but are too narrow for the spread of possible functions: a function with lengthscales of the size of the box has a
#: prior variance nine times that of its values, three standard deviations from the prior's mean.
PRIOR_POWER = 0.25
#: Largest number of points with an exact posterior, and the number of inducing points for more points.
EXACT, INDUCING = 400, 300


@dataclass(frozen=True)
class Hyperparameters:
    """One draw: kernel, noise variance (y squared) and constant mean (y)."""

    kernel: Kernel
    noise: float
    mean: float


def draw_hyperparameters(
    observations: Observations,
    kernel: Kernel,
    noise: float,
    n: int,
    rng: np.random.Generator,
    *,
    fit_noise: bool = True,
) -> list[Hyperparameters]:
    """Draws from the posterior of the hyper-parameters.

    Args:
        observations: the data, standardised.
        kernel: the fitted kernel; a kernel without hyper-parameters is the same in all draws.
        noise: the fitted noise variance, y squared.
        n: number of draws.
        rng: generator of the random numbers.
        fit_noise: whether the noise was fitted; otherwise it is the same in all draws.
    """
    settings = FitSettings()
    data = fit_data(observations, settings, rng)
    target = LogPosterior(data, kernel, noise, fit_noise, settings.mean_precision, settings, PRIOR_POWER)
    x = target.variables()
    with torch.no_grad(), small_scipy_work():
        if len(x):
            proposals, log_q = _proposals(target, x, min(max(POINTS // len(data.U), LEAST), MOST), rng)
        else:
            proposals, log_q = np.zeros((1, 0)), np.zeros(1)
        found = [target.over_means(one) for one in proposals]
        log_weight = np.array([value for value, _, _ in found]) - log_q
        rows = _resampled(log_weight, n, rng)
        out = []
        for row in rows:
            at, lam = target.unpack(torch.as_tensor(proposals[row]))
            _, mean, sd = found[row]
            out.append(Hyperparameters(at, float(lam), mean + sd * float(rng.standard_normal())))
    return out


def posterior_under(
    hyperparameters: Hyperparameters, observations: Observations, inducing: Tensor, rng: np.random.Generator
) -> Model:
    """The posterior of the values minus the constant mean: exact up to `EXACT` points, BKB's for more.

    Args:
        hyperparameters: kernel, noise and mean.
        observations: the data.
        inducing: the dictionary (m, d) for more than `EXACT` points; of more than `INDUCING` rows a random subset.
        rng: generator for the choice of that subset.
    """
    obs, h = observations, hyperparameters
    with torch.no_grad(), small_work():
        if len(obs) <= EXACT:
            G = inverse_root(noisy_gram(h.kernel, obs.X, h.noise / obs.n))
            return exact_model(h.kernel, obs.X, G, obs.s / obs.n - h.mean, h.noise)
        S = inducing if len(inducing) else obs.X
        if len(S) > INDUCING:
            S = S[torch.as_tensor(np.sort(rng.choice(len(S), INDUCING, replace=False)))]
        features = Nystrom.from_points(h.kernel, S.clone())
        state = GaussianState.from_data(FeatureTable.of(features, obs.X).Z, obs.n, obs.s - h.mean * obs.n, h.noise)
        return Model(features, state.w, state.root, state.lam)


def _proposals(target: LogPosterior, x: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Proposals `(n, p)`, clipped to the bounds, and their log densities `(n,)` up to a constant."""
    p = len(x)
    H = np.zeros((p, p))
    for j in range(p):
        step = np.zeros(p)
        step[j] = STEP
        below, above = target.with_gradient(x - step), target.with_gradient(x + step)
        if below is not None and above is not None:
            H[j] = (below[1] - above[1]) / (2.0 * STEP)
    curvature, Q = eigh(torch.as_tensor(0.5 * (H + H.T)))
    root = (Q / curvature.clamp(*CURVATURES).sqrt()).numpy()
    steps = rng.standard_normal((n, p)) * np.sqrt(DEGREES / rng.chisquare(DEGREES, size=(n, 1)))
    steps[1::2] *= WIDE
    steps[0] = 0.0  # the fitted hyper-parameters are one of the proposals
    r2 = (steps * steps).sum(1) / DEGREES
    near, far = (-0.5 * (DEGREES + p) * np.log1p(r2 / wide**2) - p * math.log(wide) for wide in (1.0, WIDE))
    low, high = np.array(target.bounds).T
    return np.clip(x + steps @ root.T, low, high), np.logaddexp(near, far)


def _resampled(log_weight: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """`n` rows by systematic resampling: each is drawn n times its normalised weight, rounded up or down.

    Weights are truncated at sqrt(number of proposals) times their mean (Ionides 2008). Otherwise a single proposal in a
    tail that the proposals hardly cover could be most of the draws.
    """
    weight = np.exp(log_weight - log_weight.max())
    weight = np.minimum(weight, weight.mean() * len(weight) ** 0.5)
    share = np.cumsum(weight / weight.sum())
    rows = np.searchsorted(share, (np.arange(n) + rng.random()) / n)
    return np.minimum(rows, len(weight) - 1)
