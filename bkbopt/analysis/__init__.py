"""Numbers behind the pictures of `bkbopt.plots`, without matplotlib: what the model says about parameters and values.

All functions take an optimizer with a single objective; of several, `Optimizer.single_objective` gives one. They change
nothing. Values beyond +-1e150 count as +-1e150: of larger ones neither differences nor squares are within floats.

- `variance_shares`: importance of the parameters, as Sobol indices of the posterior mean.
- `partial_dependence`: the posterior mean over one or two parameters, averaged over the others.
- `recommended_so_far`: posterior mean at the point that would have been recommended after each value.
- `coverage`: how many values are in the posterior's central intervals.

Slices of the posterior are predictions, see `Optimizer.predict`; what single values are worth is in
`Optimizer.residuals`.
"""

from bkbopt.analysis.dependence import Dependence, partial_dependence
from bkbopt.analysis.intervals import Coverage, coverage
from bkbopt.analysis.run_data import recommended_so_far
from bkbopt.analysis.sensitivity import Share, variance_shares

__all__ = [
    "Coverage",
    "Dependence",
    "Share",
    "coverage",
    "partial_dependence",
    "recommended_so_far",
    "variance_shares",
]
