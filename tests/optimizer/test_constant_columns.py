"""A column of a pool that has one value changes nothing, until a trial or another pool has another value in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.surrogates.structure import FEWEST

RNG = np.random.default_rng(3)
X = RNG.random((150, 5))
#: Trials of a search by kernels: a structure is fitted after 21 of them and after 25.
LONG = 28
Y = -((X[:, :3] - 0.6) ** 2).sum(1) + 0.1 * np.sin(20.0 * X[:, 0]) + 0.05 * RNG.standard_normal(150)


def search(pool: object, n: int, **options: Any) -> list[int]:
    """The rows of the first suggestions."""
    opt = bo.Optimizer(pool, direction="maximize", seed=1, n_startup_trials=6, **options)
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, float(Y[trial.index]))
    return [trial.index for trial in opt.trials]


def with_column(table: np.ndarray, j: int, value: float) -> np.ndarray:
    return np.insert(table, j, value, axis=1)


@pytest.mark.parametrize("surrogate", ["bkb", "exact", "fourier"])
def test_constant_columns_change_no_suggestion(surrogate: str) -> None:
    few = X[:, :3]
    plain = search(few, LONG, surrogate=surrogate)
    assert len(set(plain[:21])) >= FEWEST
    assert search(with_column(few, 0, 7.3), LONG, surrogate=surrogate) == plain
    assert search(with_column(with_column(few, 3, 0.0), 1, -1e9), LONG, surrogate=surrogate) == plain


@pytest.mark.parametrize("surrogate", ["krr", "prosnkons", "forks", "nogd"])
def test_constant_columns_change_no_suggestion_of_a_learner(surrogate: str) -> None:
    assert search(with_column(X[:, :2], 1, 7.3), 12, surrogate=surrogate) == search(X[:, :2], 12, surrogate=surrogate)


def test_a_constant_choice_changes_no_suggestion() -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["solvent"] = np.where(X[:, 4] > 0.5, "water", "oil")
    plain = search(frame, LONG)
    assert len(set(plain[:21])) >= FEWEST
    assert search(frame.assign(salt="NaCl", batch=7), LONG) == plain


def test_constant_columns_of_files_and_of_products_change_no_suggestion(tmp_path: Path) -> None:
    for number, rows in enumerate(np.split(with_column(X, 2, 4.0), 3)):
        np.save(tmp_path / f"{number}.npy", rows)
    assert search(bo.Pool(str(tmp_path)), 15) == search(X, 15)
    parts = {"a": X[:15, :2], "b": list(range(10))}
    longer = {"a": with_column(X[:15, :2], 1, 3.0), "salt": ["NaCl"], "b": list(range(10))}
    assert search(bo.Pool.product(longer), 15) == search(bo.Pool.product(parts), 15)


def _tell(opt: bo.Optimizer) -> None:
    opt.tell([{"x0": float(x), "x1": 21.0} for x in X[:4, 1]], [5.0, 6.0, 5.5, 6.5])


def _set_pool(opt: bo.Optimizer) -> None:
    opt.set_pool(np.stack([X[:, 0], np.where(X[:, 1] > 0.5, 20.0, 21.0)], 1))


@pytest.mark.parametrize("change", [_tell, _set_pool])
def test_a_column_counts_from_its_second_value_on(change: Callable[[bo.Optimizer], None]) -> None:
    opt = bo.Optimizer(np.stack([X[:, 0], np.full(150, 20.0)], 1), seed=0, n_startup_trials=4)
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, float(X[trial.index, 0]))
    at = [{"x0": 0.5, "x1": 20.0}, {"x0": 0.5, "x1": 21.0}]
    mean, _ = opt.predict(at)
    assert mean[0] == mean[1]
    change(opt)
    mean, std = opt.predict(at)
    assert mean[0] != mean[1]
    assert std[0] != std[1]
    assert 0.0 < opt.ask().params["x0"] < 1.0


def test_the_value_of_each_constant_column_is_known_without_trials() -> None:
    frame = pd.DataFrame({"a": [1, 1, 1], "b": [0.5, 0.6, 0.7], "c": ["x", "x", "x"], "d": ["x", "y", "x"]})
    assert bo.Optimizer(frame).pool.constant == {"a": 1.0, "c": 0.0}
    opt = bo.Optimizer(frame)
    opt.set_pool(frame.iloc[[0, 2]])
    assert opt.pool.constant == {"a": 1.0, "c": 0.0, "d": 0.0}


def test_parts_of_a_folder_have_a_constant_choice_only_together(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for number, solvent in enumerate(["oil", "water"]):
        frame = pd.DataFrame({"dose": X[:20, 0], "solvent": solvent, "salt": "NaCl"})
        frame.to_parquet(tmp_path / f"{number}.parquet")
    assert bo.Optimizer(bo.Pool(str(tmp_path))).pool.constant == {"salt": 0.0}
