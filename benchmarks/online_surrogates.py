"""Regret with online learners as surrogates, beside BKB, at equal trials and at equal time.

Run it as `python -m benchmarks.online_surrogates`. All get the same boxes and the same noise at trial i of a seed, a
tenth of the function's interquartile range (IQR); Ackley is on the box of `sample_efficiency`. Regret is noise-free, in
IQR.

Learners with a budget have 20 terms here instead of 100: until the budget is full they are plain gradient descent.

- simple: of the point recommended at the end; mean: of the average trial;
- at equal time: simple regret of the point recommended after the time that the fastest surrogate took for all its
  trials on that problem and seed (at the last checkpoint before, every tenth trial), and the number of trials until
  then.

A run has one thread, and times are processor times of asking and telling, without other load.
"""

from collections.abc import Sequence

import numpy as np

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.comparison import with_error
from benchmarks.functions import Problem
from benchmarks.peers import Run, ours, run_loop
from benchmarks.report import limited_threads, measuring, print_table
from benchmarks.sample_efficiency import problem_named
from benchmarks.samplers import N_STARTUP
from bkbopt.learners.as_surrogate.recipes import RECIPES
from bkbopt.surrogates import NAMED

__all__ = ["TRIALS", "main", "measure", "run_surrogate"]

#: Trials on each problem.
TRIALS = {"branin": 60, "hartmann6": 80, "ackley10": 80}
ORDER = ("bkb", "pkawv", "krr", "kons", "sketched-kons", "prosnkons", "forks", "skegd", "nogd", "kogd", "bogd")
#: Budgets that give 20 terms; those that sketch have twice their budget.
BUDGETS = {"forks": 10, "skegd": 10, "nogd": 20, "bogd": 20}
QUICK = ("bkb", "pkawv", "prosnkons", "forks")


def run_surrogate(name: str, problem: Problem, n_trials: int, seed: int) -> Run:
    """One run of the optimizer with the surrogate of that name, on one thread."""
    surrogate = bo.LearnerSurrogate(learner=name, settings={"budget": BUDGETS[name]}) if name in BUDGETS else name
    with limited_threads(1):
        return run_loop(name, problem, n_trials, seed, ours(problem, seed, surrogate=surrogate))


def measure(names: Sequence[str], problem: Problem, n_trials: int, seeds: int) -> list[tuple[object, ...]]:
    """A row for each surrogate: name, simple and mean regret, seconds, and both at equal time."""
    runs = {name: [run_surrogate(name, problem, n_trials, seed) for seed in range(seeds)] for name in names}
    rows = []
    for name, mine in runs.items():
        simple, mean, early, done = [], [], [], []
        for seed, run in enumerate(mine):
            regret = (problem.value(run.recommended) - problem.minimum) / problem.iqr
            simple.append(float(regret[-1]))
            mean.append(float((run.f_true.mean() - problem.minimum) / problem.iqr))
            time_up = min(float(other[seed].cpu_per_trial.sum()) for other in runs.values())
            spent = np.cumsum(run.cpu_per_trial)[run.checkpoints - 1]
            at = max(int(np.sum(spent <= time_up)) - 1, 0)
            early.append(float(regret[at]))
            done.append(int(run.checkpoints[at]))
        seconds = float(np.median([run.cpu_per_trial.sum() for run in mine]))
        row = (name, with_error(simple), with_error(mean), 1e3 * seconds / n_trials, with_error(early), np.median(done))
        rows.append((*row[:-1], float(row[-1])))
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything and print a table for each problem."""
    parser = Arguments(__doc__)
    parser.option("--surrogates", ORDER, quick=QUICK, choices=[*NAMED, *RECIPES], help="what learns the values")
    parser.option("--problems", tuple(TRIALS), quick=("branin",), choices=TRIALS, help="functions")
    parser.option("--seeds", 5, quick=2, help="runs of each")
    parser.add_argument("--trials", type=int, help="of every run (default 60 or 80, by problem; with --quick 30)")
    options = parser.parse_args(arguments)
    names, trials = options.surrogates, options.trials or (30 if options.quick else None)
    with measuring(1):
        # The loops of the learners are compiled once a process, which is no part of a run.
        for name in names:
            run_surrogate(name, problem_named("branin"), N_STARTUP + 2, 0)
        for title in options.problems:
            problem, n, seeds = problem_named(title), trials or TRIALS[title], options.seeds
            print_table(
                f"{problem.name}, d = {problem.dim}, {n} trials, {seeds} seeds: regret / IQR, mean +- standard error",
                ("surrogate", "simple", "mean", "ms/trial", "simple at equal time", "trials then"),
                measure(names, problem, n, seeds),
            )


if __name__ == "__main__":
    main()
