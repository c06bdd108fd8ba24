"""Regret of Optuna's samplers with pruners, for an equal number of training steps.

Run it as `python -m benchmarks.pruning`. A trial is a simulated training of 20 steps. At step s its value is

    f(x) + A(x) (1 - s / 20)^3 + noise,

where f is a test function, the noise has a tenth of its interquartile range (IQR) over the box, and A(x) lies between
0.5 and 3.5 IQR and varies smoothly: early values are far above the final ones and rank trials imperfectly. Each trial
reports its steps, and a pruner may stop it. A study ends with the first trial that completes the number of steps, so
that pruned studies have more trials.

- recommended: noise-free f, above its minimum, of the recommended point: `sampler.recommend(study)` of BKBSampler,
  `study.best_trial` of the others;
- last fifth: mean of f above its minimum over the last fifth of the trials, pruned ones included;
- error of the mean: median over the seeds of |mean - f| at the point that BKBSampler recommends.

All are in units of the IQR.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.trial import TrialState

from benchmarks import comparison
from benchmarks.arguments import Arguments
from benchmarks.comparison import Record, add_options, grouped, records_by, run_all, with_error
from benchmarks.functions import PROBLEMS as FUNCTIONS
from benchmarks.functions import Array, off_centre
from benchmarks.report import limited_threads, print_table
from benchmarks.samplers import SAMPLERS, quiet_optuna

__all__ = ["PROBLEMS", "PRUNERS", "Job", "Training", "main", "run_job", "run_study"]

STEPS = 20
NOISE_STREAM, AMPLITUDE_STREAM = 7_031, 7_032
PRUNERS: dict[str, Callable[[], BasePruner]] = {
    "none": NopPruner,
    "median": lambda: MedianPruner(n_warmup_steps=2),
    "halving": lambda: SuccessiveHalvingPruner(min_resource=2, reduction_factor=3),
}
PEERS = ("bkb", "tpe", "random")
#: Functions whose minimum is not in the centre of their box, which is the first point of BKBSampler.
PROBLEMS = {
    problem.name: problem
    for problem in (
        FUNCTIONS["hartmann6"],
        *(off_centre(FUNCTIONS[name]) for name in ("levy8", "rastrigin6", "ackley10")),
    )
}


@dataclass(frozen=True)
class Job(comparison.Job):
    """One run: a sampler with a pruner; `n_trials` is the number of training steps."""

    pruner: str

    @property
    def title(self) -> str:
        """The problem and the pruner."""
        return f"{self.problem}_{self.pruner}"


class Training:
    """The simulated training, an objective of Optuna.

    Args:
        problem: name of a test function.
        seed: seed of the noise.

    Attributes:
        steps: number of training steps so far.
    """

    def __init__(self, problem: str, seed: int) -> None:
        self.problem = PROBLEMS[problem]
        self.seed = seed
        self.steps = 0
        self._wave = 3.0 * np.random.default_rng(AMPLITUDE_STREAM).standard_normal(self.problem.dim)

    def __call__(self, trial: optuna.Trial) -> float:
        """The value after the last step."""
        x = np.array([trial.suggest_float(f"x{i}", *bounds) for i, bounds in enumerate(self.problem.bounds)])
        noise = np.random.default_rng([NOISE_STREAM, self.seed, trial.number]).standard_normal(STEPS)
        curve = self.curve(x) + self.problem.noise_sd * noise
        for step, value in enumerate(curve.tolist(), start=1):
            self.steps += 1
            trial.report(value, step)
            if step < STEPS and trial.should_prune():
                raise optuna.TrialPruned
        return float(curve[-1])

    def curve(self, x: Array) -> Array:
        """Noise-free values `(STEPS,)` after each step at a point `x (d,)`."""
        p = self.problem
        amplitude = (2.0 + 1.5 * math.sin(float(self._wave @ ((x - p.low) / (p.high - p.low))))) * p.iqr
        return p.value(x) + amplitude * (1.0 - np.arange(1, STEPS + 1) / STEPS) ** 3

    def final(self, params: Mapping[str, float]) -> float:
        """f at a point."""
        return float(self.problem.value([params[f"x{i}"] for i in range(self.problem.dim)]))

    def regret(self, params: Mapping[str, float]) -> float:
        """f above its minimum, in units of the IQR."""
        return (self.final(params) - self.problem.minimum) / self.problem.iqr


def run_study(peer: str, problem: str, pruner: str, n_steps: int, seed: int) -> dict[str, Any]:
    """One study.

    Returns the numbers of trials and of complete trials, and the measures of the module's docstring; `error` is None
    for samplers that predict no mean.
    """
    training = Training(problem, seed)
    with quiet_optuna(), limited_threads(1):
        sampler = SAMPLERS[peer](seed)
        study = optuna.create_study(sampler=sampler, pruner=PRUNERS[pruner]())
        while training.steps < n_steps:
            study.optimize(training, n_trials=1)
        best = sampler.recommend(study) if peer == "bkb" else study.best_trial  # type: ignore[attr-defined]
    trials = study.get_trials(deepcopy=False)
    late = trials[-max(len(trials) // 5, 1) :]
    return {
        "trials": len(trials),
        "complete": sum(trial.state == TrialState.COMPLETE for trial in trials),
        "recommended": training.regret(best.params),
        "last_fifth": float(np.mean([training.regret(trial.params) for trial in late])),
        "error": abs(best.mean - training.final(best.params)) / training.problem.iqr if peer == "bkb" else None,
    }


def run_job(job: Job) -> Record:
    """The study of a job."""
    return run_study(job.peer, job.problem, job.pruner, job.n_trials, job.seed)


def print_results(jobs: Sequence[Job], out: Path) -> None:
    """One table a problem: a row a pruner and sampler."""
    for problem, mine in grouped(jobs, lambda job: job.problem).items():
        records = records_by(lambda job: (job.pruner, job.peer), mine, out)
        rows = [(*group, *_cells(found)) for group, found in records.items()]
        print_table(
            f"{problem}: regret / IQR, mean +- standard error",
            ("pruner", "sampler", "seeds", "trials", "complete", "recommended", "last fifth", "error of the mean"),
            rows,
        )


def _cells(records: Sequence[Mapping[str, Any]]) -> tuple[object, ...]:
    errors = [record["error"] for record in records if record["error"] is not None]
    return (
        len(records),
        float(np.mean([record["trials"] for record in records])),
        float(np.mean([record["complete"] for record in records])),
        with_error([record["recommended"] for record in records]),
        with_error([record["last_fifth"] for record in records]),
        float(np.median(errors)) if errors else None,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and print the tables."""
    parser = Arguments(__doc__)
    parser.option("--peers", PEERS, choices=SAMPLERS, help="samplers")
    parser.option("--pruners", tuple(PRUNERS), choices=PRUNERS, help="what stops trials")
    parser.option("--problems", tuple(PROBLEMS), quick=tuple(PROBLEMS)[:1], choices=PROBLEMS, help="test functions")
    parser.option("--steps", 2_000, quick=400, help="training steps of a study")
    parser.option("--seeds", 4, quick=2, help="studies of each")
    add_options(parser, "pruning")
    options = parser.parse_args(arguments)
    jobs = [
        Job(peer, problem, options.steps, seed, pruner)
        for seed in range(options.seeds)
        for problem in options.problems
        for pruner in options.pruners
        for peer in options.peers
    ]
    run_all(jobs, run_job, options)
    print_results(jobs, options.out)


if __name__ == "__main__":
    main()
