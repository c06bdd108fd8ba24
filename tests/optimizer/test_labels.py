"""Names of rows of a pool: in trials, recommendations and tables, and where a row is expected."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError

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


def test_names_are_not_in_the_file_but_come_back_with_the_pool(tmp_path: Path) -> None:
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
    later = bo.Optimizer.open(tmp_path / "0.db", pool=bo.Pool(FRAME.iloc[20:], id_column="name")).trials
    assert later[-1].label == new.label
    assert {trial.label for trial in later[:-1]} <= {None, *(trial.label for trial in logs[0])}


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
