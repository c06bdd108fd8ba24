"""The rows of a pool that rounded numbers are those of."""

from collections.abc import Iterator

import numpy as np
import pytest

from bkbopt.spaces import arms
from bkbopt.spaces.pool import EncodedPool, Pool
from bkbopt.spaces.rounding import RowIndex, only_row_like, spans_of

ROWS = np.random.default_rng(0).random((500, 3)) * [1.0, 1e6, 1e-4]


def test_the_index_finds_the_rows_that_a_look_at_all_of_them_finds() -> None:
    index = RowIndex(iter(np.split(ROWS, [100, 350])), "fff")
    assert np.array_equal(index.spans, spans_of(ROWS.min(0), ROWS.max(0), "fff"))
    for values in np.char.mod("%.6g", ROWS[:100]).astype(float):
        found = only_row_like(ROWS[index.near(values)], values, index.spans)
        assert np.array_equal(found, only_row_like(ROWS, values, index.spans))


def test_a_pool_is_read_once_for_all_rounded_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, passes = EncodedPool(Pool(ROWS), scale=True, has_kernel=False), []

    def counted() -> Iterator[np.ndarray]:
        passes.append(1)
        yield ROWS

    monkeypatch.setitem(pool.__dict__, "raw_blocks", counted)
    for row in ROWS[:5].astype(np.float32).astype(float).tolist():
        assert pool.rounded_from(dict(zip(pool.names, row, strict=True))) is not None
    assert len(passes) == 1


def test_a_pool_of_very_many_rows_has_no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms, "MOST_ROWS", 499)
    pool = EncodedPool(Pool(ROWS), scale=True, has_kernel=False)
    assert pool.rounded_from(dict(zip(pool.names, np.float32(ROWS[3]).tolist(), strict=True))) is None


@pytest.mark.parametrize("kind", ["i", "u", "b", "O"])
def test_whole_numbers_flags_and_choices_agree_only_where_they_are_equal(kind: str) -> None:
    rows = np.array([[1e7, 0.5], [2e7, 0.25]])
    spans = spans_of(rows.min(0), rows.max(0), [kind, "f"])
    assert only_row_like(rows, np.array([1e7 + 1.0, 0.5]), spans) is None
    assert np.array_equal(only_row_like(rows, np.array([1e7, 0.5000001]), spans), rows[0])


def test_a_column_of_one_number_agrees_by_its_digits() -> None:
    rows = np.array([[1 / 3, 0.5], [1 / 3, 0.25]])
    spans = spans_of(rows.min(0), rows.max(0), "ff")
    assert np.array_equal(only_row_like(rows, np.array([0.333333, 0.25]), spans), rows[1])
    assert only_row_like(rows, np.array([0.3334, 0.25]), spans) is None


@pytest.mark.parametrize("largest", [1e304, 1.7e308])
def test_rows_near_the_largest_double_are_found_by_their_digits(largest: float) -> None:
    rows = np.array([[1 / 3, -1.0], [-1.0, 1.0]]) * largest
    spans = spans_of(rows.min(0), rows.max(0), "ff")
    values = np.char.mod("%.6g", rows[0]).astype(float)
    assert np.array_equal(only_row_like(rows, values, spans), rows[0])
