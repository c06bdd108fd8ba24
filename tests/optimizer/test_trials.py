"""The log of trials: ids, states, order of arrival, the best, the table."""

import sys
from datetime import datetime, timedelta
from typing import Any

import optuna
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt.errors import MissingPackageError, TrialStateError, UnknownTrialError
from bkbopt.search.trials import COMPLETE, FAIL, RUNNING, TrialLog

NOW = datetime(2026, 1, 2, 3, 4, 5)


def log_of(n: int) -> TrialLog:
    log = TrialLog(2)
    for i in range(n):
        log.add(torch.tensor([float(i), -float(i)], dtype=torch.float64), {"a": i}, None, NOW)
    return log


def test_ids_count_from_zero_and_points_survive_growth() -> None:
    log = log_of(100)  # room for 16 at first
    assert [t.id for t in log] == list(range(100))
    assert all(log.point(i).tolist() == [i, -i] for i in range(100))
    assert len(log) == 100


def test_values_come_in_the_order_of_arrival() -> None:
    log = log_of(4)
    for i, value in ((2, 5.0), (0, 3.0), (3, 4.0)):
        log.finish(i, value, NOW)
    X, y = log.complete()
    assert X[:, 0].tolist() == [2.0, 0.0, 3.0]
    assert y.tolist() == [5.0, 3.0, 4.0]
    assert log.pending().tolist() == [[1.0, -1.0]]
    assert log.n_complete == 3


def test_failed_trial_is_neither_pending_nor_complete() -> None:
    log = log_of(2)
    trial = log.finish(1, None, NOW)
    assert (trial.state, trial.value, trial.told_at) == (FAIL, None, NOW)
    assert log.failed().tolist() == [[1.0, -1.0]]
    assert log.pending().tolist() == [[0.0, 0.0]]
    assert len(log.complete()[1]) == 0
    assert log.best(largest=True) is None


@pytest.mark.parametrize("bad", [-1, 3, 10**12])
def test_id_that_was_never_given_is_unknown(bad: int) -> None:
    with pytest.raises(UnknownTrialError, match=rf"0 to 2\), got {bad}"):
        log_of(3).running(bad, "tell")


def test_second_answer_is_refused_and_named() -> None:
    log = log_of(3)
    log.finish(0, 1.5, NOW)
    log.finish(1, None, NOW)
    with pytest.raises(TrialStateError, match=r"tell: .* trial 0 was told the value 1.5 already"):
        log.running(0, "tell")
    with pytest.raises(TrialStateError, match=r"fail: .* trial 1 was failed already"):
        log.running(1, "fail")
    assert log.running(2, "tell").state == RUNNING


@given(st.lists(st.one_of(st.none(), st.integers(-3, 3)), min_size=1, max_size=20), st.booleans())
def test_best_is_the_earliest_of_the_best(values: list[int | None], largest: bool) -> None:
    log = log_of(len(values))
    for i, value in enumerate(values):
        log.finish(i, None if value is None else float(value), NOW)
    told = [v for v in values if v is not None]
    best = log.best(largest=largest)
    assert (best is None) == (not told)
    if best is not None:
        assert best.id == values.index(max(told) if largest else min(told))


def test_handed_out_trial_is_frozen_and_does_not_change_later() -> None:
    log = log_of(1)
    early = log.running(0, "tell")
    log.finish(0, 1.0, NOW)
    assert early.state == RUNNING
    assert log.trials[0].state == COMPLETE
    with pytest.raises(AttributeError):
        early.value = 2.0  # type: ignore[misc]


def test_state_comes_back_as_it_was() -> None:
    log = log_of(20)
    for i, value in ((4, 1.0), (2, None), (7, -3.0), (3, 8.0)):
        log.finish(i, value, NOW + timedelta(seconds=i))
    again = TrialLog.from_state(log.state_dict(), [t.params for t in log])
    assert again.trials == log.trials
    assert torch.equal(again.complete()[0], log.complete()[0])
    assert torch.equal(again.pending(), log.pending())
    assert torch.equal(again.failed(), log.failed())
    for largest in (True, False):
        assert again.best(largest=largest) == log.best(largest=largest)


def test_dataframe_has_optunas_columns_types_and_values() -> None:
    d = optuna.distributions
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.RandomSampler(0))
    space = {
        "x": d.FloatDistribution(0.0, 1.0),
        "n": d.IntDistribution(1, 5),
        "k": d.CategoricalDistribution(["a", "b"]),
    }
    opt = bo.Optimizer(space, seed=0)
    for i in range(4):
        theirs = study.ask(space)
        ours: Any = opt.ask()
        if i == 1:
            study.tell(theirs, state=optuna.trial.TrialState.FAIL)
            opt.fail(ours)
        elif i != 3:  # the last one is still running
            study.tell(theirs, float(i))
            opt.tell(ours, float(i))
    expected, got = study.trials_dataframe(), opt.trials_dataframe()
    # Optuna sorts the parameters by name; we keep the space's order.
    assert sorted(got.columns) == sorted(expected.columns)
    assert [c for c in got.columns if not c.startswith("params_")] == [
        c for c in expected.columns if not c.startswith("params_")
    ]
    for column in expected.columns:
        assert got[column].dtype.kind == expected[column].dtype.kind, column
    for column in ("number", "value"):
        assert got[column].to_list() == pytest.approx(expected[column].to_list(), nan_ok=True)
    assert got["state"].to_list() == expected["state"].to_list() == ["COMPLETE", "FAIL", "COMPLETE", "RUNNING"]
    assert (got["duration"].isna() == expected["duration"].isna()).all()


def test_dataframe_of_a_pool_tells_the_row() -> None:
    opt = bo.Optimizer([[0.0, 1.0], [2.0, 3.0]], seed=0)
    opt.ask(2)
    table = opt.trials_dataframe()
    assert sorted(table["index"]) == [0, 1]
    assert list(table.columns)[-1] == "state"


def test_dataframe_without_trials_is_empty_but_has_its_columns() -> None:
    table = bo.Optimizer({"x": (0.0, 1.0)}).trials_dataframe()
    assert len(table) == 0
    assert list(table.columns) == ["number", "value", "datetime_start", "datetime_complete", "duration", "state"]


def test_without_pandas_the_error_of_the_dataframe_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match=r"pandas: .*bkbopt\[pandas\]"):
        bo.Optimizer({"x": (0.0, 1.0)}).trials_dataframe()
