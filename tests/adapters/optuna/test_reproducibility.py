"""A suggestion depends on the seed and the content of the storage, and not on the sampler's history."""

import copy
import json
import pickle
import random
from collections.abc import Callable
from typing import Any

import optuna
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution
from optuna.exceptions import StorageInternalError
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import TrialState

from bkbopt.adapters.optuna import BKBSampler
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.search.trials.history import History
from tests.sweeps import slow_but, sweep

Params = dict[str, Any]
OPTIONS: Params = {"seed": 0, "n_startup_trials": 4}
LONG = ["a" * 1500, "b" * 1500]


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


def two_objectives(trial: optuna.Trial) -> tuple[float, float]:
    value = objective(trial)
    return value, trial.params["x"] ** 2


def new_study(sampler: BKBSampler, storage: BaseStorage | None = None, **options: Any) -> optuna.Study:
    return optuna.create_study(study_name="study", storage=storage, sampler=sampler, **options)


def params_of(study: optuna.Study) -> list[Params]:
    return [trial.params for trial in study.trials]


def run(sampler: BKBSampler, n_trials: int = 12) -> list[Params]:
    study = new_study(sampler)
    study.optimize(objective, n_trials=n_trials)
    return params_of(study)


def what_a_fresh_sampler_suggests(study: optuna.Study, options: Params = OPTIONS) -> Params:
    """On a copy of the in-memory storage, which stays as it is."""
    storage = copy.deepcopy(study._storage)
    return suggest(optuna.load_study(study_name="study", storage=storage, sampler=BKBSampler(**options)).ask())


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
    for i, params in enumerate(first):
        assert params != second[i]
        assert no_seed[i] != no_seed_either[i]


@pytest.mark.parametrize("n_trials_before", [0, 2, 8])
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
    study.optimize(objective, n_trials=12 - n_trials_before)
    assert params_of(study) == run(BKBSampler(**OPTIONS))


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
    studies, alone = [new_study(sampler) for _ in range(2)], [new_study(BKBSampler(**OPTIONS)) for _ in range(2)]
    for _ in range(12):
        for each in (studies, alone):
            each[0].optimize(objective, n_trials=1)
            each[1].optimize(lambda trial: -objective(trial), n_trials=1)
    assert list(map(params_of, studies)) == list(map(params_of, alone))
    assert params_of(studies[0]) != params_of(studies[1])


@pytest.mark.slow  # the fast suite has it without a process of its own
@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_a_fresh_sampler_in_another_process_suggests_what_a_warm_one_does(
    kind: str,
    open_storage: Callable[..., BaseStorage],
    start_worker: Callable[..., Any],
    floats: dict[str, BaseDistribution],
) -> None:
    warm, cold = (new_study(BKBSampler(**OPTIONS), open_storage(kind, name)) for name in ("warm", "cold"))
    for _ in range(9):
        trial = warm.ask(floats)
        warm.tell(trial, trial.params["x"] ** 2 + trial.params["rate"] + trial.params["n"])
    warm.ask(floats)
    # The same history, down to the attributes and times, without the sampler that made it.
    cold.add_trials(warm.trials)
    worker = start_worker("ask", cold._storage, OPTIONS, space=floats)
    worker.ready().go()
    assert json.loads(worker.output()) == warm.ask(floats).params


def test_the_order_of_completion_may_differ_from_that_of_the_asks() -> None:
    study = new_study(BKBSampler(**OPTIONS))
    for _ in range(4):
        trials = [study.ask() for _ in range(3)]
        values = [objective(trial) for trial in trials]
        for i in (2, 0, 1):
            study.tell(trials[i], values[i])
            assert what_a_fresh_sampler_suggests(study) == suggest(study.ask())


def test_a_trial_that_ends_long_after_later_ones_is_learnt_from() -> None:
    study = new_study(BKBSampler(**OPTIONS))
    late = study.ask()
    value = objective(late)
    study.optimize(objective, n_trials=10)
    study.tell(late, value - 100.0)
    assert what_a_fresh_sampler_suggests(study) == suggest(study.ask())


def test_constraints_may_get_their_names_in_any_order() -> None:
    study = new_study(BKBSampler(**OPTIONS))
    for number in range(14):
        trial = study.ask()
        value = objective(trial)
        for name in ("late", "early") if number >= 6 else ("middle",):
            trial.set_constraint(name, value - 3.0)
        study.tell(trial, value)
        if number % 3 == 1:
            assert what_a_fresh_sampler_suggests(study) == suggest(study.ask())


def test_a_range_counts_as_new_by_its_time_and_not_by_when_it_was_seen(floats: dict[str, BaseDistribution]) -> None:
    study = new_study(BKBSampler(**OPTIONS))
    wide = {**floats, "x": optuna.distributions.FloatDistribution(-9.0, 9.0)}
    params = {"x": 8.0, "rate": 0.1, "n": 3}
    older = [optuna.create_trial(params=params, distributions=wide, value=1.0) for _ in range(3)]
    for number in range(6):
        study.tell(study.ask(floats), number)
    study.ask(floats)  # by now all are known
    study.add_trials(older)
    spaces = [sampler.infer_relative_search_space(study, study.trials[-1]) for sampler in (study.sampler, BKBSampler())]
    assert spaces == [floats, floats]


def test_whether_a_grid_is_noisy_does_not_depend_on_when_it_was_asked_for() -> None:
    space: dict[str, BaseDistribution] = {name: optuna.distributions.IntDistribution(0, 19) for name in "ab"}
    # Where the evidence for noise is so weak that the trials since the last fit turn it over.
    for seed, n_trials in ((2, 32), (3, 19), (4, 27)):
        rng, study = random.Random(seed), new_study(BKBSampler(**OPTIONS))
        for _ in range(n_trials):
            trial = study.ask(space)
            study.tell(trial, 0.1 * (trial.params["a"] - 7) ** 2 + rng.gauss(0.0, 1.0))
        fresh = optuna.load_study(
            study_name="study", storage=copy.deepcopy(study._storage), sampler=BKBSampler(**OPTIONS)
        )
        assert fresh.ask(space).params == study.ask(space).params


def test_a_trial_that_fails_before_it_has_parameters_is_no_longer_pending() -> None:
    study = new_study(BKBSampler(**OPTIONS))
    study.optimize(objective, n_trials=6)
    silent = study.ask()
    study.sampler.recommend(study)  # sees it running
    study.tell(silent, state=TrialState.FAIL)
    assert what_a_fresh_sampler_suggests(study) == suggest(study.ask())


def test_of_two_columns_with_one_name_the_one_used_last_counts() -> None:
    kinds = {
        "first": optuna.distributions.FloatDistribution(0.0, 1.0),
        "then": optuna.distributions.IntDistribution(0, 9),
    }
    trials = [
        optuna.create_trial(params={"x": 1}, distributions={"x": kind}, value=float(i))
        for i, kind in enumerate(kinds.values())
    ]
    spaces = []
    for order in ((0, 1), (1, 0)):
        study = new_study(BKBSampler(**OPTIONS))
        for i in order:
            study.add_trial(trials[i])
            study.sampler.infer_relative_search_space(study, trials[i])
        spaces.append(study.sampler.infer_relative_search_space(study, trials[0]))
    assert spaces[0] == spaces[1] == {"x": kinds["then"]}


@pytest.mark.parametrize(("owner", "method"), [(Quantity, "follow"), (History, "_widen")])
def test_an_update_that_was_interrupted_is_begun_anew(
    owner: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = new_study(BKBSampler(**OPTIONS))
    study.optimize(objective, n_trials=10)
    known, real = study.sampler, getattr(owner, method)

    def interrupted(*arguments: object) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    study.sampler = RandomSampler(seed=0)
    study.optimize(objective, n_trials=4)
    study.sampler = known
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, interrupted)
        with pytest.raises(KeyboardInterrupt):
            known.recommend(study)
    assert known.recommend(study) == BKBSampler(**OPTIONS).recommend(study)


# The histories are short; to shrink one that fails would take minutes.
@settings(max_examples=12, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["ask", "ask", "tell", "tell", "prune", "fail", "add", "enqueue", "reveal"]),
            st.integers(0, 5),
            st.floats(-10.0, 10.0),
        ),
        min_size=4,
        max_size=14,
    ),
    n_startup_trials=st.sampled_from([0, 3]),
)
def test_a_fresh_sampler_suggests_what_a_warm_one_does_after_any_history(
    steps: list[tuple[str, int, float]], n_startup_trials: int
) -> None:
    options = {"seed": 0, "n_startup_trials": n_startup_trials}
    study = new_study(BKBSampler(**options))
    samplers = [study.sampler, BKBSampler(**options)]
    running: list[optuna.Trial] = []
    for step, i, value in steps:
        study.sampler = samplers[i % 2]
        if step == "add":
            distribution = optuna.distributions.FloatDistribution(-3.0, 3.0)
            study.add_trial(optuna.create_trial(params={"x": i - 2.5}, distributions={"x": distribution}, value=value))
        elif step == "enqueue":
            study.enqueue_trial({"x": i - 2.5})
        elif step == "reveal":
            # Of this trial the others see only a part, beside what its sampler published.
            running.append(study.ask())
            running[-1].suggest_float("x", -3.0, 3.0)
        elif step == "ask":
            expected = what_a_fresh_sampler_suggests(study, options)
            running.append(study.ask())
            assert suggest(running[-1]) == expected
        elif running:
            trial = running.pop(i % len(running))
            if i % 2:
                trial.set_constraint("bound", -value)
            if step == "prune":
                trial.report(value, step=i)
            states = {"prune": TrialState.PRUNED, "fail": TrialState.FAIL}
            study.tell(trial, value if step == "tell" else None, state=states.get(step))
    assert what_a_fresh_sampler_suggests(study, options) == suggest(study.ask())


class FailingStorage(InMemoryStorage):
    """Raises once: `arm(method, after)` lets `after` more calls of that method pass."""

    armed: tuple[str, int] | None = None

    def arm(self, method: str, after: int) -> None:
        self.armed = (method, after)

    def _call(self, method: str) -> None:
        if self.armed is not None and self.armed[0] == method:
            self.armed = (method, self.armed[1] - 1) if self.armed[1] else None
            if self.armed is None:
                raise StorageInternalError("The disk is full.")

    def get_all_trials(self, *args: Any, **options: Any) -> Any:
        self._call("get_all_trials")
        return super().get_all_trials(*args, **options)

    def set_trial_system_attr(self, *args: Any) -> None:
        self._call("set_trial_system_attr")
        super().set_trial_system_attr(*args)

    def set_trial_param(self, *args: Any) -> None:
        self._call("set_trial_param")
        super().set_trial_param(*args)


def suggest_long(trial: optuna.Trial) -> Params:
    """What is published of such a trial does not fit into one attribute."""
    for name in ("first", "second"):
        trial.suggest_categorical(name, LONG)
    trial.suggest_float("x", 0.0, 1.0)
    return trial.params


@pytest.mark.parametrize("method", ["get_all_trials", "set_trial_system_attr", "set_trial_param"])
def test_a_storage_that_fails_once_changes_no_suggestion(method: str) -> None:
    n_failures = 0
    for after in range(4):
        storage = FailingStorage()
        study = new_study(BKBSampler(**OPTIONS), storage)
        for number in range(6):
            trial = study.ask()
            study.tell(trial, number + suggest_long(trial)["x"])
        twin = optuna.load_study(study_name="study", storage=copy.deepcopy(storage), sampler=BKBSampler(**OPTIONS))

        storage.arm(method, after)
        try:
            trial = study.ask()
            suggest_long(trial)
        except StorageInternalError:
            n_failures += 1
            if len(study.trials) == len(twin.trials):
                trial = study.ask()
            else:
                # The trial exists already; this is what its worker would do if it held on to it.
                trial = optuna.Trial(study, study.trials[-1]._trial_id)
        storage.armed = None
        assert suggest_long(trial) == suggest_long(twin.ask())
        assert suggest_long(study.ask()) == suggest_long(twin.ask())
    assert n_failures >= 2  # or the storage never failed where it mattered


def test_a_half_published_proposal_disturbs_no_other_sampler() -> None:
    storage = FailingStorage()
    study = new_study(BKBSampler(**OPTIONS), storage)
    for number in range(6):
        trial = study.ask()
        study.tell(trial, number + suggest_long(trial)["x"])
    storage.arm("set_trial_system_attr", 1)
    with pytest.raises(StorageInternalError):
        suggest_long(study.ask())
    other = optuna.load_study(study_name="study", storage=storage, sampler=BKBSampler(seed=1, n_startup_trials=4))
    other.optimize(lambda trial: suggest_long(trial)["x"], n_trials=2)
    assert [trial.state for trial in study.trials[6:]] == [TrialState.RUNNING, TrialState.COMPLETE, TrialState.COMPLETE]


def test_under_hyperband_a_fresh_sampler_suggests_what_a_following_one_does() -> None:
    # Optuna shows the sampler the trials of one bracket only, which differs from trial to trial.
    def objective(trial: optuna.Trial) -> float:
        final = (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2
        for step in range(1, 10):
            trial.report(final + 1.0 / step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return final

    def new_study() -> optuna.Study:
        sampler, pruner = BKBSampler(seed=0, n_startup_trials=5), optuna.pruners.HyperbandPruner(1, 9)
        return optuna.create_study(sampler=sampler, pruner=pruner, study_name="hyperband")

    study, fresh = new_study(), new_study()
    study.optimize(objective, n_trials=24)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    fresh.add_trials(study.trials)
    assert fresh.ask().suggest_float("x", 0.0, 1.0) == study.ask().suggest_float("x", 0.0, 1.0)


def test_rounding_of_a_grid_point_does_not_make_it_another_start_up_point() -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=0, n_startup_trials=20))
    study.enqueue_trial({"x": 0.1 * 6})
    asked = [
        study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0, step=0.1)}).params["x"] for _ in range(11)
    ]
    assert len({round(x, 6) for x in asked}) == 11
