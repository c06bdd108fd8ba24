"""Choice of the kernel's structure by evidence.

| symbol | shape  | units   | meaning                                                              |
| ------ | ------ | ------- | -------------------------------------------------------------------- |
| U      | (u, d) | enc.    | unique points                                                        |
| g      | (u, c) | y/enc.  | gradients of the posterior mean at U, by the c numeric columns       |
| R      | (d, d) | -       | rotation of the numeric columns                                      |

A single stationary kernel with a lengthscale for each column is a bad prior for many black boxes. At each fit it is
compared with three extensions, and with the first two together:

- rotated: lengthscales along the eigenvectors of the mean outer product of gradients (Constantine et al. 2014, "active
  subspaces") of the posterior mean; this is repeated a few times with the posterior mean of the new kernel;
- additive: the kernel plus a sum of one-column kernels (`ColumnsKernel`);
- with ripples: the kernel plus a stationary kernel with short lengthscales and a small variance.

With many columns there are too few points to determine a rotation, and a sum over columns would take most of the time
of a fit and of a suggestion. Compared are then

- of few columns: a kernel of the k columns with the shortest lengthscales, the others inactive, for several k;
- a trend (`SphericalKernel`) beside the best of these kernels.

The evidence of a kernel is its log posterior density at the maximum (`Fit.value`). Another kernel has to be better by a
margin that grows with its free parameters: a rotation of c columns has c (c - 1) / 2 angles without priors. There are
c! / (k! (c - k)!) choices of k columns, all equally likely a priori, as are all k; and with few points the maximum over
k lengthscales overstates the evidence, by about one unit each.

Kernels are compared on a few points, and the best one is fitted to more. Where noise dominates, the last fit is to all
values at merged points, see `FitData.merged`, unless the evidence at single points falls by more than `DOUBT`.
"""

import logging
import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bkbopt.kernels import ARDKernel, ColumnsKernel, Kernel, RotatedKernel, SphericalKernel, SumKernel, matern52
from bkbopt.kernels.base import KernelT, noisy_gram
from bkbopt.posterior.linalg import eigh, safe_cholesky
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.fit import Fit, FitSettings, fit_data, fit_from, log_evidence
from bkbopt.surrogates.fit_data import MANY, FitData

__all__ = ["COMPARED", "FEWEST", "fit_stationary", "fit_structure", "stationary_start", "structure_evidence"]

log = logging.getLogger(__name__)

#: With fewer unique points only the stationary kernel is fitted.
FEWEST = 20
#: Kernels are compared on at most this many points; the chosen one is then fitted to all, unless the stationary one has
#: the larger evidence there.
COMPARED = 200
#: Largest number of successive rotations, each from the posterior mean under the last one.
ROTATIONS = 3
#: Required gain of the evidence: for each angle of a rotation, for a sum with a second kernel.
ANGLE_MARGIN, SUM_MARGIN = 1.0, 3.0
#: Required gain of ripples. Of draws from a stationary kernel with noise none gains more than 3.1.
RIPPLE_MARGIN = 6.0
#: Factors of the ripples' lengthscales and variance at the start of a fit, and of the modes of their priors; scale of
#: the prior of the logarithm of their variance.
SHORTER, SMALLER, SHORTER_MODE, HEIGHT_SCALE = 1.0 / 3.0, 0.1, 0.25, 1.5
#: Logarithm of the ratio of the ripples' longest and median lengthscales from which the longest count as flat.
FLAT = 2.0
#: Share of its required gain that a first rotation must have for further ones to be tried.
PROMISING = 0.25
#: Required gain of a kernel of few columns, in addition to the logarithm of the number of choices: for each column, and
#: for all of them. With fewer unique points than this no columns are chosen.
COLUMN_MARGIN, FEW_MARGIN, FEWEST_FOR_COLUMNS = 1.0, 3.0, 50
#: Noise variance, standardised, from which a second fit starts.
NOISY = 0.5
#: Iterations of the last fit, which starts from the result of the comparison; 50 gained another 0.4 at twice the cost.
AGAIN = 15
#: With more unique points than this the best of TRIES fits to different subsets is taken, by the evidence of JUDGED
#: points, and continued on these. A subset of 400 decides little among thousands, so that one fit may have a wrong
#: structure, and lengthscales that miss ripples.
SEVERAL, TRIES, JUDGED = 2_000, 3, 800
#: Noise variance, standardised, from which the last fit is to all values, at merged points; see `FitData.merged`.
MERGED_FROM = 0.25
#: Loss of evidence at JUDGED points up to which that fit is taken: half of them may be those of the fit before it, and
#: speak for that one. Ripples that are lost in the means of groups cost far more.
DOUBT = 6.0
#: Least gain of a further rotation, and of the second fit.
PROGRESS = 0.1


def fit_structure(
    observations: Observations | FitData,
    kernel: ARDKernel,
    noise: float,
    *,
    fit_noise: bool,
    rng: np.random.Generator,
    extended: bool = True,
) -> tuple[Kernel, float]:
    """A structured kernel and the noise variance, fitted with an unknown constant mean.

    Args:
        observations: the data, standardised; see `fit_hyperparameters`.
        kernel: the start.
        noise: noise variance at the start, y squared.
        fit_noise: whether the noise is fitted too.
        rng: generator for the choice of subsets.
        extended: whether extensions are compared with the stationary kernel.
    """
    whole = FitData.of(observations)
    is_large = len(whole.U) > SEVERAL
    subsets = (fit_data(whole, rng=rng) for _ in range(TRIES if is_large else 1))
    fits = [_fitted(data, kernel, noise, fit_noise, rng, extended) for data in subsets]
    chosen = fits[0]
    if is_large:
        comparison = whole.subset(JUDGED, rng)
        best = max(fits, key=lambda fit: _evidence(comparison, fit))
        chosen = _continued(comparison, best, fit_noise)
    if fit_noise and chosen.noise > MERGED_FROM and _can_be_merged(whole, kernel):
        merged = _continued(whole.merged(FitSettings().max_points, rng), chosen, fit_noise)
        comparison = whole.subset(JUDGED, rng)
        if _evidence(comparison, merged) > _evidence(comparison, chosen) - DOUBT:
            chosen = merged
    log.debug("structure of %d points: %s", len(whole.U), chosen.kernel)
    return chosen.kernel, chosen.noise


def _can_be_merged(data: FitData, kernel: ARDKernel) -> bool:
    """Whether a fit would leave points out, whose means are points: not of codes, nor among points all far apart."""
    is_numeric = not kernel.categorical and len(kernel.numeric) <= MANY
    return is_numeric and data.known is None and len(data.U) > FitSettings().max_points


def fit_stationary(data: FitData, kernel: ARDKernel, noise: float, *, fit_noise: bool) -> Fit:
    """The fit of the stationary kernel to all `data`; the arguments are those of `fit_structure`."""
    return _Search(data, kernel, noise, fit_noise).plain()


def structure_evidence(data: FitData, kernel: ARDKernel, noise: float, plain: Fit, *, fit_noise: bool) -> float:
    """The evidence of the best structure for all `data`, less its margin; `plain` is what `fit_stationary` gives."""
    if len(data.U) < FEWEST:
        return plain.value
    margin, best = _Search(data, kernel, noise, fit_noise).best(plain)
    return best.value - margin


def _fitted(
    data: FitData, kernel: ARDKernel, noise: float, fit_noise: bool, rng: np.random.Generator, extended: bool
) -> Fit:
    """The best structure for a part of the points, fitted to all of them."""
    if len(data.U) < FEWEST:
        return _Search(data, kernel, noise, fit_noise).plain()
    few = data.subset(COMPARED, rng)
    search = _Search(few, kernel, noise, fit_noise)
    plain = search.plain()
    margin, chosen = search.best(plain) if extended else (0.0, plain)
    if few is data:
        return chosen
    found = _continued(data, chosen, fit_noise)
    if chosen is plain or _evidence(data, chosen) > _evidence(data, plain) + margin:
        return found
    # In a search that has settled most of the few points are in one place, which may be a ridge where the whole is not.
    stationary = _continued(data, plain, fit_noise)
    return found if found.value > stationary.value + margin else stationary


def _evidence(data: FitData, fit: Fit) -> float:
    return log_evidence(data, fit.kernel, fit.noise)


def _continued(data: FitData, fit: Fit, fit_noise: bool) -> Fit:
    """A fit to more points that starts from the result of one to fewer points."""
    short = FitSettings(max_iterations=AGAIN)
    starts = [fit.kernel, *_level(fit.kernel)]
    fits = [fit_from(data, k, fit.noise, fit_noise=fit_noise, with_mean=True, settings=short) for k in starts]
    return max(fits, key=lambda found: found.value)


def _level(kernel: Kernel) -> list[Kernel]:
    """The kernel with equal lengthscales of its ripples, if these are flat in a column: few points do not show them."""
    trend, ripples = kernel.parts if isinstance(kernel, SumKernel) else (None, None)
    if trend is None or not isinstance(ripples, ARDKernel):
        return []
    lengths = ripples.log_lengthscale
    middle = lengths.quantile(0.5) if len(lengths) else lengths.sum()
    if not bool((lengths > middle + FLAT).any()):
        return []
    return [SumKernel((trend, replace(ripples, log_lengthscale=torch.full_like(lengths, float(middle)))))]


@dataclass(frozen=True)
class _Search:
    """The comparison of kernels; fits start from the kernel `start` and the noise variance `noise`."""

    data: FitData
    start: ARDKernel
    noise: float
    fit_noise: bool

    def fit(self, kernel: Kernel, noise: float, least: float = -math.inf) -> Fit:
        """A fit that is given up early if it has less than the log posterior `least`."""
        settings = FitSettings(least=least)
        return fit_from(self.data, kernel, noise, fit_noise=self.fit_noise, with_mean=True, settings=settings)

    def plain(self) -> Fit:
        """The stationary kernel, the better one of two fits that start with little and with much noise.

        From little noise a fit to noisy values may end at short lengthscales, which explain the noise.
        """
        quiet = self.fit(self.start, self.noise)
        noisy = self.fit(self.start, NOISY) if self.fit_noise else quiet
        return noisy if noisy.value > quiet.value + PROGRESS else quiet

    def best(self, plain: Fit) -> tuple[float, Fit]:
        """The gain that is required of the best kernel over `plain`, and its fit."""
        columns = list(self.start.numeric)
        if len(columns) > MANY:
            return 0.0, self.with_trend(self.of_few(plain, columns))
        found = [(0.0, plain)]  # pairs of margin and fit
        margin = ANGLE_MARGIN * len(columns) * (len(columns) - 1) / 2.0
        rotated = self.rotated(plain, columns, plain.value + PROMISING * margin)
        if rotated.value > plain.value + margin:
            found.append((margin, rotated))
        if len(columns) + len(self.start.categorical) > 1:
            found += [(margin + SUM_MARGIN, self.with_columns(fit)) for margin, fit in found]
            ripples = self.with_ripples(plain)
            # Ripples and noise are nearly alike where no point is repeated: the prior of the noise must not decide.
            gain = _log_prior_of_noise(ripples) - _log_prior_of_noise(plain)
            found.append((RIPPLE_MARGIN + max(gain, 0.0), ripples))
        return max(found, key=lambda pair: pair[1].value - pair[0])

    def with_columns(self, fit: Fit) -> Fit:
        """The kernel of `fit`, rotated or not, plus a sum over columns."""
        # The fit starts from the lengthscales of `start`: the fitted ones may be short because of ripples.
        base = replace(fit.kernel, base=self.start) if isinstance(fit.kernel, RotatedKernel) else self.start
        added = ColumnsKernel.start(self.start.dim, self.start.categorical, self.start.inactive)
        return self.fit(SumKernel((base, added)), max(self.noise, fit.noise), fit.value)

    def with_ripples(self, plain: Fit) -> Fit:
        """The stationary kernel plus ripples, a kernel of the same form."""
        return self.fit(SumKernel((self.start, _ripples(self.start))), self.noise, plain.value)

    def of_few(self, plain: Fit, columns: list[int]) -> Fit:
        """The best kernel of those `columns` that have the shortest lengthscales; `plain` if none is better."""
        assert isinstance(plain.kernel, ARDKernel)
        if len(self.data.U) < FEWEST_FOR_COLUMNS:
            return plain
        order = [columns[j] for j in plain.kernel.log_lengthscale.argsort(stable=True).tolist()]
        gains: dict[int, tuple[float, Fit]] = {}

        def compare(k: int) -> None:
            if k not in gains and 0 < k < len(order):
                inactive = sorted([*order[k:], *self.start.inactive])
                kernel = matern52(self.start.dim, categorical=self.start.categorical, inactive=inactive)
                fit = self.fit(kernel, plain.noise)
                margin = FEW_MARGIN + k * COLUMN_MARGIN + math.log(math.comb(len(order), k))
                gains[k] = fit.value - margin - plain.value, fit

        for power in range(len(order).bit_length()):
            compare(2**power)
        best = max(gains, key=lambda k: gains[k][0])
        compare(best * 3 // 4)
        compare(best * 3 // 2)
        gain, fit = max(gains.values(), key=lambda pair: pair[0])
        return fit if gain > 0.0 else plain

    def with_trend(self, best: Fit) -> Fit:
        """The better one of `best`, a stationary kernel, and of such a kernel of the same columns plus a trend."""
        stationary = stationary_start(best.kernel, self.start)
        trend = SphericalKernel.start(stationary.dim, (*stationary.categorical, *stationary.inactive))
        beside = self.fit(SumKernel((stationary, trend)), self.noise)
        return beside if beside.value > best.value + SUM_MARGIN else best

    def rotated(self, plain: Fit, columns: list[int], least: float) -> Fit:
        """The best of a few rotations; `plain` if none is better.

        There is a single one if its log posterior is below `least`.
        """
        best, kernel = plain, plain.kernel
        for _ in range(ROTATIONS if len(columns) > 1 else 0):
            assert isinstance(kernel, ARDKernel)
            found = self.fit(RotatedKernel(kernel, _rotation(self.data, best, columns)), best.noise, least)
            if found.value < best.value + PROGRESS:
                break
            assert isinstance(found.kernel, RotatedKernel)
            best, kernel = found, found.kernel.base
            if best.value < least:
                break
        return best


def _ripples(start: ARDKernel) -> ARDKernel:
    """Ripples at the start of a fit."""
    return replace(
        start,
        log_lengthscale=start.log_lengthscale + math.log(SHORTER),
        log_outputscale=start.log_outputscale + math.log(SMALLER),
        prior_loc=start.prior_loc + math.log(SHORTER_MODE),
        height_prior=(math.log(SMALLER), HEIGHT_SCALE),
    )


def _log_prior_of_noise(fit: Fit) -> float:
    """Log prior density of the noise variance, relative to its maximum."""
    settings = FitSettings()
    away = (math.log(fit.noise) - settings.noise_loc) / settings.noise_scale
    return -0.5 * away * away


def stationary_start(fitted: Kernel, start: KernelT) -> KernelT | ARDKernel:
    """The `start` of the fit of a stationary kernel, or one with the inactive columns of the `fitted` kernel."""
    base = fitted.parts[0] if isinstance(fitted, SumKernel) else fitted
    if not isinstance(base, ARDKernel) or not base.inactive:
        return start
    return matern52(base.dim, categorical=base.categorical, inactive=base.inactive)


def _rotation(data: FitData, fit: Fit, columns: list[int]) -> Tensor:
    """R: the eigenvectors of sum_i g_i g_i^T in `columns`, by decreasing eigenvalue."""
    kernel = fit.kernel
    with torch.no_grad():
        L = safe_cholesky(noisy_gram(kernel, data.U, fit.noise / data.n))
        a = torch.cholesky_solve(data.ybar[:, None], L)[:, 0]
    with torch.enable_grad():
        X = data.U.clone().requires_grad_(True)
        (g,) = torch.autograd.grad((kernel(X, data.U) @ a).sum(), X)
    index = torch.tensor(columns)
    g = g[:, index]
    R = torch.eye(data.U.shape[1], dtype=torch.float64, device=g.device)
    R[index[:, None], index] = eigh(g.T @ g)[1].flip(1)
    return R
