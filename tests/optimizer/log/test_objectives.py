"""Named objectives: values told by name are those told in order; names in tables, logs and messages."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, StateFileError
from bkbopt.optimizer.designers import saving
from bkbopt.optimizer.log import log_schema
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.objectives import columns_of

NAMED = {"loss": "minimize", "power": "maximize"}
SPACE = {"x": (0.0, 1.0)}
POINTS = [{"x": 0.1}, {"x": 0.4}, {"x": 0.9}]
LOSS, POWER = [3.0, 1.0, 2.0], [5.0, 4.0, 6.0]


def optimizer(directions: Any = NAMED, **options: Any) -> bo.Optimizer:
    return bo.Optimizer(SPACE, directions=directions, seed=0, **options)


FORMS: dict[str, Callable[[bo.Optimizer], object]] = {
    "a dict for each": lambda opt: [
        opt.tell(point, {"power": power, "loss": loss}, std={"power": 0.2, "loss": 0.1})
        for point, loss, power in zip(POINTS, LOSS, POWER, strict=True)
    ],
    "a list of dicts": lambda opt: opt.tell(
        POINTS,
        [{"loss": loss, "power": power} for loss, power in zip(LOSS, POWER, strict=True)],
        std=[{"power": 0.2, "loss": 0.1}] * 3,
    ),
    "a dict of lists": lambda opt: opt.tell(
        POINTS, {"power": POWER, "loss": LOSS}, std={"loss": [0.1] * 3, "power": [0.2] * 3}
    ),
    "a dict of arrays, and a std for all": lambda opt: opt.tell(
        POINTS, {"power": torch.tensor(POWER), "loss": np.array(LOSS)}, std={"loss": 0.1, "power": 0.2}
    ),
    "columns by name": lambda opt: opt.tell(
        pd.DataFrame({"x": [0.1, 0.4, 0.9], "l": LOSS, "p": POWER}),
        {"power": "p", "loss": "l"},
        std={"power": 0.2, "loss": 0.1},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_values_told_by_name_are_those_told_in_order(form: str) -> None:
    named, plain = optimizer(), optimizer(list(NAMED.values()))
    FORMS[form](named)
    plain.tell(POINTS, np.c_[LOSS, POWER], std=[0.1, 0.2])
    assert [(t.params, t.values, t.stds) for t in named.trials] == [(t.params, t.values, t.stds) for t in plain.trials]
    assert named.recommend_front() == plain.recommend_front()
    assert named.objectives == ("loss", "power")
    assert plain.objectives == ()


def test_a_single_objective_may_have_a_name() -> None:
    opt = optimizer({"loss": "minimize"})
    opt.tell({"x": 0.1}, {"loss": 2.0})
    opt.tell(POINTS[1:], {"loss": [1.0, 3.0]}, std={"loss": 0.5})
    opt.tell([{"x": 0.5}, {"x": 0.6}], [{"loss": 4.0}, {"loss": 5.0}])
    opt.tell({"x": 0.7}, 6.0)
    assert [trial.value for trial in opt.trials] == [2.0, 1.0, 3.0, 4.0, 5.0, 6.0]
    assert opt.direction == "minimize"
    assert opt.trials[1].stds == (0.5,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"loss": 1.0},
            r"^value: expected the objectives \('loss', 'power'\), got \('loss',\); of one that is not measured give "
            r"None\.$",
        ),
        (
            {"loss": 1.0, "Power": 2.0},
            r"^value: expected the objectives \('loss', 'power'\), got \('loss', 'Power'\); of one that is not "
            r"measured give None\.$",
        ),
        ({"loss": 1.0, "power": 2.0, "heat": float("inf")}, r"^constraints\['heat'\]: expected finite"),
        ({"loss": 1.0, "power": float("nan")}, "expected finite"),
    ],
)
def test_other_names_are_refused_and_nothing_is_told(given: dict[str, float], message: str) -> None:
    opt = optimizer(constraints=["heat"])
    trial = opt.ask()
    for target, value in ((trial, given), ([trial], [given]), ([trial], {k: [v] for k, v in given.items()})):
        with pytest.raises(ArgumentError, match=message):
            opt.tell(target, value)
    assert opt.n_complete == 0
    assert opt.trials[trial.id].state == "RUNNING"


TABLE = pd.DataFrame({"power": POWER, "loss": LOSS})


@pytest.mark.parametrize(
    "given",
    [TABLE, [row for _, row in TABLE.iterrows()], TABLE.assign(seconds=1.0)],
    ids=["a table", "its rows", "another column"],
)
def test_tables_with_names_of_objectives_are_told_by_these(given: Any) -> None:
    opt = optimizer()
    opt.tell(POINTS, given, std=TABLE)
    assert [t.values for t in opt.trials] == [t.stds for t in opt.trials] == list(zip(LOSS, POWER, strict=True))


def test_a_row_of_a_table_is_told_by_its_names() -> None:
    opt, row = optimizer(), TABLE.iloc[0]
    assert opt.tell(POINTS[0], row, std=row).values == (LOSS[0], POWER[0])
    assert opt.trials[0].stds == (LOSS[0], POWER[0])
    assert opt.hypervolume(pd.Series({"power": 0.0, "loss": 4.0})) == opt.hypervolume([4.0, 0.0])


def test_tables_without_names_of_objectives_are_told_in_order() -> None:
    opt = optimizer()
    opt.tell(POINTS, pd.DataFrame({0: LOSS, 1: POWER}))
    opt.tell({"x": 0.3}, pd.Series([1.0, 2.0]))
    assert [t.values for t in opt.trials] == [*zip(LOSS, POWER, strict=True), (1.0, 2.0)]


def test_a_list_of_numbers_beside_dicts_of_a_single_objective_is_no_value() -> None:
    opt = optimizer({"loss": "minimize"})
    with pytest.raises(ArgumentError, match="value: expected numbers in equal rows"):
        opt.tell(POINTS[:2], [{"loss": 1.0}, [2.0, 3.0]])
    assert not opt.trials


@pytest.mark.parametrize("number", [np.array, torch.tensor])
def test_numbers_by_name_may_be_arrays_without_dimensions(number: Callable[[float], Any]) -> None:
    opt = optimizer()
    opt.tell(POINTS, {"loss": LOSS, "power": POWER}, std={"loss": number(0.5), "power": number(0.25)})
    assert [t.stds for t in opt.trials] == [(0.5, 0.25)] * 3
    with pytest.raises(ArgumentError, match=r"got lengths \{'loss': 3, 'power': 'no list'\}"):
        opt.tell(POINTS, {"loss": LOSS, "power": number(1.0)})


def test_other_metrics_of_the_black_box_are_left_out() -> None:
    opt = optimizer(constraints=["heat"])
    opt.tell(POINTS[0], {"epochs": 7, "power": 2.0, "loss": 1.0, "model": "net"})
    opt.tell(POINTS[1], {"power": 2.0, "loss": 1.0, "heat": 70.0}, constraints={"heat": 70.0 - 60.0})
    opt.tell(POINTS[2:], [{"power": 3.0, "loss": 4.0, "epochs": 3}])
    assert [trial.constraints for trial in opt.trials] == [{}, {"heat": 10.0}, {}]
    assert [trial.values for trial in opt.trials] == [(1.0, 2.0), (1.0, 2.0), (4.0, 3.0)]


def test_lists_of_different_lengths_are_refused() -> None:
    opt = optimizer()
    message = r"expected a list for each objective, all of one length, got lengths \{'loss': 3, 'power': %s\}"
    with pytest.raises(ArgumentError, match=message % 2):
        opt.tell(POINTS, {"loss": LOSS, "power": POWER[:2]})
    with pytest.raises(ArgumentError, match=message % "'no list'"):
        opt.tell(POINTS, {"loss": LOSS, "power": 1.0})
    assert len(opt.trials) == 0


def test_gaps_among_values_told_by_name_fail_or_are_left_out() -> None:
    values = [{"loss": 1.0, "power": 2.0}, {"loss": None, "power": 2.0}]
    failing, skipping = optimizer(), optimizer()
    failing.tell(POINTS[:2], values, invalid="fail")
    skipping.tell(POINTS[:2], values, invalid="skip")
    assert [trial.state for trial in failing.trials] == ["COMPLETE", "FAIL"]
    assert [trial.values for trial in skipping.trials] == [(1.0, 2.0)]


@pytest.mark.parametrize("given", [{}, {"loss": "least"}, {"loss": None}, {1: "minimize"}, "minimize"])
def test_directions_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=r"^directions: expected"):
        optimizer(given)
    with pytest.raises(ArgumentError, match=r"^direction: expected none beside directions"):
        bo.Optimizer(SPACE, direction="maximize", directions=NAMED)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_names_are_those_of_optunas_tables() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for directions in (NAMED, {"loss": "minimize"}):
        study = optuna.create_study(directions=list(directions.values()))
        study.set_metric_names(list(directions))
        theirs = study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
        study.tell(theirs, [1.0, 2.0][: len(directions)])
        opt = optimizer(directions)
        opt.tell(theirs.params, dict(zip(directions, [1.0, 2.0], strict=False)))
        expected, got = study.trials_dataframe(), opt.trials_dataframe()
        assert list(got.columns) == list(expected.columns)
        for name in got.columns[1 : 1 + len(directions)]:
            assert got[name].tolist() == expected[name].tolist()


def test_known_noise_has_the_names_too() -> None:
    opt = optimizer()
    opt.tell(POINTS[0], {"loss": 1.0, "power": 2.0}, std={"power": 0.2, "loss": 0.1})
    frame = opt.trials_dataframe()
    assert (frame["stds_loss"][0], frame["stds_power"][0]) == (0.1, 0.2)


def test_a_table_with_names_can_be_told_back() -> None:
    opt, again = optimizer(), optimizer()
    opt.tell(POINTS, {"loss": LOSS, "power": POWER})
    frame = opt.trials_dataframe().rename(columns={"params_x": "x"})
    again.tell(frame, {name: f"values_{name}" for name in opt.objectives}, columns=["x"])
    assert [t.values for t in again.trials] == [t.values for t in opt.trials]


def test_names_are_in_the_log_and_its_view(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    directions = {"loss": "minimize", 'odd "name"': "maximize"}
    with_file = optimizer(directions, storage=path)
    with_file.tell(POINTS[0], {"loss": 1.0, 'odd "name"': 2.0})
    opened = bo.Optimizer.open(path)
    assert opened.objectives == tuple(directions)
    assert opened.options["directions"] == directions
    opened.save(tmp_path / "copy.db")
    assert bo.Optimizer.load(tmp_path / "copy.db").objectives == tuple(directions)
    with sqlite3.connect(path) as db:
        assert db.execute('SELECT values_loss, "values_odd ""name""" FROM trials').fetchall() == [(1.0, 2.0)]


def test_a_log_without_names_gets_them_and_keeps_them(tmp_path: Path) -> None:
    path, without = tmp_path / "log.db", list(NAMED.values())
    first = optimizer(without, storage=path)
    first.tell(POINTS[0], [1.0, 2.0])
    second = optimizer(NAMED, storage=path)
    first.set_space({"x": (0.0, 2.0)})  # by a process that does not know the names
    third = bo.Optimizer({"x": (0.0, 2.0)}, directions=without, storage=path)
    assert second.objectives == third.objectives == bo.Optimizer.open(path).objectives == ("loss", "power")
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT values_loss, values_power FROM trials").fetchall() == [(1.0, 2.0)]
    with pytest.raises(ArgumentError, match=r'objectives is \["loss","power"\] in the log and \["power","loss"\] here'):
        bo.Optimizer({"x": (0.0, 2.0)}, directions={"power": "minimize", "loss": "maximize"}, storage=path)


def test_names_that_another_process_gives_at_the_same_time_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    optimizer(list(NAMED.values()), storage=path).tell(POINTS[0], [1.0, 2.0])
    late, before = optimizer({"cost": "minimize", "power": "maximize"}), LogFile(path)
    first = optimizer(NAMED, storage=path)
    with pytest.raises(ArgumentError, match=r'another process has just named them \["loss","power"\]; pass the same'):
        saving.join(late._core, path, before, late._describe(), seeded=True)
    assert bo.Optimizer.open(path).objectives == first.objectives
    again = optimizer(NAMED)
    saving.join(again._core, path, before, again._describe(), seeded=True)  # the same names


CRAFTED = ['"ab"', "[0, 1]", '["a", "a"]', '["a"]', '["a", "b", "c"]', '{"a": 1, "b": 2}', "[]", "false"]


@pytest.mark.parametrize("cell", CRAFTED)
def test_crafted_names_of_objectives_are_refused_when_a_log_is_opened(tmp_path: Path, cell: str) -> None:
    path, given = tmp_path / "log.db", json.loads(cell)
    optimizer(storage=path)
    columns = columns_of("value", 2, [str(name) for name in given or ()])  # the view is that of the names
    with sqlite3.connect(path) as db:
        checksum = log_schema.checksum(("objectives", cell))
        db.execute("UPDATE options SET value = ?, checksum = ? WHERE name = 'objectives'", (cell, checksum))
        db.execute("DROP VIEW trials")
        db.execute(log_schema.view_of(columns, [], ["x"]))
    with pytest.raises(StateFileError, match="as names of 2 objectives"):
        LogFile(path)


def test_a_misspelt_constraint_is_refused_where_its_value_is_missing() -> None:
    opt = bo.Optimizer(SPACE, directions={"loss": "minimize"}, constraints=["weight_kg"], seed=0)
    one, other = {"loss": 1.0, "weight-kg": 3.0}, {"loss": 1.0, "Weight_kg": 3.0}
    for target, value in ((POINTS[0], one), (POINTS[:1], [other])):
        with pytest.raises(ArgumentError, match=r"value: expected the constraint 'weight_kg', got '.eight.kg'; give"):
            opt.tell(target, value)
    opt.tell(POINTS[0], {"loss": 1.0, "weight_kg": 3.0, "weight_lb": 4.0})
    assert dict(opt.trials[0].user_attrs) == {"weight_lb": 4.0}


@pytest.mark.parametrize("constraints", [{"g": 1.0}, None])
def test_a_value_without_all_constraints_is_reported_once(
    constraints: dict[str, float] | None, caplog: pytest.LogCaptureFixture
) -> None:
    opt = bo.Optimizer(SPACE, constraints=["g", "h"], seed=0)
    opt.tell(POINTS[0], 1.0, constraints={"g": 1.0, "h": 1.0})
    opt.tell(POINTS[1], None, constraints={"g": 1.0})
    assert not caplog.records
    opt.tell(POINTS[1], 1.0, constraints=constraints)
    opt.tell(POINTS[2], 1.0, constraints=constraints)
    (record,) = caplog.records
    assert record.getMessage().startswith("tell: trial 2 has a value")


def test_pairs_are_values_with_their_standard_deviations() -> None:
    one, other = optimizer(), optimizer()
    rows: list[dict[str, Any]] = [{"loss": (1.0, 0.1), "power": (2.0, 0.2)}, {"power": 3.0, "loss": 4.0}]
    one.tell(POINTS[:2], rows)
    for point, row in zip(POINTS, rows, strict=False):
        other.tell(point, row)
    assert [t.values for t in one.trials] == [t.values for t in other.trials] == [(1.0, 2.0), (4.0, 3.0)]
    assert [t.stds for t in one.trials] == [t.stds for t in other.trials] == [(0.1, 0.2), None]
    for value, more, message in (
        ({"loss": (1.0, 0.1), "power": (2.0, -0.2)}, {}, "std: expected standard deviations >= 0, got -0.2"),
        ({"loss": [1.0, 0.1], "power": 2.0}, {}, "value: expected numbers in equal rows"),
        (rows[0], {"std": [0.1, 0.1]}, r"std: expected none beside value with pairs \(value, std\)"),
    ):
        with pytest.raises(ArgumentError, match=message):
            one.tell(POINTS[2], value, **more)
    with pytest.raises(ArgumentTypeError, match="std: expected a number for each objective, got pairs"):
        one.tell(POINTS[2], {"loss": 1.0, "power": 2.0}, std={"loss": (0.1, 0.2), "power": 0.1})
    limited, value = optimizer(constraints=["heat"]), {"loss": 1.0, "power": 2.0, "heat": (3.0, 0.1)}
    for target, told in ((POINTS[2], value), (POINTS[2:], [value])):
        with pytest.raises(ArgumentTypeError, match=r"a number for 'heat', got the pair \(3\.0, 0\.1\); pass"):
            limited.tell(target, told)
    limited.tell(POINTS[:2], [[1.0, 2.0], [2.0, 1.0]], constraints={"heat": (3.0, 0.1)})  # one for each trial
    assert [trial.constraints["heat"] for trial in limited.trials] == [3.0, 0.1]
    assert len(one.trials) == 2


def test_a_black_box_may_return_the_noise_of_its_value() -> None:
    opt = bo.minimize(lambda params: {"loss": (params["x"], 0.5)}, SPACE, 3, directions={"loss": "minimize"}, seed=0)
    assert [trial.stds for trial in opt.trials] == [(0.5,)] * 3
    learner = bo.Optimizer(SPACE, directions={"loss": "minimize"}, surrogate="pkawv", seed=0)
    with pytest.raises(ArgumentError, match="std: an online learner gives all values the same weight"):
        learner.tell(POINTS[0], {"loss": (1.0, 0.5)})


def test_what_is_read_of_an_objective_takes_its_name() -> None:
    opt = optimizer()
    opt.tell(POINTS, {"loss": LOSS, "power": POWER})
    assert opt.hypervolume({"power": 0.0, "loss": 4.0}) == opt.hypervolume([4.0, 0.0]) > 0.0
    assert opt.residuals("power") == opt.residuals(1)
    with pytest.raises(ArgumentError, match=r"objective: expected one of \('loss', 'power'\), or its number, got 'x'"):
        opt.residuals("x")
    with pytest.raises(ArgumentTypeError, match="reference: expected numbers, since the objectives have no names"):
        optimizer(["minimize"] * 2).hypervolume({"loss": 4.0, "power": 0.0})


def test_minimize_takes_the_dict_that_a_function_returns() -> None:
    def measured(params: dict[str, float]) -> dict[str, float]:
        return {"power": params["x"], "loss": (params["x"] - 0.3) ** 2}

    def limited(params: dict[str, float]) -> tuple[dict[str, float], dict[str, float]]:
        return measured(params), {"heat": params["x"] - 0.8}

    opt = bo.minimize(measured, SPACE, 4, directions=NAMED, seed=0)
    with_limits = bo.minimize(limited, SPACE, 4, directions=NAMED, constraints=["heat"], seed=0)
    for run in (opt, with_limits):
        assert [t.values for t in run.trials] == [tuple(measured(t.params)[n] for n in NAMED) for t in run.trials]
    assert [t.constraints["heat"] for t in with_limits.trials] == [t.params["x"] - 0.8 for t in with_limits.trials]


def test_names_are_shown_where_an_optimizer_is_shown() -> None:
    opt = optimizer({"a<b": "minimize", "power": "maximize"})
    opt.tell(POINTS[0], [1.5, 2.5])
    assert repr(opt).startswith("<Optimizer to minimize a<b, maximize power over 1 parameter: 1 trials")
    page = opt._repr_html_()
    assert "to minimize a&lt;b, maximize power" in page
    assert "<th>state</th><th>a&lt;b</th><th>power</th>" in page
    assert "<td>1.5</td><td>2.5</td>" in page
