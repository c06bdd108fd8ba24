"""`minimize` and `maximize`: the loop of ask, evaluate and tell, on any executor."""

import contextlib
import functools
import importlib.util
import inspect
import logging
import queue
import reprlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

from bkbopt._support.checks import check_choice, check_count, check_flag, check_number
from bkbopt._support.compiled import noticed
from bkbopt._support.progress import bars
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError, NotReadyError, SpaceExhaustedError, StorageError
from bkbopt.optimizer.arguments.option_names import check_names
from bkbopt.optimizer.arguments.option_types import MinimizeOptions, Options
from bkbopt.optimizer.log.trials import Trial
from bkbopt.optimizer.optimizer import Optimizer
from bkbopt.optimizer.running.kept_by_errors import kept_by_errors
from bkbopt.optimizer.running.stopping import CERTIFY_EVERY, is_good_enough
from bkbopt.search.trials.directions import sign_of
from bkbopt.search.trials.states import RUNNING
from bkbopt.spaces.values import as_python, shown

__all__ = ["maximize", "minimize"]

logger = logging.getLogger(__name__)

#: An exception in a message or an attribute, shortened, also one whose own `repr` fails.
_shown = reprlib.Repr()
_shown.maxother = 300


def minimize(
    f: Callable[[Any], Any],
    space: Any,
    n_trials: int | None = None,
    *,
    timeout: float | None = None,
    callbacks: Callable[[Optimizer, Trial], object] | Iterable[Callable[[Optimizer, Trial], object]] = (),
    executor: Any = None,
    n_workers: int | None = None,
    catch: type[Exception] | Iterable[type[Exception]] = (),
    invalid: Literal["raise", "fail"] = "raise",
    show_progress_bar: bool = False,
    stop_at_regret: float | None = None,
    pass_trial: bool = False,
    **options: Unpack[Options],
) -> Optimizer:
    """Minimise `f(params) -> float`; see also `maximize`.

    Args:
        f: the black box. It returns a number, or a list of numbers for several objectives, or a pair of either and a
            dict with the values of outcome constraints; or a dict of all by name, and of attributes, see
            `Optimizer.tell`. Processes and clusters must be able to import it.
        space: a space, a pool, or an `Optimizer` to continue, which keeps its own direction.
        n_trials: number of trials; None for as many as `timeout` or `stop_at_regret` allow.
        timeout: seconds after which no trial is started; running trials are waited for.
        callbacks: functions that are called as `callback(optimizer, trial)` after each trial; the run stops when one
            returns True. A callback with a method `finish` is called as `finish(optimizer)` when the run has ended
            without an error.
        executor: an object with `submit(f, params) -> future`, whose futures have `add_done_callback`, as in
            `concurrent.futures`; results are told in the order of completion. None evaluates here, one by one.
        n_workers: number of running trials with an executor, by default its number of workers if known, else 2; without
            an executor it has no effect.
        catch: exceptions of `f` that fail the trial, which has the attribute "error" then; the first one is logged as a
            warning, later ones as information.
            Other exceptions end the run. An exception or interrupt that ends the run fails the running trials. The
            points of those that did not raise it are queued, and the search does not learn that they failed. It has the
            optimizer, if that was made here without `storage`, as its attribute `bkbopt_run.optimizer`.
        invalid: "fail" fails trials whose value is NaN or infinite; "raise" ends the run.
        show_progress_bar: whether to show a progress bar on standard error, with the best value of all trials.
        stop_at_regret: end the run when the regret certificate, at confidence 0.95, is at most this, units of y, and
            the recommended point is expected to be feasible. It is computed every ten trials.
        pass_trial: whether `f` is called as `f(trial)`, with the `Trial` of the ask in place of its parameters: it has
            `params`, `id`, the `index` of the pool's row, and the row's `label` if the pool has an `id_column`.
        options: arguments of `Optimizer`.

    Returns:
        The optimizer; see `Optimizer.recommend`, `Optimizer.best_trial` and `Optimizer.trials_dataframe`.

    Raises:
        ArgumentError: a number is out of range, there is no stopping rule, `stop_at_regret` was given with several
            objectives, or `Optimizer` or `tell` raises it.
        ArgumentTypeError: an argument has the wrong type, or is unknown; `executor` does not return futures.
        SpaceExhaustedError: with `duplicates="avoid"`, no point was left for the first trial. If none is left later on,
            the run ends.

    Example:
        >>> import bkbopt as bo
        >>> opt = bo.minimize(lambda params: (params["x"] - 0.3) ** 2, {"x": (0.0, 1.0)}, n_trials=15, seed=0)
        >>> abs(opt.recommend().params["x"] - 0.3) < 0.05
        True
        >>> measured = [0.9, 0.2, 0.5]  # in the order of the rows
        >>> opt = bo.minimize(lambda t: measured[t.index], [[1.0], [3.0], [2.0]], 6, pass_trial=True, seed=0)
        >>> opt.recommend().index
        1
    """
    given = "trial" if check_flag("pass_trial", pass_trial) else "params"
    if not callable(f):
        raise ArgumentTypeError(f"f: expected a callable ({given}) -> float, got {type(f).__name__}.")
    check_names(options, list(inspect.signature(Optimizer).parameters), list(inspect.signature(minimize).parameters))
    if n_trials is None and timeout is None and stop_at_regret is None:
        raise ArgumentError(
            "n_trials: expected a number, or timeout or stop_at_regret, got none of them; pass one to end the run."
        )
    if n_trials is not None:
        n_trials = check_count("n_trials", n_trials, 0)
    if n_workers is not None:
        n_workers = check_count("n_workers", n_workers, 1)
    if timeout is not None:
        timeout = check_number("timeout", timeout, 0.0, "a number of seconds >= 0")
    if stop_at_regret is not None:
        stop_at_regret = check_number("stop_at_regret", stop_at_regret, 0.0, "a number >= 0, units of y")
    _check_executor(executor, n_workers)
    after = _several("callbacks", callbacks, callable, "callables (optimizer, trial)")
    catch = _several("catch", catch, _is_exception, "exception classes")
    check_choice("invalid", invalid, ("raise", "fail"))
    if isinstance(space, Optimizer) and options:
        raise ArgumentError(f"{next(iter(options))}: options cannot be changed for an optimizer that exists; drop it.")
    optimizer = space if isinstance(space, Optimizer) else Optimizer(space, **options)
    stop = _Stop(optimizer, n_trials, timeout, stop_at_regret, after)
    own = None if optimizer is space or optimizer.storage is not None else optimizer
    with kept_by_errors(own), bars(show_progress_bar), _bar(show_progress_bar, n_trials) as bar:
        stop.begin(bar)
        run = _Run(optimizer, f, stop, pass_trial=pass_trial, catch=catch, invalid=invalid)
        if executor is None:
            run.here()
        else:
            run.on(executor, n_workers or getattr(executor, "_max_workers", None) or 2)
    for callback in after:
        if callable(getattr(callback, "finish", None)):
            callback.finish(optimizer)
    return optimizer


def maximize(
    f: Callable[[Any], Any], space: Any, n_trials: int | None = None, **more: Unpack[MinimizeOptions]
) -> Optimizer:
    """Maximise `f(params) -> float`: `minimize` with `direction="maximize"`; `more` are its other arguments.

    Example:
        >>> import bkbopt as bo
        >>> opt = bo.maximize(lambda params: -((params["x"] - 0.3) ** 2), {"x": (0.0, 1.0)}, n_trials=15, seed=0)
        >>> abs(opt.recommend().params["x"] - 0.3) < 0.05
        True
    """
    if "direction" in more or "directions" in more:
        raise ArgumentError("direction: maximize sets the direction; call minimize with direction or directions.")
    if isinstance(space, Optimizer):
        if space.directions != ("maximize",):
            raise ArgumentError(f"space: expected an optimizer to maximize, got one to {', '.join(space.directions)}.")
        return minimize(f, space, n_trials, **more)
    more["direction"] = "maximize"
    return minimize(f, space, n_trials, **more)


def _check_executor(executor: Any, n_workers: int | None) -> None:
    """Refuse what is no executor; without one warn of a number of workers, which has no effect."""
    if executor is None:
        if n_workers is not None and n_workers > 1:
            logger.warning(
                "minimize: n_workers=%s has no effect without an executor, since trials run one by one; pass one, as "
                "executor=ThreadPoolExecutor(%s).",
                *(n_workers, n_workers),
            )
        return
    if isinstance(executor, type):
        raise ArgumentTypeError(f"executor: expected an object, got the class {executor.__name__}; make one of it.")
    if not callable(getattr(executor, "submit", None)):
        raise ArgumentTypeError(f"executor: expected something with submit(f, params), got {type(executor).__name__}.")


def _several(name: str, given: Any, fits: Callable[[Any], bool], what: str) -> tuple[Any, ...]:
    """A single item or an iterable of items as a tuple; each item must pass `fits`."""
    items = (given,) if fits(given) else tuple(given) if isinstance(given, Iterable) else None
    if items is None or not all(map(fits, items)):
        raise ArgumentTypeError(f"{name}: expected {what}, got {given!r}.")
    return items


def _is_exception(given: Any) -> bool:
    return isinstance(given, type) and issubclass(given, Exception)


class _Stop:
    """The stopping rules of a run, and what follows each trial: callbacks, the progress bar, messages."""

    def __init__(
        self,
        optimizer: Optimizer,
        n_trials: int | None,
        timeout: float | None,
        regret: float | None,
        callbacks: tuple[Callable[[Optimizer, Trial], object], ...],
    ) -> None:
        if regret is not None and len(optimizer.directions) > 1:
            raise ArgumentError(
                "stop_at_regret: expected a single objective, since the certificate is that of the recommended point, "
                f"got {len(optimizer.directions)}; use n_trials, timeout or a callback."
            )
        self.optimizer, self.n_trials, self.regret, self.callbacks = optimizer, n_trials, regret, callbacks
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.started = self.ended = 0
        self.asked_to = self.has_caught = False
        self.bar: Any = None
        self.best: Trial | None = None

    def begin(self, bar: Any) -> None:
        """Take the progress bar or None, and show the best value that there is, as where a run is continued."""
        self.bar = bar
        if bar is None or len(self.optimizer.directions) > 1:
            return
        with contextlib.suppress(NotReadyError):
            self.best = self.optimizer.best_trial
            self._show_best()

    def _show_best(self) -> None:
        assert self.best is not None
        self.bar.set_postfix(best=f"{self.best.value:.6g}", refresh=False)

    def _is_best(self, trial: Trial) -> bool:
        if len(trial.values) != 1 or not trial.is_feasible:
            return False
        sign = sign_of(self.optimizer.direction)
        return self.best is None or sign * trial.values[0] > sign * self.best.values[0]

    def next_trial(self) -> Trial | None:
        """The next trial, if the run goes on and a point is left."""
        if self.now():
            return None
        try:
            trial = self.optimizer.ask()
        except SpaceExhaustedError:
            if not self.started:
                raise
            self.asked_to = True
            return None
        self.started += 1
        return trial

    def now(self) -> bool:
        """Whether no further trial may start."""
        if self.asked_to or (self.n_trials is not None and self.started >= self.n_trials):
            return True
        return self.deadline is not None and time.monotonic() >= self.deadline

    def caught(self, trial: Trial, error: str) -> None:
        """Log an exception of `catch`; of the first one users must know, since a mistake in `f` fails all trials."""
        with contextlib.nullcontext() if self.bar is None else self.bar.external_write_mode(sys.stderr):
            level = logging.INFO if self.has_caught else logging.WARNING
            logger.log(level, "minimize: trial %s failed, since f raised %s.", trial.id, error)
        self.has_caught = True

    def after(self, trial: Trial) -> None:
        """Update the progress bar, call the callbacks and check the regret, after each trial."""
        self.ended += 1
        if self.bar is not None:
            self.bar.update(1)
            if self._is_best(trial):
                self.best = trial
                self._show_best()
        for callback in self.callbacks:
            self.asked_to |= as_python(callback(self.optimizer, trial)) is True  # numpy has a bool of its own
        if self.regret is not None and self.ended % CERTIFY_EVERY == 0:
            self.asked_to |= is_good_enough(self.optimizer, self.regret)


@contextlib.contextmanager
def _bar(show: bool, total: int | None) -> Iterator[Any]:
    if not show:
        yield None
        return
    # A notebook's own bar is made of ipywidgets; where they are not installed tqdm.auto warns of that.
    if importlib.util.find_spec("ipywidgets") is None:
        from tqdm import tqdm
    else:
        from tqdm.auto import tqdm
    with (
        tqdm(total=total, desc="bkbopt", unit="trial") as bar,
        noticed(lambda notice: bar.write(f"bkbopt: {notice}", file=sys.stderr)),
    ):
        yield bar


@dataclass(frozen=True)
class _Run:
    """A run of `minimize` with checked arguments."""

    optimizer: Optimizer
    f: Callable[[Any], Any]
    stop: _Stop
    pass_trial: bool
    catch: tuple[type[Exception], ...]
    invalid: Literal["raise", "fail"]

    def here(self) -> None:
        """Evaluate the trials here, one by one."""
        while (trial := self.stop.next_trial()) is not None:
            finished = None
            try:
                finished = self._finish(trial, functools.partial(self.f, self._argument(trial)))
            finally:
                if finished is None:
                    self._fail_running([trial], trial)
            self.stop.after(finished)

    def on(self, executor: Any, n_workers: int) -> None:
        """Evaluate that many trials at once on an executor; results are told in the order of completion."""
        done: queue.SimpleQueue[tuple[Trial, Any]] = queue.SimpleQueue()
        in_flight: dict[int, tuple[Trial, Any]] = {}
        told: Trial | None = None
        try:
            while True:
                while len(in_flight) < n_workers and (trial := self.stop.next_trial()) is not None:
                    in_flight[trial.id] = (trial, None)  # it is failed if `submit` raises an error
                    future = executor.submit(self.f, self._argument(trial))
                    in_flight[trial.id] = (trial, future)
                    if not callable(getattr(future, "add_done_callback", None)):
                        raise ArgumentTypeError(
                            "executor: expected submit(f, params) to return a future with add_done_callback, as those "
                            f"of concurrent.futures, got {type(future).__name__}."
                        )
                    future.add_done_callback(lambda future, trial=trial: done.put((trial, future)))
                if not in_flight:
                    return
                told, future = done.get()
                finished = self._finish(told, future.result)
                del in_flight[told.id]
                told = None
                self.stop.after(finished)
        finally:
            for _, future in in_flight.values():
                if callable(getattr(future, "cancel", None)):
                    future.cancel()
            self._fail_running([trial for trial, _ in in_flight.values()], told)

    def _argument(self, trial: Trial) -> Any:
        """The argument of `f`, which may change its parameters."""
        params = dict(trial.params)
        return replace(trial, params=params) if self.pass_trial else params

    def _finish(self, trial: Trial, result: Callable[[], Any]) -> Trial:
        """Tell the result, or fail the trial if `result` raises an exception of `catch`."""
        try:
            value = result()
        except self.catch as error:
            text = _shown.repr(error).encode(errors="replace").decode()
            failed: Trial = self.optimizer.fail(trial, user_attrs={"error": text})
            self.stop.caught(failed, text)
            return failed
        constraints = None
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping):
            value, constraints = value
        else:
            self._check_plain(value)
        return self.optimizer.tell(trial, value, constraints=constraints, invalid=self.invalid)

    def _check_plain(self, value: Any) -> None:
        """Refuse a result that is none, and numbers beside the values that may be those of constraints."""
        if value is None:
            raise ArgumentTypeError(
                "f: expected a number as its result, got None; return the value. For a trial without one raise an "
                'exception, with catch=..., or return NaN, with invalid="fail".'
            )
        k, names = len(self.optimizer.directions), list(self.optimizer.constraints)
        if names and isinstance(value, list | tuple) and len(value) > 1 and len(value) != k:
            what = "a value" if k == 1 else f"{k} values"
            example = ", ".join(f"{name!r}: number" for name in names)
            raise ArgumentError(
                f"f: expected {what}, or a tuple of {what} and a dict of the constraints {names}, got {shown(value)}; "
                f"return (value{'s' * (k > 1)}, {{{example}}}), or, of more objectives, pass their directions."
            )

    def _fail_running(self, trials: Sequence[Trial], told: Trial | None) -> None:
        """Fail those of the trials that are still running, as lost ones, and queue their points again.

        The trial that was being `told` is lost after an interrupt, or if its outcome could not be written: any other
        error is its own. The error that ends the run is not replaced by another.
        """
        if not trials:
            return
        interrupted = not isinstance(sys.exception(), Exception) or isinstance(sys.exception(), StorageError)
        try:
            states = {trial.id: trial.state for trial in self.optimizer.trials}
            running = [trial for trial in trials if states[trial.id] == RUNNING]
            self.optimizer.fail([trial for trial in running if trial is told and not interrupted])
            self.optimizer._lose([trial for trial in running if trial is not told or interrupted])
        except BkbError as error:  # a file that cannot be written
            numbers = [trial.id for trial in trials]
            logger.error(
                "Trials %s are still running in the log or not queued (see Optimizer.recover): %s", numbers, error
            )
