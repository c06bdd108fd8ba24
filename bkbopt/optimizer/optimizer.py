"""Ask and tell: Bayesian optimisation of a noisy black box with BKB or an exact Gaussian process."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, cast, overload

import numpy as np
import torch
from torch import Tensor

from bkbopt._support import forks
from bkbopt._support.arrays import check_choice, check_count, check_number
from bkbopt.confidence import Confidence, as_confidence
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer import results, saving
from bkbopt.optimizer.arguments import (
    as_directions,
    as_names,
    as_problem,
    as_rule,
    as_surrogate,
    check_kernel,
    checked_seed,
)
from bkbopt.optimizer.log_file import LogFile
from bkbopt.optimizer.logged_designer import LoggedDesigner
from bkbopt.optimizer.telling import Report, reports_of, trial_id
from bkbopt.optimizer.trials import Outcome, Trial
from bkbopt.optimizer.vocabulary import Params
from bkbopt.search.acquisition import Acquisition
from bkbopt.search.designer import Options
from bkbopt.search.evaluations import Point
from bkbopt.search.quantity import ModelOptions
from bkbopt.search.reports import Diagnostics, Recommendation, RegretCertificate
from bkbopt.spaces.pool import EncodedPool, Pool
from bkbopt.spaces.space import Space
from bkbopt.surrogates import Surrogate

if TYPE_CHECKING:
    import pandas

    from bkbopt.learners import OnlineLearner

__all__ = ["Optimizer"]

F = TypeVar("F", bound=Callable[..., Any])


def _locked(method: F) -> F:
    """One thread at a time, and up to date with what other processes have written."""

    @functools.wraps(method)
    def call(self: "Optimizer", *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            is_within = self._core.is_in_use  # a user's function, called by an ask, may look at the trials
            threads = torch.get_num_threads()
            try:
                self._core.refresh()
                return method(self, *args, **kwargs)
            finally:  # an interrupt can have skipped the end of any block in the call
                if torch.get_num_threads() != threads:
                    torch.set_num_threads(threads)
                if not is_within:
                    self._core.release()

    return cast(F, call)


class Optimizer:
    """Suggests where to evaluate a noisy black box next. It may be used from several threads.

    An optimizer is a log of trials and a designer: what is asked follows from the arguments below and from the trials
    in the order of their completion, and from nothing else. With `storage` the log is a file: what `ask`, `tell`,
    `fail` and `enqueue` did is on the disk when they return, any number of processes may use the file at once, and
    the same call opens it again.

    Args:
        space_or_pool: a search space (see `Space.parse`) or a finite pool (an array (A, d), a data frame, a list of
            anything the surrogate's kernel understands, or a `Pool`). A list of (low, high) tuples is a space.
        direction: "minimize" or "maximize".
        directions: one of these for each of several objectives, in place of `direction`. Needs BoTorch.
        constraints: names of outcome constraints; `tell` takes their values, and a point is feasible where all are
            <= 0.
        seed: of everything random; None draws one.
        n_startup_trials: values to gather by a quasi-random design before the model takes over.
        surrogate: "bkb" (default), "exact", "fourier", the name of an online learner ("pkawv", "forks" and others, see
            `bkbopt.LearnerSurrogate`), or an instance without data, which is copied: a surrogate or a learner.
        acquisition: "ucb", "logei", "thompson", or a callable (mean, variance) -> scores of tensors (n,),
            differentiable and larger where better, on standardised values that are maximised. With several objectives,
            constraints or failed trials the criterion is another in any case, see `bkbopt.search.criteria`.
        beta: width of the confidence: None (a practical default), a number of standard deviations, or a schedule of
            `bkbopt.confidence`.
        fit: whether kernel and noise are fitted. Values are then standardised and pool columns scaled to [0, 1];
            a noise given with the surrogate is kept, and is in the user's units. With False everything is taken as it
            is: kernel and noise must be given, in the user's units. Fitting voids the theorems' guarantees.
        duplicates: "allow", or "avoid" to propose no point of a discrete space or pool twice.
        deterministic: whether the same parameters give the same value always.
        feasible: `feasible(params) -> bool`; only points where it holds are proposed.
        storage: path of an SQLite file that keeps the log; None keeps it in memory. Where the file is there already,
            its trials are gone on with, and the other arguments have to be those it was made with: `seed`, `beta` and
            `n_startup_trials` are those of the file where they are left out, and a `beta` or `n_startup_trials` that is
            given holds from then on. `Optimizer.open` takes all from the file.
        perturbations: whether some asks, fewer and fewer, look for a better basin elsewhere: by a random change of a
            single parameter of the best point, or by an upper confidence bound with a larger beta (see
            `bkbopt.search.perturbations`). Only in spaces that are not searched as a grid, and with `fit=True`.

    Raises:
        ArgumentError: an option is out of range, or the space or pool is refused.
        ArgumentTypeError: an option has the wrong type.
        MissingPackageError: several objectives, and BoTorch is not installed.
        StateFileError: the storage is no log, or is damaged.
        StorageError, FileNotFoundError: the system refuses the storage, or there is no such folder.

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
        directions: Sequence[str] | None = None,
        constraints: Sequence[str] = (),
        seed: int | None = None,
        n_startup_trials: int = saving.STARTUP,
        surrogate: "str | Surrogate | OnlineLearner | None" = None,
        acquisition: str | Acquisition = "ucb",
        beta: float | Confidence | None = None,
        fit: bool = True,
        duplicates: Literal["allow", "avoid"] = "allow",
        deterministic: bool = False,
        feasible: Callable[[Params], bool] | None = None,
        perturbations: bool = True,
        storage: str | os.PathLike[str] | None = None,
    ) -> None:
        file = None if storage is None else LogFile.existing(storage)
        if file is not None:
            beta, n_startup_trials = saving.kept(file, beta, n_startup_trials)
        self.directions = as_directions(direction, directions)
        self.constraints = as_names("constraints", constraints)
        self.duplicates = check_choice("duplicates", duplicates, ("allow", "avoid"))
        if feasible is not None and not callable(feasible):
            raise ArgumentTypeError(f"feasible: expected a callable (params) -> bool, got {type(feasible).__name__}.")
        for name, flag in (("deterministic", deterministic), ("perturbations", perturbations), ("fit", fit)):
            if not isinstance(flag, bool):
                raise ArgumentTypeError(f"{name}: expected True or False, got {flag!r}.")
        self.acquisition, rule = acquisition, as_rule(acquisition)
        self.n_startup_trials = check_count("n_startup_trials", n_startup_trials, 0)
        self.confidence = as_confidence(beta)
        entropy = int(np.random.SeedSequence(checked_seed(seed)).generate_state(1)[0])
        prototype = as_surrogate(surrogate, fit)
        problem = as_problem(space_or_pool, fit, prototype.has_kernel)
        if problem.pool is not None and problem.pool.objects is not None:
            prototype.bind_objects(problem.pool.objects)
        options = Options(
            ModelOptions(prototype, fit, deterministic),
            self.n_startup_trials,
            rule,
            self.confidence,
            avoid_duplicates=duplicates == "avoid",
            perturbations=perturbations,
        )
        signs = tuple(1.0 if direction == "maximize" else -1.0 for direction in self.directions)
        self._core = LoggedDesigner(replace(problem, signs=signs), options, entropy, feasible)
        check_kernel(prototype, self._core.designer.history)
        self._lock = forks.lock()
        if storage is not None:
            saving.join(self._core, storage, file, self._options(), seeded=seed is not None)

    def _options(self) -> dict[str, Any]:
        return saving.describe_options(self._core, self.directions, self.constraints, self.acquisition, self.duplicates)

    def __repr__(self) -> str:
        log = self._core.log
        return f"<Optimizer to {', '.join(self.directions)}: {len(log)} trials, {log.n_complete} of them with values>"

    def _repr_html_(self) -> str:
        """For notebooks: the best and the recommended trial, counts, and the latest trials."""
        return results.as_html(self)

    def __getstate__(self) -> NoReturn:
        """Refuse copies and pickles: two logs of one optimizer would have the same numbers for different trials."""
        raise ArgumentTypeError(
            "optimizer: expected no copy and no pickle of it; another process opens its storage, Optimizer.open(path), "
            "and Optimizer.load reads what save wrote into a second one."
        )

    @property
    def direction(self) -> str:
        """The direction of the first objective."""
        return self.directions[0]

    @property
    def storage(self) -> str | None:
        """Path of the file that keeps the log; None if it is in memory."""
        return None if self._core.file is None else self._core.file.path

    @property
    @_locked
    def options(self) -> dict[str, Any]:
        """What it was made with, by the names of the arguments, but for the space or pool, the seed and the storage.

        For people: the surrogate is the name of its class with its options, `feasible` whether there is one.
        """
        options = self._core.designer.options
        surrogate = options.models.surrogate
        given = {name: value for name, value in surrogate.options().items() if name != "needs_kernel"}
        is_named = isinstance(self.acquisition, str)
        return {
            "directions": self.directions,
            "constraints": self.constraints,
            "n_startup_trials": int(self.n_startup_trials),
            "surrogate": f"{type(surrogate).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})",
            "acquisition": self.acquisition if is_named else getattr(self.acquisition, "__name__", "a function"),
            "beta": self.confidence,
            "fit": options.models.fit,
            "duplicates": self.duplicates,
            "deterministic": options.models.deterministic,
            "feasible": self._core.designer.problem.feasible is not None,
            "perturbations": options.perturbations,
        }

    @property
    @_locked
    def diagnostics(self) -> list[Diagnostics]:
        """One record for each ask."""
        return self._core.log.diagnostics

    @property
    @_locked
    def space(self) -> Space | None:
        """The search space; None over a pool."""
        return self._core.designer.problem.space

    @property
    @_locked
    def pool(self) -> EncodedPool | None:
        """The pool with its encoding; None in a space."""
        return self._core.designer.problem.pool

    # -- asking ------------------------------------------------------------------------------------------------------

    @overload
    def ask(self, *, fixed: Params | None = None, heartbeat: bool = False) -> Trial: ...
    @overload
    def ask(
        self, n: int | Literal["useful"], *, fixed: Params | None = None, heartbeat: bool = False
    ) -> list[Trial]: ...
    @_locked
    def ask(
        self,
        n: int | Literal["useful"] | None = None,
        *,
        fixed: Params | None = None,
        heartbeat: bool = False,
    ) -> Trial | list[Trial]:
        """The next trial, or a list of the next `n`; each counts as pending until told or failed.

        Queued trials come first (see `enqueue`). Without noise pending points differ from each other while there are
        enough; with noise a row of a pool, or a point of a grid, may be pending twice where a second value pays. The
        list is shorter than `n` where `duplicates="avoid"` leaves fewer.

        Args:
            n: how many; None for one, not in a list. "useful" for as many as `useful_workers` would have in flight,
                less those that are, and all queued ones: a batch of the size that pays now. An empty list says that
                values have to come first.
            fixed: values of some parameters that are held (a context, say); in a pool, of some columns. Queued trials
                with other values of them stay in the queue.
            heartbeat: whether the trials get their first `heartbeat` with it, in the same write to a storage.

        Raises:
            SpaceExhaustedError: with `duplicates="avoid"`, every point was proposed.
            ArgumentError: no feasible point was found, or `fixed` does not belong to the space.
        """
        useful = isinstance(n, str) and n == "useful"
        count = None if useful else 1 if n is None else check_count("n", n, 1, 'a whole number >= 1, "useful" or None')
        held = self._core.vocabulary.fixed(fixed or {}, "fixed")
        trials = self._core.ask(count, held, beating=heartbeat)
        return trials[0] if n is None else trials

    @_locked
    def enqueue(self, params: Params) -> Trial:
        """Queue a point to be asked next, in the order of the calls; parameters left out are suggested then.

        A whole point is asked even where it was evaluated before. Queued trials stay in the queue while the space or
        pool, having been replaced, does not have them, or while nothing that they leave open is left to propose.

        Returns:
            The queued trial, whose id it keeps.

        Raises:
            ArgumentError: a parameter or value outside of the space, a point that is no arm of the pool, or one that
                is not feasible.
        """
        if not isinstance(params, Mapping):
            raise ArgumentTypeError(f"params: expected a dict of parameters, got {type(params).__name__}.")
        return self._core.enqueue(params)

    @_locked
    def set_pool(self, pool: Any) -> None:
        """Replace the arms of a pool: some may have gone, others come; what was learnt stays.

        Raises:
            ArgumentError: the optimizer has a space, or the pool is refused (see the constructor); nothing changes.
        """
        old = self.pool
        if old is None:
            raise ArgumentError("pool: expected an optimizer over a pool, but this one has a search space.")
        self._core.set_candidates(old.replaced(pool if isinstance(pool, Pool) else Pool(pool)))

    @_locked
    def set_space(self, space: Any) -> None:
        """Replace the search space: bounds may move, parameters come and go.

        Past trials stay in the model where their parameters have the same kind: a moved range, another step. A
        parameter that past trials lack counts as unknown for them.

        Raises:
            ArgumentError: the optimizer has a pool, or the space is refused (see the constructor); nothing changes.
        """
        if self.space is None:
            raise ArgumentError("space: expected an optimizer over a space, but this one has a pool; see set_pool.")
        self._core.set_candidates(Space.parse(space))

    # -- telling -----------------------------------------------------------------------------------------------------

    @_locked
    def tell(
        self,
        trial: Any,
        value: Any = None,
        *,
        constraints: Mapping[str, Any] | None = None,
        std: Any = None,
        columns: Sequence[str] | None = None,
        invalid: Literal["raise", "fail"] = "raise",
    ) -> Trial | list[Trial]:
        """Report values.

        Args:
            trial: a trial of `ask` or its id; the parameters of a point, as a dict (those of a running trial complete
                it, others are past data); or a list of these, or a data frame of parameters, for many.
            value: a finite number in the direction's own units, one for each of several objectives; an array (n,) or
                (n, k), or the names of columns, for many. None where a run gave the values of constraints only.
            constraints: values of outcome constraints by name; feasible where <= 0. For many: arrays or columns' names.
            std: standard deviation of the value's noise where it is known, user's units; else the noise is fitted.
            columns: columns of a data frame that are parameters; others are ignored. None takes all that are left.
            invalid: "fail" makes failed trials of rows without a finite value; "raise" refuses the call.

        Returns:
            The finished trial or trials.

        Raises:
            UnknownTrialError: an id that was never given out.
            TrialStateError: the trial was told or failed before.
            ArgumentError: a value that is not finite, or parameters outside the space.
            ArgumentTypeError: anything else. In all cases nothing was learnt.
        """
        if std is not None and not self._core.designer.options.models.surrogate.takes_weights:
            raise ArgumentError(
                'std: expected none with an online learner, which weighs all values alike; use surrogate="bkb".'
            )
        reports, many = reports_of(
            trial,
            value,
            n_objectives=len(self.directions),
            constraint_names=self.constraints,
            constraints=constraints,
            std=std,
            columns=columns,
            invalid=invalid,
            without_gaps=self._core.vocabulary.without_gaps,
        )
        told = self._core.finish(reports, "tell")
        return told if many else told[0]

    @_locked
    def tell_rows(self, rows: Any, values: Any, **more: Any) -> list[Trial]:
        """Report values of arms of the pool, by row number or by their label in the data frame.

        Args:
            rows: row numbers, or labels of the data frame's index (of `Pool(id_column=)`, where one is named).
            values: as in `tell`, for many.
            more: the other arguments of `tell`.

        Raises:
            ArgumentError: the optimizer has a space, or the pool has no such row; nothing was learnt then.
        """
        if self.pool is None:
            raise ArgumentError("rows: expected an optimizer over a pool, but this one has a search space; see tell.")
        if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
            raise ArgumentTypeError(f"rows: expected a list of row numbers or labels, got {rows!r}.")
        told = self.tell([{"index": self.pool.row_of(row)} for row in rows], values, **more)
        assert isinstance(told, list)
        return told

    @_locked
    def fail(self, trial: Any) -> Any:
        """Report that a trial, or each of a list of trials, gave no value: its neighbourhood becomes less likely.

        Where trials fail is learnt from failures and successes alike. On discrete spaces and pools the same point is
        not proposed again. Raises as `tell` does.
        """
        many = isinstance(trial, list | tuple) and not isinstance(trial, Trial)
        reports = [Report(trial_id(one, "a trial or its id"), Outcome()) for one in (trial if many else [trial])]
        failed = self._core.finish(reports, "fail")
        return failed if many else failed[0]

    # -- trials that nobody finishes ---------------------------------------------------------------------------------

    @_locked
    def heartbeat(self, trial: Any) -> None:
        """Say that a trial, or each of a list of trials, is still running; see `recover`. Raises as `tell` does."""
        several = trial if isinstance(trial, list | tuple) and not isinstance(trial, Trial) else [trial]
        self._core.beat([trial_id(one, "a trial or its id") for one in several], "heartbeat")

    @_locked
    def recover(self, older_than: float = 0.0, *, enqueue: bool = False) -> list[Trial]:
        """Fail running trials of which nothing was heard for some time: those of processes that died.

        Args:
            older_than: seconds since a trial was asked, or since its last `heartbeat`. With the default all running
                trials fail: call it so only when nothing runs.
            enqueue: whether their points are queued, to be asked again.

        Returns:
            The trials that failed.

        Raises:
            ArgumentError: a time that is negative or not finite.
        """
        seconds = check_number("older_than", older_than, 0.0, "a number of seconds >= 0")
        return self._core.recover(seconds, enqueue)

    # -- results -----------------------------------------------------------------------------------------------------

    @property
    @_locked
    def trials(self) -> list[Trial]:
        """All trials in order of their ids."""
        return list(self._core.log)

    @property
    @_locked
    def n_complete(self) -> int:
        """Number of trials with values."""
        return self._core.log.n_complete

    @property
    @_locked
    def best_trial(self) -> Trial:
        """The feasible trial with the best value told; under noise it flatters, see `recommend`.

        `NotReadyError` before there is one, `ArgumentError` with several objectives: see `best_trials`.
        """
        return results.best_trial(self._core.log, self.directions)

    @property
    @_locked
    def best_trials(self) -> list[Trial]:
        """The feasible trials that no other one dominates: the Pareto front of the values told."""
        return results.front(self._core.log, self.directions)

    @_locked
    def hypervolume(self, reference: Sequence[float]) -> float:
        """The volume that the Pareto front dominates, as far as the `reference` point (k,), in the user's units.

        Raises:
            ArgumentError: not one number for each objective.
        """
        return results.hypervolume(self._core.log, self.directions, reference)

    @property
    @_locked
    def surrogate(self) -> Surrogate:
        """The surrogate of the first objective, on encoded points and standardised values.

        `NotReadyError` before the first value.
        """
        return self._core.followed().trained().objectives[0].surrogate

    @_locked
    def recommend(self) -> Recommendation:
        """The evaluated point with the best posterior mean among those expected to be feasible: the answer under noise.

        Over a pool it is an arm that is still there, and in a space a point that belongs to it as it is now; only if
        there is none, the best of all, without an index.

        Raises:
            NotReadyError: no value was told yet.
            ArgumentError: there are several objectives; see `best_trials`.
        """
        if len(self.directions) > 1:
            raise ArgumentError(
                "recommend: expected a single objective, got several, of which no single point is best."
            )
        return results.recommendation(self._core.followed(), self._core.vocabulary.params, self._belongs)

    def _belongs(self, point: Point) -> bool:
        """Whether a point is a whole one of the space or pool as it is now."""
        return self._core.vocabulary.holds(point) and self._core.designer.whole(point) is not None

    @_locked
    def predict(self, params: Iterable[Params] | Params, *, averaged: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and standard deviation of the noise-free value, each `(n,)`, in the user's units.

        With several objectives each is `(n, k)`. With `fit=True` very bad values were winsorised for the model: far
        from the optimum the mean is too good. Where noise grows with the distance from the best value, as it does with
        many losses, a logarithm of that distance is modelled: the mean is then the median, and the deviation holds to
        first order.

        Args:
            params: points.
            averaged: whether to average over the hyper-parameters that the data leave open, in place of taking the
                fitted ones for certain, as the search does. The fitted ones make the deviations too small: one and two
                of them covered fresh points of searches of 25 to 300 values in 57 and 87 % of the cases, averaged ones
                in 66 and 93 %, on functions of the kernel's kind; on Branin in 45 and 74, and 51 and 79 %
                (`python -m benchmarks.calibration`). Takes some tenths of a second after new values.

        Raises:
            NotReadyError: no value was told yet.
            ArgumentError: parameters outside of the space.
        """
        X = self.encode([params] if isinstance(params, Mapping) else list(params))
        return self.predict_encoded(X, averaged=averaged)

    @_locked
    def predict_encoded(self, X: Tensor, *, averaged: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """As `predict`, of encoded points `X (n, d)`; see `encode`."""
        return results.prediction(self._core.followed(), X, averaged)

    @_locked
    def encode(self, params: Sequence[Params]) -> Tensor:
        """Parameters as encoded points `X (n, d)`, the columns that surrogates see."""
        return self._core.update().history.encode(self._core.vocabulary.points(params))

    @_locked
    def observed(self) -> tuple[Tensor, np.ndarray]:
        """Encoded points (n, d) and values (n,) or (n, k), user's units, in the order in which the values came."""
        entries = [self._core.log.entries[i] for i in self._core.log.order if self._core.log.entries[i].trial.values]
        values = np.array([entry.trial.values for entry in entries]).reshape(-1, len(self.directions))
        X = self._core.update().history.encode([entry.point or {} for entry in entries])
        return X, values[:, 0] if len(self.directions) == 1 else values

    @property
    @_locked
    def beta(self) -> float:
        """The width of the confidence now, in standard deviations; `NotReadyError` before the first value."""
        return results.width(self._core.followed())

    @property
    @_locked
    def noise_std(self) -> float:
        """Standard deviation of the noise, fitted or given, user's units; `NotReadyError` before the first value.

        Where the noise was found to grow with the distance from the best value, it is that at the recommended point.
        """
        return self._core.followed().trained().objectives[0].noise_sd

    @_locked
    def regret_certificate(self, confidence: float = 0.95) -> RegretCertificate:
        """How much the optimum's noise-free value can exceed that of the recommended point, at a confidence.

        A quantile of max f - f(recommended) over 400 joint draws of function and hyper-parameters: see
        `bkbopt.search.certificate`. At 0.95 it held in 98 % of 220 readings on functions of the kernel's kind, on
        Hartmann-6 in 92 % of 60 in a box and 80 % of 60 over pools, on Shekel-4 in 20 % of 60
        (`python -m benchmarks.calibration`). It is about one look at one time; of many looks some fail. With a
        theorem's schedule of beta and `fit=False`, as `bkbopt.theory` has them, it is the largest UCB minus the largest
        LCB, which holds as the theorem says, and at all times. Constraints are not looked at. Where the optimum is a
        narrow well without a value in it, the model gives it no probability, and the bound does not hold.

        Args:
            confidence: the probability that the bound is to hold with.

        Raises:
            NotReadyError: no value was told yet.
            ArgumentError: there are several objectives, or no probability is given.
        """
        if len(self.directions) > 1:
            raise ArgumentError("regret_certificate: expected a single objective, got several; see hypervolume.")
        confidence = check_number("confidence", confidence, 0.0, "a number strictly between 0 and 1", strict=True)
        if confidence >= 1.0:
            raise ArgumentError(f"confidence: expected a number strictly between 0 and 1, got {confidence!r}.")
        return results.certificate(self._core.followed(), self._core.vocabulary.params, self._belongs, confidence)

    @_locked
    def useful_workers(self, limit: int = 64) -> int:
        """How many trials it is useful to have in flight now, those running included.

        The batch rule of BBKB: add hallucinated picks while 1 + the sum of their leverages stays within 2. Few early
        on, when one answer changes everything; more as the posterior settles. At first: the start-up trials left.
        """
        limit = check_count("limit", limit, 1)
        self._core.update()
        return results.useful_workers(self._core.designer, limit)

    @_locked
    def trials_dataframe(self) -> "pandas.DataFrame":
        """One row a trial, with Optuna's column names (number, value, params_*, state, ...); needs pandas."""
        return self._core.log.dataframe(self.directions)

    # -- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the log to a file, in a single step: options, space and all trials.

        The file is a log as `storage` makes one, for `load`, or for `open` to go on in it. Models are not in it: they
        follow from the trials. Not in it either: `feasible`, kernels and acquisition functions that are not ours, data
        frames, arrays of more than 64 MiB, and pools of objects; they are given again.

        Raises:
            ArgumentError: the file is that of the log itself, or something cannot be in a log.
            OSError: the system refuses; what was there before is as it was.
        """
        with self._lock:
            self._core.mend()
            saving.save(path, self._options(), self._core)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **given: Any) -> "Optimizer":
        """Read the log of a file into memory; what is asked then is not written to the file.

        Args:
            path: of a file that `storage` or `save` made.
            given: what is not in the file: the other arguments of `open`, whose errors are these too.
        """
        optimizer = cls.open(path, **given)
        optimizer._core.leave_file()
        return optimizer

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        pool: Any = None,
        surrogate: Surrogate | None = None,
        feasible: Callable[[Params], bool] | None = None,
        acquisition: Acquisition | None = None,
    ) -> "Optimizer":
        """Go on with the log of a file, in the file; the same asks follow as without a break, bit for bit.

        Args:
            path: of a file that `storage` or `save` made.
            pool: the data frame or array, where it is not in the file; of objects, all that were ever in the pool, in
                order of first appearance.
            surrogate: with the kernel, where that was not one of ours.
            feasible: the constraint on parameters, where there was one.
            acquisition: the user's own, where there was one.

        Raises:
            FileNotFoundError: there is no such file.
            StateFileError: not a log, one of another version, or a damaged one.
            StorageError: the system refuses the file.
            ArgumentError: something that is not in the file is missing.
        """
        file = LogFile(path)
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(file.close)
            current, arguments = saving.arguments_of(
                file, pool, surrogate, acquisition, has_feasible=feasible is not None
            )
            with file.fits():
                where = current if isinstance(current, Space) else current.pool
                optimizer = cls(where, feasible=feasible, **arguments)
            saving.follow(optimizer._core, file, current)
            on_failure.pop_all()
        return optimizer
