"""Columns of text that may be no choices: numbers written as text, and names of rows of which some are equal."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.spaces.pool import EncodedPool

ROWS = 60
ENCODED = {"scale": True, "has_kernel": False}


@pytest.fixture
def noted(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The warnings so far."""
    caplog.set_level(logging.WARNING, "bkbopt")
    return lambda: [record.getMessage() for record in caplog.records]


def frame(cells: Sequence[Any], name: str = "mass") -> pd.DataFrame:
    return pd.DataFrame({"charge": np.arange(ROWS) % 7 / 2.0, name: cells})


def numbers(first: object) -> list[object]:
    """Numbers as text, as a table has them in which one cell is none; two are equal."""
    return [first, *(f"{i}.5" for i in range(1, ROWS - 1)), "1.5"]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (numbers("n/a"), "'mass' is taken for 59 choices in 60 rows: most are numbers, as 'n/a' is no number; convert"),
        (numbers("0.5"), "most are numbers, as they are text; convert the column, as by pandas.to_numeric"),
        ([f"C{i}N" for i in range(ROWS - 1)] + ["C0N"], "names or remarks, leave the column out: bo.Pool(..., columns"),
        ([f"{i % 25}" for i in range(ROWS)], "25 choices in 60 rows: most are numbers"),
    ],
)
def test_text_that_is_hardly_choices_is_noted(
    cells: list[object], words: str, noted: Callable[[], list[str]], tmp_path: Path
) -> None:
    frame(cells).to_parquet(tmp_path / "rows.parquet")
    for pool in (bo.Pool(frame(cells)), bo.Pool(tmp_path / "rows.parquet")):
        before = len(noted())
        bo.Optimizer(pool)
        (message,) = noted()[before:]
        assert words in message


@pytest.mark.parametrize(
    "cells",
    [
        [f"solvent {i % 25}" for i in range(ROWS)],
        [f"{i % 20}" for i in range(ROWS)],
        pd.Categorical(numbers("n/a")),
        np.arange(ROWS) / 2.0,
    ],
    ids=["choices", "few numbers", "declared", "numbers"],
)
def test_choices_are_not_noted(cells: Any, noted: Callable[[], list[str]]) -> None:
    bo.Optimizer(bo.Pool(frame(cells)))
    assert noted() == []


def test_text_of_a_part_that_is_hardly_choices_is_noted(noted: Callable[[], list[str]], tmp_path: Path) -> None:
    parts = {"acid": frame(numbers("n/a")), "base": frame([f"C{i}N" for i in range(ROWS - 1)] + ["C0N"], "name")}
    opt = bo.Optimizer(bo.Pool.product(parts), storage=tmp_path / "log.db")
    first, second = noted()
    assert "column 'acid.mass' is taken for 59 choices in 60 rows: most are numbers, as 'n/a' is no number" in first
    assert "column 'base.name' is taken for 59 choices in 60 rows: if they are names or remarks" in second
    opt.set_pool(bo.Pool.product(parts))
    bo.Optimizer.open(tmp_path / "log.db", pool=bo.Pool.product(parts))
    bo.Optimizer(bo.Pool.product({"acid": frame(pd.Categorical(numbers("n/a"))), "base": parts["base"][["name"]]}))
    assert len(noted()) == 2


def test_a_single_column_and_the_choices_of_an_earlier_pool_are_not_noted(noted: Callable[[], list[str]]) -> None:
    table = frame(numbers("n/a"))
    bo.Optimizer(bo.Pool(table[["mass"]]))
    EncodedPool(bo.Pool(table), kept=("mass",), **ENCODED)
    assert noted() == []
    first = EncodedPool(bo.Pool(table), **ENCODED)
    assert len(noted()) == 1
    EncodedPool(bo.Pool(table), like=first, **ENCODED)
    assert len(noted()) == 1
