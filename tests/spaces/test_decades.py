"""The warning about columns of a pool whose logarithms may be meant."""

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo

RNG = np.random.default_rng(0)
EVEN = np.linspace(0.0, 1.0, 401)


def warnings(caplog: pytest.LogCaptureFixture, **columns: object) -> list[str]:
    frame = pd.DataFrame({"x": EVEN, **columns})
    with caplog.at_level(logging.WARNING):
        bo.Optimizer(bo.Pool(frame), seed=0)
    return [record.getMessage() for record in caplog.records if record.name == "bkbopt.spaces.decades"]


def test_positive_numbers_over_decades_are_named(caplog: pytest.LogCaptureFixture) -> None:
    (text,) = warnings(caplog, dose=10.0 ** (5.0 * EVEN - 9.0))
    assert text.startswith("pool: half of column 'dose' is between 1.8e-08 and 5.6e-06, and it is searched on a linear")


@pytest.mark.parametrize(
    "column",
    [
        np.log10(10.0 ** (5.0 * EVEN - 9.0)),
        np.exp(RNG.standard_normal(401)),  # the sizes of things
        np.where(EVEN < 0.4, 0.0, 10.0 ** (5.0 * EVEN - 9.0)),  # no logarithm
        (10.0 ** (5.0 * EVEN - 9.0)).astype(str),  # choices
    ],
)
def test_other_columns_are_not(column: np.ndarray, caplog: pytest.LogCaptureFixture) -> None:
    assert not warnings(caplog, other=pd.Series(column).astype("category" if column.dtype.kind == "U" else float))


def test_a_pool_that_is_read_again_is_not_named_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    frame = pd.DataFrame({"x": EVEN, "dose": 10.0 ** (5.0 * EVEN - 9.0)})
    opt = bo.Optimizer(bo.Pool(frame), seed=0)
    opt.save(tmp_path / "run.db")
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        bo.Optimizer.open(tmp_path / "run.db", pool=frame)
    assert not caplog.records
