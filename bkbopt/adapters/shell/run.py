"""`bkbopt run`: ask, evaluate with a command, tell; in parallel, and continued after a crash.

The main thread asks and starts processes. For each process a thread waits for its end and writes the outcome at once,
also while the main thread is busy. Another thread writes heartbeats. Both write to the log without a model. Runs that
share a log communicate through the log only.
"""

import argparse
import contextlib
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bkbopt._support.locks import locked
from bkbopt._support.sqlite import PATIENCE
from bkbopt.adapters.shell.jobs import FORM, GRACE, Command, Job
from bkbopt.adapters.shell.model_commands import best_rows
from bkbopt.adapters.shell.progress import Progress
from bkbopt.adapters.shell.rows import Row
from bkbopt.adapters.shell.space_file import read_space
from bkbopt.adapters.shell.writing import beat, finish, lose
from bkbopt.errors import ArgumentError, NotReadyError, SpaceExhaustedError, TrialStateError
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.trials import utc_now
from bkbopt.search.trials.states import FAIL

if TYPE_CHECKING:
    from bkbopt import Optimizer

__all__ = ["run"]

#: Seconds between two heartbeats of a trial.
BEAT = 10.0
#: Seconds without a heartbeat after which a trial of a run is lost.
SILENCE = 60.0
#: A run without any value stops after so many outputs in a row that cannot be read: all others would fail as well.
UNREADABLE = 3
#: Seconds between two reads of the log.
POLL = 1.0


def run(args: argparse.Namespace) -> Iterator[Row]:
    """Make or continue the log until it has enough trials; returns the rows of `best`."""
    from bkbopt import Optimizer
    from bkbopt.optimizer.arguments.outcome_constraints import as_limits

    space, options = read_space(args.space)
    command = Command(args.command, list(space))
    names = as_limits(options.get("constraints", ()))
    with_blanks = [name for name in names if [name] != name.split()]
    if with_blanks:
        raise ArgumentError(f"constraints: expected names without blanks for bkbopt run, got {with_blanks[0]!r}.")
    directions = options.get("directions", ())
    doubled = next((name for name in directions if name in names), None)
    if isinstance(directions, dict) and doubled is not None:
        raise ArgumentError(f"constraints: expected other names than those of objectives, got {doubled!r}.")
    if args.stop_at_regret is not None and len(directions) > 1:
        raise ArgumentError("--stop-at-regret: expected a space with a single objective, got several; use --trials.")
    storage = args.storage or Path(args.space).with_suffix(".db")
    opt = Optimizer(space, **options, storage=storage)
    _Loop(opt, command, args).go()
    if not opt.n_complete:
        failed = any(trial.state == FAIL for trial in opt.trials)
        advice = "see the errors above" if failed else "print a value of the objective beside those of constraints"
        raise NotReadyError(f"run: expected at least one trial with a value, got none of {len(opt.trials)}; {advice}.")
    return best_rows(opt, with_regret=args.stop_at_regret is not None)


class _Loop:
    """One run on a log, with the options of the command line.

    Attributes:
        jobs: the unfinished trials of this run, by number, with their processes once these are started.
        given_up: trials whose outcome is discarded.
        is_good_enough: whether the regret of the recommended point was small enough, when it was last computed.
        judged_at: number of finished trials at which it was last computed.
    """

    def __init__(self, opt: "Optimizer", command: Command, args: argparse.Namespace) -> None:
        assert opt.storage is not None
        self.opt, self.command, self.args = opt, command, args
        self.progress = Progress(LogFile(opt.storage))
        self.jobs: dict[int, Job | None] = {}
        self.given_up: set[int] = set()
        self._log, self._lock = LogFile(opt.storage), threading.Lock()
        self._events: queue.SimpleQueue[Future[Any] | None] = queue.SimpleQueue()
        self._over = threading.Event()
        self._is_stopped = self._is_exhausted = self.is_good_enough = False
        self.judged_at: int | None = None
        self._awaited: set[int] = set()
        self._n_unreadable = 0
        self._bar = _bar(args)

    # -- the main thread ---------------------------------------------------------------------------------------------

    def go(self) -> None:
        """Run to the end.

        Raises:
            KeyboardInterrupt: a signal has stopped the run; its trials are queued again.
            BkbError, OSError: the log or the command cannot be used; its trials are queued again.
        """
        with _signals(self._stop), self._bar, ThreadPoolExecutor(self.args.jobs + 1) as threads:
            threads.submit(self._send_heartbeats).add_done_callback(self._events.put)
            try:
                while self._step(threads):
                    self._await_event()
                if self._is_stopped and self.jobs:
                    self._say(f"bkbopt: ending the commands, within {GRACE:g} s; a second Ctrl-C ends them at once")
            finally:
                self._give_up()
            if not self._is_stopped and (why := self._why_early()):
                self._say(f"bkbopt: ended after {self._n_made()} trials: {why}")
        if self._is_stopped:
            raise KeyboardInterrupt

    def _why_early(self) -> str | None:
        """Why the run has ended, if not because it has as many trials as it was to have."""
        if self.is_good_enough:
            return f"the regret of the recommended point is at most {self.args.stop_at_regret:g} at confidence 0.95"
        return "no point is left to propose" if self._is_exhausted else None

    def _stop(self) -> None:
        """Handle a signal: the first one stops the run in order, the second one at once."""
        if self._is_stopped:
            raise KeyboardInterrupt
        self._is_stopped = True
        self._events.put(None)

    def _step(self, threads: ThreadPoolExecutor) -> bool:
        """Start as many trials as possible; returns whether there is something to wait for."""
        self.progress.update()
        self._show()
        if self._is_stopped:
            return False
        self._recover()
        self._judge()
        if self._n_wanted() > 0:
            self._start(threads)
        self._report_silent_trials()
        return bool(self.jobs) or not (self._is_exhausted or self._is_complete())

    def _n_made(self) -> int:
        """Number of finished trials, without those whose points were queued again."""
        return self.progress.n_finished - self.progress.n_lost

    def _is_complete(self) -> bool:
        return self.is_good_enough or (self.args.trials is not None and self._n_made() >= self.args.trials)

    def _judge(self) -> None:
        """Compute the regret of the recommended point: at the beginning, and after some trials of any run."""
        from bkbopt.optimizer.running.stopping import CERTIFY_EVERY, is_good_enough

        made, regret = self._n_made(), self.args.stop_at_regret
        if regret is None or self._is_complete():
            return
        if self.judged_at is None or made >= self.judged_at + CERTIFY_EVERY:
            self.judged_at, self.is_good_enough = made, is_good_enough(self.opt, regret)

    def _n_wanted(self) -> int:
        """Number of trials to ask for now; running trials of other runs on this log are taken into account."""
        free = 0 if self._is_exhausted or self._is_complete() else self.args.jobs - len(self.jobs)
        if self.args.trials is None:
            return free
        alive = sum(entry.seen_at is not None for entry in self.progress.running.values())
        return min(free, self.args.trials - self._n_made() - alive)

    def _start(self, threads: ThreadPoolExecutor) -> None:
        """Ask for the wanted number of trials and start them; the lock prevents that two runs both ask for the last."""
        with locked(f"{self.opt.storage}.run", PATIENCE):
            self.progress.update()
            count = self._n_wanted()
            try:
                trials = self.opt.ask(count, heartbeat=True) if count > 0 else []
            except SpaceExhaustedError:
                self._is_exhausted = True
                return
        self.jobs.update((trial.id, None) for trial in trials)
        for trial in trials:
            if not self._is_stopped:
                job = Job(self.command.filled(trial.params), trial.id, trial.params)
                self.jobs[trial.id] = job
                threads.submit(self._attend, trial.id, job).add_done_callback(self._events.put)

    def _await_event(self) -> None:
        """Wait until a process ends, a signal comes, or it is time to read the log."""
        with contextlib.suppress(queue.Empty):
            event = self._events.get(timeout=POLL)
            while True:
                if event is not None:
                    self._take(event.result())
                event = self._events.get_nowait()

    def _take(self, ended: tuple[int, str | None] | None) -> None:
        if ended is not None:
            number, message = ended
            job = self.jobs.pop(number, None)
            if message is not None:
                self._say(f"bkbopt: trial {number}: {message}")
            self._check_readable(None if job is None else job.unreadable)

    def _check_readable(self, output: str | None) -> None:
        """Stop the run if its first outputs cannot be read; `output` is the end of one that cannot, None for others."""
        self._n_unreadable = 0 if output is None else self._n_unreadable + 1
        if output is not None and self._n_unreadable == UNREADABLE and not self.opt.n_complete:
            shown = f"an output that ends with {output!r}" if output else "no output"
            raise ArgumentError(
                f"command: expected {FORM} on the last line of its output, got {shown}, and {UNREADABLE} trials in a "
                f"row failed so; mend the command, and delete {self.opt.storage}, where these trials count as failed."
            )

    def _silent(self, seconds: float) -> set[int]:
        """The running trials of runs, of this or another one, without a heartbeat for that long."""
        now = utc_now()
        return {n for n, e in self.progress.running.items() if e.seen_at is not None and e.silence(now) >= seconds}

    def _recover(self) -> None:
        """Queue the points of trials whose run has died."""
        silent = [number for number in self._silent(SILENCE) if number not in self.jobs]
        with self._lock:
            lost = lose(self._log, silent, older_than=SILENCE, enqueue=True)
        for trial in lost:
            self._say(f"bkbopt: trial {trial.id}: lost, since its run has died; its point is queued again")
        if lost:
            self.progress.update()

    def _give_up(self) -> None:
        """End the remaining processes, and queue their points again; none are left if the run was not interrupted."""
        self._over.set()
        with self._lock:
            self.given_up.update(self.jobs)
        jobs = [job for job in self.jobs.values() if job is not None]
        deadline = time.monotonic() + GRACE
        try:
            for job in jobs:
                job.ask_to_end()
            for job in jobs:
                job.end(max(deadline - time.monotonic(), 0.0))
        finally:  # a second signal skips the grace period
            for job in jobs:
                job.end(0.0)
            with self._lock:
                lose(self._log, list(self.jobs), enqueue=True)

    # -- other threads -----------------------------------------------------------------------------------------------

    def _attend(self, number: int, job: Job) -> tuple[int, str | None]:
        """Wait for a process and write its outcome; returns the number of the trial, and a message or None."""
        outcome, message = job.result(self.progress.aims, self.args.timeout_per_trial)
        if message is not None:
            outcome = replace(outcome, user_attrs={"error": message})
        with self._lock:
            if number in self.given_up:
                return number, None
            try:
                finish(self._log, number, outcome, "run")
            except TrialStateError as error:
                return number, f"its result is not written: {error}"
        return number, None if message is None else f"failed: {message}"

    def _send_heartbeats(self) -> None:
        while not self._over.wait(BEAT):
            with self._lock:
                ended = beat(self._log, list(self.jobs)) if self.jobs else []
            for number in ended:  # another process has told or failed these trials
                job = self.jobs.get(number)
                if job is not None:
                    job.ask_to_end()

    # -- output ------------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        self._bar.n = self._n_made()
        self._bar.set_postfix_str(self.progress.summary(), refresh=False)
        self._bar.refresh()

    def _report_silent_trials(self) -> None:
        """Print a message, once, for each silent trial of another run, if this run can only wait for those."""
        if self.jobs or self._is_exhausted or self._is_complete():
            return
        silent = self._silent(SILENCE / 2.0)
        for number in sorted(silent - self._awaited):
            self._say(
                f"bkbopt: trial {number}: waiting, since its run sends no heartbeats; after {SILENCE:g} s without one "
                "it is run again"
            )
        self._awaited |= silent

    def _say(self, text: str) -> None:
        self._bar.write(" ".join(text.split()), file=sys.stderr)


def _bar(args: argparse.Namespace) -> Any:
    from tqdm import tqdm

    return tqdm(total=args.trials, desc="bkbopt", unit="trial", file=sys.stderr, disable=True if args.quiet else None)


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """A block in which SIGINT, SIGTERM and SIGHUP call `stop`, unless they are ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, lambda *_: stop())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
