"""A new sampler suggests what one with a history does, whatever the history of the storage."""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import optuna
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from bkbopt.adapters.optuna import BKBSampler
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.search.trials.history import History
from tests.adapters.optuna.repeated_runs import OPTIONS, new_study, objective, suggest, what_a_fresh_sampler_suggests


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
    for _ in range(3):
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
    for number in range(11):
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
