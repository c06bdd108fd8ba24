"""Whether a second evaluation of a point is expected to give another value.

If the user states the noise of most values, it decides; otherwise repeats decide if there are any. Repeats with equal
values decide that there is no noise, unless they may be equal by chance, as pass and fail are. Where no repeats decide,
the values of the last fit are tested for noise, if there are at most `TEST_UP_TO` points. With more points the answer
is yes, so that a repeat is made, which then decides.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from bkbopt.kernels.base import placed
from bkbopt.posterior.observations import Observations
from bkbopt.search.quantities.fitting import CPU, FREE_OF_NOISE, FirstKernel, Fitter
from bkbopt.surrogates import Surrogate

__all__ = ["Noisiness"]

#: Up to this number of unique points noise is tested by a fit without noise; with more, a repeat is a better test.
TEST_UP_TO = 50
#: Largest probability with which repeats that decide may be equal by chance, and points from which it is estimated.
CHANCE, ESTIMATED_FROM = 0.05, 500


@dataclass
class Noisiness:
    """The decision whether values have noise; see the module's text.

    Args:
        fitter: how the surrogate was fitted.
        surrogate: the surrogate, to which rows may be added.
        mark: number of rows of the fit.
        first_kernel: the kernel at the start of a fit.
    """

    fitter: Fitter
    surrogate: Surrogate
    mark: int
    first_kernel: FirstKernel
    _is_told: bool | None = field(init=False, default=None)
    _is_tested: bool | None = field(init=False, default=None)

    def follow(self, noises: Tensor) -> None:
        """Read the noise variances `(n,)` that were told with the values of all rows, y squared; NaN for none.

        The typical one counts: a single wrong value may have been given a large one.
        """
        known = noises[torch.isfinite(noises)]
        self._is_told = bool(known.median() > FREE_OF_NOISE) if 2 * len(known) > len(noises) else None

    def is_noisy(self) -> bool:
        """Whether there is noise; it may make a fit."""
        if self._stated is not None:
            return self._stated
        surrogate = self.surrogate
        obs, kernel, noise = surrogate.observations.to(CPU), placed(surrogate.kernel, CPU), surrogate.noise
        if obs.total > len(obs):
            is_seen = obs.within > 1e-9 * max(obs.Y2, 1e-300)
            if is_seen or _equal_by_chance(obs) <= CHANCE:
                return is_seen
        if len(obs) > TEST_UP_TO:
            return True
        if noise <= FREE_OF_NOISE:
            return False
        if self._is_tested is None:
            fitted = Observations(obs.dim)
            # Without repeats, but for few, rows and points are the same.
            fitted.add(obs.X[: self.mark], (obs.s / obs.n)[: self.mark], obs.n[: self.mark])
            self._is_tested = self.fitter.prefers_noise(fitted, kernel, noise, self.first_kernel(fitted.X))
        return self._is_tested

    @property
    def is_found_noiseless(self) -> bool:
        """Whether `is_noisy` is known to be false without a new fit."""
        if self._stated is not None:
            return not self._stated
        obs, is_free = self.surrogate.observations, self.surrogate.noise <= FREE_OF_NOISE
        return obs.total == len(obs) <= TEST_UP_TO and (is_free or self._is_tested is False)

    @property
    def awaits_repeat(self) -> bool:
        """Whether a first repeat of a point is to decide whether there is noise."""
        obs = self.surrogate.observations
        return self._stated is None and obs.total == len(obs) > TEST_UP_TO

    @property
    def _stated(self) -> bool | None:
        """Whether values have noise as the user states it; None if nothing is stated."""
        if self.fitter.options.deterministic or self._is_told is not None:
            return not self.fitter.options.deterministic and self._is_told
        is_given = self.surrogate.fixed_noise and not self.fitter.is_limit
        return self.surrogate.noise > FREE_OF_NOISE if is_given else None


def _equal_by_chance(observations: Observations) -> float:
    """The probability that all repeats are equal to a first value although the values of a point are random.

    It is estimated as if they were drawn from the values of the other points: by the share of those that are equal.
    """
    means = torch.round(observations.s / observations.n, decimals=9)
    rows = observations.repeats.nonzero()[:ESTIMATED_FROM, 0]
    others = means[:ESTIMATED_FROM]
    is_other = (rows < len(others)).double()
    equal = (means[rows, None] == others).double().sum(1) - is_other
    share = equal / (len(others) - is_other).clamp_min(1.0)
    return float((share ** observations.repeats[rows]).prod())
