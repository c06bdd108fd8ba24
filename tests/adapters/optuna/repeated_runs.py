"""An objective, runs of it, and what a new sampler suggests on the same storage."""

import copy
from typing import Any

import optuna
from optuna.storages import BaseStorage

from bkbopt.adapters.optuna import BKBSampler

Params = dict[str, Any]
OPTIONS: Params = {"seed": 0, "n_startup_trials": 4}


def suggest(trial: optuna.Trial) -> Params:
    x = trial.suggest_float("x", -3.0, 3.0)
    trial.suggest_float("rate", 1e-4, 1.0, log=True)
    if trial.suggest_categorical("kind", ["a", None, True]) == "a":
        trial.suggest_int("n", 1, 8)
    # A range of its own in every trial.
    trial.suggest_float("y", 0.0, 4.0 + x)
    return trial.params


def objective(trial: optuna.Trial) -> float:
    params = suggest(trial)
    return (params["x"] - 1.0) ** 2 + params["rate"] + 0.1 * params.get("n", 4) + abs(params["y"] - 2.0)


def new_study(sampler: BKBSampler, storage: BaseStorage | None = None, **options: Any) -> optuna.Study:
    return optuna.create_study(study_name="study", storage=storage, sampler=sampler, **options)


def params_of(study: optuna.Study) -> list[Params]:
    return [trial.params for trial in study.trials]


def what_a_fresh_sampler_suggests(study: optuna.Study, options: Params = OPTIONS) -> Params:
    """On a copy of the in-memory storage, which stays as it is."""
    storage = copy.deepcopy(study._storage)
    return suggest(optuna.load_study(study_name="study", storage=storage, sampler=BKBSampler(**options)).ask())
