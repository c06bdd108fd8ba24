"""The same seed gives the same suggestions, in copies of a sampler and beside other studies, too."""

import copy
import functools
import pickle
from collections.abc import Callable

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage

from bkbopt.adapters.optuna import BKBSampler
from tests.adapters.optuna.repeated_runs import OPTIONS, Params, new_study, objective, params_of, suggest
from tests.sweeps import slow_but, sweep


def two_objectives(trial: optuna.Trial) -> tuple[float, float]:
    value = objective(trial)
    return value, trial.params["x"] ** 2


#: Of a run, of which four trials start it up.
N_TRIALS = 10


def run(sampler: BKBSampler, n_trials: int = N_TRIALS) -> list[Params]:
    study = new_study(sampler)
    study.optimize(objective, n_trials=n_trials)
    return params_of(study)


@functools.cache
def undisturbed() -> list[Params]:
    """What the options give without anything beside or between."""
    return run(BKBSampler(**OPTIONS))


@pytest.mark.parametrize("acquisition", slow_but(["thompson"], ["ucb", "logei", "thompson"]))
def test_the_same_seed_gives_the_same_suggestions(acquisition: str) -> None:
    first, second = (run(BKBSampler(**OPTIONS, acquisition=acquisition)) for _ in range(2))
    assert first == second


def test_the_same_seed_gives_the_same_suggestions_for_two_objectives() -> None:
    studies = [new_study(BKBSampler(**OPTIONS), directions=["minimize", "maximize"]) for _ in range(2)]
    for study in studies:
        study.optimize(two_objectives, n_trials=8)
    assert params_of(studies[0]) == params_of(studies[1])


@pytest.mark.parametrize("n_startup_trials", [0, 100])
def test_different_seeds_give_different_suggestions(n_startup_trials: int) -> None:
    first, second, no_seed, no_seed_either = (
        run(BKBSampler(seed=seed, n_startup_trials=n_startup_trials), 4) for seed in (1, 2, None, None)
    )
    assert first[0] == second[0] == no_seed[0]  # the centre
    for i in range(1, 4):
        assert first[i] != second[i]
    assert no_seed[1:] != no_seed_either[1:]  # single ones may be in the same corner


@pytest.mark.parametrize("n_trials_before", [1, 2, 8])
def test_reseeding_changes_what_follows(n_trials_before: int) -> None:
    left, reseeded = (new_study(BKBSampler(**OPTIONS)) for _ in range(2))
    for study in (left, reseeded):
        study.optimize(objective, n_trials=n_trials_before)
    reseeded.sampler.reseed_rng()
    for study in (left, reseeded):
        study.optimize(objective, n_trials=3)
    before, after = slice(n_trials_before), slice(n_trials_before, None)
    assert params_of(left)[before] == params_of(reseeded)[before]
    for params, others in zip(params_of(left)[after], params_of(reseeded)[after], strict=True):
        assert params != others


@pytest.mark.parametrize(
    ("n_trials_before", "copied"),
    sweep([0, 3, 9], [copy.deepcopy, lambda sampler: pickle.loads(pickle.dumps(sampler))]),
)
def test_a_pickled_sampler_goes_on_alike(n_trials_before: int, copied: Callable[[BKBSampler], BKBSampler]) -> None:
    study = new_study(BKBSampler(**OPTIONS))
    study.optimize(objective, n_trials=n_trials_before)
    study.sampler = copied(study.sampler)
    study.optimize(objective, n_trials=N_TRIALS - n_trials_before)
    assert params_of(study) == undisturbed()


def test_a_reseeded_sampler_keeps_its_new_seed_when_pickled() -> None:
    study = new_study(BKBSampler(**OPTIONS))
    study.optimize(objective, n_trials=6)
    study.sampler.reseed_rng()
    twin = optuna.load_study(
        study_name="study", storage=copy.deepcopy(study._storage), sampler=pickle.loads(pickle.dumps(study.sampler))
    )
    assert suggest(study.ask()) == suggest(twin.ask())


def test_reseeding_leaves_the_models_as_they_are() -> None:
    # A small dictionary, so that the models have random numbers.
    options = {**OPTIONS, "max_inducing": 5}
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    study.optimize(objective, n_trials=20)
    reseeded = BKBSampler(**options)
    reseeded.reseed_rng()
    recommended = BKBSampler(**options).recommend(study)
    assert reseeded.recommend(study) == recommended
    assert BKBSampler(**{**options, "seed": 1}).recommend(study) != recommended


def test_two_studies_of_one_sampler_do_not_disturb_each_other() -> None:
    sampler = BKBSampler(**OPTIONS)
    studies, alone = [new_study(sampler) for _ in range(2)], new_study(BKBSampler(**OPTIONS))
    for _ in range(N_TRIALS):
        studies[0].optimize(objective, n_trials=1)
        studies[1].optimize(lambda trial: -objective(trial), n_trials=1)
    alone.optimize(lambda trial: -objective(trial), n_trials=N_TRIALS)
    assert list(map(params_of, studies)) == [undisturbed(), params_of(alone)]
    assert params_of(studies[0]) != params_of(studies[1])


@pytest.mark.parametrize("n_before", slow_but({1}, [1, 12]))
def test_a_study_in_place_of_a_deleted_one_is_followed_anew(
    n_before: int, open_storage: Callable[..., BaseStorage]
) -> None:
    """SQLite gives the identifier of the last study to the next one, if it was deleted."""
    # One object for both studies, as a proxy by gRPC is; other storages are wrapped for each study.
    storage, sampler = optuna.storages.get_storage(open_storage("sqlite")), BKBSampler(**OPTIONS)
    deleted = optuna.create_study(study_name="study", storage=storage, sampler=sampler)
    deleted.optimize(lambda trial: trial.suggest_float("of the deleted study", 0.0, 1.0), n_trials=n_before)
    sampler.recommend(deleted)
    optuna.delete_study(study_name="study", storage=storage)
    study = optuna.create_study(study_name="study", storage=storage, sampler=sampler)
    assert study._study_id == deleted._study_id
    study.optimize(objective, n_trials=8)
    assert params_of(study) == undisturbed()[:8]
    assert sampler.recommend(study) == BKBSampler(**OPTIONS).recommend(study)


def test_rounding_of_a_grid_point_does_not_make_it_another_start_up_point() -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=0, n_startup_trials=20))
    study.enqueue_trial({"x": 0.1 * 6})
    asked = [
        study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0, step=0.1)}).params["x"] for _ in range(11)
    ]
    assert len({round(x, 6) for x in asked}) == 11
