"""Regret of Optuna's samplers on many noisy functions and models to tune: ours, GPSampler, TPE, CMA-ES and TuRBO.

Run it as `python -m benchmarks.optuna_quality`. The tasks are test functions whose noise is a tenth of their
interquartile range (IQR), and real models to tune. `benchmarks/tasks.py` lists them, and those that are held out until
the code is final. All samplers get the same noise at trial i of a seed. Each run is one study of 5,000 trials (300 with
samplers of an exact Gaussian process and with SMAC3, 100 with HEBO), measured after 100, 300, 1,000, 3,000 and 5,000 of
them: no sampler is told the length of its study.

- recommended: the noise-free value, above the minimum, of the recommended point: `sampler.recommend(study)` where the
  sampler has that (ours, TuRBO, SMAC3, CMA-ES for noise), `study.best_trial`, the best value observed, with the others;
- average trial: the average value of all trials so far, above the minimum;
- last fifth: the same over the last fifth of the trials so far, the regret of a converged search.

All are in units of the IQR. The minimum of a real model is not known, and is replaced by the best setting that any of
the runs shown recommends. The table over the whole set holds geometric means over the problems of the means over seeds;
its errors are those of the seeds, propagated through the logarithm. Means below 1e-4, a thousandth of the noise, are
set to 1e-4. The table has only problems that all samplers of the same row have finished.

HEBO and SMAC3 run where they are installed (`benchmarks/ask_tell_samplers.py` says how) and are left out elsewhere.
The full comparison takes many hours on two cores; one that was stopped is continued.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler

from benchmarks import bbob
from benchmarks.arguments import Arguments
from benchmarks.comparison import (
    Job,
    Record,
    add_options,
    grouped,
    own_digest,
    records_by,
    records_of,
    run_all,
    standard_error,
    with_error,
)
from benchmarks.report import Clock, limited_threads, print_table
from benchmarks.samplers import SAMPLERS, missing_packages, quiet_optuna, recommended
from benchmarks.tasks import SETS, TASKS, Task

__all__ = ["CHECKPOINTS", "Result", "geometric_mean", "main", "results_of", "run_job", "run_study"]

CHECKPOINTS = (100, 300, 1_000, 3_000, 5_000)
#: Samplers that are not asked for more trials than these.
LIMITS = {"gp_sampler": 300, "turbo": 300, "hebo": 100, "smac": 300}
#: The order in which the samplers run: the cheap ones first.
ORDER = ("random", "cmaes", "cmaes_noise", "tpe", "bkb", "turbo", "gp_sampler")
QUICK = ("random", "cmaes", "tpe", "bkb")
QUICK_PROBLEMS = ("branin", "schwefel6", "mlp")
MEASURES = {"recommended": "recommended", "average": "average trial", "last_fifth": "last fifth"}
FLOOR = 1e-4


def run_study(
    sampler: str,
    task: Task,
    n_trials: int,
    seed: int,
    samplers: Mapping[str, Callable[[int], BaseSampler]] = SAMPLERS,
) -> dict[str, list[float]]:
    """One study, measured after each of the checkpoints and at its end.

    Returns lists of one length: `checkpoints` (numbers of trials), `recommended` (true values, the task's units),
    `average` (means of the trials' values so far), `last_fifth` (means of the last fifth of them) and `seconds` (in the
    sampler and the study so far).
    """
    looks = [*(c for c in CHECKPOINTS if c < n_trials), n_trials]
    record: dict[str, list[float]] = {key: [] for key in ("checkpoints", *MEASURES, "seconds")}
    values: list[float] = []
    clock = Clock()
    with quiet_optuna(), limited_threads(1):
        study = optuna.create_study(sampler=samplers[sampler](seed))
        for number in range(n_trials):
            with clock:
                trial = study.ask()
                task.suggest(trial)
            told, counted = task.observe(trial.params, seed, number)
            values.append(counted)
            with clock:
                study.tell(trial, told)
            if number + 1 in looks:
                record["checkpoints"].append(number + 1)
                record["recommended"].append(task.truth(recommended(study)))
                record["average"].append(float(np.mean(values)))
                record["last_fifth"].append(float(np.mean(values[-max(len(values) // 5, 1) :])))
                record["seconds"].append(clock.wall)
    return record


def run_job(job: Job) -> Record:
    """The study of a job."""
    return run_study(job.peer, TASKS[job.problem](), job.n_trials, job.seed)


@dataclass(frozen=True)
class Result:
    """A sampler on a problem after so many trials: regrets of the seeds in units of the IQR, ms a trial by median."""

    peer: str
    problem: str
    checkpoint: int
    recommended: list[float]
    average: list[float]
    last_fifth: list[float]
    ms: float

    def mean(self, measure: str) -> tuple[float, float]:
        """Mean over the seeds and its standard error."""
        values = getattr(self, measure)
        return float(np.mean(values)), standard_error(values)


def results_of(task: Task, records: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Result]:
    """The results of each sampler on this task, by checkpoint and sampler."""
    everything = [value for kept in records.values() for record in kept for value in record["recommended"]]
    minimum = min(everything) if task.minimum is None else task.minimum
    results = []
    for checkpoint in sorted({c for kept in records.values() for record in kept for c in record["checkpoints"]}):
        for peer, kept in records.items():
            found = [(r, r["checkpoints"].index(checkpoint)) for r in kept if checkpoint in r["checkpoints"]]
            if found:
                regrets = {m: [(r[m][at] - minimum) / task.scale for r, at in found] for m in MEASURES}
                ms = 1e3 * float(np.median([r["seconds"][at] for r, at in found])) / checkpoint
                results.append(Result(peer, task.name, checkpoint, **regrets, ms=ms))
    return results


def geometric_mean(means: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Geometric mean of means given with their standard errors, and its standard error to first order."""
    logs = [math.log(max(mean, FLOOR)) for mean, _ in means]
    relative = [error / max(mean, FLOOR) for mean, error in means]
    centre = math.exp(sum(logs) / len(logs))
    return centre, centre * math.hypot(*relative) / len(logs)


def print_problem(task: Task, results: Sequence[Result]) -> None:
    """One table a problem: a row a sampler and checkpoint."""
    rows = [
        (r.checkpoint, r.peer, len(r.recommended), *(with_error(getattr(r, m)) for m in MEASURES), r.ms)
        for r in results
    ]
    print_table(
        f"{task.name} ({task.note}): regret / IQR, mean +- standard error",
        ("trials", "sampler", "seeds", *MEASURES.values(), "ms/trial"),
        rows,
    )


def print_summary(results: Sequence[Result]) -> None:
    """One table over the set: geometric means at each checkpoint, over the problems that all samplers there have."""
    rows = []
    for checkpoint in sorted({r.checkpoint for r in results}):
        here = {(r.peer, r.problem): r for r in results if r.checkpoint == checkpoint}
        peers = list(dict.fromkeys(peer for peer, _ in here))
        common = [p for p in dict.fromkeys(p for _, p in here) if all((peer, p) in here for peer in peers)]
        if not common:
            continue
        for peer in peers:
            means = [geometric_mean([here[peer, p].mean(m) for p in common]) for m in MEASURES]
            ratios = [_ratio(here, peer, common, m) for m in MEASURES]
            cells = [text for mean, ratio in zip(means, ratios, strict=True) for text in (_text(*mean), ratio)]
            rows.append((checkpoint, peer, len(common), *cells))
    print_table(
        "the whole set: geometric mean over the problems of regret / IQR +- standard error",
        ("trials", "sampler", "problems", *(name for m in MEASURES.values() for name in (m, "/ bkb"))),
        rows,
        "/ bkb: how many times that of BKBSampler; above 1 ours is better",
    )


def _ratio(here: Mapping[tuple[str, str], Result], peer: str, problems: Sequence[str], measure: str) -> float | None:
    if any(("bkb", p) not in here for p in problems):
        return None
    theirs, ours = (geometric_mean([here[name, p].mean(measure) for p in problems])[0] for name in (peer, "bkb"))
    return theirs / ours


def _text(mean: float, error: float) -> str:
    return f"{mean:.4f} +- {error:.4f}"


def print_results(jobs: Sequence[Job], out: Path, tasks: Mapping[str, Callable[[], Task]] = TASKS) -> None:
    """Print the tables of the saved results."""
    everything: list[Result] = []
    for problem, mine in grouped(jobs, lambda job: job.problem).items():
        if records := records_by(lambda job: job.peer, mine, out):
            task = tasks[problem]()
            results = results_of(task, records)
            print_problem(task, results)
            everything += results
    if everything:
        print_summary(everything)


def installed(peers: Sequence[str]) -> list[str]:
    """The samplers that can run here; prints those that cannot."""
    for peer in peers:
        if lacking := missing_packages(peer):
            print(f"{peer} is left out: {', '.join(lacking)} cannot be imported; see benchmarks/ask_tell_samplers.py")
    return [peer for peer in peers if not missing_packages(peer)]


def tasks_of(options: Any) -> Sequence[str]:
    """The names of the tasks to run; stops if they need a package that is not installed."""
    names = options.problems or (QUICK_PROBLEMS if options.quick else SETS[options.set])
    if not bbob.is_installed() and any(name.startswith("bbob") for name in names):
        raise SystemExit("the functions of BBOB need the package ioh: python -m pip install ioh")
    return names


def refuse_old_files(jobs: Sequence[Job], out: Path) -> None:
    """Stop, before anything is run, if a kept file lacks a measure: it was written by an earlier version."""
    for job in jobs:
        if missing := [m for record in records_of([job], out) for m in MEASURES if m not in record]:
            raise SystemExit(f"{job.path(out, own_digest())} has no {missing[0]}: remove it, or choose another --out")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and print the tables."""
    parser = Arguments(__doc__)
    parser.option("--peers", ORDER, quick=QUICK, choices=SAMPLERS, help="samplers")
    parser.option("--set", "development", choices=SETS, help="which tasks, see benchmarks/tasks.py")
    text = "these tasks, whatever the set; another name lists them all (with --quick branin schwefel6 mlp)"
    parser.add_argument("--problems", nargs="+", choices=list(TASKS), metavar="TASK", help=text)
    parser.option("--seeds", 10, quick=2, help="studies of each sampler and task")
    parser.option("--first-seed", 0, help="the first of the seeds")
    parser.option("--trials", max(CHECKPOINTS), quick=60, help="the length of a study; slow samplers have 300 at most")
    add_options(parser, "optuna_quality")
    parser.add_argument("--runs-only", action="store_true", help="run what is missing, print no tables")
    options = parser.parse_args(arguments)
    jobs = [
        Job(peer, problem, min(options.trials, LIMITS.get(peer, options.trials)), seed)
        for peer in installed(options.peers)
        for seed in range(options.first_seed, options.first_seed + options.seeds)
        for problem in tasks_of(options)
    ]
    refuse_old_files(jobs, options.out)
    run_all(jobs, run_job, options)
    if not options.runs_only:
        print_results(jobs, options.out)


if __name__ == "__main__":
    main()
