"""Conditional and ordinal parameters, ranges, and labels of rows."""

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, SpaceExhaustedError
from bkbopt.spaces import parsing
from tests.optimizer.spaces_to_ask import FRAME, TREE, active, optimizer, run, tree

# -- conditional parameters ----------------------------------------------------------------------------------------


def test_conditional_space_is_solved_and_points_hold_what_is_active() -> None:
    opt = optimizer(TREE, n_startup_trials=8)
    run(opt, 35, tree)
    assert all(set(t.params) == active(t.params) for t in opt.trials)
    assert {t.params["model"] for t in opt.trials} == {"svm", "gp", "forest"}
    best = opt.recommend().params
    assert (best["model"], best["kernel"], best["degree"]) == ("svm", "poly", 3)
    assert tree(best) < 0.05


def test_past_data_of_a_conditional_space_are_told_by_dicts_and_by_tables_with_gaps() -> None:
    rows: list[dict[str, Any]] = [
        {"model": "svm", "C": 2.0, "kernel": "poly", "degree": 3, "x": 0.1},
        {"model": "gp", "kernel": "rbf", "x": 0.2},
        {"model": "forest", "x": 0.3},
    ]
    by_dict, by_table = optimizer(TREE), optimizer(TREE)
    by_dict.tell(rows, [1.0, 2.0, 3.0])
    by_table.tell(pd.DataFrame(rows).assign(loss=[1.0, 2.0, 3.0]), "loss")
    assert [t.params for t in by_table.trials] == [t.params for t in by_dict.trials] == rows
    # What one optimizer writes, another reads.
    written = by_dict.trials_dataframe()
    again = optimizer(TREE)
    frame = written.rename(columns=lambda name: name.removeprefix("params_"))
    again.tell(frame, "value", columns=list(TREE))
    assert [t.params for t in again.trials] == rows


@pytest.mark.parametrize("gap", [None, math.nan])
def test_points_with_gaps_are_taken_by_all_calls(gap: float | None) -> None:
    opt = optimizer(TREE, n_startup_trials=4)
    run(opt, 6, tree)
    point = {"model": "gp", "kernel": "rbf", "x": 0.2}
    row = point | {"C": gap, "degree": gap}
    assert [opt.tell(row, 1.0).params, opt.fail(row).params, opt.enqueue(row).params] == [point] * 3
    for read in (opt.predict, opt.success_probability):
        np.testing.assert_array_equal(read(row), read(point))
        np.testing.assert_array_equal(read([row, point]), read([point, point]))
    assert opt.enqueue({"model": "svm", "C": gap}).params == {"model": "svm"}  # suggested when it is asked


def test_none_in_a_table_is_no_gap_where_it_is_a_choice() -> None:
    cap = bo.Categorical([None, "soft"], when={"kind": "wide"})
    opt = optimizer({"kind": ["wide", "flat"], "cap": cap, "x": (0.0, 1.0)})
    rows = [{"kind": "wide", "cap": None, "x": 0.1}, {"kind": "wide", "cap": "soft", "x": 0.2}]
    # As objects: pandas takes None for a missing text otherwise.
    opt.tell(pd.DataFrame(rows, dtype=object).assign(loss=[1.0, 2.0]), "loss")
    assert [dict(t.params) for t in opt.trials] == rows


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"degree": 3}, r"nothing for 'degree'.* where 'kernel' is 'poly'"),
        ({"model": "forest"}, r"nothing for 'C'"),
        ({"kernel": "poly"}, r"nothing for 'degree'"),
        ({"C": None}, r"'C'"),
    ],
)
def test_values_of_inactive_parameters_and_missing_ones_of_active_are_refused(
    change: dict[str, Any], words: str
) -> None:
    opt = optimizer(TREE)
    point = {"model": "svm", "C": 1.0, "kernel": "rbf", "x": 0.5}
    with pytest.raises(ArgumentError, match=words):
        opt.tell(point | change, 1.0)
    assert opt.trials == []
    opt.tell(point, 1.0)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"a": bo.Int(0, 1, when={"b": 1}), "b": bo.Int(0, 1, when={"a": 1})}, "circle"),
        ({"a": bo.Float(0.0, 1.0, when={"z": 1})}, "got 'z'"),
        ({"a": bo.Float(0.0, 1.0, when={"k": "q"}), "k": ["u", "v"]}, "one of 'u', 'v'.*got 'q'"),
        ({"a": bo.Float(0.0, 1.0, when={"k": 0.5}), "k": (0.0, 1.0)}, "got 'k'"),
    ],
)
def test_impossible_conditions_are_refused_by_name(space: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=f"parameter 'a': when: .*{words}"):
        bo.Optimizer(space)


def test_every_point_of_a_discrete_conditional_space_is_asked_once() -> None:
    opt = optimizer({"k": ["a", "b"], "n": bo.Int(0, 2, when={"k": "a"})}, duplicates="avoid", n_startup_trials=2)
    run(opt, 4, lambda p: float(len(p)))
    assert len({tuple(t.params.items()) for t in opt.trials}) == 4
    with pytest.raises(SpaceExhaustedError):
        opt.ask()


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("seed", [0, 2])
def test_without_noise_all_points_of_all_branches_come_before_a_repeat(batch: int, seed: int) -> None:
    space = {
        "m": bo.Categorical(["a", "b"]),
        "n": bo.Int(0, 4, when={"m": "a"}),
        "z": bo.Int(0, 5, when={"m": "b"}),
    }
    opt = bo.Optimizer(space, seed=seed, n_startup_trials=3, deterministic=True)
    for trial in opt.ask(4):
        opt.tell(trial, float(sum(v**2 for v in trial.params.values() if isinstance(v, int))))
    for _ in range(7 // batch):
        for trial in opt.ask(batch):
            if batch == 1:
                opt.tell(trial, float(sum(v**2 for v in trial.params.values() if isinstance(v, int))))
    assert len({tuple(trial.params.items()) for trial in opt.trials}) == 11


# -- kinds of parameters -------------------------------------------------------------------------------------------


def test_ordinal_values_are_asked_told_and_recommended_as_they_are() -> None:
    opt = optimizer({"batch": bo.Ordinal([16, 32, 64, 128]), "size": bo.Ordinal(["S", "M", "L"])})
    run(opt, 15, lambda p: abs(math.log2(p["batch"]) - 6) + "SML".index(p["size"]))
    assert opt.recommend().params == {"batch": 64, "size": "S"}
    assert {type(t.params["batch"]) for t in opt.trials} == {int}
    assert opt.tell({"batch": np.int64(32), "size": "M"}, 1.0).params == {"batch": 32, "size": "M"}
    with pytest.raises(ArgumentError, match=r"'batch'.*one of 16, 32, 64, 128"):
        opt.tell({"batch": 48, "size": "M"}, 1.0)


def test_neighbours_in_the_order_are_alike_and_choices_are_not() -> None:
    values = [{"k": k} for k in ("a", "b", "d", "e") for _ in range(2)]
    y = [0.0, 0.0, 1.0, 1.0, 3.0, 3.0, 4.0, 4.0]
    ordered, choice = optimizer({"k": bo.Ordinal(list("abcde"))}), optimizer({"k": list("abcde")})
    for opt in (ordered, choice):
        opt.tell(values, y)
    assert ordered.predict({"k": "c"})[1][0] < 0.5 * choice.predict({"k": "c"})[1][0]


def test_range_is_a_whole_number() -> None:
    opt = optimizer({"n": range(1, 10, 3), "down": range(5, 0, -1)})
    points = [t.params for t in opt.ask(15)]
    assert {p["n"] for p in points} == {1, 4, 7}
    assert {p["down"] for p in points} <= {1, 2, 3, 4, 5}
    assert {type(p["n"]) for p in points} == {int}


def test_two_whole_bounds_are_real_numbers_and_said_to_be_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_has_warned", False)
    with pytest.warns(UserWarning, match=r"'n': \(1, 10\) .* bo\.Int\(1, 10\)"):
        opt = bo.Optimizer({"n": (1, 10)}, seed=0)
    assert isinstance(opt.ask().params["n"], float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bo.Optimizer({"n": (1, 10)})
        bo.Optimizer({"x": (1.0, 10.0)})


# -- labels of rows ------------------------------------------------------------------------------------------------


def test_labels_of_rows_are_an_index_or_a_column() -> None:
    named = FRAME.reset_index(names="name")
    with pytest.raises(ArgumentError, match=r"'name' are all different.*id_column='name'"):
        optimizer(named)
    opt = optimizer(bo.Pool(named, id_column="name"))
    run(opt, 6, lambda p: p["dose"])
    assert set(opt.trials[0].params) == {"dose", "day"}
    assert [t.index for t in opt.tell_rows(["mix 4", "mix 29"], [1.0, 2.0])] == [4, 29]
    opt.set_pool(named.iloc[20:])
    assert opt.tell_rows(["mix 29"], [1.0])[0].index == 9
    for words, rows in (("'mix 4'", ["mix 4"]), ("'nobody'", ["nobody"])):
        with pytest.raises(ArgumentError, match=words):
            opt.tell_rows(rows, [1.0])


def test_arms_that_are_numbers_of_rows_and_labels_are_told_apart() -> None:
    opt = optimizer(FRAME.set_axis(range(100, 130), axis=0))
    assert opt.tell_rows([103], [1.0])[0].index == 3
    with pytest.raises(ArgumentError, match="labels"):
        opt.tell_rows([3], [1.0])
    array = optimizer(FRAME[["dose"]].to_numpy())
    assert [t.index for t in array.tell_rows(np.array([3, 5]), [1.0, 2.0])] == [3, 5]
    with pytest.raises(ArgumentError, match="rows: expected a row number from 0 to 29, got -1"):
        array.tell_rows([3, -1], [1.0, 2.0])
    assert len(array.trials) == 2


def test_pairs_of_anything_but_numbers_are_arms_if_there_is_a_kernel_for_them() -> None:
    bonds = [("C", "N"), ("C", "O"), ("N", 7)]
    opt = optimizer(bonds, surrogate=bo.BKB(kernel=lambda A, B: np.array([[float(a == b) for b in B] for a in A])))
    run(opt, 4, lambda p: float(p["arm"] == ("C", "O")))
    assert {trial.params["arm"] for trial in opt.trials} <= set(bonds)
    with pytest.raises(ArgumentTypeError, match="low: expected a number, got 'C'"):
        optimizer(bonds)
