"""A schedule that grows with the logarithm of the number of evaluations."""

import math
from dataclasses import dataclass

from bkbopt.confidence import ScheduleContext

__all__ = ["Growing"]


@dataclass(frozen=True)
class Growing:
    """beta = scale * sqrt(log(1 + t)).

    Example:
        >>> from bkbopt.confidence import ScheduleContext
        >>> now = ScheduleContext(t=200, dim=3, n_arms=1000, lam=0.01, kappa2=1.0, effective_dimension=25.0)
        >>> round(Growing()(now), 2)
        2.3
    """

    scale: float = 1.0

    def __call__(self, context: ScheduleContext) -> float:
        """See `Confidence`."""
        return self.scale * math.sqrt(math.log1p(context.t))
