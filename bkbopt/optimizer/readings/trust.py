"""Readings of an optimizer that show how far its results, its model and its data can be trusted."""

import functools

import numpy as np

from bkbopt._support.checks import check_count, check_number
from bkbopt.errors import ArgumentError
from bkbopt.optimizer.arguments.naming import as_objective
from bkbopt.optimizer.designers.locking import HasLog, locked
from bkbopt.optimizer.log.trials import Trial, detached
from bkbopt.optimizer.results import predictions
from bkbopt.optimizer.results.labelled_recommendations import belongs as belongs_to
from bkbopt.optimizer.results.labelled_recommendations import certified
from bkbopt.search.trials.reports import RegretCertificate, Residual
from bkbopt.spaces.stretched import Stretch

__all__ = ["Trust"]


class Trust(HasLog):
    """Outliers, penalties, residuals and bounds."""

    @property
    @locked
    def outliers(self) -> list[Trial]:
        """Trials whose values the model takes for errors, as of its last fit, by id.

        Of twenty values or more whose noise is fitted, single ones that others make very unlikely are left out of the
        fit, and have little weight in the posterior. A value that is better than expected is one of them only if points
        close to it have values, too; see "Wrong measurements" in the guide on ask and tell. There are none where the
        noise of any value is known (`std=`) or with `deterministic=True`. `NotReadyError` before the first value.
        """
        outliers = self._core.followed("outliers").trained().outliers
        return [detached(self._core.log.entries[i].trial) for i in outliers]

    @property
    @locked
    def stretched_ends(self) -> dict[str, Stretch]:
        """The linear ranges that are searched on a logarithmic scale, with the end from which it is.

        They follow from the values told: the effect of a rate in (0, 1], or of a momentum close to one, is hardly
        visible on the linear scale. `Float(1e-6, 1.0, log=True)` states the scale, and helps from the first trial on.
        There are none in pools, for a kernel of the user's, and with `fit=False`.

        `is_low` is True for the lower end, as of a rate, and False for the upper one. `reach` is the fraction of the
        range, next to this end, in which the scale is about linear: 0.01 or 0.0001. Beyond it the scale is logarithmic
        in the distance from the end.

        Example:
            >>> import math
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"rate": (1e-6, 1.0), "x": (0.0, 1.0)}, seed=0)
            >>> points = [{"rate": 10.0 ** -(i % 10 / 2), "x": i / 40} for i in range(40)]
            >>> told = opt.tell(points, [(math.log10(p["rate"]) + 3.0) ** 2 + p["x"] for p in points])
            >>> opt.stretched_ends
            {'rate': Stretch(is_low=True, reach=0.0001)}
        """
        stretches, space = self._core.update().history.stretches, self._core.designer.problem.space
        keys = {} if space is None else {parameter.column_key(name): name for name, parameter in space.items}
        return {keys[key]: by for key, by in stretches.items() if key in keys}

    @property
    @locked
    def penalties(self) -> list[Trial]:
        """Trials whose values count as failures for the search, by id: those with a penalty, such as 1e10.

        A penalty is a value at three points or more that is twice as far from all better values as these are from each
        other, or a worse one. Their state is "COMPLETE", and tables have their values; the models, and `residuals`, do
        not. Values of constraints that were told with them are learnt. There are none with `fit=False`.

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
            >>> points = [{"x": i / 10} for i in range(10)]
            >>> told = opt.tell(points, [1e10 if p["x"] > 0.65 else p["x"] ** 2 for p in points])
            >>> [trial.id for trial in opt.penalties]
            [7, 8, 9]
        """
        entries = self._core.log.entries
        return [detached(entries[i].trial) for i in self._core.update().history.penalised]

    @locked
    def residuals(self, objective: int | str = 0) -> list[Residual]:
        """How far each value is from what all others lead to expect, in standard deviations, the farthest first.

        A wrong value (a typing error, a broken device) mostly comes first, with a `score` of several standard
        deviations, positive if it is better than expected. It need not be wrong: the model may be. Measure the point
        again, replace a wrong value by `tell(replace=True)`, or tell it once more with a large `std`.

        Each value is predicted from the others with the kernel, the noise and the inducing points of the model, which
        were fitted to all values but `outliers`; `penalties` are left out. The scores of few values are therefore
        small: of ten values none may be above three. The formula is that of ridge regression, `Model.left_out`. An
        online learner of one pass, such as "kons", has learnt the value that it predicts: its scores are smaller.

        Args:
            objective: number or name of the objective.

        Raises:
            NotReadyError: there is no value yet.
            ArgumentError: there is no such objective.

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
            >>> points = [{"x": i / 20} for i in range(20)]
            >>> told = opt.tell(points, [p["x"] ** 2 - (i == 7) for i, p in enumerate(points)])  # a wrong one
            >>> worst = opt.residuals()[0]
            >>> worst.id, round(worst.value, 2), worst.score > 3.0
            (7, -0.88, True)
        """
        k = as_objective(objective, self._aims.k, self._aims.objectives)
        return predictions.residuals(self._core.followed("residuals"), k)

    @locked
    def cross_validation(self, objective: int | str = 0, *, n_folds: int = 10) -> np.ndarray:
        """How far values are from what those of other points lead to expect, in standard deviations, `(n,)`.

        Groups of points, with all repeats of a point, are left out in turn, and their values are predicted from the
        rest, with unchanged kernel and noise, by models that learn them anew. The numbers are positive where a value is
        better than expected, and in the order of completion, without `penalties`. If the model is right they are about
        standard normal; see `bkbopt.analysis.coverage`. `residuals` leave out single values, without learning anew, and
        judge `outliers` by the noise of the others.

        Args:
            objective: number or name of the objective.
            n_folds: number of groups.

        Raises:
            NotReadyError: there are no values of two different points yet.
            ArgumentError: there is no such objective, or n_folds < 2.

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
            >>> told = opt.tell([{"x": i / 20} for i in range(20)], [(i / 20) ** 2 for i in range(20)])
            >>> opt.cross_validation(n_folds=5).shape
            (20,)
        """
        k, n_folds = as_objective(objective, self._aims.k, self._aims.objectives), check_count("n_folds", n_folds, 2)
        return predictions.cross_validation(self._core.followed("cross_validation"), k, n_folds)

    @property
    @locked
    def explains_nothing(self) -> bool:
        """Whether the points explain nothing of the values so far, as on a plateau or under much noise.

        Predictions are then those of an assumed model, and most suggestions those of the start-up design. It is False
        before there are twenty values, and with several objectives or constraints. `NotReadyError` before the first
        value.

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
            >>> told = opt.tell([{"x": i / 20} for i in range(20)], [3.0] * 20)
            >>> opt.explains_nothing
            True
        """
        return self._core.followed("explains_nothing").trained().is_flat

    @locked
    def regret_certificate(self, confidence: float = 0.95) -> RegretCertificate:
        """An upper bound of the recommended point's regret at a confidence level, in the user's units.

        The regret is how much better, without noise, the best of all points that `feasible=` accepts is than the point
        of `recommend()` without fixed values.

        The bound is a quantile of the regret over 400 joint draws of function and hyper-parameters; see
        `bkbopt.search.certificate`. At 0.95 it held in 216 of 220 cases on functions drawn from the prior, in 118 of
        119 on such functions with a constraint, on Hartmann-6 in 83 % of 60 in a box and in 70 % of 60 over pools, and
        on Shekel-4 in 13 % of 60 (`python -m benchmarks.calibration`). The confidence level is that of a single call;
        of many calls some fail. With a theorem's schedule of beta and `fit=False`, as `bkbopt.theory` has them, the
        bound is the largest UCB minus the largest LCB of an evaluated point, for which the theorem's guarantee holds,
        at all times, with the maximum over infeasible points, too. If the optimum is in a narrow well without an
        observation, the model gives the well no probability, and the bound does not hold.

        With outcome constraints the maximum is over the points that are feasible, in each draw of objective and
        constraints. The bound is for the case that the recommended point is feasible, as it is with the probability
        `feasibility`; if that is below one half, outcome constraints are ignored. Where trials fail in a region, the
        maximum is over the points at which they do not. The confidence gap ignores both.

        Args:
            confidence: probability with which the bound is to hold.

        Raises:
            NotReadyError: there is no value yet.
            ArgumentError: there are several objectives, or `confidence` is not strictly between 0 and 1.
        """
        if self._aims.k > 1:
            raise ArgumentError("regret_certificate: expected a single objective, got several; see hypervolume.")
        confidence = check_number("confidence", confidence, 0.0, "a number strictly between 0 and 1", strict=True)
        if confidence >= 1.0:
            raise ArgumentError(f"confidence: expected a number strictly between 0 and 1, got {confidence!r}.")
        designer, params_of = self._core.followed("regret_certificate"), self._core.conversion.params
        belongs = functools.partial(belongs_to, self._core)
        return certified(self._core, predictions.certificate(designer, params_of, belongs, confidence))
