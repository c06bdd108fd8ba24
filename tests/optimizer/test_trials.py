"""The log of trials: ids, states, order of arrival, the table."""

import sys
from datetime import datetime, timedelta
from typing import Any

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt.errors import ArgumentError, MissingPackageError, TrialStateError, UnknownTrialError
from bkbopt.optimizer.trials import COMPLETE, FAIL, RUNNING, WAITING, Outcome, TrialLog

NOW = datetime(2026, 1, 2, 3, 4, 5)


def log_of(n: int) -> TrialLog:
    log = TrialLog()
    for i in range(n):
        log.add({"a": i}, {"a (int)": float(i)}, None, None, NOW)
    return log


def test_ids_count_from_zero() -> None:
    log = log_of(40)
    assert [t.id for t in log] == list(range(40))
    assert [t.params for t in log] == [{"a": i} for i in range(40)]
    assert len(log) == 40


def test_outcomes_are_kept_in_the_order_of_arrival() -> None:
    log = log_of(4)
    for i, value in ((2, 5.0), (0, 3.0), (3, 4.0)):
        log.finish(i, Outcome((value,)), NOW + timedelta(seconds=i))
    assert [(t.id, t.value, t.told_at) for t in log.finished()] == [
        (i, value, NOW + timedelta(seconds=i)) for i, value in ((2, 5.0), (0, 3.0), (3, 4.0))
    ]
    assert log.n_complete == 3


def test_trial_without_values_is_complete_where_it_gave_constraints_and_failed_where_not() -> None:
    log = log_of(2)
    assert log.finish(0, Outcome(), NOW).state == FAIL
    limited = log.finish(1, Outcome(constraints={"g": 0.5}), NOW)
    assert (limited.state, limited.value, limited.is_feasible) == (COMPLETE, None, False)
    assert log.n_complete == 0


def test_a_constraint_holds_up_to_zero_itself() -> None:
    log = log_of(2)
    assert log.finish(0, Outcome((1.0,), {"g": 0.0, "h": -1.0}), NOW).is_feasible
    assert not log.finish(1, Outcome((1.0,), {"g": 5e-324, "h": -1.0}), NOW).is_feasible


def test_changes_are_reported_as_they_are_now_until_they_were_taken_in() -> None:
    log = log_of(3)
    log.finish(1, Outcome((2.0,)), NOW)
    assert [(e.number, e.state) for e in log.changes()] == [(0, RUNNING), (1, COMPLETE), (2, RUNNING)]
    assert len(log.changes()) == 3
    log.forget_changes()
    assert log.changes() == []
    log.finish(0, Outcome(), NOW)
    (change,) = log.changes()
    assert (change.number, change.state, change.point, change.order) == (0, FAIL, {"a (int)": 0.0}, (1.0, 0))


def test_queued_trial_is_no_change_until_it_is_started() -> None:
    log = log_of(1)
    log.forget_changes()
    log.add({}, {}, None, None, NOW, WAITING)
    assert log.changes() == []
    with pytest.raises(TrialStateError, match=r"tell: .* trial 1 is queued and was not asked yet"):
        log.running(1, "tell")
    started = log.start(1, {"a": 7}, {"a (int)": 7.0}, None, None, NOW)
    assert (started.id, started.state, started.params, log.waiting) == (1, RUNNING, {"a": 7}, [])
    assert [e.point for e in log.changes()] == [{"a (int)": 7.0}]


@pytest.mark.parametrize("bad", [-1, 3, 10**12])
def test_id_that_was_never_given_is_unknown(bad: int) -> None:
    with pytest.raises(UnknownTrialError, match=rf"0 to 2\), got {bad}"):
        log_of(3).running(bad, "tell")


def test_second_answer_is_refused_and_named() -> None:
    log = log_of(4)
    log.finish(0, Outcome((1.5,)), NOW)
    log.finish(1, Outcome(), NOW)
    log.finish(2, Outcome((1.0, 2.0)), NOW)
    with pytest.raises(TrialStateError, match=r"tell: .* trial 0 was told the value 1.5 already"):
        log.running(0, "tell")
    with pytest.raises(TrialStateError, match=r"fail: .* trial 1 was failed already"):
        log.running(1, "fail")
    with pytest.raises(TrialStateError, match=r"tell: .* trial 2 was told its values already"):
        log.running(2, "tell")
    assert log.running(3, "tell").state == RUNNING


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
    early = log.running(0, "tell")
    log.finish(0, Outcome((1.0,)), NOW)
    assert early.state == RUNNING
    assert next(iter(log)).state == COMPLETE
    with pytest.raises(AttributeError):
        early.values = (2.0,)  # type: ignore[misc]


def test_value_of_several_objectives_is_refused_by_name() -> None:
    log = log_of(1)
    with pytest.raises(ArgumentError, match="value: this trial has 2 objectives; read values"):
        _ = log.finish(0, Outcome((1.0, 2.0)), NOW).value


def test_dataframe_has_optunas_columns_types_and_values() -> None:
    d = optuna.distributions
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {
        "x": d.FloatDistribution(0.0, 1.0),
        "n": d.IntDistribution(1, 5),
        "k": d.CategoricalDistribution(["a", "b"]),
    }
    for directions in (["minimize"], ["minimize", "maximize"]):
        study = optuna.create_study(directions=directions, sampler=optuna.samplers.RandomSampler(0))
        opt = bo.Optimizer(space, directions=directions, seed=0)
        for i in range(4):
            theirs = study.ask(space)
            ours: Any = opt.ask()
            if i == 1:
                study.tell(theirs, state=optuna.trial.TrialState.FAIL)
                opt.fail(ours)
            elif i != 3:  # the last one is still running
                values = [float(i), -float(i)][: len(directions)]
                study.tell(theirs, values)
                opt.tell(ours, values if len(values) > 1 else values[0])
        expected, got = study.trials_dataframe(), opt.trials_dataframe()
        # Optuna sorts the parameters by name; we keep the space's order.
        assert sorted(got.columns) == sorted(expected.columns)
        assert [c for c in got.columns if not c.startswith("params_")] == [
            c for c in expected.columns if not c.startswith("params_")
        ]
        for column in expected.columns:
            assert got[column].dtype.kind == expected[column].dtype.kind, column
        for column in (c for c in expected.columns if c.startswith(("number", "value"))):
            assert got[column].to_list() == pytest.approx(expected[column].to_list(), nan_ok=True)
        assert got["state"].to_list() == expected["state"].to_list() == ["COMPLETE", "FAIL", "COMPLETE", "RUNNING"]
        assert (got["duration"].isna() == expected["duration"].isna()).all()


def test_dataframe_of_a_pool_tells_the_row() -> None:
    opt = bo.Optimizer([[0.0, 1.0], [2.0, 3.0]], seed=0)
    opt.ask(2)
    table = opt.trials_dataframe()
    assert sorted(table["index"]) == [0, 1]
    assert list(table.columns)[-1] == "state"


def test_dataframe_has_gaps_where_a_parameter_is_not_active_and_where_no_constraint_was_told() -> None:
    space = {"k": ["a", "b"], "n": bo.Int(1, 3, when={"k": "a"})}
    opt = bo.Optimizer(space, constraints=["g"], seed=0)
    opt.tell({"k": "a", "n": 2}, 1.0, constraints={"g": -1.0})
    opt.tell({"k": "b"}, 2.0)
    table = opt.trials_dataframe()
    assert table["params_n"].isna().tolist() == [False, True]
    assert table["constraints_g"].isna().tolist() == [False, True]


def test_dataframe_without_trials_is_empty_but_has_its_columns() -> None:
    table = bo.Optimizer({"x": (0.0, 1.0)}).trials_dataframe()
    assert len(table) == 0
    assert list(table.columns) == ["number", "value", "datetime_start", "datetime_complete", "duration", "state"]


def test_without_pandas_the_error_of_the_dataframe_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match=r"pandas: .*bkbopt\[pandas\]"):
        bo.Optimizer({"x": (0.0, 1.0)}).trials_dataframe()
