"""A storage that fails once changes no suggestion, of this sampler or another one."""

import copy
import functools
from typing import Any

import optuna
import pytest
from optuna.exceptions import StorageInternalError
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from bkbopt.adapters.optuna import BKBSampler
from tests.adapters.optuna.repeated_runs import OPTIONS, Params, new_study

LONG = ["a" * 1500, "b" * 1500]


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


@functools.cache
def _six_trials() -> optuna.Study:
    study = new_study(BKBSampler(**OPTIONS), FailingStorage())
    for number in range(6):
        trial = study.ask()
        study.tell(trial, number + suggest_long(trial)["x"])
    return study


def six_trials() -> tuple[optuna.Study, FailingStorage]:
    """A study of one's own, with a sampler that knows its trials, and its storage."""
    study = copy.deepcopy(_six_trials())
    study.sampler.recommend(study)  # a copied sampler knows none
    storage = study._storage
    assert isinstance(storage, FailingStorage)
    return study, storage


@pytest.mark.parametrize("method", ["get_all_trials", "set_trial_system_attr", "set_trial_param"])
def test_a_storage_that_fails_once_changes_no_suggestion(method: str) -> None:
    n_failures = 0
    for after in range(4):
        study, storage = six_trials()
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
    study, storage = six_trials()
    storage.arm("set_trial_system_attr", 1)
    with pytest.raises(StorageInternalError):
        suggest_long(study.ask())
    other = optuna.load_study(study_name="study", storage=storage, sampler=BKBSampler(seed=1, n_startup_trials=4))
    other.optimize(lambda trial: suggest_long(trial)["x"], n_trials=2)
    assert [trial.state for trial in study.trials[6:]] == [TrialState.RUNNING, TrialState.COMPLETE, TrialState.COMPLETE]
