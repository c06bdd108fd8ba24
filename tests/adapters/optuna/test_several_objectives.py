"""Several objectives: their front, directions, constraints, and trials without values."""

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import optuna
import pytest
from optuna.samplers import BaseSampler, RandomSampler

from bkbopt.adapters.optuna import BKBSampler
from tests.adapters.optuna.studies import n_distinct, several, share


def hypervolume(points: Sequence[Sequence[float]], reference: Sequence[float]) -> float:
    """Of two objectives to be minimized: the area that the points dominate below the reference."""
    area, height = 0.0, reference[1]
    for first, second in sorted(tuple(point) for point in points):
        if first < reference[0] and second < height:
            area += (reference[0] - first) * (height - second)
            height = second
    return area


def two_bowls(trial: optuna.Trial) -> tuple[float, float]:
    """A front between (0.2, 0.2, 0.2) and (0.8, 0.8, 0.8)."""
    point = np.array([trial.suggest_float(name, 0.0, 1.0) for name in "xyz"])
    return float(((point - 0.2) ** 2).sum()), float(((point - 0.8) ** 2).sum())


@pytest.mark.slow  # the optimizer's front is in tests/optimizer/test_several_objectives.py
def test_the_hypervolume_of_two_objectives_is_larger_than_at_random() -> None:
    def mean_of(sampler: Callable[[int], BaseSampler]) -> float:
        found = []
        for seed in range(2):
            study = several(["minimize"] * 2, sampler(seed))
            study.optimize(two_bowls, n_trials=35)
            found.append(hypervolume([trial.values for trial in study.trials], (1.2, 1.2)))
        return float(np.mean(found))

    front = [3 * (t - np.array([0.2, 0.8])) ** 2 for t in np.linspace(0.2, 0.8, 1001)]
    best = hypervolume(front, (1.2, 1.2))
    missed = [
        best - mean_of(sampler)
        for sampler in (lambda seed: BKBSampler(seed=seed, n_startup_trials=8), lambda seed: RandomSampler(seed=seed))
    ]
    assert 0.0 < missed[0] < 0.5 * missed[1]


def test_each_objective_has_its_own_direction() -> None:
    first, second = several(["minimize", "minimize"]), several(["minimize", "maximize"])
    first.optimize(two_bowls, n_trials=10)

    def flipped(trial: optuna.Trial) -> tuple[float, float]:
        one, other = two_bowls(trial)
        return one, -other

    second.optimize(flipped, n_trials=10)
    assert [trial.params for trial in first.trials] == [trial.params for trial in second.trials]


def test_three_objectives_are_searched() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, ...]:
        point = np.array([trial.suggest_float(name, 0.0, 1.0) for name in "xy"])
        return tuple(float(((point - corner) ** 2).sum()) for corner in ([0, 0], [1, 0], [0, 1]))

    study = several(["minimize"] * 3)
    study.optimize(objective, n_trials=20)
    # The front is the triangle of the three corners, half of the square.
    assert share(study.trials[10:], lambda p: p["x"] + p["y"] <= 1.05) > 0.6


def test_objectives_may_be_constrained() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        values = two_bowls(trial)
        trial.set_constraint("x", 0.5 - trial.params["x"])
        return values

    study = several(["minimize"] * 2)
    study.optimize(objective, n_trials=20)
    assert share(study.trials[8:], lambda p: p["x"] >= 0.45) > 0.6
    assert len(study.best_trials) >= 3


def test_pruned_failed_and_infinite_trials_of_several_objectives_are_survived() -> None:
    study = several(["minimize", "maximize"])

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        first, second = two_bowls(trial)
        if trial.number % 5 == 1:
            raise optuna.TrialPruned
        if trial.number % 5 == 2:
            return math.nan, second
        if trial.number % 5 == 3:
            return math.inf, -math.inf
        return first, -second

    with warnings.catch_warnings():
        # Optuna itself subtracts infinities when it sorts such values.
        warnings.simplefilter("ignore", RuntimeWarning)
        study.optimize(objective, n_trials=20)
    assert len(study.trials) == 20
    assert n_distinct(study) >= 16  # what may be noise may be tried again
