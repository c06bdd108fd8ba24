"""Pruned trials keep the search away, with any intermediate value, and distort no recommendation."""

import math
from collections.abc import Callable

import optuna
import pytest
from optuna.trial import TrialState

from bkbopt.adapters.optuna import BKBSampler
from bkbopt.adapters.optuna.columns import evaluation_of
from tests.adapters.optuna.studies import bowl, n_distinct, new_study, share
from tests.sweeps import slow_but

#: What a pruned trial reports; where the early step looks good, the pruner knew better.
REPORTS: dict[str, Callable[[optuna.Trial], None]] = {
    "no value": lambda trial: None,
    "a poor value": lambda trial: trial.report(5.0, step=1),
    "NaN": lambda trial: trial.report(math.nan, step=1),
    "infinite": lambda trial: trial.report(math.inf, step=1),
    "a good value": lambda trial: trial.report(-3.0, step=0),
}


@pytest.mark.parametrize("name", slow_but(["no value", "NaN", "a good value"], REPORTS))
def test_pruned_trials_keep_the_search_away(name: str) -> None:
    study = new_study()

    def objective(trial: optuna.Trial) -> float:
        value = bowl(trial)
        if trial.params["x"] > 0.6:
            REPORTS[name](trial)
            raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=28)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    # Who ignores what was pruned finds that part unexplored for ever; at random it would get 40 %.
    assert share(study.trials[10:], lambda p: p["x"] > 0.6) < 1 / 3
    assert min(trial.value for trial in study.get_trials(states=[TrialState.COMPLETE])) < 0.01


def test_pruned_and_complete_trials_keep_their_intermediate_values() -> None:
    reported = {0: 1.0, 7: 3.0, 2: 9.0}
    for state, value, kept in ((TrialState.PRUNED, None, reported), (TrialState.COMPLETE, 1.0, reported)):
        trial = optuna.trial.create_trial(state=state, value=value, intermediate_values=reported)
        assert evaluation_of(trial).curve == kept


def test_pruned_trials_do_not_distort_the_recommended_mean_and_deviation() -> None:
    # Early values are 10 above the final ones: as substitutes for final values they would be far off.
    study = optuna.create_study(
        sampler=BKBSampler(seed=0, n_startup_trials=5), pruner=optuna.pruners.MedianPruner(n_warmup_steps=1)
    )

    def objective(trial: optuna.Trial) -> float:
        final = bowl(trial)
        for step in range(5):
            trial.report(final + 10.0 * 0.1**step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return final

    study.optimize(objective, n_trials=60)
    assert sum(trial.state == TrialState.PRUNED for trial in study.trials) >= 5
    best = study.sampler.recommend(study)
    assert abs(best.mean - study.best_value) < 0.01
    assert best.std < 0.05


@pytest.mark.parametrize("n_startup_trials", [0, 5])
def test_a_study_in_which_everything_is_pruned_goes_on_searching(n_startup_trials: int) -> None:
    study = new_study(n_startup_trials=n_startup_trials)

    def objective(trial: optuna.Trial) -> float:
        trial.report(bowl(trial), step=1)
        raise optuna.TrialPruned

    study.optimize(objective, n_trials=15)
    assert {trial.state for trial in study.trials} == {TrialState.PRUNED}
    assert n_distinct(study) == 15


def test_pruned_trials_count_for_the_start_up() -> None:
    # The first trial, in the centre, is the best, so that all others are pruned.
    study = new_study(n_startup_trials=5)

    def objective(trial: optuna.Trial) -> float:
        x, y = (trial.suggest_float(name, 0.0, 1.0) for name in "xy")
        value = (x - 0.52) ** 2 + (y - 0.5) ** 2
        trial.report(value + 3.0, step=1)
        if trial.number:
            raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=20)
    assert [record.trial for record in study.sampler.diagnostics] == list(range(5, 20))
    # Of quasi-random points one in 14 is as near to the centre.
    far = [math.dist((trial.params["x"], trial.params["y"]), (0.5, 0.5)) for trial in study.trials[12:]]
    assert sum(distance < 0.15 for distance in far) >= 6


def test_pruning_works_with_optunas_pruner() -> None:
    sampler = BKBSampler(seed=0, n_startup_trials=5)
    study = optuna.create_study(sampler=sampler, pruner=optuna.pruners.MedianPruner(n_startup_trials=3))

    def objective(trial: optuna.Trial) -> float:
        final = bowl(trial)
        for step in range(4):
            trial.report(final + 1.0 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return final

    study.optimize(objective, n_trials=30)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    assert study.best_value < 0.02
