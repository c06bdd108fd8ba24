"""BKBSampler on a noisy function, loaded as a package of OptunaHub.

This folder is the package: from a copy of the registry it would be loaded by its name there, as the README shows.
"""

import random
from pathlib import Path

import optuna
import optunahub

FOLDER = Path(__file__).resolve().parent
BKBSampler = optunahub.load_local_module(FOLDER.name, registry_root=str(FOLDER.parent)).BKBSampler


def objective(trial: optuna.Trial) -> float:
    """A bowl with its minimum at (1, -2) in one of two branches, and noise."""
    x = trial.suggest_float("x", -5.0, 5.0)
    if trial.suggest_categorical("branch", ["one", "two"]) == "one":
        y = trial.suggest_float("y", -5.0, 5.0)
        return (x - 1.0) ** 2 + (y + 2.0) ** 2 + random.gauss(0.0, 0.5)
    return x**2 + 3.0 + random.gauss(0.0, 0.5)


if __name__ == "__main__":
    random.seed(0)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = BKBSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=60)
    print(f"best observed: {study.best_value:.3f} at {study.best_params}")
    choice = sampler.recommend(study)
    print(f"recommended: {choice.mean:.3f} +- {2.0 * choice.std:.3f} at {dict(choice.params)}")
