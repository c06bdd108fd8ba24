"""Recommendations and diagnostics of the sampler."""

import functools
import math

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from bkbopt.adapters.optuna import BKBSampler
from bkbopt.search.trials.reports import Diagnostics, Recommendation
from tests.adapters.optuna.studies import new_study, objective
from tests.sweeps import slow_but


@functools.cache
def under_noise(seed: int) -> tuple[Recommendation, float, float]:
    """The recommendation of a noisy study, and the true values of its point and of that with the best value."""
    rng, study = np.random.default_rng(seed), new_study("maximize", seed=seed)
    study.optimize(lambda trial: -objective(trial) + 0.5 * rng.standard_normal(), n_trials=40)
    recommended = study.sampler.recommend(study)
    assert isinstance(recommended, Recommendation)
    ours, lucky = (-objective(optuna.trial.FixedTrial(p)) for p in (dict(recommended.params), study.best_params))
    return recommended, ours, lucky


@pytest.mark.parametrize("n_studies", slow_but([1], [1, 10]))
def test_the_recommendation_is_better_than_the_luckiest_trial_under_noise(n_studies: int) -> None:
    lucky, ours = np.mean([(-lucky, -ours) for _, ours, lucky in map(under_noise, range(n_studies))], axis=0)
    assert ours < 0.3
    # The mean difference is a fifth of a study's own scatter: of one study it says little, of ten enough.
    assert ours <= lucky or n_studies < 10


@pytest.mark.parametrize("seed", slow_but([0], range(10)))
def test_the_recommendation_under_noise_knows_how_good_it_is(seed: int) -> None:
    recommended, ours, _ = under_noise(seed)
    assert abs(recommended.mean - ours) < 4.0 * recommended.std + 0.2
    assert 0.0 < recommended.std < 0.5  # below that of one evaluation


def test_the_recommendation_without_noise_is_the_best_trial() -> None:
    study = new_study(deterministic_objective=True)
    study.optimize(objective, n_trials=25)
    recommended = study.sampler.recommend(study)
    # The model's noise is small, not zero, so it cannot tell apart trials that are this close to each other.
    assert objective(optuna.trial.FixedTrial(dict(recommended.params))) < study.best_value + 1e-3
    assert recommended.mean == pytest.approx(study.best_value, abs=1e-2)


def test_the_recommendation_depends_on_the_study_alone_and_changes_nothing() -> None:
    study, reference = new_study(), new_study()
    study.optimize(objective, n_trials=9)
    reference.optimize(objective, n_trials=9)
    recommended = study.sampler.recommend(study)
    assert recommended == study.sampler.recommend(study)
    fresh = BKBSampler(seed=0, n_startup_trials=5)
    assert fresh.recommend(study).params == recommended.params
    assert fresh.recommend(study).mean == recommended.mean
    study.optimize(objective, n_trials=3)
    reference.optimize(objective, n_trials=3)
    assert [trial.params for trial in study.trials] == [trial.params for trial in reference.trials]


def test_a_recommendation_is_given_from_the_first_complete_trial_on() -> None:
    study = new_study(n_startup_trials=10)
    study.optimize(objective, n_trials=1)
    recommended = study.sampler.recommend(study)
    assert recommended.params == study.trials[0].params
    study.optimize(objective, n_trials=3)
    assert recommended.params.keys() == study.sampler.recommend(study).params.keys()


def test_the_recommendation_keeps_to_the_constraints() -> None:
    study = new_study()

    def constrained(trial: optuna.Trial) -> float:
        trial.set_constraint("x", -objective(trial) + 0.5)
        return objective(trial)

    study.optimize(constrained, n_trials=18)
    params = study.sampler.recommend(study).params
    assert objective(optuna.trial.FixedTrial(dict(params))) >= 0.45


def test_a_study_without_complete_trials_has_no_recommendation() -> None:
    study = new_study()
    with pytest.raises((ValueError, RuntimeError), match="complete"):
        study.sampler.recommend(study)
    study.tell(study.ask(), state=TrialState.FAIL)
    study.ask()
    with pytest.raises((ValueError, RuntimeError), match="complete"):
        study.sampler.recommend(study)
    study.optimize(objective, n_trials=1)
    assert study.sampler.recommend(study).params == study.best_params


def test_infinite_values_alone_have_no_recommendation() -> None:
    study = new_study(n_startup_trials=2)
    study.optimize(lambda trial: objective(trial) * math.inf, n_trials=4)
    with pytest.raises(ValueError, match=r"^study: expected .* finite value, got infinite ones only"):
        study.sampler.recommend(study)


@pytest.mark.parametrize("n_failed", [0, 2])
def test_the_only_complete_trial_is_recommended_however_late_it_came(n_failed: int) -> None:
    study = new_study()
    for state in [TrialState.FAIL] * n_failed + [TrialState.PRUNED] * 7:
        trial = study.ask()
        objective(trial)
        study.tell(trial, state=state)
    study.optimize(objective, n_trials=1)
    assert study.sampler.recommend(study).params == study.trials[-1].params


def test_several_objectives_have_no_single_recommendation() -> None:
    study = optuna.create_study(directions=["minimize"] * 2, sampler=BKBSampler(seed=0))
    study.optimize(lambda trial: (objective(trial), trial.params["x"]), n_trials=2)
    with pytest.raises((ValueError, RuntimeError), match="objective"):
        study.sampler.recommend(study)


def test_diagnostics_tell_of_every_suggestion_of_the_model() -> None:
    study = new_study(n_startup_trials=5)
    study.optimize(objective, n_trials=12)
    records = [record for record in study.sampler.diagnostics if record.n_inducing is not None]
    assert all(isinstance(record, Diagnostics) for record in study.sampler.diagnostics)
    assert [record.trial for record in records] == list(range(5, 12))
    assert [record.n_values for record in records] == list(range(5, 12))
    for record in records:
        assert record.ask_seconds > 0.0
        assert 1 <= record.n_inducing <= record.n_values
        assert 0.0 < record.effective_dimension <= record.n_values
        assert record.beta > 0.0
        assert record.noise_std >= 0.0
