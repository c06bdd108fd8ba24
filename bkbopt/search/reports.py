"""What the search reports: records for people and plots."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Diagnostics", "Recommendation", "RegretCertificate"]


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """One ask.

    Attributes:
        trial: id of the trial it gave.
        t: values told by then.
        ask_seconds: wall-clock time of the ask.
        m: inducing points; None while the start-up design lasts, as all below.
        effective_dimension: a bound of d_eff from above; see `confidence.ScheduleContext`.
        beta: width of the confidence, in standard deviations.
        noise_sd: standard deviation of the noise, fitted or given, user's units.
        regret_bound: largest UCB - largest LCB, user's units: an upper bound on what is left to gain, if the model and
            beta hold. None for coordinate perturbations; with trials pending or failed, several objectives or
            constraints, when something else is maximised; and where duplicates are avoided or values are held, when
            the search leaves points out.
    """

    trial: int
    t: int
    ask_seconds: float = 0.0
    m: int | None = None
    effective_dimension: float | None = None
    beta: float | None = None
    noise_sd: float | None = None
    regret_bound: float | None = None


@dataclass(frozen=True)
class Recommendation:
    """The point to use.

    Attributes:
        params: its parameters.
        index: its row in the pool, or None.
        mean: posterior mean of its noise-free value, user's units.
        std: posterior standard deviation of that value, user's units.
    """

    params: Mapping[str, Any]
    index: int | None
    mean: float
    std: float


@dataclass(frozen=True)
class RegretCertificate:
    """How much better than the point named the optimum can be.

    It holds where the confidence band does: with probability 1 - delta under a theory preset (kernel and noise right,
    norm bound true), and as a rule of thumb where beta is practical or the kernel fitted.

    Attributes:
        bound: largest UCB - largest LCB, user's units.
        params: the point with the largest LCB.
        index: its row in the pool, or None.
        beta: width of the confidence used.
    """

    bound: float
    params: Mapping[str, Any]
    index: int | None
    beta: float
