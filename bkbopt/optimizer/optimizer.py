"""The `Optimizer`: Bayesian optimisation of a noisy black box with ask and tell; its results are in `readings/`."""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack, overload

from bkbopt._support import fork_locks
from bkbopt._support.checks import check_count, check_flag, check_number
from bkbopt._support.settings import in_usual_settings
from bkbopt.confidence import Confidence
from bkbopt.optimizer.arguments import option_types as types
from bkbopt.optimizer.arguments.frames import whole
from bkbopt.optimizer.arguments.naming import as_directions
from bkbopt.optimizer.arguments.option_names import check_known
from bkbopt.optimizer.arguments.outcome_constraints import as_limits
from bkbopt.optimizer.arguments.problems import arms_of, as_queued
from bkbopt.optimizer.changing import Changing
from bkbopt.optimizer.designers import saving
from bkbopt.optimizer.designers.locking import locked
from bkbopt.optimizer.designers.making import as_designer
from bkbopt.optimizer.log.aims import Aims
from bkbopt.optimizer.log.attributes import checked_attrs
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.trials import Trial
from bkbopt.optimizer.readings.copies import Copies
from bkbopt.optimizer.readings.predicting import Predicting
from bkbopt.optimizer.readings.shown import Shown
from bkbopt.optimizer.readings.trust import Trust
from bkbopt.optimizer.telling.tell_calls import failures_of, report_of, tell
from bkbopt.search.criteria.acquisition import Acquisition
from bkbopt.spaces.base import Params
from bkbopt.surrogates import Surrogate
from bkbopt.surrogates.base import MakesSurrogate

__all__ = ["Optimizer"]


class Optimizer(Shown, Predicting, Trust, Copies, Changing):
    """Bayesian optimisation of a noisy black box with ask and tell; it may be used from several threads.

    An optimizer is a log of trials and a designer, which computes suggestions. These depend only on the arguments below
    and on the trials in the order of their completion. With `storage` the log is a file: changes are on the disk when
    calls return, any number of processes may use the file, and the same constructor call opens it again.

    Args:
        space_or_pool: a search space (see `Space.parse`) or a finite pool (an array (A, d), a data frame, a list of
            anything the surrogate's kernel understands, a path, memmap or table that a `Pool` leaves where it is,
            or a `Pool`, as `Pool.product` makes one). A list of (low, high) tuples is a space.
        direction: "minimize" or "maximize".
        directions: a direction for each of several objectives, in place of `direction`: a list, or a dict from names of
            the objectives, {"loss": "minimize", "power": "maximize"}, by which values may be told.
        constraints: outcome constraints, that is, limits of measured quantities whose values `tell` takes: a list of
            "viscosity <= 30", "0.2 <= ph <= 0.4", or a dict {"viscosity": (None, 30.0)}. A name alone is told as an
            excess, feasible if <= 0.
        seed: seed of all random numbers; None for a random one.
        n_startup_trials: values of start-up points (the centre, then quasi-random ones) before models are used, by
            default 10; from three values on a failed trial counts half.
        surrogate: "bkb" (default), "exact", "fourier", the name of an online learner ("pkawv", "forks" and others, see
            `bkbopt.LearnerSurrogate`), or an instance without data, which is copied: a surrogate or a learner.
        acquisition: acquisition function: "ucb", "logei", "thompson", or a callable (mean, variance) -> scores. Its
            arguments and result are tensors (n,) of standardised values that are maximised, or arrays if PyTorch cannot
            differentiate it. With several objectives, constraints or failed trials other criteria are used, see
            `bkbopt.search.criteria.criterion`.
        beta: width of the confidence bounds: None (the default schedule), a number of standard deviations, or a
            schedule of `bkbopt.confidence`.
        fit: whether kernel and noise are fitted. With True values are standardised, and pool columns scaled to [0, 1],
            long tails compressed; a noise variance given with the surrogate is kept, in the user's units. With False
            nothing is scaled, and kernel and noise must be given, in the user's units. Fitting voids the theorems'
            guarantees.
        duplicates: "allow", or "avoid" to propose no point of a discrete space and no row of a pool twice (see the
            guide "Pools").
        deterministic: whether a point always has the same value. A given noise variance is kept. If values of one point
            differ, their noise is fitted all the same, with a warning.
        feasible: only points for which it is true are proposed: `feasible(params) -> bool`, with a row's columns in a
            pool, or a rule "x + y <= 1", or a list of rules (see `bkbopt.spaces.rules`).
        storage: path of an SQLite file for the log; None for a log in memory. If the file exists, its trials are
            continued, and the other arguments must be those it was made with (`Optimizer.open` takes them from it).
            Omitted values of `seed`, `beta`, `n_startup_trials` and names of objectives are the file's; `beta` and
            `n_startup_trials` may be changed, names may be given if it has none.
        perturbations: whether some asks, fewer and fewer, search for a better basin: in a box by a random change of one
            parameter of the best point, a larger beta, or a new search of 60 trials, in pools and grids of noisy values
            among points without one (`search.perturbations`, `search.restarts`). Only with `fit=True`.

    Raises:
        ArgumentError, ArgumentTypeError: an option is out of range or of the wrong type, the space or pool is invalid.
        StateFileError: the storage is not a log, or is damaged.
        StorageError: the system does not give access to the storage.
        FileNotFoundError: the folder of the storage does not exist.

    Example:
        >>> import bkbopt as bo
        >>> opt = bo.Optimizer({"x": bo.Float(-1.0, 2.0)}, seed=0)
        >>> for _ in range(12):
        ...     trial = opt.ask()
        ...     told = opt.tell(trial, (trial.params["x"] - 0.5) ** 2)
        >>> abs(opt.recommend().params["x"] - 0.5) < 0.2
        True
    """

    @in_usual_settings
    def __init__(
        self,
        space_or_pool: Any,
        *,
        direction: types.Direction = "minimize",
        directions: Sequence[str] | Mapping[str, str] | None = None,
        constraints: types.Constraints = (),
        seed: int | None = None,
        n_startup_trials: int | None = None,
        surrogate: str | Surrogate | MakesSurrogate | None = None,
        acquisition: types.AcquisitionName | Acquisition = "ucb",
        beta: float | Confidence | None = None,
        fit: bool = True,
        duplicates: Literal["allow", "avoid"] = "allow",
        deterministic: bool = False,
        feasible: types.Feasible | None = None,
        perturbations: bool = True,
        storage: str | os.PathLike[str] | None = None,
    ) -> None:
        file = None if storage is None else LogFile.existing(storage)
        beta, n_startup_trials = saving.kept(file, beta, n_startup_trials)
        directions, objectives = as_directions(direction, directions)
        objectives = objectives or (saving.objectives_of(file) if file is not None else ())
        self._acquisition = acquisition
        self._core = as_designer(
            space_or_pool,
            aims=Aims(directions, as_limits(constraints), objectives),
            seed=seed,
            n_startup_trials=n_startup_trials,
            surrogate=surrogate,
            acquisition=acquisition,
            beta=beta,
            fit=fit,
            duplicates=duplicates,
            deterministic=deterministic,
            feasible=feasible,
            perturbations=perturbations,
        )
        self._lock = fork_locks.lock()
        if storage is not None:
            saving.join(self._core, storage, file, self._describe(), seeded=seed is not None, free=feasible is None)

    # -- asking ------------------------------------------------------------------------------------------------------

    @overload
    def ask(self, *, fixed: Params | None = None, heartbeat: bool = False) -> Trial: ...
    @overload
    def ask(
        self, n: int | Literal["useful"], *, fixed: Params | None = None, heartbeat: bool = False
    ) -> list[Trial]: ...
    @locked
    def ask(
        self,
        n: int | Literal["useful"] | None = None,
        *,
        fixed: Params | None = None,
        heartbeat: bool = False,
    ) -> Trial | list[Trial]:
        """The next trial, or a list of the next `n`; each is pending until it is told or failed.

        Queued trials come first (see `enqueue`). Without noise pending points are distinct while there are enough
        points; with noise a row of a pool, or a point of a grid, may be pending twice if a second value is useful. The
        list is shorter than `n` if `duplicates="avoid"` leaves fewer points. Beside five running trials and more, most
        suggestions maximise the posterior mean in place of the bound (with the default acquisition and beta).

        Args:
            n: number of trials; None for a single trial instead of a list. "useful" for all queued trials and as many
                others as bring the number of running trials to `useful_workers`; the list is empty if values of running
                trials are needed first.
            fixed: values at which some parameters are fixed (a context, for example); for a pool, some columns. Queued
                trials with other values of them stay in the queue.
            heartbeat: whether the trials get their first `heartbeat`, in the same transaction.

        Raises:
            SpaceExhaustedError: every point has been proposed (`duplicates="avoid"`), has failed or is infeasible.
            ArgumentError: no feasible point was found, or `fixed` does not belong to the space.
        """
        useful = isinstance(n, str) and n == "useful"
        count = None if useful else 1 if n is None else check_count("n", n, 1, 'a whole number >= 1, "useful" or None')
        trials = self._core.ask(count, {} if fixed is None else fixed, beating=heartbeat)
        return trials[0] if n is None else trials

    @locked
    def enqueue(self, params: Params, user_attrs: Mapping[str, Any] | None = None) -> Trial:
        """Queue a point for the next asks, first in, first out; missing parameters are suggested when it is asked for.

        A complete point is proposed even if it was evaluated before. A trial stays in the queue while a new space or
        pool does not contain it, or its missing parameters have no values. `user_attrs` is as in `tell`.

        Returns:
            The queued trial; it keeps its id.

        Raises:
            ArgumentError: a parameter or value outside of the space, a point that is not an arm of the pool, or an
                infeasible point.
        """
        point = whole(as_queued(params), self._core.conversion.without_gaps)
        return self._core.enqueue(point, checked_attrs(user_attrs))

    # -- telling -----------------------------------------------------------------------------------------------------

    @overload
    def tell(self, trial: types.OneTrial, value: Any = None, **more: Unpack[types.TellOptions]) -> Trial: ...
    @overload
    def tell(self, trial: types.ManyTrials, value: Any = None, **more: Unpack[types.TellOptions]) -> list[Trial]: ...
    @locked
    def tell(
        self,
        trial: Any,
        value: Any = None,
        *,
        constraints: Mapping[str, Any] | None = None,
        std: Any = None,
        columns: Sequence[str] | None = None,
        invalid: Literal["raise", "fail", "skip", "partial"] = "raise",
        replace: bool = False,
        user_attrs: Mapping[str, Any] | None = None,
        again: bool = True,
    ) -> Trial | list[Trial]:
        """Report the value of a trial, or of many trials; after an error nothing is changed.

        Args:
            trial: a trial of `ask` or its id; or the parameters of a point as a dict, which complete a running trial at
                this point or else add a finished one. For many trials a list of these, or a data frame of parameters.
                Numbers of a pool's row may have been rounded to six digits or to float32, if they are of one row only.
            value: a finite number in the user's units, or one for each of several objectives; or a dict of these, or of
                pairs (value, std), by the names of the objectives, whose other items are values of constraints, or
                attributes: numbers, flags, text, but not parameters. For many trials an array (n,) or (n, k), a list of
                dicts, a dict of arrays, a data frame, or names of columns. None if only constraints have values. Of
                several objectives those that are None are not measured, see `Trial.partial_values`.
            constraints: their measured values by name; for many trials arrays or columns.
            std: known standard deviation of the value's noise, user's units, or one for each objective; NaN or None
                where it is unknown, as by default, and fitted. For many trials one for all, or an array or columns.
            columns: the columns of a data frame that are parameters. None for all that no other argument names.
            invalid: rows without a finite value "raise" an error, "fail" as trials, or are left out ("skip"). So do
                rows with a gap in a constraint, but "skip" tells them without that constraint, which stays unknown.
                "partial" is "skip", but of several objectives NaN, too, means that one is not measured. With "skip",
                and with "fail" of many trials, None is like NaN.
            replace: whether the trials are finished or failed ones, of which values are replaced: a wrong value by the
                right one, or a std by a larger one where the value is outdated. What is not told stays, so that a
                constraint, or another objective, may be told later than the value. All is then learnt again.
            user_attrs: see `set_user_attr`; for many trials lists or columns, or one value for all.
            again: for many trials, False leaves out rows that are finished trials with these values already, as where a
                table has grown and is told again; of equal rows as many as there are such trials.

        Returns:
            The finished trial or trials; with `again=False` the new ones.

        Raises:
            UnknownTrialError: there is no trial with this id.
            TrialStateError: the trial was told or failed before; with `replace`, it was not.
            ArgumentError: a value that is not finite, or parameters outside the space.
            ArgumentTypeError: an argument has the wrong type.
        """
        more = {"constraints": constraints, "std": std, "columns": columns, "invalid": invalid, "replace": replace}
        told, many = tell(self._core, trial, value, user_attrs=user_attrs, again=again, **more)
        return told if many else told[0]

    @locked
    def tell_rows(self, rows: Any, values: Any, **more: Unpack[types.TellOptions]) -> list[Trial]:
        """Report values of arms of the pool, by row number or by their label in the data frame.

        Args:
            rows: row numbers, or labels of the data frame's index (or of the column `Pool(id_column=)`).
            values: as in `tell`, for many trials.
            more: the other arguments of `tell`.

        Raises:
            ArgumentError: the optimizer has a space, or the pool has no such row; nothing is changed.
        """
        check_known("tell_rows", more, types.TellOptions)
        arms = arms_of(self.pool, rows)
        return tell(self._core, arms, values, argument="values", **more)[0]

    @overload
    def fail(self, trial: types.OneTrial, **more: Unpack[types.FailOptions]) -> Trial: ...
    @overload
    def fail(self, trial: Sequence[types.OneTrial], **more: Unpack[types.FailOptions]) -> list[Trial]: ...
    @locked
    def fail(self, trial: Any, *, lost: bool = False, user_attrs: Mapping[str, Any] | None = None) -> Any:
        """Report that a trial or a point, or each of a list, gave no value; points near it are proposed less often.

        The probability of failure is modelled from failures and successes. On discrete spaces and pools the same point
        is not proposed again. If the trial is `lost`, its point is not the reason, as where a machine breaks down, and
        nothing is learnt: see `lost_trials`. The errors, and `user_attrs`, are those of `tell`.
        """
        without_gaps, is_lost = self._core.conversion.without_gaps, check_flag("lost", lost)
        reports, many = failures_of(trial, without_gaps, is_lost=is_lost, user_attrs=user_attrs)
        failed = self._core.finish(reports, "fail")
        return failed if many else failed[0]

    @locked
    def set_user_attr(self, trial: Trial | int, key: str, value: Any) -> Trial:
        """Keep something with a trial, in whatever state it is: a number, text, a flag, or a list or dict of these.

        The search does not read it. It is in `Trial.user_attrs`, in tables and in logs.

        Raises:
            UnknownTrialError: there is no trial with this id.
            ArgumentError, ArgumentTypeError: something that JSON does not have.
        """
        return self._core.add_attrs(report_of(trial), checked_attrs({key: value}))

    # -- heartbeats and lost trials ----------------------------------------------------------------------------------

    @locked
    def _lose(self, trials: list[Trial]) -> None:
        """Fail running trials for a reason that is not their points, as an interrupt is, and queue their points."""
        self._core.recover(-math.inf, True, {trial.id for trial in trials})

    @locked
    def heartbeat(self, trial: Trial | int | Sequence[Trial | int]) -> None:
        """Report that a trial, or each of a list, is still running; see `recover`. The errors are those of `tell`."""
        self._core.beat(failures_of(trial)[0], "heartbeat")

    @locked
    def recover(self, older_than: float = 0.0, *, enqueue: bool = False) -> list[Trial]:
        """Fail lost trials: running trials without a recent heartbeat, because their process has died.

        Args:
            older_than: seconds since the ask of a trial, or since its last `heartbeat`. With the default all running
                trials fail; use it only when nothing runs.
            enqueue: whether the points of these trials are queued; the search then does not learn that they failed.

        Returns:
            The trials that failed.

        Raises:
            ArgumentError: a time that is negative or not finite.
        """
        seconds = check_number("older_than", older_than, 0.0, "a number of seconds >= 0")
        return self._core.recover(seconds, enqueue)

    # -- files -------------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | os.PathLike[str], **given: Unpack[types.LogParts]) -> "Optimizer":
        """Read the log of a file into memory; later changes are not written to it. Arguments and errors: see `open`."""
        check_known("load", given, types.LogParts)
        optimizer = cls.open(path, **given)
        optimizer._core.leave_file()
        return optimizer

    @classmethod
    @in_usual_settings
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        pool: Any = None,
        surrogate: Surrogate | None = None,
        feasible: types.Feasible | None = None,
        acquisition: Acquisition | None = None,
        beta: Confidence | None = None,
    ) -> "Optimizer":
        """Continue the log of a file, in the file; later asks are bit for bit the same as without the interruption.

        Args:
            path: path of a file that `storage` or `save` made.
            pool: the data frame or array, if it is not in the file; for a pool of objects all objects that were ever in
                the pool, by first appearance.
            surrogate: the surrogate with its kernel, if that was the user's own.
            feasible: the constraint on parameters, if it was a function.
            acquisition: the acquisition function, if it was the user's own.
            beta: the schedule of beta, if it was the user's own.

        Raises:
            FileNotFoundError: there is no such file.
            StateFileError: the file is not a log, is one of another version, or is damaged.
            StorageError: the system does not give access to the file.
            ArgumentError: an argument that is not stored in the file is missing.
        """
        given = {"pool": pool, "surrogate": surrogate, "acquisition": acquisition, "beta": beta}
        return saving.opened(cls, path, feasible, given)
