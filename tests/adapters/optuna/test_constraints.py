"""Constraints of an objective: the constrained optimum is found, and trials may lack them."""

import math

import optuna
import pytest
from optuna.trial import TrialState

from bkbopt.adapters.optuna import BKBSampler
from bkbopt.errors import ArgumentTypeError
from tests.adapters.optuna.studies import bowl, n_distinct, new_study
from tests.sweeps import slow_but


def constrained(trial: optuna.Trial) -> float:
    """Best at (0.5, 0.5), with 0.18; without the constraint at (0.8, 0.8)."""
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
    trial.set_constraint("budget", x + y - 1.0)
    return (x - 0.8) ** 2 + (y - 0.8) ** 2


def test_the_constrained_optimum_is_found() -> None:
    study = new_study()
    study.optimize(constrained, n_trials=28)
    feasible = [trial.value for trial in study.trials if trial.constraints["budget"] <= 0.0]
    # The quarter of the square that is at least as good has an area of about 0.001.
    assert 0.18 <= min(feasible) < 0.2
    assert study.best_value == min(feasible)
    assert study.best_trial.params == pytest.approx({"x": 0.5, "y": 0.5}, abs=0.15)


@pytest.mark.slow
def test_a_small_feasible_region_is_found_by_its_constraint() -> None:
    study = new_study()

    def objective(trial: optuna.Trial) -> float:
        trial.set_constraint("near", (bowl(trial)) ** 0.5 - 0.08)
        return -trial.params["x"]

    study.optimize(objective, n_trials=30)
    # The region has an area of 0.02: at random one trial in 50 lies in it. The optimum lies on its edge.
    assert sum(trial.constraints["near"] < 0.01 for trial in study.trials) >= 5
    assert -0.28 <= min(trial.value for trial in study.trials if trial.constraints["near"] <= 0.0) < -0.26


@pytest.mark.slow  # each of them is a quantity like the one above
def test_several_constraints_hold_together() -> None:
    study = new_study("maximize")

    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        trial.set_constraint("x", x - 0.4)
        trial.set_constraint("y", 1e6 * (y - 0.7))  # units of a constraint do not matter
        return x + y

    study.optimize(objective, n_trials=40)
    feasible = [trial.value for trial in study.trials if max(trial.constraints.values()) <= 0.0]
    assert 1.0 < max(feasible) <= 1.1


def test_trials_without_constraints_are_tolerated() -> None:
    study = new_study()
    study.optimize(bowl, n_trials=4)
    study.optimize(constrained, n_trials=4)

    def objective(trial: optuna.Trial) -> float:
        if trial.number % 2:
            trial.set_constraint("another", -1.0)
        return bowl(trial) if trial.number % 3 else constrained(trial)

    study.optimize(objective, n_trials=12)
    assert {len(trial.constraints) for trial in study.trials} >= {0, 1, 2}
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)


@pytest.mark.parametrize("violation", [1.0, 1e-300, 1e300, math.inf])
def test_a_study_without_a_feasible_trial_goes_on(violation: float) -> None:
    study = new_study()

    def objective(trial: optuna.Trial) -> float:
        trial.set_constraint("never", violation)
        return bowl(trial)

    study.optimize(objective, n_trials=15)
    assert n_distinct(study) >= 12  # what may be noise may be tried again


@pytest.mark.parametrize(
    "sides",
    slow_but(
        {(math.inf, 0.0), (1.0, -math.inf), (math.inf, -math.inf)},
        [(math.inf, -1.0), (math.inf, 0.0), (1.0, -math.inf), (math.inf, -math.inf), (1.0, -1.0)],
    ),
    ids=str,
)
def test_an_infinite_constraint_is_on_its_side_of_zero(sides: tuple[float, float]) -> None:
    broken, kept = sides
    study = new_study()

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("c", broken if x > 0.3 else kept)
        return (x - 0.5) ** 2

    study.optimize(objective, n_trials=18)
    assert 0.25 < study.sampler.recommend(study).params["x"] <= 0.3


def test_a_function_of_constraints_is_refused_with_advice() -> None:
    message = r"^constraints_func: expected none.*got function; call trial\.set_constraint\(name, value\)"
    with pytest.raises(ArgumentTypeError, match=message):
        BKBSampler(constraints_func=lambda trial: [0.0])  # type: ignore[arg-type]
    assert repr(BKBSampler(seed=3, constraints_func=None)) == "BKBSampler(seed=3)"


def test_pruned_trials_may_have_constraints() -> None:
    study = new_study()

    def objective(trial: optuna.Trial) -> float:
        value = constrained(trial)
        if trial.number % 4 == 3:
            raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=17)
    feasible = [t.value for t in study.get_trials(states=[TrialState.COMPLETE]) if t.constraints["budget"] <= 0.0]
    assert min(feasible) < 0.25
