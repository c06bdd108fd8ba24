"""The reading half of `Optimizer`: results, predictions and copies. Reading changes no later suggestion."""

import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from bkbopt._support import forks
from bkbopt._support.checks import check_count
from bkbopt.confidence import Confidence
from bkbopt.errors import ArgumentError, StorageError
from bkbopt.optimizer import best_trials, labelled_recommendations, notebook, predictions, saving
from bkbopt.optimizer.arguments import as_objective
from bkbopt.optimizer.locking import locked
from bkbopt.optimizer.notebook import shown_options
from bkbopt.optimizer.objectives import aims_of, by_label, in_order
from bkbopt.optimizer.predicting import Predicting
from bkbopt.optimizer.single_objective import with_one_objective
from bkbopt.optimizer.trial_list import TrialList
from bkbopt.optimizer.trial_tables import dataframe_of
from bkbopt.optimizer.trials import Trial, detached
from bkbopt.optimizer.trust import Trust
from bkbopt.search.criteria.acquisition import Acquisition
from bkbopt.search.trials.reports import Diagnostics, FrontPoint, Recommendation
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Params
from bkbopt.spaces.space import Space
from bkbopt.surrogates import Surrogate

if TYPE_CHECKING:
    import pandas

__all__ = ["Readings"]

logger = logging.getLogger(__name__)


class Readings(Predicting, Trust):
    """What may be read of an optimizer; `Optimizer` sets the attributes."""

    _acquisition: str | Acquisition

    def __repr__(self) -> str:
        log, last = self._core.log, self._core.spaces[-1]
        n, unit = (len(last.names), "parameter") if isinstance(last, Space) else (len(last), "point")
        what = f"{aims_of(self.directions, self.objectives)} over {n:,} {unit}{'s' * (n != 1)}"
        return f"<Optimizer to {what}: {len(log)} trials, {log.n_complete} of them with values>"

    def _repr_html_(self) -> str:
        """HTML for notebooks: the best and the recommended trial, counts, and the latest trials."""
        return notebook.as_html(self)

    @property
    def directions(self) -> tuple[str, ...]:
        """The direction of each objective: "minimize" or "maximize"."""
        return self._aims.directions

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of the objectives; empty if they have none."""
        return self._aims.objectives

    @property
    def constraints(self) -> tuple[str, ...]:
        """Names of the outcome constraints."""
        return self._aims.constraints

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
        return self._core.designer.options.confidence

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
        return shown_options(self._core, self._aims, self._acquisition)

    @property
    @locked
    def diagnostics(self) -> list[Diagnostics]:
        """One record for each trial that was asked for: the model's size, beta and noise, and the time."""
        return self._core.log.diagnostics

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

    # -- results -----------------------------------------------------------------------------------------------------

    @property
    @locked
    def trials(self) -> TrialList:
        """All trials, by id, in a list that cannot be changed: `list(opt.trials)` makes one of your own."""
        return TrialList(self._core.log.entries)

    @property
    @locked
    def n_complete(self) -> int:
        """Number of trials with values."""
        return self._core.log.n_complete

    @property
    @locked
    def best_trial(self) -> Trial:
        """The feasible trial with the best observed value; with noise this value is too good, see `recommend`.

        A trial that was told without the value of a constraint counts only if no other trial is feasible.
        `NotReadyError` if there is none, `ArgumentError` with several objectives (see `best_trials`).
        """
        return detached(best_trials.best_trial(self._core.log, self.directions, self.constraints))

    @property
    @locked
    def best_trials(self) -> list[Trial]:
        """The feasible trials that no other one dominates: the Pareto front of the observed values.

        With noise these values are too good, see `recommend_front`. A trial that was told without the value of a
        constraint counts only if no other trial is feasible. `NotReadyError` if there is none.
        """
        return [detached(trial) for trial in best_trials.front(self._core.log, self.directions, self.constraints)]

    @locked
    def hypervolume(self, reference: Sequence[float] | Mapping[str, float]) -> float:
        """The hypervolume of the Pareto front with respect to a point, in the user's units.

        Args:
            reference: the point (k,), or a dict of its numbers by the names of the objectives.

        Raises:
            ArgumentError: `reference` does not have one number for each objective.
            NotReadyError: there is no value yet, or no feasible trial.
        """
        given = by_label(reference, self.objectives)
        point = in_order("reference", given, self.objectives) if isinstance(given, Mapping) else given
        return best_trials.hypervolume(self._core.log, self.directions, self.constraints, point)

    @property
    @locked
    def surrogate(self) -> Surrogate:
        """The surrogate of the first objective, on encoded points and standardised values.

        `NotReadyError` before the first value.
        """
        return self._core.followed("surrogate").trained().objectives[0].surrogate

    @locked
    def recommend(self, *, fixed: Params | None = None) -> Recommendation:
        """The best evaluated point by the posterior, among those expected to be feasible.

        It is the point with the best pessimistic value: the mean plus one posterior standard deviation when minimising,
        minus one when maximising; without noise it is the best value. With noise use this instead of `best_trial`. A
        warning is logged, once for each point, if its value is the only one there and far better than others suggest.

        Where constraints are measured with noise, the feasible points are those whose noise-free constraints hold with
        probability 0.9, if there are any. The point belongs to the current space or pool, and `feasible=` accepts it.
        If no such point was evaluated, it is the best of those that only lack new parameters, with the values that the
        model assumes for these (see `set_space`); if there are none, the best of all points, completed, and without
        parameters that were removed, which the model takes to be mid-range. If none is expected to be feasible, it is
        the point with the smallest expected violation, of several the best one.

        With `fixed` it is the point with the best posterior mean among all points with these values, which need not
        have been evaluated: `std` is the model's uncertainty about it. Its constraints hold with probability 0.9, if
        there are such points, whether measured with noise or not. Points that are more similar to a failed trial than
        to any other are left out. Over pools and grids it is exact, otherwise the best point that a search finds.
        `regret_certificate` is that of the point without `fixed`.

        Args:
            fixed: as in `ask`: values at which some parameters are fixed (a context, for example); for a pool, some
                columns. None for the best evaluated point.

        Raises:
            NotReadyError: there is no value yet.
            ArgumentError: there are several objectives, see `recommend_front`; `fixed` does not belong to the space, or
                no feasible point with these values was found.

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"price": (1.0, 5.0), "day": ["mon", "sat"]}, seed=0)
            >>> for _ in range(10):
            ...     for day, best in (("mon", 2.0), ("sat", 4.0)):
            ...         trial = opt.ask(fixed={"day": day})
            ...         told = opt.tell(trial, (trial.params["price"] - best) ** 2)
            >>> [round(opt.recommend(fixed={"day": day}).params["price"], 1) for day in ("mon", "sat")]
            [2.0, 4.0]
        """
        if len(self.directions) > 1:
            raise ArgumentError(
                "recommend: expected a single objective, got several; use recommend_front for the Pareto front."
            )
        return labelled_recommendations.point(self._core, {} if fixed is None else fixed)

    @locked
    def recommend_front(self, *, fixed: Params | None = None) -> list[FrontPoint]:
        """The evaluated points whose posterior means no other one's dominate, among those expected to be feasible.

        "Expected to be feasible" is as in `recommend`. The points belong to the current space or pool, and come in the
        order of the first objective, the best first. If none belongs to it, the points are completed as in `recommend`.
        If none is expected to be feasible, the front is the point with the smallest expected violation. With noise use
        this instead of `best_trials`, where lucky values hide better points; some may differ by less than their `stds`.

        With `fixed` they are at most 20 points with these values, which need not have been evaluated, as in
        `recommend`: first the best for each objective, then those that add most hypervolume. Over pools and grids a
        smaller front is exact. It takes as long as one `ask` for each point.

        Args:
            fixed: as in `recommend`; None for evaluated points.

        Raises:
            NotReadyError: there is no value yet.
            ArgumentError: `fixed` does not belong to the space, or no feasible point with these values was found.

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"x": bo.Float(0, 1)}, directions=["minimize", "maximize"], seed=0)
            >>> for x in (0.1, 0.5, 0.9):
            ...     _ = opt.tell({"x": x}, [x**2, x])
            >>> [point.params["x"] for point in opt.recommend_front()]
            [0.1, 0.5, 0.9]
        """
        return labelled_recommendations.front(self._core, {} if fixed is None else fixed)

    @locked
    def recommended_after(self, counts: Sequence[int]) -> list[Recommendation]:
        """The points that `recommend` would have returned after so many values, by the present model.

        What is estimated from all values is of the present: scaling, kernel, noise, limits and outliers, the space or
        pool, and the mean, standard deviation and feasibility of each point. Only the values that are compared, and
        those of constraints, are of the time. So it is no record of what `recommend` returned then. After all values it
        is what it returns now. `bkbopt.analysis.recommended_so_far` has the means over the whole run.

        Args:
            counts: numbers of values, in the order of completion and without `penalties`, from 1 on.

        Raises:
            NotReadyError: there is no value yet.
            ArgumentError: there are several objectives, or a number of values that there are not.
            ArgumentTypeError: `counts` is no list of whole numbers.

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, deterministic=True, seed=0)
            >>> told = opt.tell([{"x": 0.1}, {"x": 0.4}, {"x": 0.9}], [0.3, 0.1, 0.8])
            >>> [choice.params["x"] for choice in opt.recommended_after([1, 2, 3])]
            [0.1, 0.4, 0.4]
        """
        if len(self.directions) > 1:
            raise ArgumentError("recommended_after: expected a single objective, got several; see single_objective.")
        return labelled_recommendations.after(self._core, counts)

    @locked
    def useful_workers(self, limit: int = 64) -> int:
        """Number of trials, at most `limit`, that it is useful to have running now, including those that are running.

        The batch rule of BBKB: suggestions are hallucinated and added while 1 + the sum of their leverages is at most
        2. The number is small at first and grows as the posterior changes less. During the start-up design it is the
        number of remaining start-up trials.
        """
        limit = check_count("limit", limit, 1)
        return predictions.useful_workers(self._core.update(), limit)

    @locked
    def trials_dataframe(self) -> "pandas.DataFrame":
        """One row a trial, with Optuna's column names (number, value, params_*, ...), `std`, and UTC; needs pandas."""
        return dataframe_of(list(self._core.log), len(self.directions), self.objectives)

    # -- copies ------------------------------------------------------------------------------------------------------

    @locked
    def single_objective(self, objective: int | str) -> Self:
        """A copy in memory with one of the objectives, for `bkbopt.plots` and all that needs a single one.

        Its trials have the values of this objective alone; constraints and failures are kept. Its model is fitted anew,
        to this objective alone. The copy does not follow this optimizer: ask and tell here.

        Args:
            objective: number or name of the objective.

        Raises:
            ArgumentError: there is no such objective.

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, directions={"loss": "minimize", "power": "maximize"}, seed=0)
            >>> for x in (0.1, 0.5, 0.9):
            ...     _ = opt.tell({"x": x}, {"loss": x**2, "power": x})
            >>> opt.single_objective("power").best_trial.params["x"]
            0.9
        """
        k = as_objective(objective, len(self.directions), self.objectives)
        single = object.__new__(type(self))
        single._aims, single._acquisition = self._aims.with_one(k), self._acquisition
        single._core, single._lock = with_one_objective(self._core, k), forks.lock()
        return single

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the log (options, space and all trials) to a file, atomically.

        The file is a log as `storage` makes one, for `load`, or for `open` to go on in it. Models are not in it: they
        follow from the trials. Not in it either: functions (`feasible`, acquisition), kernels and schedules of beta
        that are not ours, data frames, arrays of more than 64 MiB, and pools of objects; they are given again. The
        parts of a product are in it, as long as they are below 64 MiB. If the file of the log cannot be read, the
        copy has what this optimizer knows, and a warning is logged.

        Raises:
            ArgumentError: the file is that of the log itself, or an argument cannot be stored in a log.
            ArgumentTypeError: `path` is no path, but bytes or a file, for example.
            OSError: the file cannot be written; an existing file is unchanged.
        """
        with self._lock:
            try:
                self._core.refresh()
            except StorageError as error:  # the copy may be all that is left
                logger.warning("save: the copy lacks what other processes have written since the last call: %s", error)
                self._core.mend()
            saving.save(path, self._describe(), self._core)

    def _describe(self) -> dict[str, Any]:
        """The arguments as a log stores them."""
        return saving.describe_options(self._core, self._aims, self._acquisition)
