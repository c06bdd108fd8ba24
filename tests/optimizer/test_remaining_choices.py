"""Columns of choices of a pool stay choices in the next one, also where the values that are left all differ."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError

FRAME = pd.DataFrame({"x": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "kind": list("abcabc")})
LEFT = FRAME.iloc[:3]

Makes = Callable[[pd.DataFrame, Path], Any]


def in_file(frame: pd.DataFrame, folder: Path) -> Path:
    pytest.importorskip("pyarrow")
    path = folder / f"{len(frame)}.parquet"
    frame.to_parquet(path)
    return path


def in_product(frame: pd.DataFrame, folder: Path) -> bo.Pool:
    return bo.Pool.product({"part": frame, "dose": [1, 2]})


MAKES: dict[str, Makes] = {"frame": lambda frame, folder: frame, "file": in_file, "product": in_product}


@pytest.mark.parametrize(
    ("first", "later"),
    [("frame", "frame"), ("frame", "file"), ("file", "frame"), ("file", "file"), ("product", "product")],
)
def test_a_column_of_choices_stays_one_in_a_later_pool_and_in_its_log(first: str, later: str, tmp_path: Path) -> None:
    name = "part.kind" if first == "product" else "kind"
    opt = bo.Optimizer(MAKES[first](FRAME, tmp_path), seed=0, storage=tmp_path / "log.db")
    for trial in opt.ask(2):
        opt.tell(trial, 1.0)
    left = MAKES[later](LEFT, tmp_path)
    opt.set_pool(left)
    assert opt.pool is not None
    assert opt.pool.categorical == (1,)
    assert opt.ask(fixed={name: "b"}).params[name] == "b"
    for given in (left, LEFT.copy()) if first != "product" else (left, None):
        again = bo.Optimizer.open(tmp_path / "log.db", pool=given)
        assert [trial.params[name] for trial in again.trials] == [trial.params[name] for trial in opt.trials]
        assert [trial.index for trial in again.trials] == [trial.index for trial in opt.trials]
        assert again.pool is not None
        assert again.pool.categorical == (1,)
        assert again.recommend(fixed={name: "c"}) == opt.recommend(fixed={name: "c"})


def test_a_choice_column_of_which_numbers_are_left_is_one_in_the_log(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [0.1, 0.2, 0.3, 0.4], "kind": pd.Series(["a", 1, "a", 2], dtype=object)})
    opt = bo.Optimizer(frame, seed=0, storage=tmp_path / "log.db")
    opt.set_pool(frame.iloc[[1, 3]])
    opt.ask()
    again = bo.Optimizer.open(tmp_path / "log.db", pool=frame.iloc[[1, 3]])
    assert again.trials == opt.trials


@pytest.mark.parametrize("kind", MAKES)
def test_in_a_first_pool_it_is_refused_and_in_a_later_one_another_column_is(kind: str, tmp_path: Path) -> None:
    make = MAKES[kind]
    with pytest.raises(ArgumentError, match=r"'kind' are all different.*astype\('category'\)"):
        bo.Optimizer(make(LEFT, tmp_path), seed=0)
    numbers = pd.DataFrame({"x": [0.1, 0.2, 0.3], "kind": [1, 2, 3]})
    opt = bo.Optimizer(make(numbers, tmp_path), seed=0)
    with pytest.raises(ArgumentError, match=r"all different|expected (parts with )?the columns"):
        opt.set_pool(make(LEFT, tmp_path))
    assert opt.pool is not None
    assert opt.pool.categorical == ()
