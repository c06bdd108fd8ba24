"""The log of trials: ids, states, order of arrival, the table."""

import contextlib
import copy
import itertools
import pickle
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt.errors import ArgumentError, TrialStateError, UnknownTrialError
from bkbopt.optimizer.log import trial_log
from bkbopt.optimizer.log.trial_log import TrialLog, check_running
from bkbopt.optimizer.log.trials import Entry, Outcome, Trial
from bkbopt.search.trials.states import COMPLETE, FAIL, RUNNING, WAITING

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def entry(number: int, state: str = RUNNING) -> Entry:
    return Entry(Trial(number, {"a": number}, state=state, asked_at=NOW), 0, {"a (int)": float(number)})


def log_of(n: int) -> TrialLog:
    log = TrialLog()
    log.put(entry(i) for i in range(n))
    return log


def running_entry(log: TrialLog, number: int, call: str) -> Entry:
    return check_running(log.entry(number), number, call)


def finish(log: TrialLog, number: int, outcome: Outcome, now: datetime = NOW) -> Trial:
    done = running_entry(log, number, "tell").finished(outcome, len(log.order), now)
    log.put([done])
    return done.trial


def test_ids_count_from_zero() -> None:
    log = log_of(40)
    assert [t.id for t in log] == list(range(40))
    assert [t.params for t in log] == [{"a": i} for i in range(40)]
    assert len(log) == 40


@pytest.mark.parametrize("name", ["value", "values", "state", "is_feasible", "note"])
def test_a_trial_that_is_assigned_to_points_to_tell(name: str) -> None:
    trial = Trial(3, {"a": 1})
    for change in (lambda: setattr(trial, name, 2.0), lambda: delattr(trial, name)):
        with pytest.raises(AttributeError, match=rf"^trial\.{name}: expected .* opt\.tell\(trial, value\)"):
            change()
    assert trial == Trial(3, {"a": 1})
    assert pickle.loads(pickle.dumps(trial)) == copy.deepcopy(trial) == trial


def test_outcomes_are_kept_in_the_order_of_arrival() -> None:
    log = log_of(4)
    for i, value in ((2, 5.0), (0, 3.0), (3, 4.0)):
        finish(log, i, Outcome((value,)), NOW + timedelta(seconds=i))
    assert [(e.trial.id, e.trial.value, e.trial.told_at) for e in log.valued()] == [
        (i, value, NOW + timedelta(seconds=i)) for i, value in ((2, 5.0), (0, 3.0), (3, 4.0))
    ]
    assert log.n_complete == 3
    assert log.running == [1]


def test_trial_without_values_is_complete_where_it_gave_constraints_and_failed_where_not() -> None:
    log = log_of(2)
    assert finish(log, 0, Outcome()).state == FAIL
    limited = finish(log, 1, Outcome(constraints={"g": 0.5}))
    assert (limited.state, limited.value, limited.is_feasible) == (COMPLETE, None, False)
    assert log.n_complete == 0


def test_a_constraint_holds_up_to_zero_itself() -> None:
    log = log_of(2)
    assert finish(log, 0, Outcome((1.0,), {"g": 0.0, "h": -1.0})).is_feasible
    assert not finish(log, 1, Outcome((1.0,), {"g": 5e-324, "h": -1.0})).is_feasible


def test_changes_are_reported_as_they_are_now_until_they_were_taken_in() -> None:
    log = log_of(3)
    finish(log, 1, Outcome((2.0,)))
    assert [(e.trial.id, e.trial.state) for e in log.changed()] == [(0, RUNNING), (1, COMPLETE), (2, RUNNING)]
    assert len(log.changed()) == 3
    log.forget_changes()
    assert log.changed() == []
    finish(log, 0, Outcome())
    (change,) = log.changed()
    assert (change.trial.id, change.trial.state, change.point, change.place) == (0, FAIL, {"a (int)": 0.0}, 1)


def test_queued_trial_is_no_change_until_it_is_started() -> None:
    log = log_of(1)
    log.forget_changes()
    log.put([entry(1, WAITING)])
    assert log.changed() == []
    assert (log.waiting, log.running) == ([1], [0])
    with pytest.raises(TrialStateError, match=r"tell: .* trial 1 is queued and was not asked yet"):
        running_entry(log, 1, "tell")
    log.put([entry(1)])
    assert (log.waiting, log.running) == ([], [0, 1])
    assert [e.point for e in log.changed()] == [{"a (int)": 1.0}]


def test_outcome_at_the_same_place_replaces_that_of_a_finished_trial() -> None:
    log = log_of(2)
    finish(log, 0, Outcome((1.0,)))
    log.forget_changes()
    log.put([entry(0).finished(Outcome((1.0,)), 0, NOW)])
    assert not log.is_rewritten
    log.put([entry(0).finished(Outcome(), 0, NOW)])
    assert log.is_rewritten
    assert [t.state for t in log] == ["FAIL", RUNNING]
    assert (log.order, log.n_complete) == ([0], 0)


def test_finished_trial_stays_what_it_is() -> None:
    log = log_of(2)
    finish(log, 0, Outcome((1.0,)))
    log.put([entry(0)])
    log.put([entry(0).finished(Outcome((2.0,)), 1, NOW)])
    assert [t.state for t in log] == [COMPLETE, RUNNING]
    assert log.entries[0].trial.value == 1.0
    assert log.order == [0]


@pytest.mark.parametrize(
    "bad",
    [
        [entry(3)],
        [entry(2), entry(2)],
        [entry(1).finished(Outcome(), 1, NOW)],
        [entry(0).finished(Outcome(), 0, NOW), entry(1).finished(Outcome(), 0, NOW)],
    ],
    ids=["a gap in the ids", "one id twice", "a gap in the places", "one place twice"],
)
def test_trials_that_do_not_follow_are_refused_and_nothing_is_put(bad: list[Entry]) -> None:
    log = log_of(2)
    with pytest.raises(ValueError, match=r"trials|places"):
        log.put(bad)
    assert (len(log), log.running, log.order) == (2, [0, 1], [])


@given(st.data())
def test_a_log_that_is_put_in_any_pieces_is_the_same(data: st.DataObject) -> None:
    whole = log_of(8)
    for number in data.draw(st.permutations(range(6))):
        finish(whole, number, Outcome((float(number),) if number % 2 else ()))
    pieces = TrialLog()
    stages = [[entry(i) for i in range(8)], *[[whole.entries[i]] for i in whole.order]]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stages) - 1))))
    for low, high in zip([0, *cuts], [*cuts, len(stages)], strict=True):
        last = {e.trial.id: e for stage in stages[low:high] for e in stage}
        pieces.put(last.values())
    assert pieces.entries == whole.entries
    assert (pieces.order, pieces.running, pieces.n_complete) == (whole.order, whole.running, whole.n_complete)


def test_an_interrupted_put_is_made_good() -> None:
    """An interrupt at any line of `put` leaves the log as before, or as after once it was mended."""
    coming = [entry(3), entry(1).finished(Outcome((1.0,)), 0, NOW), entry(2, WAITING), entry(0)]
    after = log_of(2)
    after.put(coming)
    outcomes = set()
    for at in range(200):
        log = log_of(2)
        with interrupted_at_line(at) as was:
            log.put(coming)
        log.mend()
        assert log.entries in (log_of(2).entries, after.entries)
        expected = after if len(log) == 4 else log_of(2)
        assert (log.order, log.running, log.waiting, log.n_complete) == (
            expected.order,
            expected.running,
            expected.waiting,
            expected.n_complete,
        )
        assert {e.trial.id for e in log.changed()} >= {e.trial.id for e in expected.changed()}
        assert not {e.trial.id for e in log.changed()} & set(log.waiting)
        outcomes.add(len(log))
        if not was:
            break
    assert outcomes == {2, 4}
    assert not was


@contextlib.contextmanager
def interrupted_at_line(at: int) -> Iterator[list[str]]:
    """A block in which the line number `at` of the log's code raises; what is yielded says whether one did."""
    was: list[str] = []
    lines = itertools.count()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != trial_log.__file__:
            return None
        if event == "line" and next(lines) == at:
            was.append(frame.f_code.co_name)
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        yield was
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)


@pytest.mark.parametrize("bad", [-1, 3, 10**12])
def test_id_that_was_never_given_is_unknown(bad: int) -> None:
    with pytest.raises(UnknownTrialError, match=rf"0 to 2\), got {bad}"):
        running_entry(log_of(3), bad, "tell")


def test_second_answer_is_refused_and_named() -> None:
    log = log_of(4)
    finish(log, 0, Outcome((1.5,)))
    finish(log, 1, Outcome())
    finish(log, 2, Outcome((1.0, 2.0)))
    with pytest.raises(
        TrialStateError, match=r"0 was told the value 1.5 already; replace=True replaces its outcome\.$"
    ):
        running_entry(log, 0, "tell")
    with pytest.raises(TrialStateError, match=r"fail: .* trial 1 was failed already\.$"):
        running_entry(log, 1, "fail")
    with pytest.raises(TrialStateError, match=r"trial 1 was failed already; replace=True replaces its outcome\.$"):
        running_entry(log, 1, "tell")
    with pytest.raises(TrialStateError, match=r"tell: .* trial 2 was told its values already"):
        running_entry(log, 2, "tell")
    assert running_entry(log, 3, "tell").trial.state == RUNNING


@given(st.lists(st.one_of(st.none(), st.integers(-3, 3)), min_size=1, max_size=20), st.booleans())
def test_best_is_the_earliest_of_the_best(values: list[int | None], largest: bool) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, direction="maximize" if largest else "minimize", seed=0)
    told = [v for v in values if v is not None]
    opt.tell([{"x": 0.5}] * len(values), values, invalid="fail")
    if told:
        assert opt.best_trial.id == values.index(max(told) if largest else min(told))
    assert [t.state for t in opt.trials] == [FAIL if v is None else COMPLETE for v in values]


def test_handed_out_trial_is_frozen_and_does_not_change_later() -> None:
    log = log_of(1)
    early = running_entry(log, 0, "tell").trial
    finish(log, 0, Outcome((1.0,)))
    assert early.state == RUNNING
    assert next(iter(log)).state == COMPLETE
    with pytest.raises(AttributeError):
        early.values = (2.0,)  # type: ignore[misc]


def test_value_of_several_objectives_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match="value: this trial has 2 objectives; read values"):
        _ = finish(log_of(1), 0, Outcome((1.0, 2.0))).value


def test_dicts_of_handed_out_trials_belong_to_the_caller() -> None:
    """Programs take the model's name out of the parameters, and put the value in."""
    opt = bo.Optimizer({"x": (0.0, 1.0), "k": ["a", "b"]}, constraints=["g"], seed=0)
    opt.enqueue({"x": 0.5, "k": "b"}).params.pop("k")
    asked, more = opt.ask(2)
    params = [dict(asked.params), dict(more.params)]
    asked.params.pop("k")
    told: Any = opt.tell(asked, 1.0, constraints={"g": -1.0})
    assert told.params == params[0] == {"x": 0.5, "k": "b"}
    handed = [told, opt.fail(more), opt.trials[0], opt.trials[1], opt.best_trial, *opt.best_trials]
    handed += [opt.tell({"x": 0.25, "k": "a"}, 2.0, constraints={"g": -1.0})]
    for trial in handed:
        trial.params.update(value=trial.value, x=100.0)
        trial.constraints["g"] = 1.0
    assert [dict(trial.params) for trial in opt.trials] == [*params, {"x": 0.25, "k": "a"}]
    assert opt.best_trial.params == params[0]
    assert opt.best_trial.is_feasible
    assert "params_value" not in opt.trials_dataframe()


def test_dicts_of_outliers_and_of_recovered_trials_belong_to_the_caller() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    opt.tell([{"x": i / 30} for i in range(31)], [i / 30 + 5.0 * (i == 7) for i in range(31)])
    running = opt.ask()
    (outlier,), (lost,) = opt.outliers, opt.recover()
    for trial in (outlier, lost):
        trial.params.clear()
    assert opt.trials[outlier.id].params == {"x": 7 / 30}
    assert opt.trials[lost.id].params == running.params


def test_times_have_their_zone_and_tables_are_in_utc_without_one(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, storage=tmp_path / "log.db")
    before = datetime.now(timezone(timedelta(hours=-5)))
    trial = opt.tell(opt.ask(), 1.0)
    assert trial.asked_at is not None
    assert trial.told_at is not None
    assert before <= trial.asked_at <= trial.told_at <= datetime.now(UTC)
    assert bo.Optimizer.open(tmp_path / "log.db").trials == [trial]
    assert opt.trials_dataframe()["datetime_start"][0] == trial.asked_at.replace(tzinfo=None)
