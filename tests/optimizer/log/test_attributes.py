"""Attributes of trials: how they are given, what they may be, and that logs keep them."""

import enum
import json
import math
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, StateFileError, UnknownTrialError
from bkbopt.optimizer.log import log_schema
from bkbopt.optimizer.log.attributes import checked_attrs, storable_attrs

SPACE = {"x": (0.0, 1.0)}
NAMED = {"loss": "minimize"}
POINTS = [{"x": 0.1}, {"x": 0.2}, {"x": 0.3}]


def attrs_of(opt: bo.Optimizer) -> list[dict[str, Any]]:
    return [dict(trial.user_attrs) for trial in opt.trials]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


class Stage(enum.IntEnum):
    FIRST = 1


class Kind(str, enum.Enum):  # noqa: UP042  # the str() of an enum.StrEnum is its text
    FAST = "fast"


# -- what they may be --------------------------------------------------------------------------------------------------

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), plain))
def test_what_json_has_is_kept_as_it_is(given: dict[str, Any]) -> None:
    try:
        kept = checked_attrs(given)
    except ArgumentTypeError:  # {"float": "nan"}, the only text that a log reads as something else
        assert '"float"' in json.dumps(given)
        return
    assert repr(kept) == repr(given)
    assert repr(log_schema.from_json(log_schema.to_json(kept))) == repr(given)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.array([1.0, 2.0]), [1.0, 2.0]),
        (torch.tensor([1, 2]), [1, 2]),
        (pd.Series([True, False]), [True, False]),
        ((1, (2,)), [1, [2]]),
        (Stage.FIRST, 1),
        (np.str_("a"), "a"),
        (Kind.FAST, "fast"),
        ({Kind.FAST: {np.str_("b"): 1}}, {"fast": {"b": 1}}),
        ({"float": np.array([1.0, 2.0])}, {"float": [1.0, 2.0]}),
        (2**2048 - 1, 2**2048 - 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_numbers_and_arrays_are_kept_as_those_of_python(value: Any, kept: Any) -> None:
    (found,) = checked_attrs({"a": value}).values()
    assert repr(found) == repr(kept)


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ([("a", 1)], "user_attrs: expected a dict of attributes by name, got list"),
        ({1: "a"}, "user_attrs: expected names that are text, got 1"),
        ({"when": datetime(2026, 1, 1)}, r"got datetime for 'when'; pass its text, as str\(\.\.\.\)"),
        ({"a": [{"b": {1}}]}, "got set for 'a'"),
        ({"a": {"float": "nan"}}, "got dict for 'a'"),
        ({"a": "\ud800"}, "expected text that is valid Unicode"),
        ({"\ud800": 1}, "expected text that is valid Unicode"),
        ({"a": {"float": np.str_("nan")}}, "got dict for 'a'"),
        ({"a": np.float32}, "got type for 'a'"),
        ({"a": [10**5000]}, "expected whole numbers of at most 2048 bits, got 16610 for 'a'; pass its text"),
    ],
)
def test_what_a_log_cannot_hold_is_refused_and_nothing_is_told(attrs: Any, message: str) -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    trial = opt.ask()
    calls = (
        lambda: opt.tell(trial, 1.0, user_attrs=attrs),
        lambda: opt.fail(trial, user_attrs=attrs),
        lambda: opt.fail([trial], user_attrs=attrs if isinstance(attrs, list) else {k: [v] for k, v in attrs.items()}),
    )
    for call in calls:
        with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
            call()
    assert opt.trials[0] == trial


def test_lists_that_hold_each_other_are_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ArgumentError, match="at most 50 lists and dicts in each other for 'a'"):
        checked_attrs({"a": circle})


def test_of_another_tool_the_attributes_that_can_be_stored_are_kept() -> None:
    assert storable_attrs({"a": 1, "model": object(), 2: "b", "c": [1.5]}) == {"a": 1, "c": [1.5]}


# -- how they are given ------------------------------------------------------------------------------------------------


def test_attributes_add_up_over_the_life_of_a_trial() -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    queued = opt.enqueue({"x": 0.5}, user_attrs={"why": "centre"})
    opt.set_user_attr(queued, "by", "ann")
    asked = opt.ask()
    assert asked.user_attrs == {"why": "centre", "by": "ann"}
    opt.set_user_attr(asked, "host", "a1")
    told = opt.tell(asked, 1.0, user_attrs={"epochs": 3})
    late = opt.set_user_attr(told.id, "by", "bob")
    assert late.user_attrs == {"why": "centre", "by": "bob", "host": "a1", "epochs": 3}
    assert opt.trials == [late]
    assert opt.trials_dataframe()["user_attrs_host"].tolist() == ["a1"]


def test_the_attributes_of_a_list_are_the_callers_own() -> None:
    opt, scores = bo.Optimizer(SPACE, seed=0), [1.0]
    told = opt.tell(POINTS[0], 1.0, user_attrs={"scores": scores})
    scores.append(2.0)
    told.user_attrs["scores"].append(3.0)
    opt.trials[0].user_attrs["scores"].append(4.0)
    assert attrs_of(opt) == [{"scores": [1.0]}]
    for again in (opt.set_user_attr(0, "scores", [1.0]), opt.tell(0, 1.0, replace=True)):
        again.user_attrs["scores"].append(5.0)
    assert attrs_of(opt) == [{"scores": [1.0]}]


def test_an_attribute_may_change_its_type_alone(path: Path) -> None:
    opt = bo.Optimizer(SPACE, storage=path, seed=0)
    opt.tell(POINTS[0], 1.0, user_attrs={"a": 1})
    opt.set_user_attr(0, "a", True)
    opt.set_user_attr(0, "b", 0.0)
    assert repr(attrs_of(opt)) == repr(attrs_of(bo.Optimizer.open(path))) == "[{'a': True, 'b': 0.0}]"


def test_lists_and_columns_are_taken_apart_and_gaps_are_left_out() -> None:
    expected = [{"batch": "a", "run": 7}, {"run": 7}, {"batch": "c", "run": 7}]
    batch = ["a", None, "c"]
    by_list, by_column = bo.Optimizer(SPACE, seed=0), bo.Optimizer(SPACE, seed=0)
    by_list.tell(POINTS, [1.0, 2.0, 3.0], user_attrs={"batch": batch, "run": 7})
    frame = pd.DataFrame({**pd.DataFrame(POINTS), "y": [1.0, 2.0, 3.0], "b": batch})
    by_column.tell(frame, "y", user_attrs={"batch": "b", "run": 7})
    assert attrs_of(by_list) == attrs_of(by_column) == expected
    with pytest.raises(ArgumentError, match="user_attrs: expected 2 for 'batch', one for each trial, got 3"):
        by_list.tell(POINTS[:2], [1.0, 2.0], user_attrs={"batch": batch})
    with pytest.raises(ArgumentError, match=r"user_attrs: expected one of the columns \['x', 'y', 'b'\], got 'c'"):
        by_column.tell(frame, "y", user_attrs={"batch": "c"})
    assert by_list.n_complete == by_column.n_complete == 3


def test_lists_of_text_beside_a_data_frame_have_one_for_each_row() -> None:
    opt, notes = bo.Optimizer(SPACE, directions=NAMED, seed=0), ["a", "b", "c"]
    results = pd.DataFrame({"loss": [1.0, 2.0, 3.0], "note": notes})
    opt.tell(pd.DataFrame(POINTS), results, user_attrs={"host": notes})
    assert attrs_of(opt) == [{"note": note, "host": note} for note in notes]


def told_by_name(opt: bo.Optimizer, form: str) -> None:
    """Tell two points by name in each form that `tell` takes."""
    rows = [
        {"loss": 1.0, "w": -1.0, "epochs": 3, "model": object(), "type": np.float32, "x": 0.1},
        {"loss": 2.0, "w": 1.0, "note": "slow", "time": math.nan, "x": 0.2},
    ]
    if form == "one by one":
        for point, row in zip(POINTS, rows, strict=False):
            opt.tell(point, row)
    elif form == "list":
        opt.tell(POINTS[:2], rows)
    elif form == "dict":
        opt.tell(POINTS[:2], {name: [row.get(name) for row in rows] for name in (*rows[0], *rows[1])})
    else:
        opt.tell(POINTS[:2], pd.DataFrame(rows).drop(columns=["model", "type"]))


@pytest.mark.parametrize("form", ["one by one", "list", "dict", "frame"])
def test_items_beside_the_objectives_are_constraints_and_attributes(form: str) -> None:
    """A row's own parameters, gaps, and what is neither a number nor text are left out."""
    opt = bo.Optimizer(SPACE, directions=NAMED, constraints=["w"], seed=0)
    told_by_name(opt, form)
    assert [trial.values for trial in opt.trials] == [(1.0,), (2.0,)]
    assert [trial.constraints for trial in opt.trials] == [{"w": -1.0}, {"w": 1.0}]
    assert attrs_of(opt) == [{"epochs": 3}, {"note": "slow"}]


def test_parameters_among_the_items_of_an_asked_trial_are_left_out() -> None:
    opt = bo.Optimizer(SPACE, directions=NAMED, seed=0)
    one, two = opt.ask(2)
    opt.tell(one, {**one.params, "loss": 1.0, "epochs": 3})
    opt.tell([two.id], [{**two.params, "loss": 2.0, "epochs": 4}])
    assert attrs_of(opt) == [{"epochs": 3}, {"epochs": 4}]


@pytest.mark.parametrize("columns", [None, ["x"]])
def test_columns_that_have_the_names_of_their_items_are_attributes(columns: list[str] | None) -> None:
    opt = bo.Optimizer(SPACE, directions=NAMED, seed=0)
    frame = pd.DataFrame({"x": [0.1, 0.2], "loss": [1.0, 2.0], "epochs": [3, 4]})
    opt.tell(frame, {"loss": "loss", "epochs": "epochs"}, columns=columns)
    assert attrs_of(opt) == [{"epochs": 3}, {"epochs": 4}]


@pytest.mark.parametrize("item", ["\udcff", 10**5000], ids=["a file name that is no Unicode", "a large number"])
def test_an_item_that_no_log_can_hold_keeps_no_value_from_being_told(item: Any) -> None:
    opt = bo.minimize(lambda params: {"loss": 1.0, "item": item, "epochs": 3}, SPACE, 1, directions=NAMED, seed=0)
    opt.tell(POINTS, [{"loss": 1.0, "item": item, "epochs": 3}] * 3)
    assert attrs_of(opt) == [{"epochs": 3}] * 4


def test_an_array_among_the_items_is_left_out_as_it_is() -> None:
    opt = bo.Optimizer(SPACE, directions=NAMED, seed=0)
    opt.tell(POINTS[0], {"loss": 1.0, "gradient": torch.eye(2).to_sparse(), "epochs": np.array(3)})
    assert attrs_of(opt) == [{"epochs": 3}]


def test_a_black_box_returns_all_by_name() -> None:
    def f(params: dict[str, float]) -> dict[str, Any]:
        if params["x"] > 0.6:
            raise RuntimeError("out of memory")
        return {"loss": params["x"], "w": params["x"] - 0.5, "epochs": 3}

    opt = bo.minimize(f, SPACE, 6, directions=NAMED, constraints=["w"], catch=RuntimeError, seed=0)
    failed = {"error": "RuntimeError('out of memory')"}
    assert attrs_of(opt) == [{"epochs": 3} if trial.values else failed for trial in opt.trials]
    assert {trial.state for trial in opt.trials} == {"COMPLETE", "FAIL"}
    assert all(trial.constraints["w"] == trial.params["x"] - 0.5 for trial in opt.trials if trial.values)


def test_a_failed_trial_keeps_its_attributes_and_a_point_that_is_queued_again_has_them() -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    first, second, third = opt.ask(3)
    opt.fail([first, second], user_attrs={"error": "oom", "host": ["a1", "a2"]})
    opt.tell([third], [math.nan], invalid="fail", user_attrs={"epochs": [3]})
    opt.set_user_attr(opt.ask(), "host", "a1")
    opt.recover(enqueue=True)
    failed = [{"error": "oom", "host": "a1"}, {"error": "oom", "host": "a2"}]
    assert attrs_of(opt) == [*failed, {"epochs": 3}, {"host": "a1"}, {"host": "a1"}]
    assert opt.ask().user_attrs == {"host": "a1"}


def test_attributes_change_no_suggestion() -> None:
    plain, noted = bo.Optimizer(SPACE, seed=0), bo.Optimizer(SPACE, seed=0)
    for _ in range(14):
        one, other = plain.ask(), noted.ask()
        assert one.params == other.params
        value = math.sin(9.0 * one.params["x"])
        plain.tell(one, value)
        noted.tell(other, value, user_attrs={"a": 1.0})
        noted.set_user_attr(other, "b", 2.0)


def test_an_attribute_of_a_finished_trial_lets_nothing_be_learnt_again() -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    opt.tell(POINTS, [1.0, 2.0, 3.0])
    opt.ask()
    opt.set_user_attr(1, "a", 1)
    assert not opt._core.log.is_rewritten
    assert [entry.trial.state for entry in opt._core.log.changed()] == ["RUNNING"]


def test_an_unknown_trial_is_refused() -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    with pytest.raises(UnknownTrialError, match="there is none yet"):
        opt.set_user_attr(0, "a", 1)
    other = bo.Optimizer(SPACE, seed=1)
    trial = other.ask(2)[1]
    with pytest.raises(UnknownTrialError, match="expected a trial of this optimizer"):
        opt.set_user_attr(trial, "a", 1)
    with pytest.raises(ArgumentTypeError, match="trial: expected a trial or its id, got dict"):
        opt.set_user_attr({"x": 0.5}, "a", 1)


# -- in logs -----------------------------------------------------------------------------------------------------------


def version(path: Path) -> int:
    with sqlite3.connect(path) as db:
        found: int = db.execute("PRAGMA user_version").fetchone()[0]
    return found


def test_a_log_without_attributes_is_one_of_the_earlier_version(path: Path) -> None:
    opt = bo.Optimizer(SPACE, storage=path, seed=0)
    opt.tell(opt.ask(), 1.0)
    assert version(path) == log_schema.VERSION
    assert bo.Optimizer.open(path).trials == opt.trials


def test_processes_that_have_the_log_open_get_its_first_attribute(path: Path) -> None:
    one = bo.Optimizer(SPACE, storage=path, seed=0)
    one.tell(one.ask(), 1.0)
    two = bo.Optimizer.open(path)
    assert attrs_of(two) == [{}]
    one.set_user_attr(0, "a", {"b": [1, math.inf]})
    assert attrs_of(two) == [{"a": {"b": [1, math.inf]}}]
    assert version(path) == log_schema.WITH_ATTRS
    two.tell(two.ask(), 2.0)
    two.set_user_attr(1, "c", "d")
    assert one.trials == two.trials == bo.Optimizer.open(path).trials == bo.Optimizer.load(path).trials


def test_an_attribute_named_float_leaves_a_log_readable(path: Path) -> None:
    opt = bo.Optimizer({"float": ["nan", "b"]}, storage=path, seed=0)
    opt.tell({"float": "nan"}, 1.0, user_attrs={"float": "inf"})
    assert bo.Optimizer.open(path).trials == opt.trials


def test_copies_and_new_spaces_keep_attributes(path: Path, tmp_path: Path) -> None:
    opt = bo.Optimizer(SPACE, storage=path, seed=0)
    opt.tell(opt.ask(), 1.0, user_attrs={"a": 1})
    opt.set_space({"x": (0.0, 2.0), "y": (0.0, 1.0)})
    opt.tell(opt.ask(), 2.0, user_attrs={"a": 2})
    opt.save(tmp_path / "copy.db")
    assert (
        attrs_of(bo.Optimizer.open(path)) == attrs_of(bo.Optimizer.open(tmp_path / "copy.db")) == [{"a": 1}, {"a": 2}]
    )


def test_the_view_has_attributes_as_json(path: Path) -> None:
    opt = bo.Optimizer(SPACE, storage=path, seed=0)
    opt.tell(opt.ask(2), [1.0, 2.0], user_attrs={"note": ["it's", None]})
    with sqlite3.connect(path) as db:
        found = db.execute("SELECT number, json_extract(user_attrs, '$.note') FROM trials").fetchall()
    assert found == [(0, "it's"), (1, None)]


@pytest.mark.parametrize("cell", ["[]", "{", "1", b"{}", '{"a":NaN}', "[" * 10_000])
def test_attributes_that_no_optimizer_writes_are_refused(path: Path, cell: Any) -> None:
    opt = bo.Optimizer(SPACE, storage=path, seed=0)
    opt.tell(opt.ask(), 1.0, user_attrs={"a": 1})
    with sqlite3.connect(path) as db:
        (row,) = db.execute("SELECT * FROM log").fetchall()
        checksum = log_schema.checksum((*row[: log_schema.CHECKSUM], cell))
        db.execute("UPDATE log SET user_attrs = ?, checksum = ?", (cell, checksum))
    with pytest.raises(StateFileError):
        bo.Optimizer.open(path)


def test_an_attribute_that_was_changed_in_the_file_is_damage(path: Path) -> None:
    opt = bo.Optimizer(SPACE, storage=path, seed=0)
    opt.tell(opt.ask(), 1.0, user_attrs={"a": 1})
    with sqlite3.connect(path) as db:
        db.execute("""UPDATE log SET user_attrs = '{"a":2}'""")
    with pytest.raises(StateFileError, match="checksum"):
        bo.Optimizer.open(path)
