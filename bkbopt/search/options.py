"""Options of a designer."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from bkbopt.confidence import Confidence, Practical
from bkbopt.search.criteria.criterion import ACQUISITIONS, AcquisitionRule
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.surrogates import Surrogate

__all__ = ["Options"]

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """Options of a designer.

    Attributes:
        models: options of the models of all quantities.
        n_startup_trials: number of values before the models are used; failed ones count half, see `startup`.
        rule: the acquisition function.
        schedule: schedule of beta.
        avoid_duplicates: whether no point of a discrete set is proposed twice.
        repeat_when_exhausted: whether points of a discrete set are proposed again when all have been proposed or have
            failed; otherwise `SpaceExhaustedError` is raised.
        perturbations: whether some suggestions are perturbations, if models are fitted; see `perturbs`.
        restarts: whether there are restarts beside perturbations, see `restarts.py`.
    """

    models: ModelOptions
    n_startup_trials: int = 10
    rule: AcquisitionRule = ACQUISITIONS["ucb"]
    schedule: Confidence = field(default_factory=Practical)
    avoid_duplicates: bool = False
    repeat_when_exhausted: bool = False
    perturbations: bool = True
    restarts: bool = True

    @property
    def surrogate(self) -> Surrogate:
        """The surrogate that is copied for each model; it has no data."""
        return self.models.surrogate

    @property
    def perturbs(self) -> bool:
        """Whether some suggestions are perturbations; without a fit the given model is taken for the right one."""
        return self.perturbations and self.models.fit

    @property
    def varies_width(self) -> bool:
        """Whether upper confidence bounds have no guarantee: models are fitted, and beta has the default schedule.

        Suggestions of long searches and of large batches then may have another width, see `choosing.width_of`.
        """
        return self.rule.is_upper_bound and self.models.fit and isinstance(self.schedule, Practical)

    def exclusions(self, stricter: Iterable[T], closed: T, pending: T, nothing: T) -> list[T]:
        """Sets of points that are excluded, in order; each is used if the one before left no point.

        Args:
            stricter: sets with points that may be proposed again, but only if no other point is left.
            closed: points that may not be proposed again.
            pending: points of running trials.
            nothing: the empty set.
        """
        first = [closed] if self.avoid_duplicates else list(stricter)
        if self.repeat_when_exhausted:
            return [*first, pending, nothing]
        return first if self.avoid_duplicates else [*first, closed]
