"""Numeric columns as encoded numbers: their range is [0, 1], and a few far values leave room for the others."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt.optimizer.log import log_schema
from bkbopt.spaces.columns import SAMPLE, Tails, sampled_rows
from bkbopt.spaces.pool import Pool
from bkbopt.spaces.stored import encoded_pool
from tests.sweeps import slow_but

TAILS = Tails(middle=3.0, half=2.0)
#: A column with long tails, one with a missing value coded as -9999, and two without tails.
TABLE = np.random.default_rng(0).standard_normal((20_000, 4))
TABLE[:, 0] = np.exp(2.0 * TABLE[:, 0])
TABLE[77, 1] = -9999.0
TABLE[:, 3] = np.random.default_rng(1).integers(0, 2, 20_000)


def encoded(table: np.ndarray, scale: bool = True) -> np.ndarray:
    return encoded_pool(Pool(table), scale=scale, has_kernel=False).X[:].numpy()


# -- the compression ---------------------------------------------------------------------------------------------------


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_the_compression_keeps_the_order(a: float, b: float) -> None:
    low, high = TAILS.compressed(np.array([min(a, b), max(a, b)]))
    assert low <= high


@given(st.floats(-1e12, 1e12))
def test_compressed_numbers_are_found_back(x: float) -> None:
    # Sixteen factors of the power have a rounding error each, and a difference from the middle is rounded too.
    assert TAILS.spread(TAILS.compressed(np.array(x))) == pytest.approx(x, rel=1e-13, abs=1e-14)


def test_the_bulk_is_linear_and_continued_with_its_slope() -> None:
    inside = np.array([1.0, 2.0, 3.0, 4.5, 5.0])
    assert TAILS.compressed(inside).tolist() == ((inside - 3.0) / 2.0).tolist()
    step = 1e-6
    before, at, after = TAILS.compressed(np.array([5.0 - step, 5.0, 5.0 + step]))
    # The second derivative at the edge of the bulk is p - 1 in units of the bulk, which makes 0.25 step in slopes.
    assert (after - at) / step == pytest.approx((at - before) / step, abs=0.3 * step + 1e-9)


def test_tails_are_compressed_nearly_as_by_the_logarithm() -> None:
    far = np.array([1e1, 1e2, 1e3, 1e4])
    expected = 1.0 + (far**0.0625 - 1.0) / 0.0625  # Box and Cox (1964) with the power 1/16
    np.testing.assert_allclose(TAILS.compressed(3.0 + 2.0 * far), expected, rtol=1e-12)
    np.testing.assert_allclose(TAILS.compressed(3.0 - 2.0 * far), -expected, rtol=1e-12)
    np.testing.assert_allclose(expected, 1.0 + np.log(far), rtol=0.35)


# -- which columns are compressed --------------------------------------------------------------------------------------


def test_columns_without_long_tails_are_scaled_by_their_range() -> None:
    X, few = encoded(TABLE), TABLE[:, 2:]
    assert X[:, 2:].tolist() == ((few - few.min(0)) / (few.max(0) - few.min(0))).tolist()


def test_far_values_leave_room_for_the_others() -> None:
    X = encoded(TABLE)
    assert X.min(0).tolist() == [0.0] * 4
    assert X.max(0).tolist() == [1.0] * 4
    bulk = np.subtract(*np.quantile(X[:, :2], [0.95, 0.05], axis=0))
    by_range = np.subtract(*np.quantile(TABLE[:, :2], [0.95, 0.05], axis=0)) / np.ptp(TABLE[:, :2], axis=0)
    assert (bulk > 0.1).all()
    assert (by_range < 0.02).all()


def test_the_bulk_of_mostly_equal_values_is_that_of_the_others() -> None:
    counts = np.zeros((1000, 1))
    counts[:50, 0] = np.arange(1, 51)
    assert encoded(counts)[:, 0].tolist() == (counts[:, 0] / 50.0).tolist()
    counts[0] = 1e6
    assert encoded(counts)[49, 0] > 0.05


def test_few_rows_have_no_tails() -> None:
    doses = 10.0 ** np.arange(19.0)[:, None]
    assert encoded(doses)[:, 0].tolist() == ((doses[:, 0] - 1.0) / (1e18 - 1.0)).tolist()


def test_columns_are_left_as_they_are_where_nothing_is_fitted() -> None:
    assert encoded(TABLE, scale=False).tolist() == TABLE.tolist()


def test_constant_columns_and_choices_have_no_tails() -> None:
    import pandas as pd

    frame = pd.DataFrame({"same": 3.0, "kind": ["a"] * 90 + list("bcdefghijk"), "x": TABLE[:100, 0]})
    columns = encoded_pool(Pool(frame), scale=True, has_kernel=False).columns
    assert columns is not None
    assert 0 not in columns.tails
    assert 1 not in columns.tails


# -- the same everywhere -----------------------------------------------------------------------------------------------


def test_the_sample_of_a_long_table_is_sorted_and_without_repeats() -> None:
    rows = sampled_rows(10**9)
    assert len(rows) == SAMPLE
    assert (np.diff(rows) > 0).all()
    assert rows[-1] < 10**9
    assert sampled_rows(5).tolist() == [0, 1, 2, 3, 4]


def test_rows_in_files_have_the_same_bits(tmp_path: Path) -> None:
    for number, rows in enumerate(np.split(TABLE, [1, 7_000])):
        np.save(tmp_path / f"{number}.npy", rows)
    stored = encoded_pool(Pool(str(tmp_path)), scale=True, has_kernel=False)
    assert np.array_equal(stored.X[:].numpy(), encoded(TABLE))
    assert np.array_equal(stored.X[np.array([5, 19_999])].numpy(), encoded(TABLE)[[5, 19_999]])


def test_a_product_has_the_encoding_of_the_list_of_its_rows() -> None:
    doses, x = TABLE[:100, 1], np.linspace(0.0, 1.0, 30)
    listed = np.stack([np.repeat(x, 100), np.tile(doses, 30)], axis=1)
    product = encoded_pool(Pool.product({"x": x, "dose": doses}), scale=True, has_kernel=False)
    assert product.columns is not None
    assert list(product.columns.tails) == [1]
    assert np.array_equal(product.X[torch.arange(3000)].numpy(), encoded(listed))


@pytest.mark.parametrize("row", [0, 77, 19_999])
def test_points_are_found_again(row: int) -> None:
    pool = encoded_pool(Pool(TABLE), scale=True, has_kernel=False)
    assert pool.rows_of(pool.encode([pool.internal(pool.decode(row))])).tolist() == [row]


def test_later_pools_keep_the_encoding() -> None:
    first = encoded_pool(Pool(TABLE), scale=True, has_kernel=False)
    second = encoded_pool(Pool(TABLE[:40] * 3.0), scale=True, has_kernel=False, like=first)
    assert first.columns is not None
    assert second.columns is not None
    assert second.columns.tails == first.columns.tails
    assert np.array_equal(second.X[:].numpy(), first.columns.scaled(torch.from_numpy(TABLE[:40] * 3.0)).numpy())


def test_a_log_keeps_the_encoding(tmp_path: Path) -> None:
    rows = TABLE[:500]
    opt = bo.Optimizer(Pool(rows), storage=tmp_path / "log.db", seed=0, n_startup_trials=4)
    opt.tell(opt.ask(6), [0.0, 1.0, 2.0, 1.5, 0.5, 0.3])
    again = bo.Optimizer.open(tmp_path / "log.db")
    assert again.pool is not None
    assert opt.pool is not None
    assert again.pool.columns is not None
    assert again.pool.columns.tails
    assert np.array_equal(again.pool.X[:].numpy(), opt.pool.X[:].numpy())


def test_logs_without_tails_are_read_as_they_were_made(tmp_path: Path) -> None:
    from bkbopt.optimizer.translation.description import describe, read_candidates

    described = describe(encoded_pool(Pool(TABLE[:500]), scale=True, has_kernel=False))
    text = {key: value for key, value in described.text.items() if key != "tails"}
    text["low"], text["width"] = TABLE[:500].min(0).tolist(), np.ptp(TABLE[:500], axis=0).tolist()
    old = read_candidates(type(described)(log_schema.from_json(log_schema.to_json(text)), described.rows), None, True)
    expected = (TABLE[:500] - TABLE[:500].min(0)) / np.ptp(TABLE[:500], axis=0)
    assert old.X[:].numpy().tolist() == expected.tolist()  # type: ignore[union-attr]


# -- and in a search ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", slow_but({0}, range(3)))
def test_a_search_is_not_misled_by_codes_of_missing_values(seed: int) -> None:
    X = np.random.default_rng(seed).random((1000, 3))
    f = -((X - 0.6) ** 2).sum(1)
    coded = X.copy()
    coded[0, 0] = coded[1, 1] = coded[2, 2] = -9999.0
    opt = bo.Optimizer(Pool(coded), direction="maximize", seed=seed)
    for _ in range(40):
        trial = opt.ask()
        opt.tell(trial, float(f[trial.index]))
    rank = int((f > f[opt.recommend().index]).sum())
    assert rank <= 1  # of 1000
