"""`Optimizer.trials` reads like a list, and copies a trial only when it is read."""

import copy
import pickle

import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.optimizer.log import trial_list
from bkbopt.optimizer.log.trial_list import TrialList
from bkbopt.optimizer.log.trials import Trial, detached


@pytest.fixture
def opt() -> bo.Optimizer:
    opt = bo.Optimizer({"x": bo.Float(0.0, 1.0)}, seed=0)
    for trial in opt.ask(5):
        opt.tell(trial, trial.params["x"])
    return opt


def test_it_reads_like_a_list(opt: bo.Optimizer) -> None:
    trials, as_list = opt.trials, list(opt.trials)
    assert trials == as_list
    assert as_list == trials
    assert trials == opt.trials
    assert trials != as_list[:4]
    assert trials != tuple(as_list)
    assert trials[-1] == as_list[4]
    assert trials[1:4:2] == as_list[1:4:2]
    assert list(reversed(trials)) == as_list[::-1]
    assert trials.index(as_list[2]) == 2
    assert as_list[3] in trials
    assert trials + trials == [*trials, *as_list] == as_list + trials
    assert repr(trials) == repr(as_list)
    assert pickle.loads(pickle.dumps(trials)) == copy.deepcopy(trials) == as_list
    assert len(pd.DataFrame(trials)) == 5
    assert bool(trials)
    assert not bo.Optimizer({"x": bo.Float(0.0, 1.0)}).trials
    with pytest.raises(IndexError):
        trials[5]
    with pytest.raises(TypeError):
        trials["0"]  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="unhashable"):
        hash(trials)


def test_a_changed_trial_stays_changed_in_the_list_and_not_in_the_log(opt: bo.Optimizer) -> None:
    trials, before = opt.trials, opt.trials[2].params["x"]
    trials[2].params["x"] = "changed"  # type: ignore[index]
    assert [trial.params["x"] for trial in trials][2] == "changed"
    assert trials[2:3][0].params["x"] == "changed"
    assert opt.trials[2].params["x"] == before


def test_it_is_that_of_one_moment(opt: bo.Optimizer) -> None:
    asked = opt.ask()
    trials = opt.trials
    opt.tell(asked, 0.5)
    opt.ask()
    assert len(trials) == 6
    assert trials[5].state == "RUNNING"


def test_only_the_trials_that_are_read_are_copied(opt: bo.Optimizer, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []

    def noted(trial: Trial) -> Trial:
        copied.append(trial.id)
        return detached(trial)

    monkeypatch.setattr(trial_list, "detached", noted)
    trials = opt.trials
    assert len(trials) == 5
    assert copied == []
    assert trials[-1] is trials[4]
    assert copied == [4]


def test_the_trials_of_one_run_are_told_to_another_and_failed() -> None:
    other = bo.Optimizer({"x": bo.Float(0.0, 1.0)}, seed=0)
    other.ask(5)
    told = other.tell(other.trials, [1.0, 2.0, 3.0, 4.0, 5.0])
    assert [trial.value for trial in told] == [1.0, 2.0, 3.0, 4.0, 5.0]  # type: ignore[union-attr]
    third = bo.Optimizer({"x": bo.Float(0.0, 1.0)}, seed=0)
    third.ask(2)
    third.fail(third.trials)
    assert [trial.state for trial in third.trials] == ["FAIL", "FAIL"]
    assert isinstance(third.trials, TrialList)
