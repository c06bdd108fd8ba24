"""Whether values are better bent, see `scaling.py`: by evidence.

| symbol | shape  | units  | meaning                                                            |
| ------ | ------ | ------ | ------------------------------------------------------------------ |
| X      | (n, d) | enc.   | points                                                             |
| y      | (n,)   | user's | values; v are the same standardised                                |
| J      | (n,)   | -      | log dv / dy, up to a constant                                      |

Losses of models are often noisier, and steeper, the worse they are. A kernel of values as they are takes that for
ripples. Compared are log p(v) + sum J, on the same points, of the kernel that was fitted to the values as they are,
structure and all, and of a stationary kernel of bent ones. What a kernel gains that fits neither grows with the number
of values, and so does what has to be gained.
"""

import numpy as np
from torch import Tensor

from bkbopt.kernels import Kernel
from bkbopt.posterior.observations import Observations
from bkbopt.search.scaling import Scaler
from bkbopt.surrogates.fit import FitData, fit_from
from bkbopt.surrogates.structure import COMPARED

__all__ = ["FEWEST", "is_better_bent"]

#: Fewer values are left as they are.
FEWEST = 100
#: What the evidence must gain by each value compared.
MARGIN = 0.2


def is_better_bent(
    X: Tensor,
    y: Tensor,
    scaler: Scaler,
    fitted: tuple[Kernel, float],
    start: tuple[Kernel, float],
    fit_noise: bool,
) -> bool:
    """Whether the values `y (n,)` at `X (n, d)` are explained better where the scaler bends them.

    Args:
        X: encoded points.
        y: values, user's units.
        scaler: of the values as they are.
        fitted: the kernel and the noise variance that were fitted to these.
        start: the stationary kernel and the noise variance that a fit begins with.
        fit_noise: whether the noise is fitted.
    """

    def evidence(scaler: Scaler, kernel: Kernel, noise: float) -> float:
        observations = Observations(X.shape[1], X.device)
        observations.add(X, scaler.transform(y))
        data = FitData.of(observations).subset(COMPARED, np.random.default_rng(len(y)))  # the same points for both
        value = fit_from(data, kernel, noise, fit_noise=fit_noise, with_mean=True).value
        return value + float((data.n * scaler.log_slopes(data.ybar)).sum())

    gain = evidence(scaler.bent(y), *start) - evidence(scaler, *fitted)
    return gain > MARGIN * min(len(y), COMPARED)
