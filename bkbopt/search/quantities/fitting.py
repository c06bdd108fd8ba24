"""The fit of a quantity: the scaling of its values, and kernel and noise of its surrogate.

| symbol | shape  | units  | meaning                                                                        |
| ------ | ------ | ------ | ------------------------------------------------------------------------------ |
| X      | (n, d) | enc.   | points of the rows up to the mark                                              |
| y      | (n,)   | user's | their usable values; v are the standardised ones, larger is better             |
| std    | (n,)   | user's | known standard deviations of the noise; NaN if it is fitted                    |
| lam    | scalar | v^2    | noise variance                                                                 |
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.arrays import DEFAULT_NOISE
from bkbopt.kernels import ARDKernel, FittableKernel, Kernel, ScaledKernel, matern52
from bkbopt.kernels.base import is_fittable, placed
from bkbopt.posterior.observations import Observations
from bkbopt.search.quantities.least_noise import least_noise
from bkbopt.search.quantities.outliers import FEWEST_VALUES, judge, occur_once, without_outliers
from bkbopt.search.quantities.output_warping import FEWEST, is_better_warped, log_slopes
from bkbopt.search.quantities.scaling import NOISELESS, Scaler, is_informative
from bkbopt.surrogates import Surrogate
from bkbopt.surrogates.fit import (
    FitSettings,
    constant_mean,
    fit_data,
    fit_hyperparameters,
    gain_over_constant,
    log_evidence,
)
from bkbopt.surrogates.fit_data import FitData
from bkbopt.surrogates.structure import fit_structure

__all__ = ["CPU", "FREE_OF_NOISE", "FirstKernel", "FittedModel", "Fitter", "ModelOptions", "ScaledValues", "Values"]

CPU = torch.device("cpu")  # where fits are made, in compiled loops, wherever the surrogate is
#: Noise variance of a deterministic objective, relative to the variance of its values; see docs/design/fits.md.
DETERMINISTIC = 1e-8
#: Noise variance of the model without noise in the test for noise; as much noise, or less, is none.
FREE_OF_NOISE = 1e-6
#: Required gain in log posterior density of a model with noise over one without.
EVIDENCE = 0.5
#: By how much (log likelihood) a constant must explain values better than a model; see docs/design/failed-trials.md.
AT_RANDOM = 1.0
#: By how much (log likelihood) the model of an objective must explain values better than a constant, if there are so
#: many values or more; see docs/design/fits.md.
EXPLAINED, FEWEST_FLAT = 1.0, 20
#: What is assumed of an objective that the points do not explain: lengthscales, relative to those at the start of a
#: fit, and noise, as a share of the variance of the values.
ASSUMED_LENGTHSCALE, ASSUMED_NOISE = 0.5, 0.5
#: Smallest and largest weight lam / variance of a value with known noise. An exact value beside noisy ones, whose
#: weight would be infinite, thus has a thousandth of their standard deviation. With a weight of 1e10 rounding errors of
#: BKB's normal equations are larger than the posterior standard deviation, with this one they are 1e-6 of it.
WEIGHTS = (1e-12, 1e6)
#: Settings of fits without outliers that continue an earlier fit.
CONTINUED = FitSettings(max_iterations=30)

#: The kernel at the start of a fit to values at points `X (n, d)`; see `Fitter.first_kernel`.
FirstKernel = Callable[[Tensor], FittableKernel]


@dataclass(frozen=True)
class ModelOptions:
    """Options of the models of all quantities.

    Attributes:
        surrogate: a surrogate without data, which is copied for each model.
        fit: whether values are standardised, and kernel and noise fitted. Otherwise all is in the user's units.
        deterministic: whether the same point always gives the same value; where values of one point differ, noise is
            fitted all the same.
    """

    surrogate: Surrogate
    fit: bool = True
    deterministic: bool = False


@dataclass(frozen=True)
class Values:
    """Values with their points and their known noise; see the module's table."""

    X: Tensor
    y: Tensor
    std: Tensor

    def only(self, rows: Tensor) -> "Values":
        """Those of some rows."""
        return Values(self.X[rows], self.y[rows], self.std[rows])


@dataclass(frozen=True)
class FittedModel:
    """The result of a fit.

    Attributes:
        scaler: the scaling of the values.
        kernel: the kernel.
        noise: noise variance lam, standardised units squared.
        noise_is_fitted: whether that is the result of a fit of unknown noise alone.
        observations: the rows, standardised.
        is_constant: whether the points explain nothing of the values; for a limit, whether a constant with noise
            explains them better. The default kernel of an objective is then an assumed one, see `_assumed`.
        outliers: weights of the rows that were left out of the fit, by row.
    """

    scaler: Scaler
    kernel: Kernel
    noise: float
    noise_is_fitted: bool
    observations: Observations
    is_constant: bool
    outliers: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ScaledValues:
    """What kernel and noise are fitted to.

    Attributes:
        scaler: the scaling of the values.
        data: the standardised values at unique points.
        noise: noise variance at the start of a fit, standardised units squared.
        fit_noise: whether it is fitted.
        noise_is_fitted: whether that is the result of a fit of unknown noise alone.
        may_be_warped: whether warped values may be a better choice.
    """

    scaler: Scaler
    data: FitData
    noise: float
    fit_noise: bool
    noise_is_fitted: bool
    may_be_warped: bool


@dataclass(frozen=True)
class Fitter:
    """How the surrogate of a quantity is fitted.

    Attributes:
        options: options of the model.
        sign: +1 if larger is better, -1 if smaller is better.
        winsorised: whether very poor values are clipped; not for constraints and for one of several objectives, where
            the size of poor values matters.
        is_limit: whether the quantity is a constraint or failing; its noise is then fitted, since the noise of the
            user's surrogate is that of the objective.
        extended: whether extensions of the stationary kernel are compared; not for failing, which has two values only.
    """

    options: ModelOptions
    sign: float
    winsorised: bool
    is_limit: bool = False
    extended: bool = True

    @property
    def surrogate(self) -> Surrogate:
        """The surrogate without data."""
        given = self.options.surrogate
        return given.of_limits() if self.is_limit else given

    def fitted(
        self, values: Values, measured: Tensor, first_kernel: FirstKernel, rng: np.random.Generator
    ) -> FittedModel:
        """Scaling, kernel and noise for values, of which outliers are left out.

        Args:
            values: the values.
            measured: which of them were told, (n,); the others are substitutes for the values of pruned trials.
            first_kernel: the kernel at the start of a fit.
            rng: generator of the choice of subsets.
        """
        X, y, start = values.X, values.y, first_kernel(values.X)
        found = self._fitted(values, start, rng)
        if not self._looks_for_outliers(found, y):
            return found
        v, refit = found.scaler.transform(y), functools.partial(self._refitted, start)
        may_be = measured & occur_once(y)
        is_kept = without_outliers(X, v, may_be, found.kernel, found.noise, start, refit)
        if bool(is_kept.all()):
            return found
        found = self._fitted(values.only(is_kept), first_kernel(X[is_kept]), rng)
        return _with_outliers(found, X, y, may_be, is_kept)

    def _looks_for_outliers(self, found: FittedModel, y: Tensor) -> bool:
        """Whether single values may be outliers: not those of limits, nor beside known noise or none."""
        return not self.is_limit and found.noise_is_fitted and found.noise > NOISELESS and len(y) >= FEWEST_VALUES

    def _refitted(
        self, start: FittableKernel, observed: Observations, last: tuple[Kernel, float] | None
    ) -> tuple[Kernel, float, float]:
        """Kernel, noise variance and constant mean of a quick fit to standardised values, see `Refit`.

        It begins anew where the last kernel has ripples or other extensions, which may explain outliers.
        """
        rng = np.random.default_rng(observed.total)
        data = fit_data(observed, rng=rng)
        if last is None or type(last[0]) is not type(start):
            kernel, noise = replace(self, extended=False)._with_structure(data, start, DEFAULT_NOISE, True, rng)
        else:
            kernel, noise = fit_hyperparameters(data, *last, rng=rng, with_mean=True, settings=CONTINUED)
        return kernel, noise, constant_mean(observed, kernel, noise, rng=rng)

    def _fitted(self, values: Values, start: FittableKernel, rng: np.random.Generator) -> FittedModel:
        """`fitted` with all values."""
        y, scaled = values.y, self.scaled(values)
        scaler, fit_noise = scaled.scaler, scaled.fit_noise
        kernel, noise = self._with_structure(scaled.data, start, scaled.noise, fit_noise, rng)
        first: tuple[Kernel, float] = start, scaled.noise
        may_warp = scaled.may_be_warped and self._is_default(start)
        if may_warp and is_better_warped(values.X, y, scaler, (kernel, noise), first, fit_noise):
            scaler = scaler.warped(y)
            data = self._fit_data(scaler, values, noise)
            kernel, noise = self._with_structure(data, *first, fit_noise, rng)
        fitted_scaler, observations = self._with_mean(scaler, values, kernel, noise, rng)
        informative = values.only(is_informative(y, values.std))  # the others are clipped, and would decide
        told = self._observed(fitted_scaler, informative, noise)
        is_constant = self._is_constant(told, kernel, noise)
        if is_constant and self.winsorised and self._is_default(start) and bool((y != y[0]).any()):
            kernel, noise = _assumed(start, noise, fit_noise)
            fitted_scaler, observations = self._with_mean(scaler, values, kernel, noise, rng)
        return FittedModel(fitted_scaler, kernel, noise, scaled.noise_is_fitted, observations, is_constant)

    def scaled(self, values: Values) -> "ScaledValues":
        """The data of a fit to values that are not warped."""
        y, std = values.y, values.std
        known, counts = torch.isfinite(std), is_informative(y, std)
        scaler = Scaler.from_values(y[counts], self.sign, winsorised=self.winsorised, with_zero=self.is_limit)
        noise, fit_noise = self._first_noise(scaler, std)
        noise_is_fitted = fit_noise and not bool(known.any())
        if fit_noise and bool(known.any()):
            data = FitData.partly_known(values.X, scaler.transform(y), scaler.noises(std))
        else:
            data = self._fit_data(scaler, values, noise)
        unknown = noise_is_fitted or (self.options.deterministic and bool(counts.all()))
        may_be_warped = not self.is_limit and unknown and len(y) >= FEWEST
        return ScaledValues(scaler, data, noise, fit_noise, noise_is_fitted, may_be_warped)

    def warped(self, scaled: "ScaledValues", values: Values) -> tuple["ScaledValues", float]:
        """The same with warped values, and the sum J that their evidence lacks."""
        scaler = scaled.scaler.warped(values.y)
        data = self._fit_data(scaler, values, scaled.noise)
        change = log_slopes(scaler, data) - log_slopes(scaled.scaler, scaled.data)
        return replace(scaled, scaler=scaler, data=data), change

    def _is_constant(self, observations: Observations, kernel: Kernel, noise: float) -> bool:
        """Whether the points explain nothing of the values; for a limit, whether a constant explains them better."""
        if not self.is_limit and observations.total < FEWEST_FLAT:
            return False
        return gain_over_constant(observations, kernel, noise) < (-AT_RANDOM if self.is_limit else EXPLAINED)

    def contradiction(self, values: Values) -> float | None:
        """Standard deviation of the measured values of one point, user's units, if it contradicts `deterministic`."""
        options, X, y, std = self.options, values.X, values.y, values.std
        is_used = options.deterministic and options.fit and (self.is_limit or not self.surrogate.fixed_noise)
        rows = torch.isfinite(y) & ~torch.isfinite(std)
        if not is_used or not bool(rows.any()):
            return None
        scaler = Scaler.from_values(y[rows], self.sign, winsorised=self.winsorised, with_zero=self.is_limit)
        v, observed = scaler.transform(y[rows]), Observations(X.shape[1])
        observed.add(X[rows], v)
        n_repeats, within = observed.total - len(observed), observed.within
        if not n_repeats or within / n_repeats <= DETERMINISTIC:
            return None
        return float(scaler.widths(v.new_tensor([(within / n_repeats) ** 0.5]), v.median()))

    def with_noise(self) -> "Fitter":
        """The fitter of values that are not `deterministic`."""
        return replace(self, options=replace(self.options, deterministic=False))

    def weights(self, scaler: Scaler, std: Tensor, lam: float) -> Tensor | None:
        """Weights lam / known noise variance (n,), 1 for unknown noise; None if no noise is known."""
        known = torch.isfinite(std)
        if not bool(known.any()):
            return None
        noises = scaler.noises(std).clamp_min(DETERMINISTIC) if self.options.fit else std.square()
        return torch.where(known, (lam / noises).clamp(*WEIGHTS), 1.0)

    def prefers_noise(self, observations: Observations, kernel: Kernel, noise: float, start: FittableKernel) -> bool:
        """Whether the evidence for the fitted kernel and noise variance is larger than for a model without noise.

        Args:
            observations: the data of the fit, standardised.
            kernel: the fitted kernel.
            noise: the fitted noise variance, standardised units squared.
            start: the kernel at the start of a fit.
        """
        free, _ = self._with_structure(observations, start, FREE_OF_NOISE, False, np.random.default_rng(0))
        data = FitData.of(observations)
        return log_evidence(data, kernel, noise) > log_evidence(data, free, FREE_OF_NOISE) + EVIDENCE

    def _first_noise(self, scaler: Scaler, std: Tensor) -> tuple[float, bool]:
        """The noise variance at the start of a fit, and whether it is fitted."""
        given = self.surrogate
        if given.fixed_noise and not self.is_limit:
            return scaler.noise(given.noise**0.5), False
        if self.options.deterministic:
            return DETERMINISTIC, False
        if bool(torch.isfinite(std).all()):
            return max(scaler.noise(float(std.median())), DETERMINISTIC), False
        return DEFAULT_NOISE, True

    def first_kernel(self, X: Tensor, categorical: tuple[int, ...], constant: tuple[int, ...]) -> FittableKernel:
        """The kernel at the start of a fit to values at `X (n, d)`: the user's, or the default.

        `categorical` columns hold category codes. Of `constant` ones, in which all points of the search are the same,
        the default kernel has none.
        """
        given = self.surrogate
        if not given.has_kernel:
            varying = [j for j in categorical if j not in constant]
            return matern52(X.shape[1], categorical=varying, inactive=constant)
        kernel = placed(given.kernel, CPU)
        return kernel if is_fittable(kernel) else ScaledKernel.start(kernel, X)

    def _is_default(self, kernel: Kernel) -> TypeGuard[ARDKernel]:
        """Whether the kernel is the default one, whose structure may be chosen."""
        given = self.surrogate
        return isinstance(kernel, ARDKernel) and not given.has_kernel and given.takes_structure

    def _with_structure(
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

    def _fit_data(self, scaler: Scaler, values: Values, noise: float) -> FitData:
        """What kernel and noise are fitted to.

        A least noise is for single objectives. Limits are modelled without it, and one of several objectives with few
        kinds of values, such as a size, often is a known function of a parameter.
        """
        data = FitData.of(self._observed(scaler, values, noise))
        return replace(data, least_noise=least_noise(values.y, len(data.U))) if self.winsorised else data

    def _with_mean(
        self, scaler: Scaler, values: Values, kernel: Kernel, noise: float, rng: np.random.Generator
    ) -> tuple[Scaler, Observations]:
        """The scaler whose zero is the constant mean under kernel and noise, and the rows as it standardises them."""
        scaler = scaler.shifted(constant_mean(self._observed(scaler, values, noise), kernel, noise, rng=rng))
        return scaler, self._observed(scaler, values, noise)

    def _observed(self, scaler: Scaler, values: Values, noise: float) -> Observations:
        observations = Observations(values.X.shape[1])
        observations.add(values.X, scaler.transform(values.y), self.weights(scaler, values.std, noise))
        return observations


def _assumed(start: ARDKernel, noise: float, fit_noise: bool) -> tuple[ARDKernel, float]:
    """Kernel and noise variance of an objective that the points do not explain, standardised units squared.

    The fitted kernel has hardly any variance or endless lengthscales, and does not tell good points from others. With
    this one points with good values, and points near them, are the best ones until further values refute that.
    """
    log_lengthscale = start.log_lengthscale + math.log(ASSUMED_LENGTHSCALE)
    log_outputscale = torch.full_like(start.log_outputscale, math.log(1.0 - ASSUMED_NOISE))
    kernel = replace(start, log_lengthscale=log_lengthscale, log_outputscale=log_outputscale)
    return kernel, ASSUMED_NOISE if fit_noise else noise


def _with_outliers(found: FittedModel, X: Tensor, y: Tensor, may_be: Tensor, is_kept: Tensor) -> FittedModel:
    """A model that was fitted to the kept values, with the others.

    An outlier has the noise variance that has the largest likelihood, the square of its distance from its prediction.
    """
    v = found.scaler.transform(y)
    judged = judge(X, v, may_be, is_kept, found.kernel, found.noise)
    is_outlier = judged.is_outlier & ~is_kept & ~judged.is_unchecked
    weight = torch.where(is_outlier, (found.noise / judged.away.square()).clamp_max(1.0), 1.0)
    observations = Observations(X.shape[1])
    observations.add(X, v, weight)
    outliers = {row: float(weight[row]) for row in is_outlier.nonzero()[:, 0].tolist()}
    return replace(found, observations=observations, outliers=outliers)
