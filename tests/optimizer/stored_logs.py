"""Optimizers with their log in a file, runs of them, and their log as others read it."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bkbopt as bo

BOX = {"x": (0.0, 1.0), "kind": ["a", None, True], "n": bo.Int(1, 9)}
POOL = np.random.default_rng(0).random((60, 2)) * [1.0, 50.0]


def optimizer(path: Path | None = None, space: Any = None, **options: Any) -> bo.Optimizer:
    return bo.Optimizer(BOX if space is None else space, storage=path, **{"n_startup_trials": 4, **options})


def value(params: Any) -> float:
    return float(sum(np.sin(3.0 * (v if isinstance(v, (int, float)) else len(str(v)))) for v in params.values()))


def advance(opt: bo.Optimizer, n: int) -> list[Any]:
    asked = []
    for _ in range(n):
        trial = opt.ask()
        asked.append((trial.id, trial.index, dict(trial.params)))
        if trial.id % 5 == 3:
            opt.fail(trial)
        else:
            opt.tell(trial, value(trial.params))
    return asked


def table(path: Path) -> pd.DataFrame:
    """The log as others read it."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return pd.read_sql("SELECT * FROM trials", db)
