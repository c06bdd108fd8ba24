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
        noise_sd: standard deviation of the noise at the best known point, fitted or given, user's units.
        regret_bound: largest UCB - largest LCB, user's units. It costs nothing, and shows how the search settles; it
            is no certificate: the regret of the recommended point was larger in 193 of 520 readings of
            `python -m benchmarks.calibration`. See `Optimizer.regret_certificate`. None for perturbations;
            with trials pending or failed, several objectives or constraints, when something else is maximised; and
            where duplicates are avoided or values are held, when the search leaves points out.
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

    Attributes:
        bound: what the optimum exceeds the point's value by at most, with the `confidence`, user's units.
        params: the recommended point; under a theorem's schedule of beta the one with the largest LCB.
        index: its row in the pool, or None.
        confidence: with which the bound holds; None under a theorem's schedule of beta, whose delta says it.
        naive: largest UCB - largest LCB by the search's beta, user's units: under a theorem's schedule the bound, else
            no bound but a measure of progress.
        beta: width of the confidence of the search.
    """

    bound: float
    params: Mapping[str, Any]
    index: int | None
    confidence: float | None
    naive: float
    beta: float
