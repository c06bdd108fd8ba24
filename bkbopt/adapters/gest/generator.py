"""`BKBGenerator`: ask and tell as gest-api's suggest and ingest."""

import contextlib
import copy
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from gest_api.generator import Generator
from gest_api.vocs import VOCS

from bkbopt._support import fork_locks
from bkbopt._support.checks import check_count
from bkbopt.adapters.gest.problem import ID, problem_of
from bkbopt.adapters.gest.reports import evaluated_point
from bkbopt.errors import ArgumentError, ArgumentTypeError, SpaceExhaustedError
from bkbopt.optimizer.log.trials import Trial
from bkbopt.optimizer.optimizer import Optimizer

__all__ = ["BKBGenerator"]

#: Arguments of `Optimizer` that follow from the VOCS.
OF_VOCS = ("space_or_pool", "direction", "directions", "constraints")
#: Arguments that may not be in a log; they are passed again when a copy is made.
BESIDE_LOG = ("surrogate", "acquisition", "beta", "feasible")


class BKBGenerator(Generator):  # type: ignore[misc]  # gest-api ships no type information
    """An `Optimizer` with the interface of gest-api, the interface of libEnsemble, Xopt and Optimas to optimizers.

    - Variables are floats, integers (a `ContinuousVariable` with an integer `dtype`) or sets of values. Sets of numbers
      become ordinal parameters in ascending order, other sets categories. Contextual variables, arrays and the
      objective "EXPLORE" are refused. Default values of variables are not used.
    - Each constraint of VOCS is modelled, and its values are those of the evaluation; a value on the bound is feasible.
    - Constants are in every suggestion. Ingested constants and observables are ignored.
    - Suggestions have an `_id`, the number of their trial, and are pending until they are ingested.
    - Points without `_id` complete the pending suggestion with the same variables, or else are new data.
    - An evaluation has failed if an objective is missing, None, NaN or infinite, or a constraint is None, NaN or
      infinite. The probability of failure is modelled. Ingest failed evaluations too: other suggestions stay pending
      until `generator.optimizer.recover()`.

    A copy or a pickle of a generator continues with its own copy of the log; with `storage` it shares the file. Xopt
    copies the generator that it is given: read results from `X.generator.optimizer`.

    Args:
        vocs: variables, objectives, constraints and constants; copied.
        batch_size: number of points of `suggest(None)`.
        options: further arguments of `Optimizer`: seed, n_startup_trials, surrogate, acquisition, beta, storage, ...

    Attributes:
        vocs: the VOCS.
        batch_size: see above.
        optimizer: the `Optimizer`, with `recommend`, `best_trials`, `predict` and its other methods.

    Raises:
        ArgumentError: the optimizer does not support a part of VOCS (a ValueError), or an option is out of range.
        ArgumentTypeError: an argument has the wrong type, or follows from VOCS.

    Example:
        >>> from gest_api.vocs import VOCS
        >>> from bkbopt.adapters.gest import BKBGenerator
        >>> vocs = VOCS(variables={"x": [-1.0, 2.0]}, objectives={"f": "MINIMIZE"}, constants={"shift": 0.5})
        >>> generator = BKBGenerator(vocs, seed=0)
        >>> for _ in range(12):
        ...     points = generator.suggest(1)
        ...     generator.ingest([{**point, "f": (point["x"] - point["shift"]) ** 2} for point in points])
        >>> abs(generator.optimizer.recommend().params["x"] - 0.5) < 0.2
        True
    """

    returns_id = True

    def __init__(self, vocs: VOCS, *, batch_size: int = 1, **options: Any) -> None:
        super().__init__(vocs)
        for name in OF_VOCS:
            if name in options:
                raise ArgumentTypeError(f"{name}: this argument follows from vocs; drop it.")
        self.batch_size = check_count("batch_size", batch_size, 1)
        self.vocs: VOCS = vocs.model_copy(deep=True)
        self._problem = problem_of(self.vocs)
        self._options = options
        self._lock = fork_locks.lock()
        #: Trials of a `suggest` that failed because fewer points were left than requested; the next call returns them.
        self._left: list[Trial] = []
        self.optimizer = Optimizer(
            self._problem.space,
            directions=self._problem.directions,
            constraints=self._problem.limits,
            **options,
        )

    def _validate_vocs(self, vocs: VOCS) -> None:
        problem_of(vocs)

    # -- gest-api --------------------------------------------------------------------------------------------------

    def suggest(self, num_points: int | None = None) -> list[dict[str, Any]]:
        """The next points to evaluate: variables, constants and `_id`.

        Args:
            num_points: number of points; None for `batch_size`, or fewer if fewer are left.

        Raises:
            ArgumentError: fewer points are left (with `duplicates="avoid"`); a call for fewer points returns them.
        """
        count = self.batch_size if num_points is None else check_count("num_points", num_points, 0)
        with self._lock:
            if count > len(self._left):
                with contextlib.suppress(SpaceExhaustedError):
                    self._left += self.optimizer.ask(count - len(self._left))
            if num_points is None and self._left:
                count = min(count, len(self._left))
            if count > len(self._left):
                raise ArgumentError(
                    f"num_points: expected at most {len(self._left)}, since no other points are left, got {count}."
                )
            trials, self._left = self._left[:count], self._left[count:]
        # Constants may be lists, which are the caller's to change.
        return [{**trial.params, **copy.deepcopy(self._problem.constants), ID: trial.id} for trial in trials]

    def ingest(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Learn from evaluated points, suggested or not; after an error none is learnt.

        Args:
            results: for each point its objectives and constraints by name, with the `_id` of its suggestion or, if it
                was not suggested, with its variables. Observables are kept as attributes of its trial; other items are
                ignored.

        Raises:
            ArgumentError: an `_id` that was not suggested, or was suggested with other variables; a variable that is
                missing or outside of its domain; objectives without a constraint.
            TrialStateError: the suggestion was ingested before.
            ArgumentTypeError: an argument has the wrong type.
        """
        if isinstance(results, Mapping | str) or not isinstance(results, Sequence):
            raise ArgumentTypeError(
                'results: expected a list of dicts, one for each point, as from frame.to_dict("records"), got a '
                f"{type(results).__name__}."
            )
        trials = self.optimizer.trials
        points = [evaluated_point(i, row, self._problem, trials) for i, row in enumerate(results)]
        if points:
            self.optimizer.tell(
                [point.target for point in points],
                [point.values for point in points],
                constraints={name: [point.measured[name] for point in points] for name in self._problem.limits},
                invalid="fail",
                user_attrs={name: [point.observed.get(name) for point in points] for name in self._problem.observables},
            )

    # -- copies ----------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """The state, with the log, or the path of its file, in place of the optimizer."""
        path = self.optimizer.storage
        state = {name: value for name, value in vars(self).items() if name not in ("_lock", "_problem", "optimizer")}
        return {**state, "_path": path, "_log": _log_of(self.optimizer) if path is None else b""}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The inverse of `__getstate__`, with a new optimizer."""
        path, log = state.pop("_path"), state.pop("_log")
        self.__dict__.update(state, _problem=problem_of(state["vocs"]), _lock=fork_locks.lock())
        given = {name: self._options[name] for name in BESIDE_LOG if _is_object(self._options.get(name))}
        self.optimizer = _with_log(log, given) if path is None else Optimizer.open(path, **given)


def _is_object(option: object) -> bool:
    """Whether an option is a function or a surrogate of the user; names and learners are stored in the log."""
    return callable(option) or hasattr(type(option), "fantasy")


def _log_of(optimizer: Optimizer) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.db")
        optimizer.save(path)
        with open(path, "rb") as file:
            return file.read()


def _with_log(log: bytes, given: Mapping[str, Any]) -> Optimizer:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.db")
        with open(path, "wb") as file:
            file.write(log)
        return Optimizer.load(path, **given)
