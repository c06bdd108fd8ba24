"""Whatever holds the rows of a pool, it is the pool of these rows in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bkbopt.spaces.arms import Arms
from bkbopt.spaces.pool import EncodedPool, Pool
from bkbopt.spaces.rows import RowSource
from bkbopt.spaces.sources import SUFFIXES
from bkbopt.spaces.stored import StoredPool, encoded_pool
from tests.conformance.suites import check_complete, implementations
from tests.spaces.stored_sources import ARRAY_SOURCES, FRAME, ROWS, TABLE_SOURCES

SOURCES = {**ARRAY_SOURCES, **TABLE_SOURCES}


def in_memory(name: str) -> EncodedPool:
    pool = Pool(ROWS) if name in ARRAY_SOURCES else Pool(FRAME, id_column="name")
    return EncodedPool(pool, scale=True, has_kernel=False)


#: Sources of rows that are not those of a stored pool.
EXEMPT = {"ProductRows": "rows of a product are computed; tests/spaces/test_product_pool.py compares them with a list"}


def test_every_source_of_rows_is_a_subject_or_exempt(tmp_path: Path) -> None:
    made = encoded_pool(Pool(SOURCES["memmap"](tmp_path)), scale=True, has_kernel=False)
    check_complete(implementations(RowSource), {type(made.X).__name__}, EXEMPT)
    assert {suffix for suffix in SUFFIXES if suffix[1:] in SOURCES} == {*SUFFIXES}


@pytest.fixture(params=SOURCES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stored(name: str, tmp_path: Path) -> StoredPool:
    pool = Pool(SOURCES[name](tmp_path), id_column=None if name in ARRAY_SOURCES else "name", folder=tmp_path)
    out = encoded_pool(pool, scale=True, has_kernel=False)
    assert isinstance(out, StoredPool)
    return out


def test_rows_are_encoded_to_the_last_bit_as_in_memory(name: str, stored: StoredPool) -> None:
    pool = in_memory(name)
    assert (len(stored), stored.dim, stored.categorical) == (500, pool.dim, pool.categorical)
    assert torch.equal(stored.X[:], pool.X)
    assert torch.equal(torch.cat(list(stored.X.split(64))), pool.X)
    assert torch.equal(stored.X[90:471:3], pool.X[90:471:3])
    rows = torch.tensor([400, 3, 3, 61, 499, 0])
    assert torch.equal(stored.X[rows], pool.X[rows])
    assert torch.equal(stored.X[77], pool.X[77])
    assert stored.fingerprint == pool.fingerprint
    assert np.array_equal(stored.column(1), pool.column(1))


def test_columns_are_those_of_the_rows_in_memory(name: str, stored: StoredPool) -> None:
    own, other = stored.columns, in_memory(name).columns
    assert other is not None
    assert (own.names, own.kinds, own.choices) == (other.names, other.kinds, other.choices)
    assert torch.equal(own.low, other.low)
    assert torch.equal(own.width, other.width)


def test_points_and_parameters_are_those_of_the_rows_in_memory(name: str, stored: StoredPool) -> None:
    pool = in_memory(name)
    for row in (0, 9, 10, 301, 499):
        assert stored.point(row) == pool.point(row)
        assert stored.decode(row) == pool.decode(row)
        assert [type(v) for v in stored.decode(row).values()] == [type(v) for v in pool.decode(row).values()]
        assert stored.internal(stored.decode(row)) == stored.internal({"index": row}) == pool.point(row)
        assert (stored.label(row), stored.row_of(stored.label(row))) == (pool.label(row), row)
    assert stored.rows_named([stored.label(44), stored.label(0)]) == [44, 0]


def test_rows_of_points_are_those_in_memory(name: str, stored: StoredPool) -> None:
    pool = in_memory(name)
    asked = pool.X[torch.tensor([3, 7, 7, 420])]
    for X in (asked, torch.cat([asked, pool.X[:2], pool.X[:1] + 9.0]), pool.X[:0]):
        assert sorted(set(stored.rows_of(X).tolist())) == sorted(set(pool.rows_of(X).tolist()))
    assert stored.rows_at(pool.X[300]) == pool.rows_at(pool.X[300])
    assert stored.rows_at(pool.X[300] + 1.0) == []


def test_rows_that_match_are_those_in_memory(name: str, stored: StoredPool) -> None:
    pool = in_memory(name)
    point = pool.point(300)
    for held in ({}, dict([list(point.items())[-1]]), dict(list(point.items())[:2]), point):
        assert torch.equal(stored.matching(held), pool.matching(held))
    stored.matching(point)[:] = False  # what is remembered is not what was given out
    assert bool(stored.matching(point)[300])


@pytest.mark.parametrize("columns", [["dose"], ["solvent", "steps"]])
def test_chosen_columns_are_the_features_in_their_order(columns: list[str], tmp_path: Path) -> None:
    def pool(arms: Any) -> Arms:
        given = Pool(arms, columns=columns, id_column="name")
        return encoded_pool(given, scale=True, has_kernel=False)

    for source in TABLE_SOURCES.values():
        folder = tmp_path / source.__name__
        folder.mkdir()
        own, other = pool(source(folder)), pool(FRAME)
        assert own.names == tuple(columns)
        assert torch.equal(own.X[:], other.X[:])
        assert own.label(3) == other.label(3) == "m3"


def test_chosen_columns_of_an_array_keep_their_names(tmp_path: Path) -> None:
    for source in ARRAY_SOURCES.values():
        folder = tmp_path / source.__name__
        folder.mkdir()
        pool = encoded_pool(Pool(source(folder), columns=["x2", "x0"]), scale=True, has_kernel=False)
        assert pool.names == ("x2", "x0")
        assert torch.equal(pool.X[:], EncodedPool(Pool(ROWS[:, [2, 0]]), scale=True, has_kernel=False).X)


def test_nothing_is_left_in_the_folder_that_rows_are_unpacked_in(name: str, tmp_path: Path) -> None:
    files, scratch = tmp_path / "files", tmp_path / "scratch"
    files.mkdir()
    scratch.mkdir()
    id_column = None if name in ARRAY_SOURCES else "name"
    pool = encoded_pool(Pool(SOURCES[name](files), id_column=id_column, folder=scratch), scale=True, has_kernel=False)
    assert list(scratch.iterdir()) == []
    assert pool.decode(499) == in_memory(name).decode(499)
