"""Following a study: only trials that may have changed are looked at, and none is missed."""

from collections.abc import Sequence
from typing import Any

import optuna
from hypothesis import given
from hypothesis import strategies as st
from optuna.trial import FrozenTrial, TrialState

import bkbopt as bo
from bkbopt.adapters.optuna import BKBSampler
from bkbopt.adapters.optuna.followed import FollowedStudy
from bkbopt.search.options import Options
from bkbopt.search.quantities.fitting import ModelOptions


class Counted(Sequence[FrozenTrial]):
    """The trials of a study, with the positions that were looked at."""

    def __init__(self, trials: list[FrozenTrial]) -> None:
        self._trials, self.seen = trials, set[int]()

    def __len__(self) -> int:
        return len(self._trials)

    def __getitem__(self, at: Any) -> Any:
        self.seen.update(range(*at.indices(len(self))) if isinstance(at, slice) else [at])
        return self._trials[at]


def following(study: optuna.Study) -> FollowedStudy:
    return FollowedStudy(study, Options(ModelOptions(bo.BKB())), seed=0)


def finish(study: optuna.Study, trial: optuna.Trial, value: float = 1.0) -> None:
    trial.suggest_float("x", 0.0, 1.0)
    study.tell(trial, value)


def numbers(followed: FollowedStudy) -> list[int]:
    return [evaluation.number for evaluation in followed.designer.history.finished]


def test_finished_trials_are_not_looked_at_again() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
    stuck = study.ask()
    for _ in range(6):
        finish(study, study.ask())
    followed = following(study)
    followed.update(study.trials)
    finish(study, study.ask())
    trials = Counted(study.trials)
    assert [evaluation.number for evaluation in followed.update(trials)] == [7]
    assert trials.seen == {stuck.number, 6, 7}  # the sixth belongs to the check of the order
    finish(study, stuck)
    assert [evaluation.number for evaluation in followed.update(study.trials)] == [stuck.number]
    assert numbers(followed) == [*range(1, 8), 0]  # in the order of completion


def test_waiting_trials_are_learnt_when_they_have_run() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
    study.enqueue_trial({"x": 0.25})
    finish(study, study.ask({}))
    study.enqueue_trial({"x": 0.5})
    followed = following(study)
    followed.update(study.trials)
    assert numbers(followed) == [0]
    finish(study, study.ask())
    followed.update(study.trials)
    assert numbers(followed) == [0, 1]


@given(st.permutations(range(3)), st.permutations(range(5)))
def test_trials_that_are_not_listed_by_number_are_learnt_too(first: list[int], then: list[int]) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
    for _ in range(3):
        finish(study, study.ask())
    followed = following(study)
    assert sorted(e.number for e in followed.update([study.trials[i] for i in first])) == [0, 1, 2]
    for _ in range(2):
        finish(study, study.ask())
    assert sorted(e.number for e in followed.update([study.trials[i] for i in then])) == [3, 4]
    assert followed.update(study.trials) == []
    assert numbers(followed) == [0, 1, 2, 3, 4]


class Reversed(optuna.storages.InMemoryStorage):
    """A storage that lists the last trial first."""

    def get_all_trials(self, *args: Any, **kwargs: Any) -> list[FrozenTrial]:
        return super().get_all_trials(*args, **kwargs)[::-1]


def test_the_order_of_a_storage_changes_no_suggestion() -> None:
    points = []
    for storage in (optuna.storages.InMemoryStorage(), Reversed()):
        study = optuna.create_study(sampler=BKBSampler(seed=0, n_startup_trials=4), storage=storage)
        study.optimize(lambda trial: trial.suggest_int("a", 0, 3) + trial.suggest_int("b", 0, 2) ** 2, n_trials=14)
        points.append([trial.params for trial in sorted(study.trials, key=lambda trial: trial.number)])
    assert points[0] == points[1]


@given(st.lists(st.sampled_from(["ask", "tell first", "tell last", "fail", "update"]), max_size=25))
def test_whatever_happens_between_updates_what_is_known_is_what_the_study_has(steps: list[str]) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
    followed, running = following(study), list[optuna.Trial]()
    for step in [*steps, "update"]:
        if step == "ask":
            running.append(study.ask())
            running[-1].suggest_float("x", 0.0, 1.0)
        elif step == "update":
            followed.update(study.trials)
        elif running:
            trial = running.pop(0 if step == "tell first" else -1)
            study.tell(trial, None if step == "fail" else 1.0, state=TrialState.FAIL if step == "fail" else None)
    known = followed.designer.history
    assert sorted(numbers(followed)) == [t.number for t in study.trials if t.state.is_finished()]
    assert sorted(known.running) == [t.number for t in study.trials if t.state == TrialState.RUNNING]
