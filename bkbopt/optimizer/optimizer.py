"""Ask and tell: Bayesian optimisation of a noisy black box with BKB or an exact Gaussian process."""

import copy
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.arrays import as_values, check_choice, check_count
from bkbopt.confidence import Confidence, as_confidence
from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError, SpaceExhaustedError
from bkbopt.optimizer import persistence
from bkbopt.optimizer.arguments import as_domain, as_surrogate, checked_seed, checked_value, trial_id
from bkbopt.search.acquisition import ACQUISITIONS
from bkbopt.search.candidates import Params
from bkbopt.search.fitted_model import FittedModel
from bkbopt.search.pool_candidates import Pool, PoolDomain
from bkbopt.search.proposing import N_GOOD, lower_bound, propose
from bkbopt.search.reports import Diagnostics, Recommendation, RegretCertificate
from bkbopt.search.trials import Trial, TrialLog
from bkbopt.surrogates import Surrogate

if TYPE_CHECKING:
    import pandas

    from bkbopt.learners import OnlineLearner

__all__ = ["Optimizer"]


class Optimizer:
    """Suggests where to evaluate a noisy black box next.

    Args:
        space_or_pool: a search space (see `Space.parse`) or a finite pool (an array (A, d), a data frame, a list of
            anything the surrogate's kernel understands, or a `Pool`). A list of (low, high) tuples is a space.
        direction: "minimize" or "maximize".
        seed: of everything random; None draws one.
        n_startup_trials: values to gather by a quasi-random design before the model takes over.
        surrogate: "bkb" (default), "exact", "fourier", the name of an online learner ("pkawv", "forks" and others, see
            `bkbopt.LearnerSurrogate`), or an instance without data, which is copied: a surrogate or a learner.
        acquisition: "ucb", "logei" or "thompson".
        beta: width of the confidence: None (a practical default), a number of standard deviations, or a schedule of
            `bkbopt.confidence`.
        fit: whether kernel and noise are fitted. Values are then standardised and pool columns scaled to [0, 1];
            a noise given with the surrogate is kept, and is in the user's units. With False everything is taken as it
            is: kernel and noise must be given, in the user's units. Fitting voids the theorems' guarantees.
        duplicates: "allow", or "avoid" to propose no point of a discrete space or pool twice.
        feasible: `feasible(params) -> bool`; only points where it holds are proposed.
        leaps: whether some asks, fewer and fewer, leap away from the best point in one parameter to see if there is a
            better basin elsewhere (see `bkbopt.search.proposing`). Only in spaces that are not searched as a grid, with
            `fit=True`, and not by Thompson sampling.

    Raises:
        ArgumentError: an option is out of range, or the space or pool is refused.
        ArgumentTypeError: an option has the wrong type.

    Example:
        >>> import bkbopt as bo
        >>> opt = bo.Optimizer({"x": bo.Float(-1.0, 2.0)}, seed=0)
        >>> for _ in range(12):
        ...     trial = opt.ask()
        ...     told = opt.tell(trial, (trial.params["x"] - 0.5) ** 2)
        >>> abs(opt.recommend().params["x"] - 0.5) < 0.2
        True
    """

    def __init__(
        self,
        space_or_pool: Any,
        *,
        direction: str = "minimize",
        seed: int | None = None,
        n_startup_trials: int = 10,
        surrogate: "str | Surrogate | OnlineLearner | None" = None,
        acquisition: str = "ucb",
        beta: float | Confidence | None = None,
        fit: bool = True,
        duplicates: Literal["allow", "avoid"] = "allow",
        feasible: Callable[[Params], bool] | None = None,
        leaps: bool = True,
    ) -> None:
        self.direction = check_choice("direction", direction, ("minimize", "maximize"))
        self.acquisition = check_choice("acquisition", acquisition, ACQUISITIONS)
        self.duplicates = check_choice("duplicates", duplicates, ("allow", "avoid"))
        if feasible is not None and not callable(feasible):
            raise ArgumentTypeError(f"feasible: expected a callable (params) -> bool, got {type(feasible).__name__}.")
        if not isinstance(leaps, bool):
            raise ArgumentTypeError(f"leaps: expected True or False, got {leaps!r}.")
        self.leaps = leaps
        self.n_startup_trials = check_count("n_startup_trials", n_startup_trials, 0)
        self.confidence = as_confidence(beta)
        self._rng = np.random.default_rng(checked_seed(seed))
        own = as_surrogate(surrogate)
        self._sobol_seed = int(self._rng.integers(2**31))
        self.domain = as_domain(space_or_pool, feasible, self._sobol_seed, fit, own.has_kernel)
        if isinstance(self.domain, PoolDomain) and self.domain.objects is not None:
            own.bind_objects(self.domain.objects)
        sign = 1.0 if direction == "maximize" else -1.0
        self._modelling = FittedModel(own, fit=fit, sign=sign, categorical=self.domain.categorical, rng=self._rng)
        self._log = TrialLog(self.domain.dim)
        self.diagnostics: list[Diagnostics] = []

    def __repr__(self) -> str:
        return f"<Optimizer to {self.direction}: {len(self._log)} trials, {len(self._log.order)} of them told>"

    # -- asking --------------------------------------------------------------------------------------------------

    @overload
    def ask(self) -> Trial: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """The next trial, or a list of the next `n`; each counts as pending until told or failed.

        Pending points differ from each other while there are enough. The list is shorter than `n` where
        `duplicates="avoid"` leaves fewer.

        Raises:
            SpaceExhaustedError: with `duplicates="avoid"`, every point was proposed.
            ArgumentError: no feasible point was found.
        """
        if n is None:
            return self._ask_one()
        trials: list[Trial] = []
        for _ in range(check_count("n", n, 1)):
            try:
                trials.append(self._ask_one())
            except SpaceExhaustedError:
                if not trials:
                    raise
                break
        return trials

    def _ask_one(self) -> Trial:
        start = time.perf_counter()
        with torch.no_grad():
            x, report = self._propose()
        params, index = self.domain.describe(x)
        trial = self._log.add(x, params, index, _now())
        if self.duplicates == "avoid" and self.domain.is_discrete:
            self.domain.block(x)
        report["ask_seconds"] = time.perf_counter() - start
        self.diagnostics.append(Diagnostics(trial=trial.id, t=self._log.n_complete, **report))
        return trial

    def _propose(self) -> tuple[Tensor, dict[str, Any]]:
        modelling, log = self._modelling, self._log
        pending, failed = log.pending(), log.failed()
        if log.n_complete < max(self.n_startup_trials, 1):
            return self.domain.startup(self._rng, pending), {}
        if modelling.fit_is_due(log.n_complete):
            modelling.refit(*log.complete())
        return propose(
            modelling,
            self.domain,
            acquisition=self.acquisition,
            confidence=self.confidence,
            rng=self._rng,
            pending=pending,
            failed=failed,
            step=len(log),
            leaps=self.leaps,
            all_open=self.duplicates == "allow" or not self.domain.is_discrete,
        )

    def set_pool(self, pool: Any) -> None:
        """Replace the arms of a pool: some may have gone, others come; what was learnt stays.

        Raises:
            ArgumentError: the optimizer has a space, or the pool is refused (see the constructor); nothing changes.
        """
        if not isinstance(self.domain, PoolDomain):
            raise ArgumentError("pool: expected an optimizer over a pool, but this one has a search space.")
        self.domain.replace(pool if isinstance(pool, Pool) else Pool(pool))

    # -- telling -------------------------------------------------------------------------------------------------

    def tell(self, trial: Any, value: Any) -> Trial | list[Trial]:
        """Report a value.

        Args:
            trial: a trial of `ask` or its id; or the parameters of a point that was never asked (past data), as a dict;
                or a data frame (or list of dicts) of many.
            value: a finite number in the direction's own units; an array of them, or a column's name, for many.

        Returns:
            The finished trial or trials.

        Raises:
            UnknownTrialError: an id that was never given out.
            TrialStateError: the trial was told or failed before.
            ArgumentError: a value that is not finite, or parameters outside the space.
            ArgumentTypeError: anything else. In all cases nothing was learnt.
        """
        if hasattr(trial, "iloc") and hasattr(trial, "columns"):
            if isinstance(value, str):
                if value not in trial.columns:
                    raise ArgumentError(f"value: expected one of the columns {list(trial.columns)}, got {value!r}.")
                trial, value = trial.drop(columns=value), trial[value]
            return self._tell_many(trial.to_dict("records"), value)
        if isinstance(trial, list | tuple):
            return self._tell_many(list(trial), value)
        if isinstance(trial, Mapping):
            return self._tell_many([trial], [checked_value(value)])[0]
        found = self._log.running(trial_id(trial), "tell")
        y = checked_value(value)
        self._modelling.tell(self._log.point(found.id)[None], torch.tensor([y], dtype=torch.float64))
        return self._log.finish(found.id, y, _now())

    def _tell_many(self, params: list[Any], values: Any) -> list[Trial]:
        y = as_values(values, len(params), name="value")
        X = self.domain.encode(params)
        self._modelling.tell(X, y)
        now = _now()
        told = []
        for x, row, value in zip(X, params, y.tolist(), strict=True):
            told.append(self._log.finish(self._log.add(x, *self.domain.describe(x, row), now).id, value, now))
            if self.duplicates == "avoid" and self.domain.is_discrete:
                self.domain.block(x)
        return told

    def fail(self, trial: Any) -> Trial:
        """Report that a trial gave no value; its neighbourhood is avoided, and the model's data stay clean.

        In the search, and there only, the point counts as a poor value (the 10 % quantile of those seen); on discrete
        spaces and pools it is not proposed again. Raises as `tell` does.
        """
        found = self._log.running(trial_id(trial), "fail")
        if self.domain.is_discrete:
            self.domain.block(self._log.point(found.id))
        return self._log.finish(found.id, None, _now())

    # -- results -------------------------------------------------------------------------------------------------

    @property
    def trials(self) -> list[Trial]:
        """All trials in order of their ids."""
        return list(self._log)

    @property
    def best_trial(self) -> Trial:
        """The trial with the best value told (`NotReadyError` before). Under noise it flatters: see `recommend`."""
        best = self._log.best(largest=self.direction == "maximize")
        if best is None:
            raise NotReadyError("best_trial: expected at least one value, got none; call tell first.")
        return best

    @property
    def surrogate(self) -> Surrogate:
        """The surrogate, on encoded points and scaled values; a trained copy if the model is not in use yet.

        `NotReadyError` before the first value.
        """
        return self._trained().surrogate

    def _trained(self) -> FittedModel:
        """The model, or a trained copy while the optimizer has not built one: reading changes nothing that is asked."""
        modelling = self._modelling
        if not self._log.n_complete:
            raise NotReadyError("posterior: expected at least one value, got none; call tell first.")
        if modelling.ready:
            return modelling
        modelling = copy.deepcopy(modelling)
        with torch.no_grad():
            modelling.refit(*self._log.complete())
        return modelling

    def recommend(self) -> Recommendation:
        """The evaluated point with the best posterior mean, with its uncertainty: the answer under noise.

        Over a pool it is an arm that is still there; only if every evaluated arm has gone, the best of those, and its
        index is None. `NotReadyError` before the first value.
        """
        modelling = self._trained()
        with torch.no_grad():
            X = modelling.best_points(len(modelling.surrogate.observations))
            here = (x for x in X if not isinstance(self.domain, PoolDomain) or self.domain.describe(x)[1] is not None)
            x = next(here, X[0])
            mean, variance = modelling.surrogate.model(x[None])
        params, index = self.domain.describe(x)
        scaler = modelling.scaler
        return Recommendation(params, index, scaler.mean(float(mean[0])), scaler.width(float(variance[0]) ** 0.5))

    def predict(self, params: Iterable[Params] | Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and standard deviation of the noise-free value, each `(n,)`, in the user's units.

        With `fit=True` very bad values were winsorised for the model: far from the optimum the mean is too good.

        Raises:
            NotReadyError: no value was told yet.
            ArgumentError: parameters outside of the space.
        """
        return self._predict_encoded(self.domain.encode([params] if isinstance(params, Mapping) else list(params)))

    def _predict_encoded(self, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """As `predict`, of encoded points `X (n, d)`."""
        modelling = self._trained()
        with torch.no_grad():
            mean, variance = modelling.surrogate.model(X)
        s = modelling.scaler
        return s.sign * (mean * s.scale + s.center).numpy() * s.unit, variance.sqrt().numpy() * s.scale * s.unit

    def regret_certificate(self) -> RegretCertificate:
        """Largest UCB minus largest LCB: what is left to gain over the point named, if the model and beta hold.

        Over a pool the largest UCB is exact; over a box it is the largest that a search finds. `NotReadyError` before
        the first value.
        """
        modelling = self._trained()
        with torch.no_grad():
            beta = self.confidence(modelling.progress(self.domain.n_arms, 0))
            x, lcb = (
                lower_bound(modelling, beta)
                if modelling is self._modelling
                else (modelling.best_points(1)[0], -math.inf)
            )
            if lcb == -math.inf:
                mean, variance = modelling.surrogate.model(x[None])
                lcb = float(mean[0] - beta * variance[0].sqrt())
            good = modelling.best_points(N_GOOD)
            ucb = max(self.domain.upper_bound(modelling.surrogate.model, beta, good)[1], lcb)
        params, index = self.domain.describe(x)
        return RegretCertificate(modelling.scaler.width(ucb - lcb), params, index, beta)

    def useful_workers(self, limit: int = 64) -> int:
        """How many trials it is useful to have in flight now, those running included.

        The batch rule of BBKB: add hallucinated picks while 1 + the sum of their leverages stays within 2. Few early
        on, when one answer changes everything; more as the posterior settles. At first: the start-up trials left.
        """
        limit = check_count("limit", limit, 1)
        if not self._modelling.ready:
            return min(limit, max(self.n_startup_trials - self._log.n_complete, 1))
        twin = copy.deepcopy(self)
        spent, n = 0.0, 0
        with torch.no_grad():
            base = twin._modelling.surrogate.model
            for x in twin._log.pending():
                spent, n = spent + float(base(x[None])[1][0]) / base.lam, n + 1
            while n < limit and 1.0 + spent <= 2.0:
                x = twin._log.point(twin._ask_one().id)
                spent, n = spent + float(base(x[None])[1][0]) / base.lam, n + 1
        return max(n, 1)

    def trials_dataframe(self) -> "pandas.DataFrame":
        """One row a trial, with Optuna's column names (number, value, params_*, state, ...); needs pandas."""
        return self._log.dataframe()

    # -- state files ---------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state to one file, atomically: JSON and arrays, nothing that runs when it is read.

        Not saved: `feasible`, kernels that are not ours, data frames and pools of objects; `load` takes them again.
        """
        persistence.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        pool: Any = None,
        surrogate: Surrogate | None = None,
        feasible: Callable[[Params], bool] | None = None,
    ) -> "Optimizer":
        """Read what `save` wrote; the same asks follow as would have without the break, bit for bit.

        Args:
            path: the file.
            pool: the data frame, or the objects: all that were ever in the pool, in order of first appearance.
            surrogate: with the kernel, where that was not one of ours.
            feasible: the constraint, where there was one.

        Raises:
            StateFileError: not a complete state file of an optimizer, or one of a newer version.
            ArgumentError: something that is not saved is missing.
        """
        return persistence.load(cls, path, pool, surrogate, feasible)


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
