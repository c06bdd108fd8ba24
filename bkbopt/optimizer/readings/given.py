"""What an optimizer was made with."""

from typing import Any

from bkbopt.confidence import Confidence
from bkbopt.optimizer.arguments import known_constraint
from bkbopt.optimizer.designers.locking import HasLog, locked
from bkbopt.optimizer.designers.logged_designer import LoggedDesigner
from bkbopt.search.criteria.acquisition import Acquisition
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.space import Space

__all__ = ["Given"]


class Given(HasLog):
    """The arguments of an optimizer, and its present space or pool."""

    @property
    def directions(self) -> tuple[str, ...]:
        """The direction of each objective: "minimize" or "maximize"."""
        return self._aims.directions

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of the objectives; empty if they have none."""
        return self._aims.objectives

    @property
    @locked
    def constraints(self) -> tuple[str, ...]:
        """Names of the outcome constraints."""
        return self._aims.constraints

    @property
    @locked
    def limits(self) -> dict[str, tuple[float | None, float | None]]:
        """The limits (low, high) of the outcome constraints, None for one that it has not: the form of `constraints=`.

        Also those of quantities that were constraints once, (None, None).

        Example:
            >>> import bkbopt as bo
            >>> bo.Optimizer({"x": (0.0, 1.0)}, constraints=["viscosity <= 30", "6.5 <= ph <= 7"]).limits
            {'viscosity': (None, 30.0), 'ph': (6.5, 7.0)}
        """
        return {name: limit.pair for name, limit in self._aims.limits.items()}

    @property
    def acquisition(self) -> str | Acquisition:
        """Name of the acquisition function, or the user's own."""
        return self._acquisition

    @property
    def direction(self) -> str:
        """The direction of the first objective."""
        return self.directions[0]

    @property
    def duplicates(self) -> str:
        """Whether a point of a discrete space or pool may be proposed twice: "allow" or "avoid"."""
        return "avoid" if self._core.designer.options.avoid_duplicates else "allow"

    @property
    def n_startup_trials(self) -> int:
        """Number of values of the start-up design."""
        return self._core.designer.options.n_startup_trials

    @property
    @locked
    def n_startup_values(self) -> int:
        """Number of values from which on suggestions come from models: `n_startup_trials`, fewer after failures."""
        return self._core.update().first_fit

    @property
    def confidence(self) -> Confidence:
        """Schedule of beta."""
        return self._core.designer.options.schedule

    @property
    def storage(self) -> str | None:
        """Path of the file of the log; None if the log is in memory."""
        return None if self._core.file is None else self._core.file.path

    @property
    @locked
    def options(self) -> dict[str, Any]:
        """What it was made with, by the names of the arguments, but for the space or pool, the seed and the storage.

        For people: the surrogate is the name of its class with its options, `feasible` its rules, or that it is there.
        """
        return _shown(self._core, self._acquisition)

    @property
    @locked
    def space(self) -> Space | None:
        """The search space; None for a pool."""
        return self._core.designer.problem.space

    @property
    @locked
    def pool(self) -> Arms | None:
        """The pool with its encoding; None in a space."""
        return self._core.designer.problem.pool


def _shown(core: LoggedDesigner, rule: object) -> dict[str, Any]:
    """What an optimizer was made with; see `Optimizer.options`."""
    options, models = core.designer.options, core.designer.options.models
    given = {name: value for name, value in models.surrogate.options().items() if name != "needs_kernel"}
    return {
        "directions": core.aims.as_given,
        "constraints": core.aims.texts,
        "n_startup_trials": options.n_startup_trials,
        "surrogate": f"{type(models.surrogate).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})",
        "acquisition": rule if isinstance(rule, str) else getattr(rule, "__name__", "a function"),
        "beta": options.schedule,
        "fit": models.fit,
        "duplicates": "avoid" if options.avoid_duplicates else "allow",
        "deterministic": models.deterministic,
        "feasible": known_constraint.stored(core.feasible),
        "perturbations": options.perturbations,
    }
