"""TuRBO-1 as a sampler of Optuna: Thompson sampling by a local Gaussian process in a trust region that adapts.

Source: Eriksson, Pearce, Gardner, Turner and Poloczek, "Scalable global optimization via local Bayesian optimization"
(NeurIPS 2019), with all constants of the paper. Our own implementation with BoTorch's model, as a baseline only. The
paper's rules for noisy observations are used: the region's centre is its point of the smallest posterior mean, and what
is recommended is the best centre by that measure. One choice is ours, since the paper counts improvements of observed
values: a trial is a success if it became the centre once its value was known.

The columns are Optuna's transformation to the unit cube: integers as numbers that are rounded, choices one-hot.
Suggestions come one by one; hyper-parameters are fitted at every fourth.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import torch
from botorch.exceptions.warnings import BotorchWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch.constraints import Interval
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator.utils.warnings import NumericalWarning
from optuna._transform import _SearchSpaceTransform
from optuna.trial import FrozenTrial

from benchmarks.ask_tell_samplers import Params, Space, SpaceSampler
from benchmarks.functions import Array

__all__ = ["Local", "Region", "TurboSampler", "learn", "thompson"]

FIRST, SMALLEST, LARGEST = 0.8, 0.5**7, 1.6
SUCCESSES = 3
FIT_EVERY = 4
MOST_CANDIDATES = 5_000


@dataclass
class Region:
    """The size of a trust region of d columns: the length of its box, and the successes and failures in a row."""

    dim: int
    length: float = FIRST
    successes: int = 0
    failures: int = 0

    def count(self, success: bool) -> None:
        """Double the length after three successes in a row, halve it after d failures (at least 4)."""
        self.successes, self.failures = (self.successes + 1, 0) if success else (0, self.failures + 1)
        if self.successes == SUCCESSES:
            self.length, self.successes = min(2 * self.length, LARGEST), 0
        elif self.failures == max(4, self.dim):
            self.length, self.failures = self.length / 2, 0

    @property
    def collapsed(self) -> bool:
        """Whether the search begins anew."""
        return self.length < SMALLEST


@dataclass(frozen=True)
class Local:
    """A model of a region's trials, with its scaling and the number of trials that it was fitted to."""

    gp: SingleTaskGP
    scale: Standardize
    fitted: int

    def means(self, X: Array) -> Array:
        """Posterior means (n,) of points (n, d), in the units of the values."""
        with torch.no_grad():
            return np.asarray(self.scale.untransform(self.gp.posterior(torch.tensor(X)).mean)[0][:, 0].numpy())

    def lengths(self) -> Array:
        """The kernel's length scales (d,) relative to their geometric mean."""
        kernel = self.gp.covar_module.base_kernel
        scales = kernel.lengthscale.detach().numpy().ravel()
        return np.asarray(scales / np.exp(np.log(scales).mean()))


class TurboSampler(SpaceSampler):
    """TuRBO with one region at a time; each region begins with `n_startup` uniform points and forgets all others."""

    def __init__(self, seed: int, n_startup: int) -> None:
        super().__init__(seed, n_startup)
        self._begin(0)
        self._settled: list[tuple[float, Params]] = []  # the posterior means of the centres of collapsed regions

    def _begin(self, first: int) -> None:
        """A new region, made of the trials from this number of finished ones on."""
        self._first = first
        self._region: Region | None = None
        self._model: Local | None = None
        self._best: tuple[float, Params] | None = None

    def propose(self, study: optuna.Study, space: Space, finished: Sequence[FrozenTrial]) -> Params:
        transform = _SearchSpaceTransform(space, transform_0_1=True)
        dim = len(transform.bounds)
        rng = np.random.default_rng([self.seed, len(finished)])
        mine = finished[self._first :]
        if len(mine) >= self.n_startup:
            X = np.array([transform.transform({name: trial.params[name] for name in space}) for trial in mine])
            y = np.array([trial.value for trial in mine], dtype=np.float64)
            before = self._model if self._region is not None and self._region.dim == dim else None
            self._model = learn(X, y, before)
            means = self._model.means(X)
            centre = int(means.argmin())
            self._best = float(means[centre]), mine[centre].params
            if self._region is None or self._region.dim != dim:
                self._region = Region(dim)
            else:
                self._region.count(centre == len(mine) - 1)
            if not self._region.collapsed:
                return transform.untransform(thompson(self._model, X[centre], self._region.length, rng))
            self._settled.append(self._best)
            self._begin(len(finished))
        return transform.untransform(rng.uniform(transform.bounds[:, 0], transform.bounds[:, 1]))

    def recommend(self, study: optuna.Study) -> Any:
        """The centre of all regions with the smallest posterior mean; the best trial before there is a model."""
        centres = [*self._settled, *([] if self._best is None else [self._best])]
        params = min(centres, key=lambda pair: pair[0])[1] if centres else study.best_trial.params
        return SimpleNamespace(params=params)


def learn(X: Array, y: Array, before: Local | None = None) -> Local:
    """Matern 5/2 with a length per column and unknown noise, for points (n, d) of the unit cube and values (n,).

    The hyper-parameters, and what the values are scaled by, are those of `before` while it is younger than four trials.
    The bounds are the paper's except for the noise: its functions have none, here noise may dominate a region.
    """
    points, values = torch.tensor(X), torch.tensor(y)[:, None]
    fit = before is None or len(y) >= before.fitted + FIT_EVERY
    fitted = len(y) if before is None or fit else before.fitted
    scale = Standardize(m=1)
    scale(values[:fitted])
    scale.eval()
    lengths = MaternKernel(nu=2.5, ard_num_dims=X.shape[1], lengthscale_constraint=Interval(0.005, 4.0))
    with warnings.catch_warnings():
        # Fits that stop early, and values that were scaled by some of them.
        warnings.simplefilter("ignore", BotorchWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        gp = SingleTaskGP(
            points,
            scale(values)[0],
            likelihood=GaussianLikelihood(noise_constraint=Interval(1e-6, 2.0)),
            covar_module=ScaleKernel(lengths, outputscale_constraint=Interval(0.05, 20.0)),
            outcome_transform=None,
        )
        if before is None or fit:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
        else:
            gp.load_state_dict(before.gp.state_dict())
    return Local(gp.eval(), scale, fitted)


def thompson(model: Local, centre: Array, length: float, rng: np.random.Generator) -> Array:
    """The minimiser (d,) of one posterior sample over points that perturb the centre within the region.

    The box's sides are the length times the kernel's relative length scales. Of a candidate's columns 20 are perturbed
    on average, all where there are no more.
    """
    dim, half = len(centre), length / 2 * model.lengths()
    low, high = np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)
    n = min(100 * dim, MOST_CANDIDATES)
    sobol = torch.quasirandom.SobolEngine(dim, scramble=True, seed=int(rng.integers(2**31)))
    points = low + (high - low) * sobol.draw(n, dtype=torch.float64).numpy()
    mask = rng.random((n, dim)) < min(20 / dim, 1.0)
    mask[np.arange(n), rng.integers(dim, size=n)] = True
    candidates = np.where(mask, points, centre)
    with torch.no_grad(), torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # a joint covariance of close points is nearly singular
        torch.manual_seed(int(rng.integers(2**31)))
        sample = model.gp.posterior(torch.tensor(candidates)).rsample(torch.Size([1]))
    return np.asarray(candidates[int(sample.argmin())])
