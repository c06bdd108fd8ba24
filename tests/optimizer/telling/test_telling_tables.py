"""Values told in tables: by column, with gaps, with known noise and constraints."""

import math
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError
from tests.optimizer.tables_to_tell import FRAME, ROWS, optimizer


def test_table_gives_values_by_column_and_other_columns_are_ignored_where_named() -> None:
    by_name, by_hand = optimizer(), optimizer()
    frame = FRAME.dropna()
    done = by_name.tell(frame, "loss", columns=["x", "y"], std="sd")
    by_hand.tell([ROWS[0], ROWS[2]], [1.0, 3.0], std=[0.1, 0.3])
    assert [(t.params, t.value, t.stds) for t in done] == [(t.params, t.value, t.stds) for t in by_hand.trials]
    with pytest.raises(ArgumentError, match="unknown 'gain', 'heat', 'note', 'sd'"):
        by_name.tell(frame, "loss")
    by_name.tell(frame[["x", "loss", "y"]], "loss")
    assert len(by_name.trials) == 4


def test_the_table_of_trials_is_told_once_its_names_have_no_prefix() -> None:
    opt, other = optimizer(), optimizer()
    opt.tell(ROWS, [1.0, 2.0, 3.0])
    frame = opt.trials_dataframe()
    with pytest.raises(ArgumentError, match=r"got unknown 'params_x', .*; of a table of trials leave out the prefix"):
        other.tell(frame, "value", columns=["params_x", "params_y"])
    other.tell(frame.rename(columns=lambda name: name.removeprefix("params_")), "value", columns=["x", "y"])
    assert [(t.params, t.value) for t in other.trials] == [(t.params, t.value) for t in opt.trials]


def test_a_table_with_the_names_of_a_pools_rows_is_told_by_these_alone() -> None:
    frame = pd.DataFrame({"dose": [0.1, 0.5, 0.9], "id": ["a", "b", "c"]})
    plate = pd.DataFrame({"id": ["c", "a"], "operator": "Ann", "loss": [1.0, 2.0]})
    opt = bo.Optimizer(bo.Pool(frame, id_column="id"), seed=0)
    with pytest.raises(ArgumentError, match=r"got unknown 'operator' and nothing for 'dose'; .* by columns=\['id'\]"):
        opt.tell(plate, "loss")
    assert [(t.index, t.label, t.value) for t in opt.tell(plate, "loss", columns=["id"])] == [
        (2, "c", 1.0),
        (0, "a", 2.0),
    ]


def test_columns_of_a_frame_that_are_named_by_numbers_are_those_of_the_pool() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((8, 2)))
    opt = bo.Optimizer(frame, seed=0)
    done = opt.tell(frame[:3].assign(loss=[1.0, 2.0, 3.0]), "loss")
    assert [trial.index for trial in done] == [0, 1, 2]
    assert opt.predict(frame)[0].shape == (8,)
    for call in (opt.predict, lambda it: opt.tell(it, [1.0] * 8)):
        with pytest.raises(ArgumentError, match=r"expected a data frame with distinct columns, got \['0', '0'\]"):
            call(frame.set_axis([0, "0"], axis=1))


def test_rows_without_a_value_fail_where_that_is_asked_for() -> None:
    opt = optimizer()
    with pytest.raises(ArgumentError, match="finite"):
        opt.tell(FRAME, "loss", columns=["x", "y"])
    assert opt.trials == []
    done = opt.tell(FRAME, "loss", columns=["x", "y"], invalid="fail")
    assert [(t.state, t.value) for t in done] == [("COMPLETE", 1.0), ("FAIL", None), ("COMPLETE", 3.0)]
    for gap in (None, math.nan, math.inf, -math.inf, pd.NA, np.float32("nan"), 10**400):
        assert [t.state for t in opt.tell(ROWS[:2], [gap, 1], invalid="fail")] == ["FAIL", "COMPLETE"]
        if gap is not None:
            assert opt.tell(ROWS[0], gap, invalid="fail").state == "FAIL"
    for bad in ("3", True, 1j, object()):
        with pytest.raises(ArgumentTypeError, match="value"):
            opt.tell(ROWS[:2], [bad, 1.0], invalid="fail")


def test_points_of_a_pool_that_are_none_of_its_rows_are_learnt_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    rows = np.random.default_rng(0).random((20, 2)).astype(np.float32)
    opt = optimizer(rows)
    opt.tell([{"x0": float(a), "x1": float(b)} for a, b in rows[:2]], [1.0, 2.0])
    opt.tell(opt.ask(), 1.0)
    assert not caplog.messages
    rounded = [{"x0": round(float(a), 4), "x1": round(float(b), 4)} for a, b in rows[2:4]]
    done = opt.tell([*rounded, {"index": 5}], [1.0, 2.0, 3.0])
    assert [trial.index for trial in done] == [None, None, 5]
    (message,) = caplog.messages
    assert message.startswith(f"tell: 2 of 3 points are no rows of the pool, the first with {rounded[0]}.")


@pytest.mark.parametrize(
    "rounded",
    [
        lambda rows: rows.astype(np.float32).astype(float),
        lambda rows: np.char.mod("%.6g", rows).astype(float),
        lambda rows: rows.round(6),
        lambda rows: rows.round(8),
    ],
)
@pytest.mark.parametrize("kind", ["array", "file", "product"])
def test_rounded_numbers_of_a_row_are_those_of_the_row(rounded: Any, kind: str, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((200, 3)) * [1.0, 300.0, 0.02]
    np.save(tmp_path / "rows.npy", rows)
    pool = {"array": rows, "file": tmp_path / "rows.npy", "product": bo.Pool.product({"part": rows})}[kind]
    opt = optimizer(pool)
    points = [dict(zip(opt.pool.names, row.tolist(), strict=True)) for row in rounded(rows[:30])]
    told = opt.tell(points, np.arange(30.0))
    assert [trial.index for trial in told] == [*range(30)]
    assert [trial.params for trial in told] == [opt.pool.decode(row) for row in range(30)]


def test_a_rounded_value_of_a_running_row_completes_it() -> None:
    opt = optimizer(np.random.default_rng(0).random((20, 2)))
    trial = opt.ask()
    told = opt.tell({name: round(value, 6) for name, value in trial.params.items()}, 1.0)
    assert (told.id, told.params) == (trial.id, trial.params)


def test_numbers_of_a_trial_of_an_earlier_pool_are_not_those_of_a_row_near_it() -> None:
    rows = np.random.default_rng(0).random((20, 2))
    opt = optimizer(rows)
    trial = opt.ask()
    opt.set_pool(rows.round(7))
    assert opt.tell(trial.params, 1.0).id == trial.id


@pytest.mark.parametrize(
    ("rows", "point"),
    [
        ([[0.5, 0.1], [0.5, 0.1000001], [1.0, 0.9]], {"x0": 0.5, "x1": 0.10000005}),  # of two rows
        ([[1e-9, 0.0], [1.0, 1.0]], {"x0": 5e-7, "x1": 0.0}),  # near, for the column's range, and no rounding
        ([[1.7e9, 0.0], [1.7e9 + 86400.0, 1.0]], {"x0": 1.7e9 + 60.0, "x1": 0.0}),  # a minute later, in ten digits
        (pd.DataFrame({"x0": [10_000_000, 20_000_000], "x1": [0.0, 1.0]}), {"x0": 10_000_001, "x1": 0.0}),  # whole
    ],
)
def test_numbers_that_no_row_or_several_rows_may_have_are_another_point(rows: Any, point: dict[str, Any]) -> None:
    told = optimizer(bo.Pool(rows)).tell(point, 1.0)
    assert (told.index, told.params) == (None, point)


def test_equal_rows_that_were_rounded_are_one_point() -> None:
    told = optimizer(bo.Pool([[1 / 3, 2 / 3], [0.1, 0.2], [1 / 3, 2 / 3]])).tell({"x0": 0.333333, "x1": 0.666667}, 1.0)
    assert told.index == 0


def test_a_log_with_rounded_rows_and_with_points_beside_them_is_read_as_it_was(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((40, 2))
    opt = optimizer(rows, storage=tmp_path / "runs.db")
    opt.tell([{"x0": round(a, 6), "x1": round(b, 6)} for a, b in rows[:6].tolist()], rows[:6, 0])
    opt.tell({"x0": 0.123, "x1": 0.321}, 1.0)
    opt.set_pool([*rows.tolist(), [0.1230000001, 0.321]])
    again = bo.Optimizer.load(tmp_path / "runs.db")
    assert [(t.index, t.params) for t in again.trials] == [(t.index, t.params) for t in opt.trials]
    assert again.ask().params == opt.ask().params


@pytest.mark.parametrize(("directions", "names"), [(["minimize"], ["std"]), (["minimize"] * 2, ["stds_0", "stds_1"])])
def test_known_noise_is_in_the_table_if_there_is_any(directions: list[str], names: list[str]) -> None:
    opt, k = optimizer(directions=directions), len(directions)
    opt.tell(ROWS[0], [1.0] * k if k > 1 else 1.0)
    assert not [column for column in opt.trials_dataframe().columns if column.startswith("std")]
    opt.tell(ROWS[1], [1.0] * k if k > 1 else 1.0, std=[0.25] * k if k > 1 else 0.25)
    table = opt.trials_dataframe()
    assert [column for column in table.columns if column.startswith("std")] == names
    for name in names:
        np.testing.assert_array_equal(table[name], [math.nan, 0.25])


@pytest.mark.parametrize("missing", [math.nan, None, np.float64("nan"), pd.NA])
def test_noise_that_is_missing_is_unknown_for_this_trial(missing: Any) -> None:
    told = optimizer().tell(ROWS, [1.0, 2.0, 3.0], std=[0.1, missing, 0.0])
    assert [trial.stds for trial in told] == [(0.1,), None, (0.0,)]
    assert optimizer().tell(ROWS[0], 1.0, std=missing).stds is None
    table = optimizer().tell(FRAME.assign(sd=[0.1, missing, 0.0]), "gain", std="sd", columns=["x", "y"])
    assert [trial.stds for trial in table] == [(0.1,), None, (0.0,)]


def test_noise_that_is_missing_is_fitted() -> None:
    asked, left_out = optimizer(), optimizer()
    asked.tell(ROWS, [1.0, 2.0, 3.0], std=[0.1, math.nan, math.nan])
    left_out.tell(ROWS[0], 1.0, std=0.1)
    left_out.tell(ROWS[1:], [2.0, 3.0])
    assert asked.predict(ROWS)[0].tolist() == left_out.predict(ROWS)[0].tolist()


@pytest.mark.parametrize("std", [0.1, np.float32(0.5), np.array(0.1), torch.tensor(0.1)])
def test_one_number_is_the_noise_of_all_trials(std: Any) -> None:
    told = optimizer().tell(ROWS, [1.0, 2.0, 3.0], std=std)
    assert [trial.stds for trial in told] == [(float(std),)] * 3


def test_noise_of_several_objectives_is_known_for_some_trials_and_objectives() -> None:
    opt, values = optimizer(directions=["minimize"] * 2), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert [trial.stds for trial in opt.tell(ROWS, values, std=[0.1, 5.0])] == [(0.1, 5.0)] * 3
    told = opt.tell(ROWS, values, std=[[0.1, 5.0], [math.nan, math.nan], [0.2, 4.0]])
    assert [trial.stds for trial in told] == [(0.1, 5.0), None, (0.2, 4.0)]
    told = opt.tell(ROWS, values, std=[[0.1, 5.0], [0.1, 5.0], [math.nan, 4.0]])
    assert [trial.stds for trial in told] == [(0.1, 5.0), (0.1, 5.0), (None, 4.0)]
    with pytest.raises(ArgumentError, match="std: expected shape"):
        opt.tell(ROWS, values, std=0.1)


def test_the_std_of_a_row_without_a_value_is_not_read() -> None:
    opt = optimizer()
    values, gap = [1.0, math.nan], math.nan
    for stds in ([0.1, gap], [0.1, None], np.array([0.1, -1.0])):
        done = opt.tell(ROWS[:2], values, std=stds, invalid="fail")
        assert [(t.state, t.stds) for t in done] == [("COMPLETE", (0.1,)), ("FAIL", None)]
    n = len(opt.trials)
    with pytest.raises(ArgumentError, match=r"^std: .*position 0"):
        opt.tell(ROWS[:2], values, std=[math.inf, 0.1], invalid="fail")
    with pytest.raises(ArgumentError, match=r"^std: expected shape \(2,\)"):
        opt.tell(ROWS[:2], values, std=[0.1], invalid="fail")
    assert len(opt.trials) == n


def test_rows_without_a_value_are_left_out_where_that_is_asked_for() -> None:
    opt = optimizer()
    running = opt.ask()
    done = opt.tell([ROWS[0], running, ROWS[1]], [1.0, math.nan, 3.0], std=[0.1, None, 0.2], invalid="skip")
    assert [(t.value, t.stds) for t in done] == [(1.0, (0.1,)), (3.0, (0.2,))]
    assert [t.state for t in opt.trials].count("COMPLETE") == 2
    assert opt.trials[running.id].state == "RUNNING"
    assert opt.tell(ROWS[:2], [math.nan, None], invalid="skip") == []
    with pytest.raises(ArgumentError, match=r'^invalid: expected "raise" or "fail" for a single trial'):
        opt.tell(running, math.nan, invalid="skip")
    assert opt.trials[running.id].state == "RUNNING"


def test_a_row_that_lacks_one_of_its_constraints_fails_where_that_is_asked_for() -> None:
    opt = optimizer(constraints=["heat", "weight"])
    limits = {"heat": [-1.0, math.nan, -1.0, 0.5], "weight": [-1.0, -1.0, None, 0.5]}
    done = opt.tell([ROWS[0]] * 4, [1.0, 2.0, 3.0, 4.0], constraints=limits, invalid="fail")
    assert [(t.state, t.value) for t in done] == [("COMPLETE", 1.0), ("FAIL", None), ("FAIL", None), ("COMPLETE", 4.0)]
    assert [dict(t.constraints) for t in done[1:3]] == [{}, {}]


def test_a_row_that_lacks_one_of_its_constraints_is_told_without_it_where_gaps_are_left_out() -> None:
    opt = optimizer(constraints=["heat", "weight"])
    limits = {"heat": [-1.0, math.nan, -1.0, math.inf, math.nan], "weight": [-1.0, -1.0, None, 0.5, math.nan]}
    done = opt.tell([ROWS[0]] * 5, [1.0, 2.0, 3.0, 4.0, 5.0], constraints=limits, invalid="skip")
    assert [(t.value, dict(t.constraints)) for t in done] == [
        (1.0, {"heat": -1.0, "weight": -1.0}),
        (2.0, {"weight": -1.0}),
        (3.0, {"heat": -1.0}),
        (5.0, {}),
    ]
    only = opt.tell([ROWS[0]] * 3, None, constraints={"heat": [1.0, math.nan, math.nan]}, invalid="skip")
    assert [(t.state, dict(t.constraints)) for t in only] == [("COMPLETE", {"heat": 1.0})]
    with pytest.raises(ArgumentError, match=r'^constraints\[.heat.\]: .* nan at position 1; .* invalid="skip" does'):
        opt.tell([ROWS[0]] * 2, [1.0, 2.0], constraints={"heat": [1.0, math.nan]})


NUMBERS = st.sampled_from([-1.0, 0.5, math.nan, math.inf])
LIMITS = st.sampled_from([-1.0, 0.5, math.nan])
STDS = st.sampled_from([0.0, 0.1, math.nan])


@hypothesis.given(
    st.lists(st.tuples(NUMBERS, LIMITS, LIMITS, STDS), min_size=1, max_size=4), st.sampled_from(["fail", "raise"])
)
def test_a_table_is_told_as_its_rows_one_by_one(rows: list[tuple[float, ...]], invalid: Any) -> None:
    frame = pd.DataFrame(rows, columns=["loss", "heat", "weight", "std"]).assign(x=0.5, y=0.0)
    limits = {"heat": "heat", "weight": "weight"}
    whole, single = (optimizer(constraints=[*limits]) for _ in range(2))
    try:
        for row in frame.to_dict("records"):
            at, values = {"x": row["x"], "y": row["y"]}, {name: row[name] for name in limits}
            single.tell(at, row["loss"], constraints=values, std=row["std"], invalid=invalid)
    except ArgumentError:
        with pytest.raises(ArgumentError):
            whole.tell(frame, "loss", constraints=limits, std="std", invalid=invalid)
        assert whole.trials == []
    else:
        whole.tell(frame, "loss", constraints=limits, std="std", invalid=invalid)
        assert outcomes(whole) == outcomes(single)


def outcomes(opt: bo.Optimizer) -> list[Any]:
    return [(t.state, t.values, t.stds, dict(t.constraints), dict(t.params)) for t in opt.trials]


def test_several_value_columns_and_constraint_columns() -> None:
    opt = optimizer(directions=["minimize", "maximize"], constraints=["heat"])
    done = opt.tell(FRAME, ["loss", "gain"], columns=["x", "y"], constraints={"heat": "heat"}, invalid="fail")
    assert [t.values for t in done] == [(1.0, 3.0), (), (3.0, 1.0)]
    assert [dict(t.constraints) for t in done] == [{"heat": -1.0}, {}, {"heat": -1.0}]
    only = opt.tell(FRAME, None, columns=["x", "y"], constraints={"heat": "heat"})
    assert [(t.values, t.constraints["heat"]) for t in only] == [((), -1.0), ((), 0.5), ((), -1.0)]
    by_array = opt.tell(ROWS, FRAME[["heat", "gain"]].to_numpy(), constraints={"heat": FRAME["heat"]})
    assert [t.values for t in by_array] == [(-1.0, 3.0), (0.5, 2.0), (-1.0, 1.0)]
    by_tensor = opt.tell(ROWS, torch.tensor([[1.0, 2.0]] * 3, requires_grad=True), std=[[0.1, 0.2]] * 3)
    assert {(t.values, t.stds) for t in by_tensor} == {((1.0, 2.0), (0.1, 0.2))}


# -- cells whose types pandas has changed --------------------------------------------------------------------------

LAYERS = {
    "model": ["tree", "net"],
    "width": bo.Categorical([16, 32], when={"model": "net"}),  # a column of floats, since it has gaps
    "decay": bo.Categorical([None, "l1", "l2"], when={"model": "net"}),
    "prune": ["cost", None],
}


def test_a_table_of_trials_can_be_told_back(tmp_path: Path) -> None:
    opt = optimizer(LAYERS)
    opt.tell(opt.ask(4), [0.0, 1.0, 2.0, 3.0])
    points = [{"model": "net", "width": 32, "decay": None, "prune": None}, {"model": "tree", "prune": None}]
    opt.tell(points, [4.0, 5.0])
    table = opt.trials_dataframe().rename(columns=lambda name: name.removeprefix("params_"))
    table.to_csv(tmp_path / "trials.csv")
    for frame in (table, table.astype(object), pd.read_csv(tmp_path / "trials.csv")):
        again = optimizer(LAYERS)
        again.tell(frame, "value", columns=list(LAYERS))
        assert [trial.params for trial in again.trials] == [trial.params for trial in opt.trials]
        assert np.array_equal(again.predict(frame[list(LAYERS)]), opt.predict([t.params for t in opt.trials]))


def test_a_cell_that_means_no_choice_or_more_than_one_is_refused() -> None:
    opt = optimizer({"k": [1, 1.0, 2], "s": ["a", "b"], "w": bo.Categorical([None, 5], when={"s": "a"})})
    rows = pd.DataFrame({"k": [2.0, 2.0], "s": ["a", "b"], "w": [5.0, math.nan]})
    assert [t.params for t in opt.tell(rows, [1.0, 2.0])] == [{"k": 2, "s": "a", "w": 5}, {"k": 2, "s": "b"}]
    for wrong, name in (({"k": 3.0}, "k"), ({"k": True}, "k"), ({"s": math.nan}, "s"), ({"w": 6.0}, "w")):
        with pytest.raises(ArgumentError, match=f"parameter '{name}': expected one of"):
            opt.tell(rows.iloc[:1].assign(**wrong), [1.0])
    with pytest.raises(ArgumentError, match="expected nothing for 'w', got 5"):
        opt.tell(rows.iloc[1:].assign(w=5.0), [1.0])
    with pytest.raises(ArgumentError, match=r"got 2\.0"):  # in a dict types are those of the choices
        opt.tell({"k": 2.0, "s": "b"}, 1.0)
