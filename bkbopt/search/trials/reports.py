"""Records that the search reports to users and plots."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from bkbopt._support.showing import shown_record

__all__ = ["Diagnostics", "FrontPoint", "Recommendation", "RegretCertificate", "Residual"]


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Record of a suggestion; with several objectives, the numbers of the model are those of the first one.

    Attributes:
        trial: id of the trial.
        n_values: number of values at the time of the ask.
        ask_seconds: wall-clock time of the ask, divided by the number of its trials.
        n_inducing: number of inducing points; None, like all attributes below, where no model was used: during the
            start-up designs of the search and of restarts, later where the points explain nothing of the values, and
            for queued trials whose point was complete. In a restart these are numbers of its own models.
        effective_dimension: an upper bound of d_eff; see `confidence.ScheduleContext`.
        beta: width of the confidence bounds, in standard deviations; that of the suggestion, see `choosing.width_of`.
        noise_std: standard deviation of the noise at the best known point, fitted or given, user's units.
        confidence_gap: largest UCB - largest LCB, user's units. It is a by-product that shows the convergence of the
            search, and no bound of the regret: the regret of the recommended point was larger in 167 of 520 cases of
            `python -m benchmarks.calibration`; see `Optimizer.regret_certificate`. None if another criterion is
            maximised (perturbations, narrow suggestions, pending or failed trials, several objectives, constraints), if
            the search leaves points out (avoided duplicates, fixed values, known choices among very many), or if the
            maximiser was moved away from the end of a range.
    """

    trial: int
    n_values: int
    ask_seconds: float = 0.0
    n_inducing: int | None = None
    effective_dimension: float | None = None
    beta: float | None = None
    noise_std: float | None = None
    confidence_gap: float | None = None


@dataclass(frozen=True, repr=False)
class Recommendation:
    """The recommended point.

    Attributes:
        params: its parameters.
        index: its row in the pool, or None.
        mean: posterior mean of its noise-free value, user's units.
        std: posterior standard deviation of that value, user's units.
        label: name of its row, if the pool has an `id_column`.
        feasibility: posterior probability that the noise-free constraints hold; None without
            values of constraints.
    """

    params: Mapping[str, Any]
    index: int | None
    mean: float
    std: float
    label: Hashable | None = None
    feasibility: float | None = None

    def __repr__(self) -> str:
        """What is known of the point."""
        return shown_record(self)


@dataclass(frozen=True, repr=False)
class FrontPoint:
    """A point of the recommended Pareto front.

    Attributes:
        params: its parameters.
        index: its row in the pool, or None.
        means: posterior means of its noise-free values, one for each objective, user's units.
        stds: posterior standard deviations of these values, user's units.
        label: name of its row, if the pool has an `id_column`.
        feasibility: posterior probability that the noise-free constraints hold; None without
            values of constraints.
    """

    params: Mapping[str, Any]
    index: int | None
    means: tuple[float, ...]
    stds: tuple[float, ...]
    label: Hashable | None = None
    feasibility: float | None = None

    def __repr__(self) -> str:
        """What is known of the point."""
        return shown_record(self)


@dataclass(frozen=True)
class Residual:
    """How far the value of a trial is from what all other values lead to expect.

    Attributes:
        id: number of the trial.
        value: the value told, user's units.
        mean: the value that the others lead to expect, user's units; of values whose logarithm is modelled the median.
        std: standard deviation with which they do, with that of the noise, user's units.
        score: the difference in standard deviations, on the scale of the model; positive if the value is better.
    """

    id: int
    value: float
    mean: float
    std: float
    score: float


@dataclass(frozen=True, repr=False)
class RegretCertificate:
    """An upper bound of the regret of a point.

    Attributes:
        bound: upper bound, with the `confidence`, of the optimum's gain over the point's value, user's units.
        params: the recommended point; with a theorem's schedule of beta the one with the largest LCB.
        index: its row in the pool, or None.
        confidence: probability with which the bound holds; None with a theorem's schedule of beta, which has a delta.
        confidence_gap: largest UCB - largest LCB with the beta of the search, user's units; with a theorem's schedule
            it is the bound, otherwise only a measure of progress.
        beta: beta of the search, in standard deviations.
        feasibility: posterior probability that the noise-free constraints hold at the point;
            None without values of constraints.
    """

    bound: float
    params: Mapping[str, Any]
    index: int | None
    confidence: float | None
    confidence_gap: float
    beta: float
    feasibility: float | None = None

    def __repr__(self) -> str:
        """What is known of the point."""
        return shown_record(self)
