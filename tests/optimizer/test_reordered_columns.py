"""A later pool with the columns of the first one in another order is read by the names of the columns."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"dose": RNG.random(30), "heat": 40 * RNG.random(30), "solvent": ["oil", "water", "gas"] * 10})
TURNED = FRAME[["solvent", "heat", "dose"]]


def advanced(opt: bo.Optimizer, n: int) -> bo.Optimizer:
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, trial.params["dose"] + trial.params["heat"])
    return opt


def test_a_data_frame_is_read_by_name() -> None:
    opts = [advanced(bo.Optimizer(FRAME, seed=0, n_startup_trials=4), 6) for _ in range(2)]
    for opt, frame in zip(opts, (FRAME[10:], TURNED[10:]), strict=True):
        opt.set_pool(frame)
    assert opts[1].pool.names == ("dose", "heat", "solvent")
    assert opts[1].pool.decode(3) == TURNED.iloc[13].to_dict()
    np.testing.assert_array_equal(opts[0].pool.X, opts[1].pool.X)
    plain, turned = (advanced(opt, 3).trials for opt in opts)
    assert [trial.params for trial in plain] == [trial.params for trial in turned]


def test_a_data_frame_with_names_of_rows_is_read_by_name() -> None:
    named = FRAME.assign(well=[f"W{i}" for i in range(30)])
    opt = advanced(bo.Optimizer(bo.Pool(named, id_column="well"), seed=0), 2)
    opt.set_pool(named[["well", "solvent", "dose", "heat"]][5:])
    assert opt.pool.decode(0) == named.drop(columns="well").iloc[5].to_dict()
    assert opt.pool.label(0) == "W5"


def test_other_columns_are_refused_and_change_nothing() -> None:
    opt = advanced(bo.Optimizer(FRAME, seed=0), 2)
    message = r"expected the columns of the first pool, .'dose', 'heat', 'solvent .categorical.'"
    for other in (TURNED.drop(columns="heat"), TURNED.assign(more=1.0), TURNED.rename(columns={"heat": "cold"})):
        with pytest.raises(ArgumentError, match=message):
            opt.set_pool(other)
    assert len(opt.pool) == 30


def test_a_log_takes_its_rows_by_name(tmp_path: Path) -> None:
    opt = advanced(bo.Optimizer(FRAME, seed=0, storage=tmp_path / "runs.db"), 3)
    again = bo.Optimizer.load(tmp_path / "runs.db", pool=TURNED)
    assert again.trials == opt.trials
    assert again.ask().params == opt.ask().params


def test_parts_of_a_product_are_read_by_name() -> None:
    parts = {"acid": FRAME, "base": ["KOH", "NEt3"]}
    opt = bo.Optimizer(bo.Pool.product(parts), seed=0)
    trial = opt.ask()
    opt.tell(trial, 0.5)
    before = opt.pool
    opt.set_pool(bo.Pool.product({**parts, "acid": TURNED}))
    assert opt.pool.names == before.names
    assert [opt.pool.decode(row) for row in (0, 31)] == [before.decode(row) for row in (0, 31)]
    np.testing.assert_array_equal(opt.pool.X[np.arange(60)], before.X[np.arange(60)])


def test_files_are_read_by_name(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for name, frame in (("first", FRAME), ("turned", TURNED)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    opt = advanced(bo.Optimizer(bo.Pool(tmp_path / "first.parquet"), seed=0), 2)
    opt.set_pool(bo.Pool(tmp_path / "turned.parquet"))
    assert opt.pool.names == ("dose", "heat", "solvent")
    assert opt.pool.decode(7) == FRAME.iloc[7].to_dict()
    opt.set_pool([tmp_path / "turned.parquet", tmp_path / "first.parquet"])
    assert opt.pool.decode(30) == opt.pool.decode(0)
