"""Tasks of the comparison of Optuna's samplers: noisy test functions and real models to tune, in one form.

The classic functions: seven are smooth or have ripples smaller than the noise, three more are strongly multimodal
(Rastrigin's, Schwefel's, Shekel's) and one is made of random peaks. Rosenbrock's and Griewank's are BoTorch's own.
Functions whose minimum lies at, or near, the centre of their usual box have the cut boxes of
`functions.off_centre`. Those of `benchmarks.structured_functions` have one difficulty each, and those of
`benchmarks.choice_tasks` have choices alone; those of `benchmarks.bbob` need a package more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import optuna
from botorch.test_functions.synthetic import Griewank, Hartmann

from benchmarks import bbob
from benchmarks import structured_functions as structured
from benchmarks.choice_tasks import CHOICES, ChoiceProblem
from benchmarks.functions import PROBLEMS, Array, Problem, from_botorch, levy, off_centre, random_peaks, rosenbrock
from benchmarks.pipelines import PIPELINES
from benchmarks.structured_functions import MixedProblem
from benchmarks.tuning import TUNING, Tuning

__all__ = [
    "DEVELOPMENT",
    "HELD_OUT",
    "SETS",
    "TASKS",
    "Task",
    "of_choices",
    "of_problem",
    "of_tuning",
    "over_decades",
    "with_heavy_tails",
    "with_much_noise",
    "with_outliers",
    "with_penalties",
    "with_rates",
]

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
        minimum: the smallest noise-free value; None where it is not known.
        note: what a reader of its table should know.
    """

    name: str
    suggest: Callable[[optuna.Trial], None]
    observe: Callable[[Params, int, int], tuple[float, float]]
    truth: Callable[[Params], float]
    scale: float
    minimum: float | None
    note: str


def of_problem(problem: Problem) -> Task:
    """A test function with its noise; the average over trials counts noise-free values.

    Integers of a mixed problem are asked for as integers and its choices, "a", "b" and so on, as categories.
    """
    names = [f"x{j}" for j in range(problem.dim)]
    kinds = problem.kinds if isinstance(problem, MixedProblem) else ("float",) * problem.dim

    def point(params: Params) -> Array:
        numbers = (ord(value) - ord("a") if isinstance(value, str) else value for value in map(params.get, names))
        return np.array(list(numbers), dtype=np.float64)

    def suggest(trial: optuna.Trial) -> None:
        for name, kind, (low, high) in zip(names, kinds, problem.bounds, strict=True):
            if kind == "float":
                trial.suggest_float(name, low, high)
            elif kind == "int":
                trial.suggest_int(name, int(low), int(high))
            else:
                trial.suggest_categorical(name, [chr(ord("a") + choice) for choice in range(int(high) + 1)])

    def truth(params: Params) -> float:
        return float(problem.value(point(params)))

    def observe(params: Params, seed: int, number: int) -> tuple[float, float]:
        return problem.observe(point(params), seed, number), truth(params)

    counts = {kind: kinds.count(kind) for kind in ("float", "int", "choice") if kind in kinds}
    columns = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts.items())
    note = f"{columns}, noise sd = 0.1 IQR"
    return Task(problem.name, suggest, observe, truth, problem.iqr, problem.minimum, note)


def _told(task: Task, ending: str, note: str, value: Callable[[float, float, int, int], float]) -> Task:
    """The task with other values told: `value(told, counted, seed, number)`, of the two numbers of `observe`."""

    def observe(params: Params, seed: int, number: int) -> tuple[float, float]:
        told, counted = task.observe(params, seed, number)
        return value(told, counted, seed, number), counted

    return replace(task, name=f"{task.name}-{ending}", observe=observe, note=note)


def with_outliers(task: Task, kind: str) -> Task:
    """The task with errors in single values: twice the interquartile range times a normal number.

    They are in 5 % of the values and of both signs ("outliers"), or in 3 % and always for the better ("too-good").
    """

    def value(told: float, counted: float, seed: int, number: int) -> float:
        rng = np.random.default_rng([77, seed, number])
        share, error = rng.random(), 2.0 * task.scale * rng.standard_normal()
        return told + error * (share < 0.05) if kind == "outliers" else told - abs(error) * (share < 0.03)

    return _told(task, kind, f"{task.note}; {kind}", value)


def with_much_noise(task: Task) -> Task:
    """The task with ten times the noise: its standard deviation is an interquartile range."""
    note = task.note.replace("noise sd = 0.1 IQR", "noise sd = 1 IQR")
    return _told(task, "noisy", note, lambda told, counted, *_: counted + 10.0 * (told - counted))


def with_heavy_tails(task: Task) -> Task:
    """The task with noise of Student's t-distribution with two degrees of freedom, whose variance is infinite.

    Its interquartile range is 0.16 times that of the function; of 100 values two are 0.7 IQR or more away.
    """

    def value(told: float, counted: float, seed: int, number: int) -> float:
        return counted + 0.1 * task.scale * float(np.random.default_rng([80, seed, number]).standard_t(2.0))

    note = task.note.replace("noise sd = 0.1 IQR", "noise = 0.1 IQR times t with 2 degrees of freedom")
    return _told(task, "tails", note, value)


def over_decades(task: Task) -> Task:
    """The task with the values 10^((y - minimum) / IQR), as of losses and sums of squares: an IQR is a decade.

    The average over trials, the true values and the regret are those of the task as it was.
    """
    assert task.minimum is not None
    low, note = task.minimum, f"{task.note}; told 10^(value / IQR)"
    return _told(task, "decades", note, lambda told, *_: float(10.0 ** ((told - low) / task.scale)))


def with_penalties(problem: Problem) -> Task:
    """The function with the value 1e10 beyond an oblique plane, which is close to the best point.

    Beyond it are 30 to 60 % of the box. A point there counts an interquartile range more than the function has there.
    """
    task, rng = of_problem(problem), np.random.default_rng(79)
    best = (np.array(problem.minimizers[0]) - problem.low) / (problem.high - problem.low)
    share, U = 0.0, rng.random((1000, problem.dim))
    while not 0.3 < share < 0.6:
        normal = rng.standard_normal(problem.dim)
        limit = float(best @ normal + 0.02 * np.abs(normal).sum())
        share = float((U @ normal > limit).mean())

    def fails(params: Params) -> bool:
        u = (np.array([params[f"x{j}"] for j in range(problem.dim)]) - problem.low) / (problem.high - problem.low)
        return float(u @ normal) > limit

    def truth(params: Params) -> float:
        return task.truth(params) + problem.iqr * fails(params)

    def observe(params: Params, seed: int, number: int) -> tuple[float, float]:
        told, _ = task.observe(params, seed, number)
        return 1e10 if fails(params) else told, truth(params)

    note = f"{task.note}; 1e10 beyond a plane"
    return replace(task, name=f"{task.name}-penalties", observe=observe, truth=truth, note=note)


def with_rates(problem: Problem) -> Task:
    """The function of a rate and of a momentum on linear ranges, in the place of its first two parameters.

    The rate is in [1e-4, 1], and what counts is its logarithm; the momentum is in [0, 0.999], and what counts is the
    logarithm of its distance from one.
    """
    task = of_problem(problem)

    def as_told(params: Params) -> Params:
        places = {"x0": 1.0 + np.log10(params["rate"]) / 4.0, "x1": -np.log10(1.0 - params["momentum"]) / 3.0}
        bounds = zip(places, problem.bounds, strict=False)
        first = {name: low + float(places[name]) * (high - low) for name, (low, high) in bounds}
        return {**first, **{name: value for name, value in params.items() if name.startswith("x")}}

    def suggest(trial: optuna.Trial) -> None:
        trial.suggest_float("rate", 1e-4, 1.0)
        trial.suggest_float("momentum", 0.0, 0.999)
        for j, (low, high) in enumerate(problem.bounds[2:], start=2):
            trial.suggest_float(f"x{j}", low, high)

    return replace(
        task,
        name=f"{task.name}-rates",
        suggest=suggest,
        observe=lambda params, seed, number: task.observe(as_told(params), seed, number),
        truth=lambda params: task.truth(as_told(params)),
        note=f"{task.note}; a rate and a momentum on linear ranges",
    )


def without_noise(task: Task) -> Task:
    """The task of a function without noise; the samplers are not told that there is none."""
    note = task.note.replace("noise sd = 0.1 IQR", "no noise")
    return _told(task, "noiseless", note, lambda told, counted, *_: counted)


def of_choices(problem: ChoiceProblem) -> Task:
    """A function of choices with its noise; its minimum is not known."""
    names, scale = [f"x{j}" for j in range(len(problem.n_choices))], problem.iqr()

    def suggest(trial: optuna.Trial) -> None:
        for name, k in zip(names, problem.n_choices, strict=True):
            trial.suggest_categorical(name, [chr(ord("a") + choice) for choice in range(k)])

    def truth(params: Params) -> float:
        return problem.value(np.array([ord(params[name]) - ord("a") for name in names]))

    def observe(params: Params, seed: int, number: int) -> tuple[float, float]:
        value = truth(params)
        return value + 0.1 * scale * float(np.random.default_rng([78, seed, number]).standard_normal()), value

    note = f"{len(names)} choices of {problem.n_choices[0]}, noise sd = 0.1 IQR"
    return Task(problem.name, suggest, observe, truth, scale, None, note)


def of_tuning(tuning: Tuning) -> Task:
    """A model to tune; the average over trials counts what was observed, whose noise averages out."""

    def observe(params: Params, seed: int, number: int) -> tuple[float, float]:
        loss = tuning.observe(params, seed, number)
        return loss, loss

    note = f"{tuning.note}; noise sd near the best about {tuning.noise_sd / tuning.iqr:.2f} IQR"
    return Task(tuning.name, tuning.suggest, observe, tuning.truth, tuning.iqr, None, note)


_CLASSIC = (
    PROBLEMS["branin"],
    PROBLEMS["hartmann6"],
    off_centre(PROBLEMS["ackley10"]),
    off_centre(PROBLEMS["levy8"]),
    rosenbrock(6),
    off_centre(from_botorch("griewank6", Griewank(6))),
    off_centre(PROBLEMS["rastrigin6"]),
    PROBLEMS["schwefel6"],
    PROBLEMS["shekel4"],
    PROBLEMS["peaks4"],
)
# Each kind is in both lists, once in 5 and once in 10 dimensions, with other rotations (the seed is 0 or 1).
_DEVELOPMENT = (
    structured.bowl(5, seed=0),
    structured.valley(10, seed=0),
    structured.ridge(5, seed=0),
    structured.rotated_rastrigin(10, seed=0),
    structured.rotated_ackley(5, seed=0),
    structured.rotated_griewank(10, seed=0),
    structured.ripples(5, seed=0),
    structured.mirrored_schwefel(10, seed=0),
    structured.gallagher(5, seed=0),
    structured.steps(10, seed=0),
    structured.mixed_bowl(5, seed=0),
    structured.mixed_ripples(10, seed=0),
)
_HELD_OUT = (
    structured.bowl(10, seed=1),
    structured.valley(5, seed=1),
    structured.ridge(10, seed=1),
    structured.rotated_rastrigin(5, seed=1),
    structured.rotated_ackley(10, seed=1),
    structured.rotated_griewank(5, seed=1),
    structured.ripples(10, seed=1),
    structured.mirrored_schwefel(5, seed=1),
    structured.gallagher(10, seed=1),
    structured.steps(5, seed=1),
    structured.mixed_bowl(10, seed=1),
    structured.mixed_ripples(5, seed=1),
    from_botorch("hartmann3", Hartmann(3)),
    off_centre(levy(4)),
    random_peaks(6, seed=1),
)

_PROBLEMS = {problem.name: problem for problem in (*_CLASSIC, *_DEVELOPMENT, *_HELD_OUT)}

#: What changes are tried on. The classic functions and two models are here: defaults were chosen by looking at them.
DEVELOPMENT: tuple[str, ...] = (*(problem.name for problem in (*_CLASSIC, *_DEVELOPMENT)), "boosting", "mlp")

#: Run once, when nothing is to be changed any more: a number on tasks that decided between variants of a method is
#: biased in its favour. The kinds are those of the development tasks; dimensions, rotations and seeds are not.
HELD_OUT: tuple[str, ...] = (*(problem.name for problem in _HELD_OUT), "svm")

#: Changes of six functions: the name of their set, the ending of their names, and what makes one of them.
_CHANGED = ("hartmann6", "levy8-off", "rosenbrock6", "ackley5-rotated", "griewank6-off", "gallagher5")
_CHANGES: tuple[tuple[str, str, Callable[[Problem], Task]], ...] = (
    ("outliers", "outliers", lambda problem: with_outliers(of_problem(problem), "outliers")),
    ("too-good", "too-good", lambda problem: with_outliers(of_problem(problem), "too-good")),
    ("decades", "decades", lambda problem: over_decades(of_problem(problem))),
    ("penalties", "penalties", with_penalties),
    ("noisy", "noisy", lambda problem: with_much_noise(of_problem(problem))),
    ("heavy-tails", "tails", lambda problem: with_heavy_tails(of_problem(problem))),
    ("rates", "rates", with_rates),
)


def _of_bbob(instance: int, number: int) -> Task:
    return of_problem(bbob.bbob(number, instance))


_FUNCTIONS = tuple(name for name in DEVELOPMENT if name not in TUNING)
_CHOICES = tuple(problem.name for problem in CHOICES)

#: Names of tasks by the name of their set.
SETS: dict[str, tuple[str, ...]] = {
    "development": DEVELOPMENT,
    "held-out": HELD_OUT,
    "all": (*DEVELOPMENT, *HELD_OUT),
    "noiseless": tuple(f"{name}-noiseless" for name in _FUNCTIONS),
    "bbob-noiseless": tuple(f"{name}-noiseless" for name in bbob.NAMES[1]),
    "bbob-held-out-noiseless": tuple(f"{name}-noiseless" for name in bbob.NAMES[2]),
    "models": tuple(PIPELINES),
    "bbob": bbob.NAMES[1],
    "bbob-held-out": bbob.NAMES[2],
    "choices": _CHOICES,
    "choices-noiseless": tuple(f"{name}-noiseless" for name in _CHOICES),
    **{kind: tuple(f"{name}-{ending}" for name in _CHANGED) for kind, ending, _ in _CHANGES},
}

#: Made when asked for: the interquartile ranges take a moment.
TASKS: dict[str, Callable[[], Task]] = {
    **{name: partial(of_problem, problem) for name, problem in _PROBLEMS.items()},
    **{name: partial(of_tuning, tuning) for name, tuning in (TUNING | PIPELINES).items()},
    **{problem.name: partial(of_choices, problem) for problem in CHOICES},
    **{name: partial(_of_bbob, k, i) for k, names in bbob.NAMES.items() for i, name in enumerate(names, start=1)},
    **{f"{name}-{ending}": partial(make, _PROBLEMS[name]) for name in _CHANGED for _, ending, make in _CHANGES},
}
TASKS |= {
    f"{name}-noiseless": lambda make=TASKS[name]: without_noise(make())  # type: ignore[misc]
    for name in (*_FUNCTIONS, *_CHOICES, *bbob.NAMES[1], *bbob.NAMES[2])
}
