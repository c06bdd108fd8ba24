"""A modelled quantity of a problem: an objective, a constraint, or failing, with its surrogate.

| symbol | shape  | units  | meaning                                                          |
| ------ | ------ | ------ | ---------------------------------------------------------------- |
| X      | (n, d) | enc.   | points of all rows, in the order of completion                   |
| y      | (n,)   | user's | values; v are the standardised ones, larger is better            |
| std    | (n,)   | user's | known standard deviations of the noise; NaN if it is fitted      |
| lam    | scalar | v^2    | noise variance                                                   |

The surrogate depends on the rows only, not on when they were added. Hyper-parameters are fitted from scratch at fixed
numbers of rows, the *marks*, each 15 % larger than the one before, with random numbers that depend on the mark. Rows
after the last mark are learnt one by one. A new process therefore needs a single fit, and has bit for bit the same
surrogate as one that has followed the rows from the first. Warm starts of the fit would save little time.
"""

import copy
from dataclasses import dataclass, field
from typing import TypeGuard

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.arrays import DEFAULT_NOISE
from bkbopt.confidence import ScheduleContext
from bkbopt.kernels import ARDKernel, FittableKernel, Kernel, ScaledKernel, matern52
from bkbopt.kernels.base import placed
from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import Observations
from bkbopt.search.quantities.marked_rows import Rows
from bkbopt.search.quantities.output_warping import FEWEST, is_better_warped
from bkbopt.search.quantities.scaling import Scaler, usable
from bkbopt.search.quantities.schedule_inputs import HighestPrior, PendingVariances
from bkbopt.spaces.rows import RowSource
from bkbopt.surrogates import Surrogate
from bkbopt.surrogates.fit import FitData, constant_mean, fit_hyperparameters, gain_over_constant, log_evidence
from bkbopt.surrogates.hyperparameters import draw_hyperparameters, posterior_under
from bkbopt.surrogates.structure import fit_structure

__all__ = ["ModelOptions", "Quantity"]

CPU = torch.device("cpu")  # where fits are made, in compiled loops, wherever the surrogate is
#: Noise variance of a deterministic objective, relative to the variance of its values; see docs/design/fits.md.
DETERMINISTIC = 1e-8
#: Noise variance of the model without noise in the test for noise; as much noise, or less, is none.
FREE_OF_NOISE = 1e-6
#: Fitted noise variance, standardised units squared, up to which values count as measured without noise. Without noise
#: the fitted one is between its lower limit, 1e-8, and some 1e-6.
NOISELESS = 1e-5
#: With this number of values of a constraint that are zero, its limit is moved; see `Quantity.zero`.
ZEROS = 3
#: Required gain in log posterior density of a model with noise over one without.
EVIDENCE = 0.5
#: By how much (log likelihood) a constant must explain values better than a model; see docs/design/failed-trials.md.
AT_RANDOM = 1.0
#: Up to this number of unique points noise is tested by a fit without noise; with more, a repeat is a better test.
TEST_UP_TO = 50
#: Number of posteriors of an ensemble, and the number that distinguishes its random numbers from others.
N_ENSEMBLE, ENSEMBLE_STREAM = 40, 1
#: Smallest and largest weight lam / variance of a value with known noise, for kernel and lam of the user.
OWN_WEIGHTS = (1e-12, 1e10)


@dataclass(frozen=True)
class ModelOptions:
    """Options of the models of all quantities.

    Attributes:
        surrogate: a surrogate without data, which is copied for each model.
        fit: whether values are standardised, and kernel and noise fitted. Otherwise all is in the user's units.
        deterministic: whether the same point always gives the same value.
    """

    surrogate: Surrogate
    fit: bool = True
    deterministic: bool = False


@dataclass
class Quantity:
    """A surrogate of the rows of one quantity, with the scaling of its values.

    Args:
        options: options of the model.
        seed: seed of all random numbers.
        stream: number of the quantity, on which its random numbers depend.
        sign: +1 if larger is better, -1 if smaller is better.
        winsorised: whether very poor values are clipped; not for constraints and for one of several objectives, where
            the size of poor values matters.
        is_limit: whether the quantity is a constraint or failing; its noise is then fitted, since the noise of the
            user's surrogate is that of the objective.
        extended: whether extensions of the stationary kernel are compared; not for failing, which has two values only.

    Attributes:
        scaler: scaling of the values, from the last fit.
        is_constant: for a limit, whether a constant with noise explains the values of the last fit better.
    """

    options: ModelOptions
    seed: int
    stream: int
    sign: float
    winsorised: bool
    is_limit: bool = False
    extended: bool = True
    scaler: Scaler = field(init=False)
    is_constant: bool = field(init=False, default=False)
    _surrogate: Surrogate | None = field(init=False, default=None)
    _built: tuple[int, int] = field(init=False, default=(-1, -1))
    _n: int = field(init=False, default=0)
    _highest_prior: HighestPrior = field(init=False)
    _categorical: tuple[int, ...] = field(init=False, default=())
    _above_zero: float = field(init=False, default=0.0)
    _only_zeros: bool = field(init=False, default=False)
    _noisy: bool | None = field(init=False, default=None)
    _known_noise: bool | None = field(init=False, default=None)
    _noise_is_fitted: bool = field(init=False, default=False)
    _ensemble: tuple[tuple[int, int, int], list[tuple[Model, float]]] | None = field(init=False, default=None)
    _fitted: tuple[tuple[int, int, int], Tensor] | None = field(init=False, default=None)
    _pending_variances: tuple[tuple[int, int, int], PendingVariances] | None = field(init=False, default=None)

    # -- learning ----------------------------------------------------------------------------------------------------

    def follow(self, rows: Rows) -> None:
        """Update the model with all rows; without a finite value up to the mark there is no model."""
        mark = rows.mark if self.options.fit else min(1, rows.mark)
        y = rows.finite_limits if self.is_limit else rows.y
        if not mark or not bool(torch.isfinite(y[:mark]).any()):
            self._surrogate, self._built = None, (-1, -1)
            return
        known = rows.std[torch.isfinite(rows.std)]
        self._known_noise = bool((known > 0.0).any()) if len(known) else None
        built = (rows.version, mark)
        new = slice(self._n, max(self._n, len(y))) if self._built == built else slice(mark, len(y))
        values = usable(y[new], rows.estimates[new], self.sign, y[:mark])
        if self.is_limit:
            above, n_zeros = y[y > 0.0], int((y == 0.0).sum())
            self._above_zero = float(above.min()) if len(above) and n_zeros >= ZEROS else 0.0
            self._only_zeros = n_zeros == len(y) >= ZEROS
        if self._built != built:
            self._surrogate = None  # so that an interrupted fit does not look finished
            self._start(rows, usable(y[:mark], rows.estimates[:mark], self.sign, y[:mark]), mark)
            self._built = built
        self._n = new.start
        surrogate, v = self.surrogate, self.scaler.transform(values)
        weight = self._weights(rows.std[new], surrogate.noise)
        surrogate.observe(rows.X[new], v, weight, in_turn=True)
        self._n = new.stop

    def _start(self, rows: Rows, y: Tensor, mark: int) -> None:
        """A new surrogate on the first `mark` rows, whose usable values are `y (mark,)`."""
        surrogate = copy.deepcopy(self.options.surrogate)
        surrogate.rng = np.random.default_rng([self.seed, self.stream, mark])
        self._noisy, self._categorical = None, rows.categorical
        if self.options.fit:
            self._fit(surrogate, rows, y, mark)
        else:
            self.scaler = Scaler.identity(self.sign)
            weight = self._weights(rows.std[:mark], surrogate.noise)
            surrogate.observe(rows.X[:mark], self.scaler.transform(y), weight)
        self._highest_prior = HighestPrior(surrogate.kernel)
        self._surrogate = surrogate

    def _fit(self, surrogate: Surrogate, rows: Rows, y: Tensor, mark: int) -> None:
        X, std = rows.X[:mark], rows.std[:mark]
        self.scaler = Scaler.from_values(y, self.sign, winsorised=self.winsorised, with_zero=self.is_limit)
        noise, fit_noise = self._first_noise(surrogate, std)
        self._noise_is_fitted = fit_noise and not bool(torch.isfinite(std).any())
        kernel: Kernel = self._first_kernel(X.shape[1], rows.categorical)
        start = kernel, noise
        if fit_noise and bool(torch.isfinite(std).any()):
            values, noises = self.scaler.transform(y), self.scaler.noises(std)
            data: Observations | FitData = FitData.partly_known(X, values, noises)
        else:
            data = self._observed(X, y, std, noise)
        kernel, noise = self._fitted_to(data, kernel, noise, fit_noise, surrogate.rng)
        if self._may_warp(start[0], mark) and is_better_warped(X, y, self.scaler, (kernel, noise), start, fit_noise):
            self.scaler = self.scaler.warped(y)
            kernel, noise = self._fitted_to(self._observed(X, y, std, noise), *start, fit_noise, surrogate.rng)
        mean = constant_mean(self._observed(X, y, std, noise), kernel, noise, rng=surrogate.rng)
        self.scaler = self.scaler.shifted(mean)
        observations = self._observed(X, y, std, noise)
        self.is_constant = self.is_limit and gain_over_constant(observations, kernel, noise) < -AT_RANDOM
        surrogate.rebuild(observations, kernel, noise)

    def _first_kernel(self, dim: int, categorical: tuple[int, ...]) -> FittableKernel:
        """The kernel at the start of a fit: the user's, or the default."""
        given = self.options.surrogate
        if not given.has_kernel:
            return matern52(dim, categorical=categorical)
        kernel = placed(given.kernel, CPU)
        scale = torch.zeros((), dtype=torch.float64)
        return kernel if isinstance(kernel, FittableKernel) else ScaledKernel(kernel, scale)

    def _is_default(self, kernel: Kernel) -> TypeGuard[ARDKernel]:
        """Whether the kernel is the default one, whose structure may be chosen."""
        given = self.options.surrogate
        return isinstance(kernel, ARDKernel) and not given.has_kernel and given.takes_structure

    def _may_warp(self, kernel: Kernel, n: int) -> bool:
        """Whether `n` values may be warped: with unknown noise, winsorised values and the default kernel."""
        unknown = self._noise_is_fitted or self.options.deterministic
        return self.winsorised and unknown and n >= FEWEST and self._is_default(kernel)

    def _fitted_to(
        self,
        observations: Observations | FitData,
        kernel: Kernel,
        noise: float,
        fit_noise: bool,
        rng: np.random.Generator,
    ) -> tuple[Kernel, float]:
        """Fitted kernel and noise variance; for the default kernel with the structure of the largest evidence."""
        if self._is_default(kernel):
            return fit_structure(observations, kernel, noise, fit_noise=fit_noise, rng=rng, extended=self.extended)
        return fit_hyperparameters(observations, kernel, noise, fit_noise=fit_noise, rng=rng, with_mean=True)

    def _first_noise(self, surrogate: Surrogate, std: Tensor) -> tuple[float, bool]:
        """The noise variance at the start of a fit, and whether it is fitted."""
        if surrogate.fixed_noise and not self.is_limit:
            return self.scaler.noise(surrogate.noise**0.5), False
        if self.options.deterministic:
            return DETERMINISTIC, False
        if bool(torch.isfinite(std).all()):
            return self.scaler.noise(float(std.median())), False
        return DEFAULT_NOISE, True

    def _observed(self, X: Tensor, y: Tensor, std: Tensor, noise: float) -> Observations:
        observations = Observations(X.shape[1])
        observations.add(X, self.scaler.transform(y), self._weights(std, noise))
        return observations

    def _weights(self, std: Tensor, lam: float) -> Tensor | None:
        """Weights lam / known noise variance (n,), 1 for unknown noise; None if no noise is known."""
        known = torch.isfinite(std)
        if not bool(known.any()):
            return None
        if self.options.fit:
            return torch.where(known, lam / self.scaler.noises(std), 1.0)
        return torch.where(known, (lam / std.square()).clamp(*OWN_WEIGHTS), 1.0)

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether there is a model."""
        return self._surrogate is not None

    @property
    def mark(self) -> int:
        """The number of rows of the last fit of hyper-parameters."""
        return self._built[1]

    @property
    def surrogate(self) -> Surrogate:
        """The surrogate of the rows, on encoded points and standardised values."""
        assert self._surrogate is not None
        return self._surrogate

    def model(self, pending: Tensor) -> Model:
        """The posterior with `pending (p, d)` counted as if evaluated at their means."""
        return self.surrogate.fantasy(pending) if len(pending) else self.surrogate.model

    @property
    def _now(self) -> tuple[int, int, int]:
        """The state on which the model depends: version and mark of the rows, and their number."""
        return (*self._built, self._n)

    @property
    def fitted(self) -> Tensor:
        """Posterior mean at the unique observed points, standardised, (u,); cached for the same rows."""
        if self._fitted is None or self._fitted[0] != self._now:
            self._fitted = self._now, self.surrogate.fitted().cpu()
        return self._fitted[1]

    def predict(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and standard deviation (n,) of the noise-free value at `X (n, d)`, user's units."""
        posterior = self.surrogate.posterior(X)
        mean, std = posterior.mean.cpu(), posterior.stddev.cpu()
        return self.scaler.means(mean), self.scaler.widths(std, mean)

    def ensemble(self) -> list[tuple[Model, float]]:
        """Posteriors under draws of the hyper-parameters, each with a constant mean that has to be added.

        There is a single one if nothing is fitted. The result is cached for the same rows.
        """
        surrogate = self.surrogate
        if not self.options.fit:
            return [(surrogate.model, 0.0)]
        now = self._now
        if self._ensemble is None or self._ensemble[0] != now:
            rng = np.random.default_rng([self.seed, self.stream, self._n, ENSEMBLE_STREAM])
            obs, kernel = surrogate.observations.to(CPU), placed(surrogate.kernel, CPU)
            draws = draw_hyperparameters(obs, kernel, surrogate.noise, N_ENSEMBLE, rng, fit_noise=self._noise_is_fitted)
            models = [(posterior_under(one, obs, surrogate.inducing.cpu(), rng), one.mean) for one in draws]
            self._ensemble = now, models
        return self._ensemble[1]

    def averaged(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """`predict` averaged over hyper-parameters: mean and standard deviation of the ensemble."""
        parts = [(mean + c, variance) for model, c in self.ensemble() for mean, variance in (model(X),)]
        means, variances = (torch.stack(part) for part in zip(*parts, strict=True))
        deviation = (variances.mean(0) + means.var(0, correction=0)).sqrt()
        return self.scaler.means(means.mean(0)), self.scaler.widths(deviation, means.mean(0))

    @property
    def zero(self) -> float:
        """The limit of a constraint on the standardised scale.

        It is zero. If several values are zero, as of flags, counts and max(0, violation), it is half of the smallest
        value above: posterior means of zeros are on either side of zero. If all values are zero, it is one unit beyond.
        """
        return self.scaler.place(0.5 * self._above_zero) - (1.0 if self._only_zeros else 0.0)

    @property
    def is_noiseless(self) -> bool:
        """Whether the fitted noise is at, or near, its lower limit."""
        return self.options.fit and self.surrogate.noise <= NOISELESS

    @property
    def measured(self) -> Tensor:
        """Mean of the values at each unique observed point, standardised, (u,)."""
        obs = self.surrogate.observations.to(CPU)
        # Sums of equal values differ by rounding if there are different numbers of them.
        return torch.round(obs.s / obs.n, decimals=12)

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise, user's units; for warped values at the best posterior mean."""
        best = self.fitted.max()[None]
        return float(self.scaler.widths(torch.full_like(best, self.surrogate.noise**0.5), best)[0])

    def context(self, n_arms: int | None, pending: Tensor, arms: RowSource | None = None) -> ScheduleContext:
        """What confidence schedules look at, with `pending (p, d)` and the `arms (A, d)` of a pool."""
        surrogate = self.surrogate
        obs = surrogate.observations
        return ScheduleContext(
            t=obs.total,
            dim=obs.dim,
            n_arms=n_arms,
            lam=surrogate.noise,
            kappa2=self._highest_prior(obs.X, arms),
            effective_dimension=surrogate.effective_dimension(),
            log_growth=surrogate.log_growth,
            leverage_sum=surrogate.leverage_sum(),
            batch=len(pending),
            batch_leverage=float(self.pending_leverages(pending).sum()),
        )

    def pending_leverages(self, pending: Tensor) -> Tensor:
        """Leverages `(p,)` of the points `pending (p, d)`, given the rows only."""
        if self._pending_variances is None or self._pending_variances[0] != self._now:
            self._pending_variances = self._now, PendingVariances(self.surrogate)
        return self._pending_variances[1](pending) / self.surrogate.noise

    @property
    def is_found_noiseless(self) -> bool:
        """Whether `is_noisy` is known to be false without a new fit."""
        if self.options.deterministic or self._known_noise is not None:
            return self.options.deterministic or not self._known_noise
        obs = self.surrogate.observations
        return obs.total == len(obs) <= TEST_UP_TO and self._noisy is False

    @property
    def awaits_repeat(self) -> bool:
        """Whether a first repeat of a point is to decide whether there is noise."""
        obs, is_stated = self.surrogate.observations, self.options.deterministic or self._known_noise is not None
        return not is_stated and obs.total == len(obs) > TEST_UP_TO

    def is_noisy(self) -> bool:
        """Whether a second evaluation of a point is expected to give another value.

        If the user gave the noise, it decides; otherwise repeats decide if there are any. Without repeats, and with at
        most `TEST_UP_TO` points, the values of the last mark are tested for noise. With more points the answer is yes,
        so that a first repeat is made, which then decides.
        """
        if self.options.deterministic or self._known_noise is not None:
            return not self.options.deterministic and bool(self._known_noise)
        surrogate = self.surrogate
        obs, kernel, noise = surrogate.observations.to(CPU), placed(surrogate.kernel, CPU), surrogate.noise
        if obs.total > len(obs):
            within = obs.Y2 - float((obs.s * obs.s / obs.n).sum())
            return within > 1e-9 * max(obs.Y2, 1e-300)
        if len(obs) > TEST_UP_TO:
            return True
        if noise <= FREE_OF_NOISE:
            return False
        if self._noisy is None:
            _, mark = self._built
            fitted = Observations(obs.dim)
            fitted.add(obs.X[:mark], (obs.s / obs.n)[:mark])  # without repeats rows and points are the same
            start = self._first_kernel(obs.dim, self._categorical)
            free, _ = self._fitted_to(fitted, start, FREE_OF_NOISE, False, np.random.default_rng(0))
            data = FitData.of(fitted)
            self._noisy = log_evidence(data, kernel, noise) > log_evidence(data, free, FREE_OF_NOISE) + EVIDENCE
        return self._noisy
