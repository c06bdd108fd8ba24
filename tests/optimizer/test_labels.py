"""Names of rows of a pool: in trials, recommendations and tables, and where a row is expected."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.adapters.shell import main
from bkbopt.errors import ArgumentError, SpaceExhaustedError
from bkbopt.optimizer.log import log_schema

FRAME = pd.DataFrame(np.random.default_rng(0).random((40, 2)), columns=["u", "v"]).assign(
    name=[f"m{i}" for i in range(40)]
)


def optimizer(pool: Any = None, **options: Any) -> bo.Optimizer:
    pool = bo.Pool(FRAME, id_column="name") if pool is None else pool
    return bo.Optimizer(pool, seed=0, n_startup_trials=4, **options)


def run(opt: bo.Optimizer, n: int = 6) -> None:
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, trial.params["u"] + trial.params["v"])


def test_trials_and_recommendations_have_the_names_of_their_rows() -> None:
    opt = optimizer()
    run(opt)
    opt.tell_rows(["m7"], [3.0])
    opt.enqueue({"index": 9})
    assert opt.ask().label == "m9"
    assert [trial.label for trial in opt.trials] == [f"m{trial.index}" for trial in opt.trials]
    assert opt.trials_dataframe()["label"].tolist() == [trial.label for trial in opt.trials]
    for choice in (opt.recommend(), opt.recommend(fixed={"index": 3}), *opt.recommend_front()):
        assert choice.label == f"m{choice.index}"


def test_rows_are_told_and_predicted_by_their_name_with_their_columns() -> None:
    opt = optimizer()
    told = opt.tell(FRAME.iloc[[3, 5]].round(6).assign(loss=[1.0, 2.0]), "loss")
    assert [(trial.index, trial.label) for trial in told] == [(3, "m3"), (5, "m5")]
    assert opt.tell(dict(FRAME.iloc[8]), 0.5).label == "m8"
    assert np.array_equal(opt.predict(FRAME)[0], opt.predict_encoded(opt.pool.X)[0])
    with pytest.raises(ArgumentError, match=r"params: expected v = 0\..*, as in the row 'm9', got 2.0; correct it"):
        opt.tell(dict(FRAME.iloc[9]) | {"v": 2.0}, 0.5)


def test_rows_without_an_id_column_have_no_names() -> None:
    for opt in (optimizer(FRAME[["u", "v"]]), bo.Optimizer({"u": (0.0, 1.0), "v": (0.0, 1.0)}, seed=0)):
        run(opt)
        assert {trial.label for trial in opt.trials} == {opt.recommend().label} == {None}
        assert "label" not in opt.trials_dataframe()
        assert "label" not in opt._repr_html_()


def test_a_page_for_notebooks_has_the_names_of_rows() -> None:
    opt = optimizer()
    run(opt)
    page, last = opt._repr_html_(), opt.trials[-1]
    assert f"(trial {opt.best_trial.id}) at {opt.best_trial.label}: u = " in page
    assert f" at {opt.recommend().label}: u = " in page.partition("recommended")[2]
    assert "<th>value</th><th>label</th><th>u</th>" in page
    assert f"<td>{last.value:.6g}</td><td>{last.label}</td>" in page


def test_a_name_says_which_row_is_predicted_queued_told_or_held() -> None:
    opt = optimizer()
    run(opt)
    assert np.array_equal(opt.predict({"name": "m3"}), opt.predict({"index": 3}))
    opt.enqueue({"name": "m9"})
    assert opt.ask().index == 9
    told = opt.tell({"name": "m9"}, 1.0)
    assert isinstance(told, bo.Trial)
    assert (told.id, told.index) == (len(opt.trials) - 1, 9)  # it completes the running trial
    assert opt.ask(fixed={"name": "m4"}).index == opt.recommend(fixed={"name": "m4"}).index == 4
    for call in (opt.predict, opt.enqueue, lambda p: opt.tell(p, 1.0), lambda p: opt.ask(fixed=p)):
        with pytest.raises(ArgumentError, match="rows: expected labels of the pool's rows"):
            call({"name": "nobody"})


def test_names_are_in_the_file_and_stay_when_the_pool_changes(tmp_path: Path) -> None:
    logs = []
    for i, frame in enumerate((FRAME, FRAME.assign(name=[f"other {i}" for i in range(40)]))):
        opt = optimizer(bo.Pool(frame, id_column="name"), storage=tmp_path / f"{i}.db")
        run(opt)
        logs.append(opt.trials)
    assert logs[0][0].label == "m" + str(logs[0][0].index)
    assert [trial.params for trial in logs[0]] == [trial.params for trial in logs[1]]  # names are no features
    again = bo.Optimizer.open(tmp_path / "0.db", pool=bo.Pool(FRAME, id_column="name"))
    assert again.trials == logs[0]
    assert [trial.label for trial in again.trials] == [trial.label for trial in logs[0]]
    again.set_pool(bo.Pool(FRAME.iloc[20:], id_column="name"))
    new = again.ask()
    assert new.index is not None
    assert new.label == f"m{new.index + 20}"
    later = bo.Optimizer.open(tmp_path / "0.db", pool=bo.Pool(FRAME.iloc[20:], id_column="name"))
    assert [trial.label for trial in later.trials] == [*(trial.label for trial in logs[0]), new.label]
    later.save(tmp_path / "copy.db")
    copy = bo.Optimizer.load(tmp_path / "copy.db", pool=bo.Pool(FRAME.iloc[20:], id_column="name"))
    assert [trial.label for trial in copy.trials] == [trial.label for trial in later.trials]


def test_trials_keep_the_rows_that_they_had_in_an_earlier_pool(tmp_path: Path) -> None:
    rows = FRAME[["u", "v"]].to_numpy()
    opt = optimizer(rows, storage=tmp_path / "log.db")
    told, running = opt.ask(), opt.ask()
    opt.tell(told, 1.0)
    opt.set_pool(rows[::-1].copy())
    opt.tell(running, 2.0)
    for now in (opt, bo.Optimizer.open(tmp_path / "log.db")):
        assert [trial.index for trial in now.trials] == [told.index, running.index]
        assert now.recommend().index in {len(rows) - 1 - told.index, len(rows) - 1 - running.index}


@pytest.mark.parametrize(
    ("pool", "text"),
    [
        (bo.Pool(FRAME, id_column="name"), "<pool of 40 rows: 2 columns (u, v), rows named by 'name'>"),
        (FRAME[["u"]], "<pool of 40 rows: 1 column (u)>"),
        (np.eye(9), "<pool of 9 rows: 9 columns (x0, x1, x2, x3, x4, x5, ...)>"),
        (bo.Pool.product({"a": [1, 2], "b": ["x", "y"]}), "<pool of 4 rows: 2 columns (a, b)>"),
    ],
)
def test_a_pool_is_shown_in_one_line(pool: Any, text: str) -> None:
    assert repr(bo.Optimizer(pool, seed=0).pool) == text


def test_names_of_rows_in_files_are_the_same(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "rows.parquet")
    opt = optimizer(bo.Pool(tmp_path / "rows.parquet", id_column="name"))
    run(opt)
    assert [trial.label for trial in opt.trials] == [f"m{trial.index}" for trial in opt.trials]
    assert opt.recommend().label == f"m{opt.recommend().index}"
    assert repr(opt.pool) == "<pool of 40 rows: 2 columns (u, v), rows named by 'name'>"


TWINS = pd.DataFrame({"name": [f"m{i}" for i in range(20)], "x": np.repeat(np.arange(10) / 9, 2)})


@pytest.mark.parametrize("n", [0, 8])
@pytest.mark.parametrize("key", ["index", "name"])
def test_of_rows_with_equal_values_the_one_that_is_named_is_given(key: str, n: int, tmp_path: Path) -> None:
    opt = bo.Optimizer(bo.Pool(TWINS, id_column="name"), seed=0, n_startup_trials=3, storage=tmp_path / "log.db")
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, trial.params["x"])
    for row in (6, 7):
        named = {"index": row} if key == "index" else {"name": f"m{row}"}
        queued = opt.enqueue(named)
        assert (queued.index, queued.label) == (row, f"m{row}")
        for trial in (
            bo.Optimizer.open(tmp_path / "log.db", pool=bo.Pool(TWINS, id_column="name")).ask(),
            opt.ask(fixed=named),
        ):
            assert (trial.index, trial.label) == (row, f"m{row}")
            opt.tell(trial, trial.params["x"])
        assert opt.recommend(fixed=named).label == f"m{row}"


@pytest.mark.parametrize("key", ["index", "name"])
def test_a_value_of_a_named_row_is_not_that_of_a_running_one_with_equal_values(key: str) -> None:
    opt = bo.Optimizer(bo.Pool(TWINS, id_column="name"), seed=0)

    def named(row: int) -> dict[str, Any]:
        return {"index": row} if key == "index" else {"name": f"m{row}"}

    for row in (7, 6):
        opt.enqueue(named(row))
    running = {trial.index: trial.id for trial in opt.ask(2)}
    first = opt.tell(named(6), 1.0)
    assert (first.id, first.label, first.value) == (running[6], "m6", 1.0)
    again = opt.tell_rows([6 if key == "index" else "m6"], [2.0])[0]  # no trial of the row is running any more
    assert (again.id, again.label, again.value) == (2, "m6", 2.0)
    assert opt.tell({"x": TWINS.x[7]}, 3.0).id == running[7]  # a description is that of both rows


def test_a_value_of_a_labelled_entry_is_not_that_of_a_running_one_with_equal_values() -> None:
    lists = {"s": pd.DataFrame({"x": [0.5, 0.5, 1.0]}, index=["a", "b", "c"]), "T": [1, 2]}
    opt = bo.Optimizer(bo.Pool.product(lists), seed=0)
    opt.enqueue({"s": "a", "T": 1})
    trial = opt.ask()
    other = opt.tell({"s": "b", "T": 1}, 9.0)
    assert (other.id, other.params["s"]) == (1, "b")
    assert opt.tell({"s": "a", "T": 1}, 1.0).id == trial.id


def test_names_that_a_file_cannot_hold_come_from_the_pool(tmp_path: Path) -> None:
    for i, names in enumerate(
        (pd.date_range("2020", periods=40), pd.Series([f"m{i}\ud800" for i in range(40)], dtype=object))
    ):
        pool = bo.Pool(FRAME.assign(name=names), id_column="name")
        opt = optimizer(pool, storage=tmp_path / f"{i}.db")
        run(opt)
        again = bo.Optimizer.open(tmp_path / f"{i}.db", pool=pool)
        assert [trial.label for trial in again.trials] == [trial.label for trial in opt.trials]


def test_names_that_a_file_cannot_hold_are_not_those_of_other_rows_of_a_later_pool(tmp_path: Path) -> None:
    frame = FRAME.assign(name=pd.date_range("2020", periods=40))
    later = bo.Pool(frame.iloc[::-1].reset_index(drop=True), id_column="name")
    opt = optimizer(bo.Pool(frame, id_column="name"), storage=tmp_path / "log.db")
    run(opt)
    names = [trial.label for trial in opt.trials]
    opt.set_pool(later)
    last = opt.ask()
    again = bo.Optimizer.open(tmp_path / "log.db", pool=later)
    assert again.trials[-1].label == last.label
    assert all(trial.label in (None, name) for trial, name in zip(again.trials, names, strict=False))


def test_a_log_without_names_opens_and_has_those_of_its_pool(tmp_path: Path) -> None:
    opt = optimizer(storage=tmp_path / "log.db")
    run(opt)
    with contextlib.closing(sqlite3.connect(tmp_path / "log.db")) as db, db:  # as earlier versions wrote it
        for row in db.execute(f"SELECT {log_schema.COLUMNS} FROM log").fetchall():
            cells = list(row[:-1])
            cells[2] = log_schema.to_json({k: v for k, v in log_schema.from_json(row[2]).items() if k != "label"})
            assert cells[2] != row[2]
            changed = (cells[2], log_schema.checksum(tuple(cells)), row[0])
            db.execute("UPDATE log SET params = ?, checksum = ? WHERE id = ?", changed)
    again = bo.Optimizer.open(tmp_path / "log.db", pool=bo.Pool(FRAME, id_column="name"))
    assert again.trials == opt.trials
    assert [trial.label for trial in again.trials] == [trial.label for trial in opt.trials]


def test_a_lost_trial_is_queued_as_the_row_that_it_was() -> None:
    opt = bo.Optimizer(bo.Pool(TWINS, id_column="name"), seed=0)
    opt.ask(fixed={"name": "m7"})
    opt.recover(0.0, enqueue=True)
    assert opt.ask().label == "m7"


def test_a_column_index_cannot_name_the_rows(tmp_path: Path) -> None:
    frame = FRAME[["u", "v"]].reset_index()
    frame.to_parquet(tmp_path / "rows.parquet")
    for arms in (frame, tmp_path / "rows.parquet"):
        with pytest.raises(ArgumentError, match=r'id_column: .*"index", which is reserved for row numbers; rename'):
            optimizer(bo.Pool(arms, id_column="index"))


def test_the_only_column_cannot_be_called_index() -> None:
    frame = FRAME[["u"]].rename(columns={"u": "index"})
    with pytest.raises(ArgumentError, match=r'pool: .*"index", which is reserved for row numbers; rename'):
        optimizer(frame)
    opt = optimizer(FRAME[["u"]])
    with pytest.raises(ArgumentError, match="pool: expected"):
        opt.set_pool(frame)


def test_a_feature_called_index_is_one_but_cannot_be_held_alone() -> None:
    opt = optimizer(FRAME[["u", "v"]].rename(columns={"u": "index"}))
    trial = opt.ask()
    assert opt.tell(trial.params, 1.0) == opt.trials[0]
    assert opt.tell({"index": 3}, 2.0).index == 3  # type: ignore[union-attr]
    assert opt.ask(fixed={"index": FRAME["u"][5], "v": FRAME["v"][5]}).index == 5
    for call in (opt.enqueue, lambda p: opt.ask(fixed=p), lambda p: opt.recommend(fixed=p)):
        with pytest.raises(ArgumentError, match=r'expected a row number or values of a column.* got "index"'):
            call({"index": 3})


def test_parts_of_products_have_names_of_their_own_for_a_column_index() -> None:
    frame = FRAME[["u"]].reset_index()
    opt = optimizer(bo.Pool.product({"solvent": bo.Pool(frame, id_column="index"), "dose": [1, 2]}))
    assert opt.tell({"solvent": 3, "dose": 2}, 1.0).index == 7  # type: ignore[union-attr]


def test_trials_of_a_product_keep_the_labels_of_their_entries_when_its_parts_change(tmp_path: Path) -> None:
    def product(names: list[str]) -> bo.Pool:
        part = pd.DataFrame({"name": names, "p": [0.1, 0.5, 0.9]})
        return bo.Pool.product({"s": bo.Pool(part, id_column="name"), "t": [1, 2]})

    opt = bo.Optimizer(product(["s1", "s2", "s3"]), storage=tmp_path / "runs.db", seed=0)
    opt.tell_rows([("s1", 1), ("s2", 2)], [0.0, 1.0])
    opt.set_pool(product(["s4", "s3", "s5"]))  # in other entries, and another one with the values of s1
    opt.tell_rows([("s4", 1)], [0.5])
    opt.save(tmp_path / "copy.db")
    for name in ("runs.db", "copy.db"):
        assert list(bo.Optimizer.load(tmp_path / name).trials) == list(opt.trials)
        assert main(["export", str(tmp_path / name), str(tmp_path / "trials.csv")]) == 0
        assert pd.read_csv(tmp_path / "trials.csv")["params_s"].tolist() == ["s1", "s2", "s4"]


def test_rows_with_trials_in_an_earlier_pool_are_known_by_their_names() -> None:
    def pool(*names: str) -> bo.Pool:  # a and b have the same values
        return bo.Pool(
            pd.DataFrame({"name": names, "x": [{"a": 1.0, "b": 1.0}.get(n, 2.0) for n in names]}), id_column="name"
        )

    def product(*names: str) -> bo.Pool:
        return bo.Pool.product({"part": pool(*names), "T": [1]})

    for make, key in ((pool, "name"), (product, "part")):

        def name(trial: Any, key: str = key) -> Any:
            return trial.label if key == "name" else trial.params["part"]

        def row(name: str, key: str = key) -> dict[str, Any]:
            return {"name": name} if key == "name" else {"part": name, "T": 1}

        opt = bo.Optimizer(make("a", "c"), seed=0, duplicates="avoid")
        first = opt.tell(row("a"), 1.0)
        assert name(first) == "a"
        opt.set_pool(make("b", "a", "c"))
        assert {name(trial) for trial in opt.ask(3)} == {"b", "c"}  # a has a value

        opt = bo.Optimizer(make("a", "b"), seed=0)
        for queued in ("a", "b", "b"):
            opt.enqueue(row(queued))
        running = opt.ask()
        opt.set_pool(make("c", "b", "a"))
        assert opt.tell(row("b"), 1.0).id == 3  # the trial of a is another one
        assert opt.tell(row("a"), 1.0).id == running.id
        opt.set_pool(make("c", "a", "b"))
        assert [name(trial) for trial in opt.ask(2)] == ["b", "b"]
        opt.enqueue(row("b"))
        opt.set_pool(make("a", "c"))
        assert name(opt.ask(fixed=row("a"))) == "a"
        assert opt.trials[-2].state == "WAITING"  # until there is a row of this name


@pytest.mark.parametrize("n_startup_trials", [0, 20])
@pytest.mark.parametrize("told", ["aa", "bbb", "aab", "fgg"])
def test_a_second_value_of_a_row_closes_no_other_row_with_equal_values(told: str, n_startup_trials: int) -> None:
    frame = pd.DataFrame({"id": list("abcdefg"), "x": [0.0, 0.0, 1.0, 2.0, 3.0, 3.0, 3.0]})
    for is_product in (False, True):
        pool = bo.Pool(frame, id_column="id")
        pool, more = (bo.Pool.product({"id": pool, "T": [1]}), {"T": 1}) if is_product else (pool, {})
        opt = bo.Optimizer(pool, seed=0, duplicates="avoid", n_startup_trials=n_startup_trials)
        for name in told:
            opt.tell({"id": name, **more}, float(ord(name)))
        others = set(frame.id) - set(told)
        asked = [trial.params["id"] if is_product else trial.label for trial in opt.ask(len(others))]
        assert sorted(asked) == sorted(others)  # type: ignore[type-var]
        with pytest.raises(SpaceExhaustedError):
            opt.ask()


def test_a_row_whose_values_have_changed_is_closed_by_its_new_trial() -> None:
    def pool(*x: float) -> bo.Pool:
        return bo.Pool(pd.DataFrame({"id": ["a", "b"], "x": x}), id_column="id")

    opt = bo.Optimizer(pool(0.0, 1.0), seed=0, duplicates="avoid", n_startup_trials=0)
    opt.tell({"id": "a"}, 0.0)
    opt.set_pool(pool(2.0, 1.0))
    opt.tell({"id": "a"}, 1.0)
    assert opt.ask().label == "b"
    with pytest.raises(SpaceExhaustedError):
        opt.ask()


def test_of_rows_with_equal_values_the_evaluated_one_with_the_best_value_is_recommended() -> None:
    twins = pd.DataFrame({"name": [f"m{i}" for i in range(6)], "x": [1.0, 1.0, 1.0, 2.0, 2.0, 3.0]})
    opt = bo.Optimizer(bo.Pool(twins, id_column="name"), seed=0)
    opt.tell_rows(["m1", "m2", "m4"], [0.1, 0.0, 5.0])
    assert opt.recommend().label == "m2"
    assert [point.label for point in opt.recommend_front()] == ["m2"]
    assert opt.recommend(fixed={"name": "m0"}).label == "m0"
    assert opt.regret_certificate().index == opt.recommend().index == 2
    opt.set_pool(bo.Pool(twins.iloc[::-1], id_column="name"))
    assert (opt.recommend().label, opt.recommend().index) == ("m2", 3)
    opt.set_pool(bo.Pool(twins.iloc[:2], id_column="name"))
    assert opt.recommend().label == "m1"  # the row with the best value is gone


def test_a_copy_knows_which_trials_are_those_of_an_earlier_pool(tmp_path: Path) -> None:
    rows = pd.DataFrame({"name": list("abc"), "x": [1.0, 1.0, 2.0]})
    later = bo.Pool(rows.iloc[::-1], id_column="name")
    opt = bo.Optimizer(bo.Pool(rows, id_column="name"), seed=0)
    for name in "ba":
        opt.tell_rows([name], [1.0])
        opt.enqueue({"name": name})
    opt.set_pool(bo.Pool(rows.iloc[1:], id_column="name"))
    opt.set_pool(later)
    opt.tell_rows(["c"], [2.0])
    opt.save(tmp_path / "copy.db")
    copy = bo.Optimizer.load(tmp_path / "copy.db", pool=later)
    for log in (opt, copy):
        assert log.recommend().label == "b"
        assert [trial.label for trial in log.ask(2)] == ["b", "a"]
