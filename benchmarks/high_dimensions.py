"""Regret on noisy functions of 20 to 100 columns: ours beside random search, CMA-ES, TPE and TuRBO.

Run it as `python -m benchmarks.high_dimensions`. Measures and saved runs are as in `benchmarks.optuna_quality`;
`--trials 10000` takes days. TuRBO, which has an exact Gaussian process, gets 300 trials.

| function       | columns | what it is                                                                                |
| -------------- | ------- | ----------------------------------------------------------------------------------------- |
| ackley20-off   | 20      | a cone under ripples, on a box cut so that the minimum is off its centre                  |
| rosenbrock20   | 20      | a curved valley under a wall of the fourth power                                          |
| ridge65        | 65      | real data: validation error of a ridge regression with a penalty for each coefficient     |
| hartmann6-100  | 100     | Hartmann-6 of six of the columns, the others without effect                               |
| levy100-off    | 100     | a bowl under ripples, of all columns                                                      |
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial

import numpy as np
from optuna.samplers import BaseSampler
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from benchmarks.arguments import Arguments
from benchmarks.comparison import Job, Record, add_options, run_all
from benchmarks.functions import PROBLEMS, Array, Problem, ackley, levy, off_centre, rosenbrock
from benchmarks.optuna_quality import installed, print_results, run_study
from benchmarks.samplers import N_STARTUP, SAMPLERS
from benchmarks.tasks import Task, of_problem
from bkbopt.adapters.optuna import BKBSampler
from bkbopt.kernels import SphericalKernel

__all__ = ["COLUMNS", "TASKS", "diabetes", "embedded", "main", "ridge_error"]

LIMITS = {"turbo": 300}
#: Ours with a `SphericalKernel`, and no other.
SPHERICAL = "bkb_spherical"
ORDER = ("random", "cmaes", "tpe", "bkb", SPHERICAL, "turbo")
QUICK, QUICK_PROBLEMS = ("random", "bkb", SPHERICAL), ("ackley20-off", "hartmann6-100")
# A tag keeps the columns and the split of the data apart from other uses of the same small seeds.
STREAM = 7_006
#: Penalties are powers of ten.
POWERS = (-1.0, 5.0)


def embedded(problem: Problem, dim: int) -> Problem:
    """The problem of as many of `dim` columns as it has itself; the others, over the unit interval, have no effect."""
    columns = np.random.default_rng([STREAM, dim]).permutation(dim)[: problem.dim]
    bounds, best = [(0.0, 1.0)] * dim, np.full((len(problem.minimizers), dim), 0.5)
    for j, column in enumerate(columns):
        bounds[column] = problem.bounds[j]
        best[:, column] = [point[j] for point in problem.minimizers]
    known = tuple(tuple(float(b) for b in point) for point in best)
    name = f"{problem.name}-{dim}"
    return Problem(name, tuple(bounds), problem.minimum, known, lambda x: problem.value(x[..., columns]))


@lru_cache
def diabetes() -> tuple[Array, Array]:
    """Rows (442, 65): the ten columns of the diabetes data and their products, standardised; and the targets (442,)."""
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(PolynomialFeatures(2, include_bias=False).fit_transform(X))
    order = np.random.default_rng(STREAM).permutation(len(y))
    return X[order], (y[order] - y.mean()) / y.std()


def ridge_error(powers: Array) -> Array:
    """Mean squared error (...) of ridge regressions whose penalties are ten to the `powers (..., 65)`.

    Each half of the data is predicted from the other; the unit is the variance of the targets.
    """
    X, y = diabetes()
    half, eye = len(y) // 2, np.eye(X.shape[1])
    penalties = 10.0 ** np.asarray(powers)[..., None] * eye
    errors = []
    for learnt, left in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
        A, b = X[learnt].T @ X[learnt] + penalties, X[learnt].T @ y[learnt]
        w = np.linalg.solve(A, np.broadcast_to(b, A.shape[:-1])[..., None])[..., 0]
        errors.append(((w @ X[left].T - y[left]) ** 2).mean(-1))
    return np.asarray(np.mean(errors, axis=0))


class _Ridge(Problem):
    """Its smallest value is not known (0 stands for it), and its interquartile range is that of fewer points."""

    @cached_property
    def iqr(self) -> float:
        points = self.sample(2_000, np.random.default_rng(STREAM))
        lower, upper = np.quantile(self.value(points), [0.25, 0.75])
        return float(upper - lower)


#: Numbers of columns.
COLUMNS = {"ackley20-off": 20, "rosenbrock20": 20, "ridge65": 65, "hartmann6-100": 100, "levy100-off": 100}
#: Made when asked for.
TASKS: dict[str, Callable[[], Task]] = {
    "ackley20-off": lambda: of_problem(off_centre(ackley(20))),
    "rosenbrock20": lambda: of_problem(rosenbrock(20)),
    "ridge65": lambda: replace(of_problem(_Ridge("ridge65", (POWERS,) * 65, 0.0, (), ridge_error)), minimum=None),
    "hartmann6-100": lambda: of_problem(embedded(PROBLEMS["hartmann6"], 100)),
    "levy100-off": lambda: of_problem(off_centre(levy(100))),
}


def run_job(job: Job) -> Record:
    """The study of a job."""
    samplers = {**SAMPLERS, SPHERICAL: partial(_spherical, COLUMNS[job.problem])}
    return run_study(job.peer, TASKS[job.problem](), job.n_trials, job.seed, samplers)


def _spherical(dim: int, seed: int) -> BaseSampler:
    kernel = SphericalKernel.start(dim)
    return BKBSampler(seed=seed, n_startup_trials=N_STARTUP, warn_independent_sampling=False, kernel=kernel)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and print the tables."""
    parser = Arguments(__doc__)
    parser.option("--peers", ORDER, quick=QUICK, choices=[*SAMPLERS, SPHERICAL], help="samplers")
    parser.option("--problems", tuple(TASKS), quick=QUICK_PROBLEMS, choices=TASKS, help="functions")
    parser.option("--seeds", 5, quick=2, help="runs of each")
    parser.option("--trials", 1_000, quick=30, help="trials of a run, of turbo 300 at most")
    add_options(parser, "high_dimensions")
    options = parser.parse_args(arguments)
    jobs = [
        Job(peer, problem, min(options.trials, LIMITS.get(peer, options.trials)), seed)
        for peer in installed(options.peers)
        for seed in range(options.seeds)
        for problem in options.problems
    ]
    run_all(jobs, run_job, options)
    print_results(jobs, options.out, TASKS)


if __name__ == "__main__":
    main()
