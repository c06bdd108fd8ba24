"""Trials that nobody finishes: recovered, queued again, or kept by a heartbeat."""

import time
from datetime import timedelta
from pathlib import Path

import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, TrialStateError
from bkbopt.optimizer.log.trials import utc_now
from tests.optimizer.stored_logs import optimizer


@pytest.mark.parametrize("stored", [True, False])
def test_trials_that_were_left_running_are_failed_and_listed(stored: bool, path: Path) -> None:
    opt = optimizer(path if stored else None, seed=0)
    trials = opt.ask(3)
    opt.tell(trials[1], 1.0)
    assert opt.recover(older_than=60.0) == []
    lost = opt.recover()
    assert [(t.id, t.state) for t in lost] == [(0, "FAIL"), (2, "FAIL")]
    assert [t.state for t in opt.trials] == ["FAIL", "COMPLETE", "FAIL"]
    assert opt.recover() == []


def test_trials_are_recovered_whatever_the_clock_says(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opt = optimizer(path, seed=0)
    opt.ask()
    opt.heartbeat(opt.ask())
    now = utc_now()
    monkeypatch.setattr(
        "bkbopt.optimizer.designers.logged_designer.utc_now", lambda: now - timedelta(hours=1)
    )  # set back
    assert opt.recover(older_than=1.0) == []
    assert [trial.state for trial in opt.recover()] == ["FAIL", "FAIL"]


def test_a_lost_trial_may_be_queued_again(path: Path) -> None:
    opt = optimizer(path, seed=0)
    trial = opt.ask()
    opt.recover(enqueue=True)
    assert [t.state for t in bo.Optimizer.open(path).trials] == ["FAIL", "WAITING"]
    again = bo.Optimizer.open(path).ask()
    assert (again.id, again.params) == (1, trial.params)


@pytest.mark.parametrize("enqueue", [True, False])
def test_a_lost_trial_is_no_evidence_that_its_point_fails_if_the_point_is_queued_again(
    enqueue: bool, path: Path
) -> None:
    opt = optimizer(path, seed=0)
    opt.tell(opt.ask(), 1.0)
    opt.ask()
    opt.recover(enqueue=enqueue)
    for one in (opt, bo.Optimizer.open(path)):
        assert one._core.update().history.n_failed == (0 if enqueue else 1)


def test_lost_trials_are_listed_until_they_have_an_outcome(path: Path) -> None:
    opt = optimizer(path, seed=0)
    assert opt.lost_trials == []
    opt.fail(opt.ask())
    opt.ask()
    opt.recover(enqueue=True)
    for one in (opt, bo.Optimizer.open(path)):
        assert one.lost_trials == [opt.trials[1]]
    opt.tell(1, 0.5, replace=True)
    assert opt.lost_trials == []


def test_nothing_is_learnt_from_a_trial_that_is_reported_as_lost(path: Path) -> None:
    opt = bo.Optimizer({"k": bo.Int(0, 9)}, seed=0, storage=path, duplicates="avoid")
    opt.tell(opt.ask(), 1.0)
    lost, failed = opt.ask(2)
    opt.fail([lost], lost=True)
    opt.fail(failed)
    for one in (opt, bo.Optimizer.open(path)):
        assert one.lost_trials == [one.trials[lost.id]]
        assert one._core.update().history.n_failed == 1
    rest = [trial.params for trial in opt.ask(8)]
    assert lost.params in rest  # it may be proposed again
    assert failed.params not in rest
    with pytest.raises(ArgumentTypeError, match="lost: expected True or False"):
        opt.fail(opt.trials[-1], lost="yes")  # type: ignore[arg-type]


def test_a_lost_trial_may_turn_out_to_have_failed(path: Path) -> None:
    opt = optimizer(path, seed=0)
    trial = opt.ask()
    opt.recover(enqueue=True)
    opt.tell(trial, float("nan"), invalid="fail", replace=True)
    for one in (opt, bo.Optimizer.open(path)):
        assert one._core.update().history.n_failed == 1


def test_a_heartbeat_keeps_a_trial_from_being_recovered(path: Path) -> None:
    opt = optimizer(path, seed=0)
    kept, lost = opt.ask(2)
    time.sleep(0.2)
    bo.Optimizer.open(path).heartbeat([kept])
    assert [t.id for t in opt.recover(older_than=0.15)] == [lost.id]
    with pytest.raises(TrialStateError, match=r"heartbeat: .* was failed already"):
        opt.heartbeat(lost)
    with pytest.raises(ArgumentError, match="older_than"):
        opt.recover(older_than=-1.0)


def test_a_point_may_fail_that_was_never_asked_or_is_running() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    running = opt.ask()
    assert opt.fail(running.params).id == running.id
    failed = opt.fail([{"x": 0.25}, opt.ask()], user_attrs={"error": "oom"})
    assert [trial.state for trial in opt.trials] == ["FAIL"] * 3
    assert [dict(trial.user_attrs) for trial in failed] == [{"error": "oom"}] * 2
    assert opt.trials[2].params == {"x": 0.25}
    with pytest.raises(ArgumentTypeError, match="expected a trial or its id, got dict"):
        opt.heartbeat({"x": 0.5})  # type: ignore[arg-type]
