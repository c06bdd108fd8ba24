"""The table of trials: Optuna's columns, gaps, rows of pools."""

import sys
from typing import Any

import optuna
import pytest

import bkbopt as bo
from bkbopt.errors import MissingPackageError


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
    opt = bo.Optimizer(bo.Pool([[0.0, 1.0], [2.0, 3.0]]), seed=0)
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
