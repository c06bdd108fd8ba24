"""What Optuna's samplers are compared on: test functions with noise, and real models to tune, in one form.

Seven functions are smooth or carry ripples that the noise hides; three more are strongly multimodal (Rastrigin's,
Schwefel's, Shekel's) and one is made of random peaks. Rosenbrock's and Griewank's are BoTorch's own. Functions whose
minimum lies at, or near, the centre of their usual box are met on the cut boxes of `sample_efficiency.off_centre`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
import torch
from botorch.test_functions.synthetic import Griewank, Rosenbrock, SyntheticTestFunction

from benchmarks.functions import PROBLEMS, Array, Problem
from benchmarks.sample_efficiency import off_centre
from benchmarks.tuning import TUNING, Tuning

__all__ = ["TASKS", "Task", "from_botorch", "of_problem", "of_tuning"]

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A noisy function of parameters to minimise.

    Attributes:
        name: what it is called.
        suggest: asks a trial for its parameters, conditional ones included.
        observe: (parameters, seed, trial number) to two numbers: the noisy value that the sampler is told, and an
            unbiased value of the same point for the average over trials (noise-free where that is cheap). The noise
            is decided by the seed and the number alone.
        truth: the noise-free value of parameters.
        scale: interquartile range of the noise-free values over random parameters: the unit of regret.
        minimum: the smallest noise-free value; None where nobody knows it.
        note: what a reader of its table should know.
    """

    name: str
    suggest: Callable[[optuna.Trial], None]
    observe: Callable[[Params, int, int], tuple[float, float]]
    truth: Callable[[Params], float]
    scale: float
    minimum: float | None
    note: str


def from_botorch(name: str, function: SyntheticTestFunction) -> Problem:
    """One of BoTorch's functions with known minimisers as a problem of ours."""

    def values(x: Array) -> Array:
        return np.asarray(function.evaluate_true(torch.as_tensor(x, dtype=torch.float64)).numpy())

    assert function._optimizers is not None
    bounds = tuple((float(low), float(high)) for low, high in function._bounds)
    return Problem(name, bounds, float(function.optimal_value), tuple(function._optimizers), values)


def of_problem(problem: Problem) -> Task:
    """A test function with its noise; the average over trials counts noise-free values."""
    names = [f"x{j}" for j in range(problem.dim)]

    def point(params: Params) -> Array:
        return np.array([params[name] for name in names], dtype=np.float64)

    def suggest(trial: optuna.Trial) -> None:
        for name, (low, high) in zip(names, problem.bounds, strict=True):
            trial.suggest_float(name, low, high)

    def truth(params: Params) -> float:
        return float(problem.value(point(params)))

    def observe(params: Params, seed: int, number: int) -> tuple[float, float]:
        return problem.observe(point(params), seed, number), truth(params)

    note = f"{problem.dim} floats, noise sd = 0.1 IQR"
    return Task(problem.name, suggest, observe, truth, problem.iqr, problem.minimum, note)


def of_tuning(tuning: Tuning) -> Task:
    """A model to tune; the average over trials counts what was observed, whose noise averages out."""

    def observe(params: Params, seed: int, number: int) -> tuple[float, float]:
        loss = tuning.observe(params, seed, number)
        return loss, loss

    note = f"{tuning.note}; noise sd near the best about {tuning.noise_sd / tuning.iqr:.2f} IQR"
    return Task(tuning.name, tuning.suggest, observe, tuning.truth, tuning.iqr, None, note)


_FUNCTIONS = (
    PROBLEMS["branin"],
    PROBLEMS["hartmann6"],
    off_centre(PROBLEMS["ackley10"]),
    off_centre(PROBLEMS["levy8"]),
    from_botorch("rosenbrock6", Rosenbrock(6)),
    off_centre(from_botorch("griewank6", Griewank(6))),
    off_centre(PROBLEMS["rastrigin6"]),
    PROBLEMS["schwefel6"],
    PROBLEMS["shekel4"],
    PROBLEMS["peaks4"],
)

#: Made when asked for: the interquartile ranges take a moment.
TASKS: dict[str, Callable[[], Task]] = {
    **{problem.name: lambda problem=problem: of_problem(problem) for problem in _FUNCTIONS},  # type: ignore[misc]
    **{name: lambda tuning=tuning: of_tuning(tuning) for name, tuning in TUNING.items()},  # type: ignore[misc]
}
