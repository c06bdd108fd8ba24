"""Importance of parameters: shares of the variance of the posterior mean (Sobol indices).

A lengthscale is not a measure of importance: it describes how fast the function varies along a column, not by how much.
A small ripple has a short lengthscale and hardly any variance, a steady slope a long lengthscale and most of it. Here
the parameters are drawn independently over the whole space, and the variance of the posterior mean is decomposed into
the parts of the parameters.

| symbol | shape  | units     | meaning                                                                     |
| ------ | ------ | --------- | --------------------------------------------------------------------------- |
| A, B   | (n, k) | -         | independent samples of the space, in the coordinates of `coordinates.py`    |
| AB_j   | (n, k) | -         | A with column j from B                                                      |
| f      | (n,)   | user's    | posterior mean                                                              |

    first_j = Var(E[f | x_j]) / Var(f)         = E[f(B) (f(AB_j) - f(A))] / Var(f)      (Saltelli et al. 2010)
    total_j = E[Var(f | all but x_j)] / Var(f) = E[(f(A) - f(AB_j))^2] / (2 Var(f))     (Jansen 1999)
"""

from dataclasses import dataclass

import numpy as np

from bkbopt._support.checks import check_count
from bkbopt._support.settings import in_usual_settings
from bkbopt.analysis.coordinates import coordinates_of
from bkbopt.analysis.run_data import as_optimizer, predicted, told
from bkbopt.optimizer import Optimizer

__all__ = ["Share", "variance_shares"]

#: Deviation of a posterior mean that counts as flat, as a fraction of the range of the values between their deciles: a
#: single 1e10 among numbers of order one is clipped by the model.
FLAT = 1e-10


@dataclass(frozen=True)
class Share:
    """Sobol indices of a parameter: its shares of the variance of the posterior mean.

    Attributes:
        first: first-order index, the share of the parameter alone, 0 to 1.
        total: total index, 0 to 1; total - first is the share of its interactions with other parameters.
    """

    first: float
    total: float


@in_usual_settings
def variance_shares(opt: Optimizer, *, n_samples: int = 2048) -> dict[str, Share]:
    """Sobol indices of the posterior mean over the space, by parameter; see the module's text.

    The parameters are uniform in the space's own scales; columns of a pool are drawn independently from its arms. The
    posterior mean is flat in regions without data, whatever the black box does there. If it is flat everywhere, or
    explains nothing of the values, all shares are 0. A conditional parameter contributes where it is active.

    Args:
        opt: an optimizer with at least one value.
        n_samples: number n of independent samples; the mean is computed at n (k + 2) points, and the error falls at
            least as 1 / sqrt(n).

    Raises:
        ArgumentTypeError: `opt` is not an optimizer.
        ArgumentError: a pool of objects, no parameter varies, or several objectives.
        NotReadyError: there are no values yet.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import analysis
        >>> space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
        >>> opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], space, n_trials=12, seed=0)
        >>> shares = analysis.variance_shares(opt, n_samples=256)
        >>> shares["y"].total > shares["x"].total
        True
    """
    opt, n_samples = as_optimizer(opt), check_count("n_samples", n_samples, 2)
    y = told(opt).y
    spread = float(np.ptp(np.quantile(y, [0.1, 0.9])) or np.ptp(y))
    coordinates = coordinates_of(opt)
    A, B = coordinates.shuffled(n_samples)
    f_A, f_B = (predicted(opt, coordinates.encoded(U))[0] for U in (A, B))
    center, scale = f_A.mean(), max(float(np.abs(f_A).max()), float(np.finfo(float).tiny))
    f_A, f_B = (f_A - center) / scale, (f_B - center) / scale
    variance = float(np.concatenate([f_A, f_B]).var())
    # A smaller deviation is that of a flat mean with rounding errors, of the model or of numbers of its size.
    flat = max(FLAT * spread / scale, float(8.0 * np.finfo(float).eps))
    dimensions = coordinates.dimensions(2)
    if variance**0.5 < flat or opt.explains_nothing:
        return {dimension.name: Share(0.0, 0.0) for dimension in dimensions}
    shares = {}
    for dimension in dimensions:
        U = A.clone()
        U[:, dimension.column] = B[:, dimension.column]
        f = (predicted(opt, coordinates.encoded(U))[0] - center) / scale
        first = float((f_B * (f - f_A)).mean()) / variance
        total = min(float(((f_A - f) ** 2).mean()) / (2.0 * variance), 1.0)
        shares[dimension.name] = Share(min(max(first, 0.0), total), total)
    return shares
