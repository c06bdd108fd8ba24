"""What the models of an optimizer predict at points: values, constraints, and whether a trial fails; their noise."""

from collections.abc import Iterable

import numpy as np
from torch import Tensor

from bkbopt._support.checks import check_count
from bkbopt.optimizer.arguments.frames import points_of
from bkbopt.optimizer.designers.locking import HasLog, locked
from bkbopt.optimizer.log.limits import sides_of
from bkbopt.optimizer.log.trial_list import TrialList
from bkbopt.optimizer.results import predictions
from bkbopt.spaces.base import Params
from bkbopt.surrogates import Surrogate

__all__ = ["Predicting"]


class Predicting(HasLog):
    """Predictions at points, what the model is like, and how points are encoded."""

    @locked
    def predict(self, params: Iterable[Params] | Params, *, averaged: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and standard deviation of the noise-free value, each `(n,)`, in the user's units.

        With several objectives each is `(n, k)`. With `fit=True` very bad values of a single objective are clipped
        before they are modelled (`clipping_level`), so that the mean is too good far from the optimum. If the noise
        grows with the distance from the best value, as for many losses, the logarithm of that distance is modelled; the
        mean is then the median, and the standard deviation is correct to first order.

        The model leaves out a column that has the same value in all rows of a pool and in all trials. Predictions at
        another value of this column are the same, and their standard deviations are not larger.

        Args:
            params: a point or several, or a data frame with a column for each parameter.
            averaged: whether to average over the posterior of the hyper-parameters; by default the fitted ones are
                used, as in the search. Fitted hyper-parameters make the standard deviations too small. On functions
                drawn from the prior, in searches of 25 to 300 values, intervals of one and two standard deviations
                covered 59 and 89 % of fresh points, and 66 and 94 % with averaging; on Branin 49 and 76 %, and 54 and
                80 % (`python -m benchmarks.calibration`). Averaging takes some tenths of a second after new values.

        Raises:
            NotReadyError: there is no value yet.
            ArgumentError: parameters outside of the space.
        """
        return self.predict_encoded(self.encode(params), averaged=averaged)

    @locked
    def predict_encoded(self, X: Tensor, *, averaged: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """As `predict`, of encoded points `X (n, d)`; see `encode`. Codes of choices that are none are refused."""
        return predictions.prediction(self._core.followed("predict"), X, averaged)

    @locked
    def predict_constraints(self, params: Iterable[Params] | Params) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Posterior means and standard deviations of the constraints' noise-free values, each `(n,)`, by name.

        In the user's units, as they are told, of the constraints with values.

        Raises:
            NotReadyError: there is no value yet.
            ArgumentError: parameters outside of the space.
        """
        designer = self._core.followed("predict_constraints")
        return predictions.constraints(designer, self.encode(params), self._aims.limits)

    @property
    @locked
    def _has_all_constraints(self) -> bool:
        """Whether there is a value of each constraint."""
        known = self._core.update().history.constraint_names
        return all(side.key in known for sides in sides_of(self._aims.limits).values() for side in sides)

    @locked
    def feasibility(self, params: Iterable[Params] | Params) -> np.ndarray:
        """Posterior probability that all constraints hold at a point, by their noise-free values, `(n,)`.

        A measurement there, with its noise, may come out otherwise. Where a constraint was measured without noise, its
        value decides. Constraints on different quantities are independent in the model. `feasible=` and failures are
        not included; see `success_probability`.

        Raises:
            NotReadyError: there is no value yet of the objective, or of some constraint.
            ArgumentError: parameters outside of the space.
        """
        return self.feasibility_encoded(self.encode(params))

    @locked
    def feasibility_encoded(self, X: Tensor) -> np.ndarray:
        """As `feasibility`, of encoded points `X (n, d)`; see `predict_encoded`."""
        return predictions.feasibility(self._core.followed("feasibility"), X, self._aims.limits)

    @locked
    def success_probability(self, params: Iterable[Params] | Params) -> np.ndarray:
        """Probability that a trial at a point does not fail, `(n,)`, by the model of failing.

        Trials with `penalties` have failed. Without a failed trial it is 1, and if failures are found to be independent
        of the point it is the share of trials that did not fail. Otherwise it is a regression on failed and successful
        trials, which is near that share far from all of them.

        Raises:
            NotReadyError: there is no value yet.
            ArgumentError: parameters outside of the space.

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
            >>> for i in range(20):
            ...     trial = opt.enqueue({"x": i / 20})
            ...     _ = opt.fail(opt.ask()) if i > 14 else opt.tell(opt.ask(), i / 20)
            >>> opt.success_probability([{"x": 0.2}, {"x": 0.95}]).round(1).tolist()
            [1.0, 0.0]
        """
        return self.success_probability_encoded(self.encode(params))

    @locked
    def success_probability_encoded(self, X: Tensor) -> np.ndarray:
        """As `success_probability`, of encoded points `X (n, d)`; see `predict_encoded`."""
        return predictions.success_probability(self._core.followed("success_probability"), X)

    # -- of the model ------------------------------------------------------------------------------------------------

    @property
    @locked
    def surrogate(self) -> Surrogate:
        """The surrogate of the first objective, on encoded points and standardised values.

        `NotReadyError` before the first value.
        """
        return self._core.followed("surrogate").trained().objectives[0].surrogate

    @property
    @locked
    def beta(self) -> float:
        """The current beta, in standard deviations; `NotReadyError` before the first value."""
        return predictions.beta(self._core.followed("beta"))

    @property
    @locked
    def noise_std(self) -> float:
        """Standard deviation of the noise, fitted or given, user's units; `NotReadyError` before the first value.

        If the noise was found to grow with the distance from the best value, it is the noise at the recommended point.
        Where all values were told with `std`, it is the median of these at the last fit; where some were, that of the
        others.
        """
        return self._core.followed("noise_std").trained().objectives[0].noise_std

    @property
    @locked
    def clipping_level(self) -> float:
        """The value to which worse ones are clipped before they are modelled, user's units; infinite if there is none.

        Predictions are never much worse than it. Raises `NotReadyError` before the first value.
        """
        return self._core.followed("clipping_level").trained().objectives[0].clipping_level

    @locked
    def useful_workers(self, limit: int = 64) -> int:
        """Number of trials, at most `limit`, that it is useful to have running now, including those that are running.

        The batch rule of BBKB: suggestions are hallucinated and added while 1 + the sum of their leverages is at most
        2. The number is small at first and grows as the posterior changes less. During the start-up design it is the
        number of remaining start-up trials.
        """
        limit = check_count("limit", limit, 1)
        return predictions.useful_workers(self._core.update(), limit)

    # -- encoded points ----------------------------------------------------------------------------------------------

    @locked
    def encode(self, params: Iterable[Params] | Params) -> Tensor:
        """A point or several, or a data frame, as encoded points `X (n, d)`, the inputs of the surrogates."""
        points = points_of(params, self._core.conversion.without_gaps)
        return self._core.update().history.encode(self._core.conversion.points(points))

    @locked
    def recode(self, U: Tensor) -> Tensor:
        """Encoded points `X (n, d)` of points in the encoding of `space`: another one if the space has changed."""
        history, space = self._core.update().history, self._core.designer.problem.space
        return U if space is None else history.encoding.recoded(space, U)

    @locked
    def observed(self) -> tuple[Tensor, np.ndarray]:
        """Encoded points (n, d) and values (n,) or (n, k), user's units, in the order of completion."""
        return self.observed_trials()[1:]

    @locked
    def observed_trials(self) -> tuple[TrialList, Tensor, np.ndarray]:
        """The trials with values, in the order of completion, and what `observed` returns, their points and values.

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
            >>> first, second = opt.ask(2)
            >>> told = [opt.tell(second, 0.4), opt.tell(first, 0.7)]
            >>> trials, X, y = opt.observed_trials()
            >>> [trial.id for trial in trials], tuple(X.shape), y.tolist()
            ([1, 0], (2, 1), [0.4, 0.7])
        """
        entries = self._core.log.valued()
        X = self._core.update().history.encode(list(map(self._core.point, entries)))
        values = np.array([entry.trial.values for entry in entries]).reshape(-1, self._aims.k)
        return TrialList(entries), X, values[:, 0] if self._aims.k == 1 else values
