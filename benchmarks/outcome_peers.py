"""Optimisers for several objectives and for constraints, all but BoTorch's, and the loop that drives them.

`OURS_AND_OPTUNA` maps a name to a callable (problem, seed) that gives a `Loop`. All but NSGA-II, whose population is
ten, start with ten points of their own choice. They do not get the noise variance, but `GPSampler` and BoTorch are told
where there is no noise, as a careful user would do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna

import bkbopt as bo
from benchmarks.functions import Array
from benchmarks.outcomes import OutcomeProblem
from benchmarks.report import Clock, limited_threads
from benchmarks.samplers import N_STARTUP, floats, point, quiet_optuna

__all__ = ["CHECKPOINTS", "OURS_AND_OPTUNA", "Loop", "drive"]

#: Numbers of trials after which a run is looked at, besides its end.
CHECKPOINTS = (50, 100, 200)


@dataclass(frozen=True)
class Loop:
    """An optimiser: `ask()` gives a point (d,), `tell(x, outcomes)` takes (k,), `named()` gives the recommendation.

    That is points (m, d): the estimated front, or a single recommended point; none where there is no such method.
    """

    ask: Callable[[], Array]
    tell: Callable[[Array, Array], None]
    named: Callable[[], Array]


Maker = Callable[[OutcomeProblem, int], Loop]


def drive(make: Maker, problem: OutcomeProblem, n_trials: int, seed: int) -> dict[str, list[float]]:
    """Run an optimiser on one thread.

    Returns lists of one length: `checkpoints` (numbers of trials), the problem's measures after each, and `seconds`
    spent in asking and telling so far.
    """
    looks = [*(c for c in CHECKPOINTS if c < n_trials), n_trials]
    record: dict[str, list[float]] = {"checkpoints": [], "seconds": []}
    xs: list[Array] = []
    clock = Clock()
    with quiet_optuna(), limited_threads(1):
        loop = make(problem, seed)
        for trial in range(n_trials):
            with clock:
                x = loop.ask()
            outcomes = problem.observe(x, seed, trial)
            xs.append(x)
            with clock:
                loop.tell(x, outcomes)
            if trial + 1 in looks:
                measures = problem.measure(problem.value(xs), problem.value(loop.named()))
                found = {"checkpoints": trial + 1, "seconds": clock.wall, **measures}
                for key, value in found.items():
                    record.setdefault(key, []).append(value)
    return record


def _random(problem: OutcomeProblem, seed: int) -> optuna.samplers.BaseSampler:
    return optuna.samplers.RandomSampler(seed=seed)


def _nsga2(problem: OutcomeProblem, seed: int) -> optuna.samplers.BaseSampler:
    """A population of 10, the best of 10, 20 and 50 on average: the default of 50 begins with as many random trials."""
    return optuna.samplers.NSGAIISampler(population_size=10, seed=seed)


def _gp_sampler(problem: OutcomeProblem, seed: int) -> optuna.samplers.BaseSampler:
    return optuna.samplers.GPSampler(seed=seed, n_startup_trials=N_STARTUP, deterministic_objective=not problem.noisy)


def _optuna(sampler: Callable[[OutcomeProblem, int], optuna.samplers.BaseSampler]) -> Maker:
    """A sampler by ask and tell; it names `study.best_trials`, or `study.best_trial` where there are constraints."""

    def make(problem: OutcomeProblem, seed: int) -> Loop:
        space, asked = floats(problem.bounds), list[optuna.Trial]()
        study = optuna.create_study(sampler=sampler(problem, seed), directions=["minimize"] * problem.n_objectives)

        def ask() -> Array:
            asked.append(study.ask(space))
            return point(asked[-1].params)

        def tell(x: Array, outcomes: Array) -> None:
            for i, value in enumerate(outcomes[problem.n_objectives :]):
                asked[-1].set_constraint(f"c{i}", value)
            study.tell(asked[-1], outcomes[: problem.n_objectives].tolist())

        def named() -> Array:
            # With constraints `best_trials` are the feasible ones, and there may be none.
            return np.array([point(trial.params) for trial in study.best_trials]).reshape(-1, problem.dim)

        return Loop(ask, tell, named)

    return make


def _bkbopt(problem: OutcomeProblem, seed: int) -> Loop:
    """Our optimiser with its defaults; it names what it recommends."""
    constraints = [f"c{i}" for i in range(problem.n_constraints)]
    options: dict[str, Any] = {"seed": seed, "n_startup_trials": N_STARTUP}
    options |= {"constraints": constraints} if constraints else {"directions": ["minimize"] * problem.n_objectives}
    opt = bo.Optimizer(list(problem.bounds), **options)
    asked: list[bo.Trial] = []

    def ask() -> Array:
        asked.append(opt.ask())
        return point(asked[-1].params)

    def tell(x: Array, outcomes: Array) -> None:
        if constraints:
            measured = dict(zip(constraints, outcomes[1:].tolist(), strict=True))
            opt.tell(asked[-1], float(outcomes[0]), constraints=measured)
        else:
            opt.tell(asked[-1], outcomes.tolist())

    def named() -> Array:
        records = [opt.recommend()] if constraints else opt.recommend_front()
        return np.array([point(record.params) for record in records]).reshape(-1, problem.dim)

    return Loop(ask, tell, named)


OURS_AND_OPTUNA: dict[str, Maker] = {
    "random": _optuna(_random),
    "nsga2": _optuna(_nsga2),
    "gp_sampler": _optuna(_gp_sampler),
    "bkbopt": _bkbopt,
}
