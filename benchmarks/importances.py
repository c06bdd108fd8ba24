"""How near the importances of parameters are to the true ones: Optuna's evaluators and ours.

Run it as `python -m benchmarks.importances`. Studies with a noise of a tenth of the interquartile range of four
functions, by random search and by TPE, are given to all evaluators. The true indices are those of
`scipy.stats.sobol_indices` for the noise-free function. Importances are divided by their sum; the table has the total
variation distance from the true ones, half the sum of the absolute differences, 0 to 1, as a mean over the functions
and seeds: from the total indices, which count interactions for each of their parameters, and from the first-order
indices, which leave them out. PED-ANOVA and fANOVA estimate main effects, ours total indices.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import optuna
from optuna.importance import (
    BaseImportanceEvaluator,
    FanovaImportanceEvaluator,
    MeanDecreaseImpurityImportanceEvaluator,
    PedAnovaImportanceEvaluator,
    get_param_importances,
)
from scipy.stats import sobol_indices, uniform

from benchmarks.arguments import Arguments
from benchmarks.functions import PROBLEMS, Problem, rosenbrock
from benchmarks.report import measuring, print_table
from benchmarks.samplers import quiet_optuna
from bkbopt.adapters.optuna import BKBImportanceEvaluator

__all__ = ["EVALUATORS", "FUNCTIONS", "Function", "main", "study_of"]

#: Noise, as a fraction of the interquartile range.
NOISE = 0.1
#: Sample size of the true indices, a power of two, and of the interquartile range.
MANY = 2**13
EVALUATORS: dict[str, Callable[[], BaseImportanceEvaluator]] = {
    "PED-ANOVA": PedAnovaImportanceEvaluator,
    "fANOVA": lambda: FanovaImportanceEvaluator(seed=0),
    "mean decrease impurity": lambda: MeanDecreaseImpurityImportanceEvaluator(seed=0),
    "BKB": BKBImportanceEvaluator,
}
SAMPLERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
}


@dataclass(frozen=True)
class Function:
    """A function `value(X) (n,)` of the points `X (n, d)` of a box from `low` to `high` in each of `dim` columns."""

    value: Callable[[np.ndarray], np.ndarray]
    low: float
    high: float
    dim: int

    def sample(self) -> np.ndarray:
        """Values at random points."""
        return self.value(np.random.default_rng(0).uniform(self.low, self.high, (MANY, self.dim)))

    def indices(self) -> tuple[np.ndarray, np.ndarray]:
        """First-order and total indices of the columns, `(d,)` each, divided by their sums."""
        columns = [uniform(self.low, self.high - self.low)] * self.dim
        found = sobol_indices(func=lambda X: self.value(X.T)[None], n=MANY, dists=columns, rng=0)
        first, total = found.first_order.ravel().clip(0.0), found.total_order.ravel()
        return first / first.sum(), total / total.sum()


def _ishigami(X: np.ndarray) -> np.ndarray:
    x, y, z = X[:, :3].T
    return np.asarray(np.sin(x) + 7.0 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x))


def _sobol_g(X: np.ndarray) -> np.ndarray:
    a = np.array([0.0, 1.0, 4.5, 9.0, 99.0, 99.0])
    return np.asarray(np.prod((np.abs(4.0 * X - 2.0) + a) / (1.0 + a), axis=1))


def _scaled(problem: Problem) -> Callable[[np.ndarray], np.ndarray]:
    """A problem over the unit cube."""
    low, high = np.array(problem.bounds).T
    return lambda X: np.array([problem.value(x) for x in low + X * (high - low)])


FUNCTIONS = {
    "Ishigami, and a column without effect": Function(_ishigami, -math.pi, math.pi, 4),
    "Sobol's g": Function(_sobol_g, 0.0, 1.0, 6),
    "Hartmann-6": Function(_scaled(PROBLEMS["hartmann6"]), 0.0, 1.0, 6),
    "Rosenbrock-6": Function(_scaled(rosenbrock(6)), 0.0, 1.0, 6),
}


def study_of(function: Function, sampler: str, n_trials: int, seed: int) -> optuna.Study:
    """A study of a function with noise."""
    noise_sd = NOISE * float(np.subtract(*np.percentile(function.sample(), [75, 25])))
    rng = np.random.default_rng([seed, n_trials])

    def objective(trial: optuna.Trial) -> float:
        x = [trial.suggest_float(f"x{j}", function.low, function.high) for j in range(function.dim)]
        return float(function.value(np.array([x]))[0] + noise_sd * rng.standard_normal())

    study = optuna.create_study(sampler=SAMPLERS[sampler](seed))
    study.optimize(objective, n_trials=n_trials)
    return study


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = Arguments(__doc__)
    parser.option("--seeds", 3, quick=1, help="studies of each function, sampler and length")
    options = parser.parse_args(arguments)
    functions = dict(list(FUNCTIONS.items())[:2]) if options.quick else FUNCTIONS
    measured = defaultdict[tuple[str, int, str], list[tuple[float, float, float]]](list)
    with measuring(1), quiet_optuna():
        for function in functions.values():
            true = function.indices()
            for sampler, n_trials in ((s, n) for s in SAMPLERS for n in ((100,) if options.quick else (100, 300))):
                for seed in range(options.seeds):
                    study = study_of(function, sampler, n_trials, seed)
                    for name, evaluator in EVALUATORS.items():
                        start = time.perf_counter()
                        found = get_param_importances(study, evaluator=evaluator())
                        seconds = time.perf_counter() - start
                        shares = np.array([found[f"x{j}"] for j in range(function.dim)])
                        first, total = (float(np.abs(shares - indices).sum()) / 2.0 for indices in true)
                        measured[sampler, n_trials, name].append((total, first, seconds))
    header = ["trials", "evaluator", "from total", "from first-order", "seconds"]
    rows = [[f"{n} by {s}", name, *np.mean(found, axis=0).tolist()] for (s, n, name), found in measured.items()]
    print_table(f"Distance of importances from the true ones, {len(functions)} functions", header, rows)


if __name__ == "__main__":
    main()
