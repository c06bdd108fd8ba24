"""Studies with the sampler, objectives, and counts over their trials."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler

from bkbopt.adapters.optuna import BKBSampler


def new_study(direction: str = "minimize", **options: Any) -> optuna.Study:
    sampler = BKBSampler(**{"seed": 0, "n_startup_trials": 5, **options})
    return optuna.create_study(direction=direction, sampler=sampler)


def several(directions: Sequence[str], sampler: BaseSampler | None = None) -> optuna.Study:
    return optuna.create_study(directions=directions, sampler=sampler or BKBSampler(seed=0, n_startup_trials=5))


def share(trials: Sequence[Any], where: Callable[[dict[str, Any]], bool]) -> float:
    return float(np.mean([where(trial.params) for trial in trials]))


def n_distinct(study: optuna.Study) -> int:
    return len({tuple(sorted(trial.params.items())) for trial in study.trials})


def bowl(trial: optuna.Trial) -> float:
    """Best, 0, at (0.2, 0.6)."""
    return (trial.suggest_float("x", 0.0, 1.0) - 0.2) ** 2 + (trial.suggest_float("y", 0.0, 1.0) - 0.6) ** 2


def objective(trial: optuna.Trial) -> float:
    """Best, 0, at x = 1, n = 3 and kind "a"."""
    x, n = trial.suggest_float("x", -2.0, 2.0), trial.suggest_int("n", 0, 6)
    return (x - 1.0) ** 2 + 0.2 * abs(n - 3) + (trial.suggest_categorical("kind", ["a", "b"]) == "b")
