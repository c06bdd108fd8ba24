"""A modelled quantity of a problem: an objective, a constraint, or failing, with its surrogate.

| symbol | shape  | units  | meaning                                                          |
| ------ | ------ | ------ | ---------------------------------------------------------------- |
| X      | (n, d) | enc.   | points of all rows, in the order of completion                   |
| y      | (n,)   | user's | values; v are the standardised ones, larger is better            |
| std    | (n,)   | user's | known standard deviations of the noise; NaN if it is fitted      |
| lam    | scalar | v^2    | noise variance                                                   |

The surrogate depends on the rows only, not on when they were added. Hyper-parameters are fitted from scratch at fixed
numbers of rows, the *marks*, each 15 % larger than the one before, with random numbers that depend on the mark. Rows
after the last mark are learnt one by one. A new process therefore needs a single fit, and has bit for bit the same
surrogate as one that has followed the rows from the first. Warm starts of the fit would save little time.
"""

import copy
import functools
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.latest import Latest
from bkbopt.confidence import ScheduleContext
from bkbopt.kernels.base import placed
from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import Observations
from bkbopt.search.quantities.crowd import BETWEEN_ANCHORS, Crowd
from bkbopt.search.quantities.fitting import CPU, Fitter, Values
from bkbopt.search.quantities.limits import Limit
from bkbopt.search.quantities.marked_rows import Rows
from bkbopt.search.quantities.noisiness import Noisiness
from bkbopt.search.quantities.scaling import NOISELESS, Scaler, usable
from bkbopt.search.quantities.schedule_inputs import HighestPrior, PendingVariances
from bkbopt.spaces.rows import RowSource
from bkbopt.surrogates import Surrogate
from bkbopt.surrogates.hyperparameters import draw_hyperparameters, posterior_under

__all__ = ["Quantity"]

logger = logging.getLogger(__name__)

#: Number of posteriors of an ensemble, and the number that distinguishes its random numbers from others.
N_ENSEMBLE, ENSEMBLE_STREAM = 40, 1


@dataclass
class Quantity:
    """A surrogate of the rows of one quantity, with the scaling of its values.

    Args:
        fitter: how the surrogate is fitted.
        seed: seed of all random numbers.
        stream: number of the quantity, on which its random numbers depend.
        is_stated: whether `deterministic` is a statement about it; not about failing, since a trial that failed may
            succeed when it is run again.

    Attributes:
        scaler: scaling of the values, from the last fit.
        is_constant: whether the points explain nothing of the values of the last fit; see `FittedModel`.
        noisiness: the decision whether the values have noise.
        outliers: weights of the values that the model takes for outliers, by row, as of the last fit.
    """

    fitter: Fitter
    seed: int
    stream: int
    is_stated: bool = True
    scaler: Scaler = field(init=False)
    is_constant: bool = field(init=False, default=False)
    noisiness: Noisiness = field(init=False)
    outliers: Mapping[int, float] = field(init=False, default_factory=dict)
    _surrogate: Surrogate | None = field(init=False, default=None)
    _built: tuple[int, int] = field(init=False, default=(-1, -1))
    _n: int = field(init=False, default=0)
    _crowd: Crowd | None = field(init=False, default=None)
    _highest_prior: HighestPrior = field(init=False)
    _limit: Limit = field(init=False, default_factory=Limit)
    _noise_is_fitted: bool = field(init=False, default=False)
    _has_warned: bool = field(init=False, default=False)
    _ensemble: Latest[list[tuple[Model, float]]] = field(init=False, default_factory=Latest)
    _means: Latest[Tensor] = field(init=False, default_factory=Latest)
    _pending_variances: Latest[PendingVariances] = field(init=False, default_factory=Latest)

    # -- learning ----------------------------------------------------------------------------------------------------

    def follow(self, rows: Rows) -> None:
        """Update the model with all rows; without a finite value up to the mark there is no model."""
        mark = rows.mark if self.fitter.options.fit else min(1, rows.mark)
        y, sign = rows.finite_limits if self.fitter.is_limit else rows.y, self.fitter.sign
        if not mark or not bool(torch.isfinite(y[:mark]).any()):
            self._surrogate, self._built = None, (-1, -1)
            return
        built = (rows.version, mark)
        new = slice(self._n, max(self._n, len(y))) if self._built == built else slice(mark, len(y))
        if self.fitter.is_limit:
            self._limit = Limit.of(y)
        if self._built != built:
            self._surrogate = self._crowd = None  # so that an interrupted fit does not look finished
            self._start(rows, usable(y[:mark], rows.estimates[:mark], sign, y[:mark]), mark)
            self._built = built
        self.noisiness.follow(self.scaler.noises(rows.std))
        self._n = new.start
        self._learn(rows, new, *self._standardised(rows, new))

    def _standardised(self, rows: Rows, some: slice) -> tuple[Tensor, Tensor | None]:
        """Standardised values of some of the rows, and their weights as `Fitter.weights` returns them."""
        y = rows.finite_limits if self.fitter.is_limit else rows.y
        values = usable(y[some], rows.estimates[some], self.fitter.sign, y[: self.mark])
        return self.scaler.transform(values), self.fitter.weights(self.scaler, rows.std[some], self.surrogate.noise)

    def _learn(self, rows: Rows, new: slice, v: Tensor, weight: Tensor | None) -> None:
        """Learn `new` rows, with standardised values and weights; see `crowd.py` for the anchor among them."""
        mark = self.mark
        last = mark + (new.stop - mark) // BETWEEN_ANCHORS * BETWEEN_ANCHORS
        is_passed = last > new.start or new.start == mark
        for stop in (last, new.stop) if is_passed else (new.stop,):
            at, own = slice(self._n, stop), slice(self._n - new.start, stop - new.start)
            learnt = rows.X[at], v[own], None if weight is None else weight[own]
            self.surrogate.observe(*learnt, in_turn=True)
            self._n = stop
            if is_passed:
                anchor, is_passed = self.surrogate.anchor() if self.fitter.options.fit else None, False
                self._crowd = None if anchor is None else Crowd(anchor, stop)
            elif self._crowd is not None:
                self._crowd.learn(learnt[0], rows.later[at.start - mark : at.stop - mark], *learnt[1:])
        if self._crowd is not None:
            self._crowd.failed = None if rows.failed is None else rows.failed.since(self._crowd.n)

    def _start(self, rows: Rows, y: Tensor, mark: int) -> None:
        """A new surrogate on the first `mark` rows, whose usable values are `y (mark,)`."""
        X, std, options = rows.X[:mark], rows.std[:mark], self.fitter.options
        surrogate = copy.deepcopy(self.fitter.surrogate)
        surrogate.rng = np.random.default_rng([self.seed, self.stream, mark])
        fitter, sd = self.fitter, self.fitter.contradiction(Values(X, rows.y[:mark], std))
        if sd is not None:
            # Taken for exact, the values would be explained by a rough function, and the search would stay near them.
            fitter = fitter.with_noise()
            if self.is_stated:
                self._warn_of_noise(sd)
        first_kernel = functools.partial(fitter.first_kernel, categorical=rows.categorical, constant=rows.constant)
        if options.fit:
            found = fitter.fitted(Values(X, y, std), ~rows.y[:mark].isnan(), first_kernel, surrogate.rng)
            self.scaler, self.is_constant = found.scaler, found.is_constant
            self._noise_is_fitted, self.outliers = found.noise_is_fitted, found.outliers
            surrogate.rebuild(found.observations, found.kernel, found.noise)
        else:
            self.outliers = {}
            self.scaler = Scaler.identity(self.fitter.sign)
            weight = self.fitter.weights(self.scaler, std, surrogate.noise)
            surrogate.observe(X, self.scaler.transform(y), weight)
        self._highest_prior = HighestPrior(surrogate.kernel)
        self.noisiness = Noisiness(fitter, surrogate, mark, first_kernel)
        self._surrogate = surrogate

    def _warn_of_noise(self, sd: float) -> None:
        """Log a warning, once, that values stated to be exact have noise of the standard deviation `sd`."""
        if not self._has_warned:
            logger.warning(
                "deterministic, in Optuna deterministic_objective: expected the same value at each evaluation of a "
                "point, got values of one point with a standard deviation of %.3g; their noise is fitted. Say True of "
                "objectives without noise only.",
                sd,
            )
        self._has_warned = True

    # -- learning from some of the rows ------------------------------------------------------------------------------

    def learnt(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Standardised values (n,) and weights (n,) of the `rows` that it follows, as the surrogate has learnt them."""
        v, weight = self._standardised(rows, slice(None))
        weight = torch.ones_like(v) if weight is None else weight
        weight[list(self.outliers)] = v.new_tensor(list(self.outliers.values()))
        return v, weight

    def retrained(self, rows: Rows, some: Tensor) -> Self:
        """A copy with the same scaling, kernel, noise and limit, which has learnt a part of the `rows` at once.

        Args:
            rows: the rows that this quantity follows.
            some: a mask (n,) of those that the copy learns; without any it has no model.
        """
        other = copy.copy(self)
        other._surrogate = other._crowd = None
        other._ensemble, other._means, other._pending_variances = Latest(), Latest(), Latest()
        if self.ready and bool(some.any()):
            v, weight = self.learnt(rows)
            known = Observations(rows.X.shape[1])
            known.add(rows.X[some], v[some], weight[some])
            # The observations, which are replaced, are not copied.
            other._surrogate = copy.deepcopy(self.surrogate, {id(self.surrogate.observations): known})
            other._surrogate.rebuild(known, self.surrogate.kernel, self.surrogate.noise)
        return other

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether there is a model."""
        return self._surrogate is not None

    @property
    def mark(self) -> int:
        """The number of rows of the last fit of hyper-parameters."""
        return self._built[1]

    @property
    def surrogate(self) -> Surrogate:
        """The surrogate of the rows, on encoded points and standardised values."""
        assert self._surrogate is not None
        return self._surrogate

    def model(self, pending: Tensor, numbers: Sequence[int] = (), *, beyond_budget: bool = False) -> Model:
        """The posterior with `pending (p, d)` counted as if evaluated at their means; see `Surrogate.fantasy`.

        It follows from the last anchor if the `numbers (p,)` of their trials are given, and in a pool (where nothing is
        beyond the budget) only if `Crowd.keeps_bounds`.
        """
        if not len(pending):
            return self.surrogate.model
        crowd = self._crowd if numbers else None
        if crowd is not None and (beyond_budget or crowd.keeps_bounds):
            return crowd.fantasy(pending, numbers, beyond_budget=beyond_budget)
        return self.surrogate.fantasy(pending, beyond_budget=beyond_budget)

    @property
    def _now(self) -> tuple[int, int, int]:
        """The state on which the model depends: version and mark of the rows, and their number."""
        return (*self._built, self._n)

    @property
    def fitted(self) -> Tensor:
        """Posterior mean at the unique observed points, standardised, (u,); cached for the same rows."""
        return self._means.of(self._now, lambda: self.surrogate.fitted().cpu())

    def predict(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and standard deviation (n,) of the noise-free value at `X (n, d)`, user's units."""
        posterior = self.surrogate.posterior(X)
        mean, std = posterior.mean.cpu(), posterior.stddev.cpu()
        return self.scaler.means(mean), self.scaler.widths(std, mean)

    def ensemble(self) -> list[tuple[Model, float]]:
        """Posteriors under draws of the hyper-parameters, each with a constant mean that has to be added.

        There is a single one if nothing is fitted. The result is cached for the same rows.
        """
        if not self.fitter.options.fit:
            return [(self.surrogate.model, 0.0)]
        return self._ensemble.of(self._now, self._drawn_ensemble)

    def _drawn_ensemble(self) -> list[tuple[Model, float]]:
        surrogate = self.surrogate
        rng = np.random.default_rng([self.seed, self.stream, self._n, ENSEMBLE_STREAM])
        obs, kernel = surrogate.observations.to(CPU), placed(surrogate.kernel, CPU)
        draws = draw_hyperparameters(obs, kernel, surrogate.noise, N_ENSEMBLE, rng, fit_noise=self._noise_is_fitted)
        return [(posterior_under(one, obs, surrogate.inducing.cpu(), rng), one.mean) for one in draws]

    def averaged(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """`predict` averaged over hyper-parameters: mean and standard deviation of the ensemble."""
        parts = [(mean + c, variance) for model, c in self.ensemble() for mean, variance in (model(X),)]
        means, variances = (torch.stack(part) for part in zip(*parts, strict=True))
        deviation = (variances.mean(0) + means.var(0, correction=0)).sqrt()
        return self.scaler.means(means.mean(0)), self.scaler.widths(deviation, means.mean(0))

    @property
    def zero(self) -> float:
        """The limit of a constraint on the standardised scale."""
        return self._limit.standardised(self.scaler)

    @property
    def is_noiseless(self) -> bool:
        """Whether the fitted noise is at, or near, its lower limit."""
        return self.fitter.options.fit and self.surrogate.noise <= NOISELESS

    @property
    def measured(self) -> Tensor:
        """Mean of the values at each unique observed point, standardised, (u,).

        Without noise it is the posterior mean at points whose own values are known to have some.
        """
        obs = self.surrogate.observations.to(CPU)
        # Sums of equal values differ by rounding if there are different numbers of them.
        means = torch.round(obs.s / obs.n, decimals=12)
        return torch.where(self.surrogate.noise > NOISELESS * obs.n, self.fitted, means) if self.is_noiseless else means

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise, user's units; for warped values at the best posterior mean."""
        best = self.fitted.max()[None]
        return float(self.scaler.widths(torch.full_like(best, self.surrogate.noise**0.5), best)[0])

    @property
    def clipping_level(self) -> float:
        """The value to which worse ones are clipped, user's units; infinite if there is none."""
        return self.scaler.bounded(-self.scaler.sign * math.inf)

    def context(self, n_arms: int | None, pending: Tensor, arms: RowSource | None = None) -> ScheduleContext:
        """What confidence schedules look at, with `pending (p, d)` and the `arms (A, d)` of a pool."""
        surrogate = self.surrogate
        obs = surrogate.observations
        return ScheduleContext(
            t=obs.total,
            dim=obs.dim,
            n_arms=n_arms,
            lam=surrogate.noise,
            kappa2=self._highest_prior(obs.X, arms),
            effective_dimension=surrogate.effective_dimension(),
            log_growth=surrogate.log_growth,
            leverage_sum=surrogate.leverage_sum(),
            batch=len(pending),
            batch_leverage=float(self.pending_leverages(pending).sum()),
        )

    def pending_leverages(self, pending: Tensor) -> Tensor:
        """Leverages `(p,)` of the points `pending (p, d)`, given the rows only."""
        variances = self._pending_variances.of(self._now, lambda: PendingVariances(self.surrogate))
        return variances(pending) / self.surrogate.noise
