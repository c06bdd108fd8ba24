"""The best trials and the recommended points of an optimizer."""

from collections.abc import Mapping, Sequence

from bkbopt.errors import ArgumentError
from bkbopt.optimizer.designers.locking import locked
from bkbopt.optimizer.log.objectives import by_label, in_order
from bkbopt.optimizer.log.trials import Trial, detached
from bkbopt.optimizer.readings.given import Given
from bkbopt.optimizer.results import best_trials, labelled_recommendations
from bkbopt.search.trials.reports import FrontPoint, Recommendation
from bkbopt.spaces.base import Params

__all__ = ["Recommending"]


class Recommending(Given):
    """The best points by the values that were told, and by the models."""

    @property
    @locked
    def best_trial(self) -> Trial:
        """The feasible trial with the best observed value; with noise this value is too good, see `recommend`.

        A trial that was told without the value of a constraint counts only if no other trial is feasible.
        `NotReadyError` if there is none, `ArgumentError` with several objectives (see `best_trials`).
        """
        return detached(best_trials.best_trial(self._core.log, self._aims))

    @property
    @locked
    def best_trials(self) -> list[Trial]:
        """The feasible trials that no other one dominates: the Pareto front of the observed values.

        With noise these values are too good, see `recommend_front`. A trial that was told without the value of a
        constraint counts only if no other trial is feasible. `NotReadyError` if there is none.
        """
        return [detached(trial) for trial in best_trials.front(self._core.log, self._aims)]

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
        return best_trials.hypervolume(self._core.log, self._aims, point)

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
