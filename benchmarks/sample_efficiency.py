"""Regret on four functions with noise: our optimiser beside TPE, GPSampler, qLogNEI, CMA-ES and random search.

Run it as `python -m benchmarks.sample_efficiency`. All optimisers get the same boxes, and the same noise at trial i of
a seed: a tenth of the function's interquartile range (IQR). Ackley and Levy have their minimum at, or near, the centre
of their usual boxes, which favours methods that begin there. Here one side of each column is cut short, to 30 to 60 %
of its length and on alternate sides, so that the minimum lies 15 to 44 % of the way from one end; see `off_centre`.

- simple regret: noise-free value of the point recommended at the end, above the minimum;
- mean regret: noise-free value of the average trial, above the minimum (cumulative regret over trials);
- last fifth: the same over the last fifth of the trials, the regret of a converged run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import comparison
from benchmarks.arguments import Arguments
from benchmarks.comparison import Record, add_options, grouped, records_by, run_all, with_error
from benchmarks.functions import PROBLEMS, Problem, off_centre
from benchmarks.peers import PEERS, run_peer
from benchmarks.report import print_table

__all__ = ["TRIALS", "Job", "main", "problem_named", "run_job"]

#: Trials on each problem.
TRIALS = {"branin": 100, "hartmann6": 150, "ackley10": 200, "levy8": 200}
#: The order in which the optimisers run: the cheap ones first.
ORDER = ("random", "cmaes", "tpe", "bkbopt", "gp_sampler", "qlognei")
QUICK = ("random", "cmaes", "tpe", "bkbopt")
OFF_CENTRE = ("ackley10", "levy8")


def problem_named(name: str) -> Problem:
    """The problem of the comparison that goes by this name."""
    problem = PROBLEMS[name]
    return off_centre(problem) if name in OFF_CENTRE else problem


@dataclass(frozen=True)
class Job(comparison.Job):
    """One run: an optimiser on a problem with a seed."""

    @property
    def title(self) -> str:
        """The problem's name in file names, which tells the cut boxes."""
        return problem_named(self.problem).name


def run_job(job: Job) -> Record:
    """Its regrets, divided by the IQR."""
    problem = problem_named(job.problem)
    run = run_peer(job.peer, problem, job.n_trials, job.seed)
    regret = (run.f_true - problem.minimum) / problem.iqr
    return {
        "simple": float((problem.value(run.recommended[-1]) - problem.minimum) / problem.iqr),
        "mean": float(regret.mean()),
        "last_fifth": float(regret[-max(job.n_trials // 5, 1) :].mean()),
        "seconds": float(run.seconds_per_trial.sum()),
    }


def print_results(jobs: Sequence[Job], out: Path) -> None:
    """Print one table a problem from the saved results."""
    for name, mine in grouped(jobs, lambda job: job.problem).items():
        problem, rows = problem_named(name), []
        for peer, records in records_by(lambda job: job.peer, mine, out).items():
            columns = [with_error([r[key] for r in records]) for key in ("simple", "mean", "last_fifth")]
            seconds = float(np.median([r["seconds"] for r in records])) / mine[0].n_trials
            rows.append((peer, len(records), *columns, 1e3 * seconds))
        print_table(
            f"{problem.name}, d = {problem.dim}, {mine[0].n_trials} trials: regret / IQR, mean +- standard error",
            ("optimiser", "seeds", "simple regret", "mean regret", "last fifth", "ms/trial"),
            sorted(rows, key=lambda row: float(str(row[2]).split(" ")[0])),
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and print the tables."""
    parser = Arguments(__doc__)
    parser.option("--peers", ORDER, quick=QUICK, choices=PEERS, help="optimisers")
    parser.option("--problems", tuple(TRIALS), choices=TRIALS, help="functions")
    parser.option("--seeds", 10, quick=2, help="runs of each")
    parser.add_argument("--trials", type=int, help="of every run (default 100 to 200, by problem; with --quick 60)")
    add_options(parser, "sample_efficiency")
    options = parser.parse_args(arguments)
    trials = options.trials or (60 if options.quick else None)
    jobs = [
        Job(peer, problem, trials or TRIALS[problem], seed)
        for peer in options.peers
        for seed in range(options.seeds)
        for problem in options.problems
    ]
    run_all(jobs, run_job, options)
    print_results(jobs, options.out)


if __name__ == "__main__":
    main()
