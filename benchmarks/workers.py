"""How busy one optimizer keeps many asynchronous workers, and its regret.

Run it as `python -m benchmarks.workers`. It is a simulation with a virtual clock of W workers on Hartmann-6 with noise.
A job takes a log-normal time with a median of 10 s and a sigma of 0.5. Of the jobs 2 % are stragglers, which take ten
times as long, 2 % crash at their end, and 0.1 % never return. After a deadline of 300 s a trial is failed, and its
worker is replaced. The fate of a job depends on the seed and the trial's number alone.

The optimizer is real, and is a single server: the processor time of its calls on one thread (their wall time on an idle
machine) advances the virtual clock, and workers wait until they are served. Whenever it is free it is told all finished
trials, and asked once for all waiting workers, AT_ONCE at most. A run ends with the value of the last evaluation.

- busy: share of the workers' time that they spend on jobs, waiting for a deadline not included;
- ms a trial: the optimizer's time divided by the number of evaluations;
- recommended, last fifth: noise-free regret of the recommended point, and of the last fifth of the evaluations in the
  order of their return, in units of the interquartile range.

Random search is the baseline of the regret, and takes no time: its "busy" is below 100 % only because of jobs that
never return.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bkbopt as bo
from benchmarks import comparison
from benchmarks.arguments import Arguments
from benchmarks.batch_problems import Target, of_box
from benchmarks.comparison import Record, add_options, records_by, run_all, with_error
from benchmarks.functions import PROBLEMS, Array
from benchmarks.report import Clock, limited_threads, print_table
from benchmarks.samplers import point

__all__ = ["CROWDS", "Crowd", "Driver", "Fate", "Job", "fate_of", "main", "run_job", "simulate"]

WORKERS = (4, 30, 100, 500, 1_000, 2_000)
MEDIAN_S, SIGMA = 10.0, 0.5
STRAGGLERS, SLOWER = 0.02, 10.0
CRASHES = 0.02
VANISHING, DEADLINE_S = 0.001, 300.0
#: Workers that are served by one ask.
AT_ONCE = 100
PROBLEM = "hartmann6"
# A tag keeps the jobs apart from other uses of the same small seeds.
STREAM = 7_012
HEADER = (
    "workers", "optimizer", "seeds", "busy %", "minutes", "ms a trial", "failed", "recommended", "last fifth",
    "average",
)  # fmt: skip


@dataclass(frozen=True)
class Fate:
    """Outcome of a job: the seconds until the optimizer is notified, and whether there is a value."""

    seconds: float
    has_value: bool
    vanishes: bool = False


def fate_of(number: int, seed: int) -> Fate:
    """The fate of the job of trial `number`."""
    rng = np.random.default_rng([STREAM, seed, number])
    slow, crashes, vanishes = rng.random(3) < (STRAGGLERS, CRASHES, VANISHING)
    seconds = MEDIAN_S * float(np.exp(SIGMA * rng.standard_normal())) * (SLOWER if slow else 1.0)
    if vanishes or seconds > DEADLINE_S:
        return Fate(DEADLINE_S, has_value=False, vanishes=bool(vanishes))
    return Fate(seconds, has_value=not crashes)


@dataclass(frozen=True)
class Driver:
    """The interface of an optimizer for the simulation: trials have numbers, and places are points (d,) of a box.

    `ask(n)` gives n numbers and their places (n, d); `tell(numbers, values)` and `fail(numbers)` finish trials, and
    `recommend()` names a place, (d,).
    """

    ask: Callable[[int], tuple[list[int], Array]]
    tell: Callable[[list[int], list[float]], object]
    fail: Callable[[list[int]], object]
    recommend: Callable[[], Array]


def ours(target: Target, seed: int, **options: Any) -> Driver:
    """`bo.Optimizer` with its defaults."""
    assert target.bounds is not None
    opt = bo.Optimizer(list(target.bounds), seed=seed, **options)

    def ask(n: int) -> tuple[list[int], Array]:
        trials = opt.ask(n)
        return [trial.id for trial in trials], np.array([point(trial.params) for trial in trials])

    return Driver(ask, opt.tell, opt.fail, lambda: point(opt.recommend().params))


def at_random(target: Target, seed: int) -> Driver:
    """Uniform points; it recommends that of the best value."""
    rng, places = np.random.default_rng(seed), []  # type: ignore[var-annotated]
    best: list[tuple[float, int]] = []

    def ask(n: int) -> tuple[list[int], Array]:
        new = target.from_unit(rng.random((n, target.dim)))
        places.extend(new)
        return list(range(len(places) - n, len(places))), new

    def tell(numbers: list[int], values: list[float]) -> None:
        best[:] = [min(best + list(zip(values, numbers, strict=True)))]

    return Driver(ask, tell, lambda numbers: None, lambda: np.asarray(places[best[0][1]]))


CROWDS: dict[str, Callable[[Target, int], Driver]] = {"bkb": ours, "random": at_random}


@dataclass
class Crowd:
    """W workers and their jobs under a virtual clock.

    Attributes:
        now: seconds of the virtual clock.
        idle: workers that wait.
        jobs: running jobs, as a heap: (time of notification, trial's number, its place, its fate).
        worked: seconds spent on jobs that have returned.
    """

    idle: int
    seed: int
    now: float = 0.0
    jobs: list[tuple[float, int, Array, Fate]] = field(default_factory=list)
    worked: float = 0.0

    def begin(self, numbers: Sequence[int], places: Array) -> None:
        """Hand trials to idle workers."""
        self.idle -= len(numbers)
        for number, place in zip(numbers, places, strict=True):
            fate = fate_of(number, self.seed)
            heapq.heappush(self.jobs, (self.now + fate.seconds, number, place, fate))

    def heard(self) -> list[tuple[int, Array, Fate]]:
        """Jobs that have ended by now, in order of time; while no worker waits, the clock moves to the next end."""
        if not self.idle and self.jobs:
            self.now = max(self.now, self.jobs[0][0])
        came = []
        while self.jobs and self.jobs[0][0] <= self.now:
            _, number, place, fate = heapq.heappop(self.jobs)
            came.append((number, place, fate))
            self.worked += 0.0 if fate.vanishes else fate.seconds
        self.idle += len(came)
        return came

    def working(self) -> float:
        """Seconds spent so far on jobs, those that still run included."""
        running = [max(fate.seconds - (at - self.now), 0.0) for at, _, _, fate in self.jobs if not fate.vanishes]
        return self.worked + sum(running)


def simulate(target: Target, driver: Driver, n_workers: int, n: int, seed: int) -> dict[str, float]:
    """Simulate until n values have returned, and return the results; see the module."""
    crowd, truth, n_failed, spent = Crowd(n_workers, seed), [], 0, 0.0  # type: ignore[var-annotated]
    while len(truth) < n:
        came = crowd.heard()
        done = [(number, place) for number, place, fate in came if fate.has_value][: n - len(truth)]
        lost = [number for number, _, fate in came if not fate.has_value]
        values = [float(target.observe(place[None], seed, number)[0]) for number, place in done]
        truth += [float(target.value(place[None])[0]) for _, place in done]
        n_failed += len(lost)
        with Clock() as clock:
            if done:
                driver.tell([number for number, _ in done], values)
            if lost:
                driver.fail(lost)
            asked = driver.ask(min(crowd.idle, AT_ONCE)) if len(truth) < n and crowd.idle else ([], np.empty(0))
        spent, crowd.now = spent + clock.cpu, crowd.now + clock.cpu
        crowd.begin(*asked)
    regret = (np.array(truth) - target.minimum) / target.scale
    found = float(target.value(driver.recommend()[None])[0])
    return {
        "busy": crowd.working() / (n_workers * crowd.now),
        "ms": 1e3 * spent / n,
        "minutes": crowd.now / 60.0,
        "failed": float(n_failed),
        "recommended": (found - target.minimum) / target.scale,
        "last_fifth": float(regret[-max(n // 5, 1) :].mean()),
        "average": float(regret.mean()),
    }


@dataclass(frozen=True)
class Job(comparison.Job):
    """One run: an optimizer with a number of workers and a seed."""

    workers: int = 1

    @property
    def title(self) -> str:
        """The problem and the workers, in file names."""
        return f"{self.problem}-w{self.workers}"


def run_job(job: Job) -> Record:
    """The simulation of a job."""
    target = of_box(PROBLEMS[job.problem])
    with limited_threads(1):
        return simulate(target, CROWDS[job.peer](target, job.seed), job.workers, job.n_trials, job.seed)


def print_results(jobs: Sequence[Job], out: Path) -> None:
    """Print the table of the saved results."""
    rows = []
    for (workers, peer), records in records_by(lambda job: (job.workers, job.peer), jobs, out).items():
        mean = partial(_mean, records)
        numbers = (100 * mean("busy"), mean("minutes"), mean("ms"), mean("failed"))
        regrets = [with_error([r[key] for r in records]) for key in ("recommended", "last_fifth", "average")]
        rows.append((f"{workers:,}", peer, len(records), *numbers, *regrets))
    print_table(
        f"{PROBLEM}, noise sd 0.1 IQR, {jobs[0].n_trials:,} evaluations: a crowd of workers; regret / IQR",
        HEADER,
        rows,
        f"jobs of {MEDIAN_S:g} s by median; minutes are virtual; ms a trial is processor time",
    )


def _mean(records: Sequence[dict[str, float]], key: str) -> float:
    return float(np.mean([record[key] for record in records]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and print the table."""
    parser = Arguments(__doc__)
    parser.option("--peers", tuple(CROWDS), choices=CROWDS, help="optimizers")
    parser.option("--workers", WORKERS, quick=WORKERS[:3], help="numbers of workers")
    parser.option("--trials", 5_000, quick=300, help="values of a run")
    parser.option("--seeds", 1, help="runs of each")
    add_options(parser, "workers", processes=1)
    options = parser.parse_args(arguments)
    jobs = [
        Job(peer, PROBLEM, options.trials, seed, workers)
        for workers in options.workers
        for peer in options.peers
        for seed in range(options.seeds)
    ]
    run_all(jobs, run_job, options)
    print_results(jobs, options.out)


if __name__ == "__main__":
    main()
