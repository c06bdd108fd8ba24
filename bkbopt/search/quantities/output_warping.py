"""The decision, by evidence, whether values are warped: transformed by a logarithm, see `scaling.py`.

| symbol | shape  | units  | meaning                                                            |
| ------ | ------ | ------ | ------------------------------------------------------------------ |
| X      | (n, d) | enc.   | points                                                             |
| y      | (n,)   | user's | values; v are the transformed ones                                 |
| J      | (n,)   | -      | log dv / dy, up to a constant                                      |

Losses of models are often noisier, and steeper, the worse they are. A kernel on the untransformed values fits this as
ripples. The criterion log p(v) + sum J is compared on the same points for two models: the fitted kernel, with its
structure, on untransformed values, and a stationary kernel on warped values. Where both models are wrong their
difference grows with the number of values; the margin therefore grows with it, too. Few values, most of which are poor,
gain by a logarithm on almost any function with a steep side, and values over decades far more. Values without noise
gain by it once many are so close to the best that the least noise of a fit hides their differences.
"""

import numpy as np
from torch import Tensor

from bkbopt.kernels import ARDKernel, Kernel
from bkbopt.posterior.observations import Observations
from bkbopt.search.quantities.scaling import NOISELESS, Scaler
from bkbopt.surrogates.fit import Fit, FitSettings, fit_from
from bkbopt.surrogates.fit_data import FitData
from bkbopt.surrogates.structure import COMPARED, stationary_start

__all__ = ["FEWEST", "is_better_warped", "log_slopes", "required_gain"]

#: With fewer values there is no transformation: their quartiles are too uncertain.
FEWEST = 8
#: Required gain of the evidence for each of the compared values.
MARGIN = 0.2
#: The same for few values, up to a gain of `EARLY_GAIN` in all.
EARLY_MARGIN, EARLY_GAIN = 0.5, 20.0
#: The same for values that are measured without noise.
NOISELESS_MARGIN = 1.0
#: A lengthscale is that of spikes if it is shorter, in ranges of the column.
SPIKE = 0.01
#: A fit to warped values that lacks more than this after a few iterations is given up.
HOPELESS = 10.0
#: A fit that gives a lower bound of the evidence.
ONE = FitSettings(max_iterations=1)


def is_better_warped(
    X: Tensor,
    y: Tensor,
    scaler: Scaler,
    fitted: tuple[Kernel, float],
    start: tuple[Kernel, float],
    fit_noise: bool,
) -> bool:
    """Whether the evidence for warped values is larger, by the margin, than that for untransformed values.

    Args:
        X: encoded points.
        y: values, user's units.
        scaler: the scaler without the transformation.
        fitted: the kernel and the noise variance that were fitted to the untransformed values.
        start: the stationary kernel and the noise variance at the start of a fit; the inactive columns of the fitted
            kernel are inactive in both models.
        fit_noise: whether the noise is fitted.
    """

    def compared(scaler: Scaler) -> tuple[FitData, float]:
        """The transformed values at the points of the comparison, the same for both, and sum J."""
        observations = Observations(X.shape[1], X.device)
        observations.add(X, scaler.transform(y))
        data = FitData.of(observations).subset(COMPARED, np.random.default_rng(len(y)))
        return data, log_slopes(scaler, data)

    def fit(data: FitData, model: tuple[Kernel, float], settings: FitSettings | None = None) -> Fit:
        return fit_from(data, *model, fit_noise=fit_noise, with_mean=True, settings=settings)

    (data, slopes), (warped, warped_slopes) = compared(scaler), compared(scaler.warped(y))
    # What the fit to warped values has to exceed. One iteration gives a lower bound of the evidence for untransformed
    # values, which decides most cases.
    required = slopes - warped_slopes + required_gain(min(len(y), COMPARED), fitted[1])
    lower = fit(data, fitted, ONE).value + required
    stationary = stationary_start(fitted[0], start[0]), start[1]
    found = fit(warped, stationary, FitSettings(least=lower - HOPELESS))
    if found.value <= lower or (fitted[1] <= NOISELESS and _has_spikes(found.kernel)):
        return False
    return found.value > fit(data, fitted).value + required


def _has_spikes(kernel: Kernel) -> bool:
    """Whether a stationary kernel has a lengthscale so short that different points are hardly correlated.

    Where a search without noise has converged, the logarithm has a spike at each of the best points. A model of spikes
    has much evidence, and its mean is constant elsewhere.
    """
    return isinstance(kernel, ARDKernel) and bool((kernel.lengthscale < SPIKE).any())


def log_slopes(scaler: Scaler, data: FitData) -> float:
    """Sum J over all evaluations of the data."""
    return float((data.n * scaler.log_slopes(data.ybar)).sum())


def required_gain(n: int, noise: float) -> float:
    """The required gain of the evidence of `n` compared values; `noise` is that of the fit to untransformed values."""
    margin = NOISELESS_MARGIN if noise <= NOISELESS else MARGIN
    return max(margin * n, min(EARLY_MARGIN * n, EARLY_GAIN))
