"""Pools whose rows are not in memory: refusals, added and removed parts, and names of rows."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError, MissingPackageError
from bkbopt.spaces import stored, stored_rows
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.pool import EncodedPool, Pool
from bkbopt.spaces.sources import is_stored
from bkbopt.spaces.stored import encoded_pool
from tests.spaces.stored_sources import FRAME, ROWS, mapped, parquet, pool_of

# -- what stays where it is ----------------------------------------------------------------------------------------


def test_arrays_in_memory_frames_and_lists_are_read_into_memory(tmp_path: Path) -> None:
    for arms in (ROWS, FRAME, ROWS.tolist(), ["a.npy", "b.npy"], [], "nowhere", [ROWS]):
        assert not is_stored(arms)
    assert is_stored(mapped(tmp_path / "rows"))
    assert is_stored([mapped(tmp_path / "rows"), tmp_path])
    assert is_stored("no such file.parquet")  # which is said when it is read


def test_a_record_batch_is_the_pool_of_its_table() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"x": ROWS[:, 0], "kind": ["a", "b"] * (len(ROWS) // 2)})
    (batch,) = table.to_batches()
    whole, one = pool_of(table), pool_of(batch)
    assert one.names == whole.names == ("x", "kind")
    assert torch.equal(one.X[:], whole.X[:])


def test_arrow_columns_of_one_name_are_refused_as_those_of_a_frame() -> None:
    pa = pytest.importorskip("pyarrow")
    twice = pa.Table.from_arrays([pa.array(ROWS[:, 0])] * 2, names=["x", "x"])
    with pytest.raises(ArgumentError, match=r"^pool: expected columns with distinct names, got \('x', 'x'\)"):
        pool_of(twice)


def test_no_row_of_a_mapped_file_is_copied(tmp_path: Path) -> None:
    rows = mapped(tmp_path / "rows")
    pool = pool_of(rows)
    assert np.shares_memory(pool.rows.parts[0].array, rows)


def test_unpacked_rows_have_the_precision_that_they_need(tmp_path: Path) -> None:
    narrow = pd.DataFrame({"a": ROWS[:, 0], "b": np.arange(500, dtype=np.int16), "c": ["x", "y"] * 250})
    wide = narrow.assign(b=np.arange(500) + 2**40)
    assert pool_of(parquet(tmp_path / "narrow.parquet", narrow)).rows.parts[0].array.dtype == np.float32
    pool = pool_of(parquet(tmp_path / "wide.parquet", wide))
    assert pool.rows.parts[0].array.dtype == np.float64
    assert pool.decode(3)["b"] == 2**40 + 3


def test_declared_categories_are_numbered_as_they_appear(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "kind": pd.Categorical(["z", "y", "x"], categories=["x", "y", "z"])})
    pool = pool_of(parquet(tmp_path / "rows.parquet", frame))
    assert pool.columns.choices == {1: ("z", "y", "x")}
    assert torch.equal(pool.X[:], EncodedPool(Pool(frame), scale=True, has_kernel=False).X)


# -- refusals ------------------------------------------------------------------------------------------------------


def with_nan(row: int) -> np.ndarray:
    rows = ROWS.copy()
    rows[row, 1] = np.nan
    return rows


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (with_nan(123), ArgumentError, r"expected finite values, got nan in column .*, row 123"),
        (np.where(ROWS[5] == ROWS, -np.inf, ROWS), ArgumentError, "row 5;"),
        (ROWS[:, 0], ArgumentError, r"expected shape \(n, d\), got \(500,\)"),
        (ROWS[None], ArgumentError, r"expected shape \(n, d\)"),
        (ROWS.astype(complex), ArgumentTypeError, "expected real numbers"),
        (np.array([[1e308], [-1e308]]), ArgumentError, "range overflows"),
    ],
)
def test_bad_arrays_are_refused(rows: np.ndarray, error: type[BkbError], message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        pool_of(mapped(tmp_path / "rows", rows))


def missing(frame: pd.DataFrame, column: str, row: int) -> pd.DataFrame:
    return frame.assign(**{column: frame[column].astype(object).where(np.arange(len(frame)) != row, None)})


@pytest.mark.parametrize(
    ("frame", "options", "error", "message"),
    [
        (missing(FRAME, "solvent", 77), {}, ArgumentError, "no missing values, got one in column 'solvent', row 77"),
        (missing(FRAME, "steps", 9), {}, ArgumentError, "no missing values, got one in column 'steps', row 9"),
        (missing(FRAME, "name", 12), {"id_column": "name"}, ArgumentError, "a name for each row, got none in row 12"),
        (FRAME, {}, ArgumentError, "those of 'name' are all different"),
        (FRAME, {"id_column": "names"}, ArgumentError, "id_column: expected one of the columns"),
        (FRAME, {"columns": ["dose", "doses"]}, ArgumentError, "columns: expected one of the columns"),
        (FRAME, {"columns": ["dose", "dose"]}, ArgumentError, "distinct names"),
        (FRAME.assign(name=[[1, 2]] * 500), {}, ArgumentTypeError, "numbers or text in column 'name', got list"),
        (FRAME.assign(name=pd.Timestamp(0)), {}, ArgumentTypeError, "numbers or text in column 'name', got timestamp"),
        (FRAME[:0], {"columns": ["dose"]}, ArgumentError, "at least one arm, got an empty pool"),
    ],
)
def test_bad_tables_are_refused(
    frame: pd.DataFrame, options: dict[str, Any], error: type[BkbError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        pool_of(parquet(tmp_path / "rows.parquet", frame), **options)


@pytest.mark.parametrize(
    ("arms", "options", "error", "message"),
    [
        ("nowhere.npy", {}, FileNotFoundError, "nowhere.npy"),
        ("nowhere", {}, FileNotFoundError, "nowhere"),
        ([Path("rows.npy"), Path("nowhere.npy")], {}, FileNotFoundError, "nowhere.npy"),
        ("empty", {}, ArgumentError, "found none"),
        ("rows.npy", {"columns": ["x7"]}, ArgumentError, "columns: expected one of the columns"),
        ("rows.npy", {"id_column": "x0"}, ArgumentError, "id_column: expected a table"),
        ("flat.npy", {}, ArgumentError, "expected shape"),
        ("text.npy", {}, ArgumentError, r"expected a \.npy file"),
        ("table.parquet", {"id_column": "names"}, ArgumentError, "id_column: expected one of the columns"),
        ("table.parquet", {"columns": ["when"]}, ArgumentTypeError, "numbers or text in column 'when', got timestamp"),
        ("text.parquet", {}, ArgumentError, r"expected a Parquet or \.npy file, .* a log by Optimizer\.open"),
    ],
)
def test_files_are_refused_when_the_pool_is_made_by_what_their_headers_say(
    arms: Any, options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", ROWS)
    np.save("flat.npy", ROWS[:, 0])
    Path("empty").mkdir()
    for name in ("text.npy", "text.parquet"):
        Path(name).write_text("no rows")
    if str(arms).endswith("parquet"):
        parquet(tmp_path / "table.parquet", FRAME.assign(when=pd.Timestamp(0)))
    with pytest.raises(error, match=message):
        Pool(arms, **options)


def test_no_row_of_a_file_is_read_when_the_pool_is_made(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", with_nan(123))
    Pool(tmp_path / "rows.npy")


def test_columns_are_a_list_of_names() -> None:
    for columns in ("dose", [0], 3):
        with pytest.raises(ArgumentTypeError, match="columns: expected a list of names"):
            Pool(FRAME, columns=columns)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="columns: expected a table whose columns have names, got ndarray"):
        encoded_pool(Pool(ROWS, columns=["x0"]), scale=True, has_kernel=False)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(FileNotFoundError):
        pool_of("nowhere.parquet")
    with pytest.raises(ArgumentError, match=r"expected Parquet or \.npy files in .*, found none"):
        pool_of(tmp_path)
    (tmp_path / "text.parquet").write_text("no Parquet")
    with pytest.raises(
        ArgumentError, match=r"expected a Parquet or \.npy file, got .*text\.parquet, .*pandas\.read_csv"
    ):
        pool_of(tmp_path)
    with pytest.raises(ArgumentError, match="id_column: expected a table"):
        pool_of(mapped(tmp_path / "rows"), id_column="x0")


@pytest.mark.parametrize("name", ["rows.npy", "rows.parquet"])
def test_a_file_without_wanted_columns_is_refused(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    parquet(tmp_path / "rows.parquet")
    with pytest.raises(ArgumentError, match="pool: expected at least one column, got none"):
        pool_of(tmp_path / name, columns=[])


def test_an_array_of_objects_in_a_file_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.array([["a", 1.0]], dtype=object))
    with pytest.raises(ArgumentTypeError, match=r"expected real numbers, got an array of objects in .*rows\.npy"):
        pool_of(tmp_path / "rows.npy")


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_a_broken_array_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "rows.npy").write_bytes(content)
    with pytest.raises(ArgumentError, match=r"expected a \.npy file, got .*rows\.npy"):
        pool_of(tmp_path / "rows.npy")


def test_without_pyarrow_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingPackageError, match=r'pyarrow: .*pip install "bkbopt\[parquet\]"'):
        pool_of(tmp_path / "rows.parquet")


def test_parts_have_the_same_columns(tmp_path: Path) -> None:
    parts = [mapped(tmp_path / "a", ROWS), mapped(tmp_path / "b", ROWS[:, :2])]
    with pytest.raises(ArgumentError, match=r"parts with the columns \('x0', 'x1', 'x2'\), all alike, got"):
        pool_of(parts)


# -- parts that come and go ----------------------------------------------------------------------------------------


def test_a_later_pool_keeps_the_encoding_and_puts_new_choices_behind_the_old(tmp_path: Path) -> None:
    first = pool_of(parquet(tmp_path / "a.parquet", FRAME[:200]), id_column="name")
    later = FRAME[150:].assign(dose=FRAME["dose"][150:] + 3.0)
    second = pool_of(parquet(tmp_path / "b.parquet", later), like=first)
    memory = EncodedPool(Pool(FRAME[:200], id_column="name"), scale=True, has_kernel=False)
    other = memory.replaced(Pool(later))
    assert second.columns.choices == {2: ("water", "oil", "acid", "brine")}
    assert torch.equal(second.X[:], other.X)
    assert second.label(0) == other.label(0) == "m150"
    for mixed in (pool_of(tmp_path / "b.parquet", like=memory), encoded_pool_in_memory(later, first)):
        assert torch.equal(mixed.X[:], other.X)


def encoded_pool_in_memory(frame: pd.DataFrame, like: Arms) -> Arms:
    return encoded_pool(Pool(frame), scale=True, has_kernel=False, like=like)


def test_files_that_stay_are_not_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    folder.mkdir()
    for i, piece in enumerate((FRAME[:100], FRAME[100:300])):
        parquet(folder / f"{i}.parquet", piece)
    first = pool_of(folder, id_column="name")
    parquet(folder / "2.parquet", FRAME[300:])
    second = pool_of(folder, like=first)
    assert [len(part) for part in second.rows.parts] == [100, 200, 200]
    assert second.rows.parts[:2] == first.rows.parts
    os.remove(folder / "0.parquet")
    parquet(folder / "1.parquet", FRAME[100:250])  # another file of that name
    third = pool_of(folder, like=second)
    assert [len(part) for part in third.rows.parts] == [150, 200]
    assert third.rows.parts[1] is second.rows.parts[2]
    assert third.rows.parts[0] is not second.rows.parts[1]
    assert third.decode(149) == first.decode(249)


def test_other_columns_than_before_are_refused(tmp_path: Path) -> None:
    first = pool_of(mapped(tmp_path / "a"))
    with pytest.raises(ArgumentError, match="columns of the first pool"):
        pool_of(mapped(tmp_path / "b", ROWS[:, :2]), like=first)
    with pytest.raises(ArgumentError, match="ranges of the first pool"):
        pool_of(mapped(tmp_path / "c", ROWS.astype(np.float64) * 1e200), like=first)


# -- names and values of rows --------------------------------------------------------------------------------------


def test_labels_name_one_row_or_are_refused(tmp_path: Path) -> None:
    frame = FRAME.assign(name=["a", "a", *FRAME["name"][2:]])
    pool = pool_of(parquet(tmp_path / "text.parquet", frame), id_column="name")
    assert (pool.row_of("m5"), pool.row_of(5), pool.row_of(np.int64(7))) == (5, 5, 7)
    with pytest.raises(ArgumentError, match=r"'a', which names the rows \[0, 1\]"):
        pool.row_of("a")
    for label in ("m1000", 2.5, True, None, [1]):
        with pytest.raises(ArgumentError, match=r"expected labels of the pool's rows|expected a row number"):
            pool.row_of(label)
    numbers = pool_of(parquet(tmp_path / "n.parquet", FRAME.assign(name=np.arange(500)[::-1])), id_column="name")
    assert (numbers.label(0), numbers.row_of(499)) == (499, 0)
    with pytest.raises(ArgumentError, match="expected labels of the pool's rows"):
        numbers.row_of(500)


def test_rows_are_found_whatever_their_hashes_have_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def two_bits(X: torch.Tensor) -> np.ndarray:
        return (stored_rows.hashes_of(X) >> np.uint64(62)).astype(np.uint32)

    for module in (stored_rows, stored):
        monkeypatch.setattr(module, "short_hashes_of", two_bits)
    rows = np.concatenate([ROWS, ROWS[:3], [[-0.0, 1.0, 1.0]], [[0.0, 1.0, 1.0]]]).astype(np.float32)
    pool = encoded_pool(Pool(mapped(tmp_path / "rows", rows)), scale=False, has_kernel=False)
    whole = EncodedPool(Pool(rows), scale=False, has_kernel=False)
    for row in (0, 2, 7, 300, 503, 504):
        assert pool.rows_at(pool.X[row]) == whole.rows_at(whole.X[row])
    assert pool.rows_at(pool.X[503]) == [503, 504]


def test_rows_with_given_values_are_the_first_two_that_a_pass_finds(tmp_path: Path) -> None:
    rows = np.concatenate([ROWS[:20], ROWS[:20]])
    for pool in (pool_of(mapped(tmp_path / "rows", rows)), EncodedPool(Pool(rows), scale=True, has_kernel=False)):
        whole = pool.point(3)
        for point in ({}, whole, {**whole, "x0": 9.0}, {"x1": whole["x1"]}):
            assert pool.rows_like(point) == torch.nonzero(pool.matching(point))[:2, 0].tolist()
    assert pool.rows_like(whole) == [3, 23]


# -- the index of a data frame -------------------------------------------------------------------------------------


@pytest.fixture
def filtered(tmp_path: Path) -> pd.DataFrame:
    """A data frame whose index pandas stores as a column, also in `filtered.parquet`."""
    pytest.importorskip("pyarrow")
    frame = FRAME[["dose", "dry"]][FRAME["steps"] > 2]
    (tmp_path / "library").mkdir()
    frame.to_parquet(tmp_path / "filtered.parquet")
    frame[:100].to_parquet(tmp_path / "library" / "0.parquet")
    frame[100:].to_parquet(tmp_path / "library" / "1.parquet")
    return frame


def _arrow(frame: pd.DataFrame, folder: Path) -> Any:
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


def _dask(frame: pd.DataFrame, folder: Path) -> Any:
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)


@pytest.mark.parametrize(
    "source",
    [lambda _, folder: folder / "filtered.parquet", lambda _, folder: folder / "library", _arrow, _dask],
    ids=["parquet", "parquet files", "arrow", "dask frame"],
)
def test_the_index_that_pandas_stores_is_no_feature(
    source: Callable[[pd.DataFrame, Path], Any], filtered: pd.DataFrame, tmp_path: Path
) -> None:
    pool = pool_of(source(filtered, tmp_path))
    memory = EncodedPool(Pool(filtered), scale=True, has_kernel=False)
    assert pool.names == memory.names == ("dose", "dry")
    assert torch.equal(pool.X[:], memory.X)
    assert pool.label(7) == 7


def test_a_named_index_is_left_out_too_but_can_name_the_rows(filtered: pd.DataFrame, tmp_path: Path) -> None:
    named = filtered.set_index(pd.Index([f"m{i}" for i in filtered.index], name="name"))
    named.to_parquet(tmp_path / "named.parquet")
    assert pool_of(tmp_path / "named.parquet").names == ("dose", "dry")
    pool = pool_of(tmp_path / "named.parquet", id_column="name")
    assert (pool.names, pool.label(0)) == (("dose", "dry"), named.index[0])


def test_metadata_that_are_not_those_of_pandas_are_ignored(filtered: pd.DataFrame, tmp_path: Path) -> None:
    table = _arrow(filtered, tmp_path)
    every = ("dose", "dry", "__index_level_0__")
    for text in (b"{", b"\xff", b"[]", b"3", b"null", b"{}", b'{"index_columns": 3}', b'{"index_columns": [3, {}]}'):
        assert pool_of(table.replace_schema_metadata({b"pandas": text})).names == every
