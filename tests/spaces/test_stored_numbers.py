"""Numbers of tables that doubles represent, and those that they do not."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.pool import EncodedPool, Pool
from bkbopt.spaces.stored import encoded_pool
from tests.spaces.stored_sources import mapped, parquet, pool_of


@pytest.mark.parametrize("arms", [lambda f, _: f, lambda f, folder: parquet(folder / "rows.parquet", f)])
@pytest.mark.parametrize("values", [[0, 1, 2**53 + 1], [-(2**60) - 1, 0, 1], [2**60, 2**63 - 1, 2**62]])
def test_whole_numbers_beyond_doubles_in_a_column_are_refused(arms: Any, values: list[int], tmp_path: Path) -> None:
    rows = arms(pd.DataFrame({"dose": [1, 2, 2**53], "lot": values}), tmp_path)
    with pytest.raises(ArgumentError, match=r"whole numbers up to 2\^53 in column 'lot'"):
        encoded_pool(Pool(rows), scale=True, has_kernel=False)


@pytest.mark.parametrize("arms", [lambda a, _: a, lambda a, _: torch.tensor(a), lambda a, f: mapped(f / "rows", a)])
def test_whole_numbers_beyond_doubles_in_an_array_are_refused(arms: Any, tmp_path: Path) -> None:
    rows = arms(np.array([[1, 2**60], [2, 2**60 + 1]]), tmp_path)
    with pytest.raises(ArgumentError, match=r"whole numbers up to 2\^53 in column 'x1'"):
        encoded_pool(Pool(rows), scale=True, has_kernel=False)


@pytest.mark.parametrize("values", [[2**60, 2**60 + 256, 2**62], [-(2**63), 0, 2**53], [2**63, 2**64 - 2048, 0]])
@pytest.mark.parametrize("kind", ["frame", "file", "array", "memmap", "product"])
def test_larger_whole_numbers_that_doubles_represent_are_accepted(kind: str, values: list[int], tmp_path: Path) -> None:
    frame = pd.DataFrame({"dose": [1, 2, 3], "lot": values})
    rows = frame["lot"].to_numpy()[:, None]
    arms: Any = {
        "frame": lambda: frame,
        "file": lambda: parquet(tmp_path / "rows.parquet", frame),
        "array": lambda: rows,
        "memmap": lambda: mapped(tmp_path / "rows", rows),
        "product": lambda: Pool.product({"lot": values}).arms,
    }[kind]()
    pool = encoded_pool(Pool(arms), scale=True, has_kernel=False)
    name = pool.names[-1]
    assert [int(pool.point(row)[name]) for row in range(3)] == values
    assert [pool.decode(row)[name] for row in range(3)] == values


def test_python_has_larger_ones() -> None:
    pool = encoded_pool(Pool(pd.DataFrame({"lot": [2**70, 3 * 2**80, 5]})), scale=True, has_kernel=False)
    assert [pool.decode(row)["lot"] for row in range(3)] == [2**70, 3 * 2**80, 5]


def test_whole_numbers_beyond_doubles_in_a_product_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"whole numbers up to 2\^53 in column 'lot'"):
        Pool.product({"lot": [2**60, 2**60 + 1], "dose": [1, 2]})


@pytest.mark.parametrize(
    ("values", "kind"), [([0.5, 2.5, 1], "f"), ([3, 1, 2], "i"), ([True, False, True], "b"), (["u", "v", "u"], "O")]
)
def test_columns_of_python_objects_are_read_as_from_a_file(values: list[Any], kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"dose": [1.0, 2.0, 3.0], "z": pd.Series(values, dtype=object)})
    memory = EncodedPool(Pool(frame), scale=True, has_kernel=False)
    pool = pool_of(parquet(tmp_path / "rows.parquet", frame))
    assert memory.columns is not None
    assert memory.columns.kinds == pool.columns.kinds == ("f", kind)
    assert torch.equal(memory.X, pool.X[:])


DAY = pd.Timestamp("2026-01-01")


@pytest.mark.parametrize("arms", [lambda f, _: f, lambda f, folder: parquet(folder / "rows.parquet", f)])
@pytest.mark.parametrize("value", [DAY, DAY.date(), DAY - DAY, Decimal("0.5"), DAY.to_period("D")])
def test_dates_durations_and_decimal_numbers_are_refused(arms: Any, value: object, tmp_path: Path) -> None:
    rows = arms(pd.DataFrame({"dose": [1.0, 2.0], "when": [value, value]}), tmp_path)
    with pytest.raises(ArgumentTypeError, match=r"numbers or text in column 'when', got .*; convert it to numbers"):
        Pool(rows)
