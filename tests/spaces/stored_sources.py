"""The same rows in every form that a pool may have without being read into memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bkbopt.spaces.arms import Arms
from bkbopt.spaces.pool import Pool
from bkbopt.spaces.stored import StoredPool, encoded_pool

__all__ = ["ARRAY_SOURCES", "FRAME", "ROWS", "TABLE_SOURCES", "mapped", "parquet", "pool_of"]

ROWS = (np.random.default_rng(0).random((500, 3)) * [1.0, 100.0, 1e-3]).astype(np.float32)
ROWS[7] = ROWS[300]
FRAME = pd.DataFrame(
    {
        "name": [f"m{i}" for i in range(500)],
        "dose": ROWS[:, 0],
        "steps": np.arange(500) % 7,
        # The first part has them in another order than the last.
        "solvent": ["water", "oil"] * 100 + ["acid"] * 100 + ["oil", "brine"] * 100,
        "dry": np.arange(500) % 2 == 0,
    }
)


def mapped(path: Path, rows: Any = ROWS) -> Any:
    """Rows in a file, as a memmap."""
    rows = np.asarray(rows)
    rows.tofile(path)
    return np.memmap(path, rows.dtype, "r", shape=rows.shape)


def _mapped(folder: Path) -> Any:
    return mapped(folder / "rows.f4")


def _mapped_parts(folder: Path) -> Any:
    pieces = np.split(ROWS, [1, 60, 401])
    return [mapped(folder / f"{i}.f4", piece) for i, piece in enumerate(pieces)]


def _npy(folder: Path) -> Any:
    np.save(folder / "rows.npy", ROWS)
    return str(folder / "rows.npy")


def _npy_folder(folder: Path) -> Any:
    (folder / "library").mkdir()
    for i, piece in enumerate(np.split(ROWS, [0, 33, 450])):
        np.save(folder / "library" / f"{i}.npy", piece)
    return folder / "library"


def _dask_array(folder: Path) -> Any:
    return pytest.importorskip("dask.array").from_array(ROWS, chunks=(120, 2))


#: By their names: a folder for files to the rows of `ROWS`.
ARRAY_SOURCES: dict[str, Callable[[Path], Any]] = {
    "memmap": _mapped,
    "memmaps": _mapped_parts,
    "npy": _npy,
    "npy files": _npy_folder,
    "dask array": _dask_array,
}


def parquet(path: Path, frame: Any = FRAME, **options: Any) -> Path:
    """A data frame in a Parquet file."""
    pytest.importorskip("pyarrow")
    frame.to_parquet(path, index=False, **options)
    return path


def _parquet_file(folder: Path) -> Any:
    return str(parquet(folder / "rows.parquet", row_group_size=64))


def _parquet_folder(folder: Path) -> Any:
    (folder / "library" / "more").mkdir(parents=True)
    parquet(folder / "library" / "0.parquet", FRAME[:10])
    parquet(folder / "library" / "1.parquet", FRAME[:0])
    parquet(folder / "library" / "more" / "2.parquet", FRAME[10:])
    return folder / "library"


def _arrow(folder: Path) -> Any:
    return pytest.importorskip("pyarrow").Table.from_pandas(FRAME, preserve_index=False)


def _arrow_parts(folder: Path) -> Any:
    whole = _arrow(folder)
    return [whole.slice(0, 250), whole.slice(250)]


def _dask_frame(folder: Path) -> Any:
    pytest.importorskip("pyarrow")
    return pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=3)


#: By their names: a folder for files to the rows of `FRAME`.
TABLE_SOURCES: dict[str, Callable[[Path], Any]] = {
    "parquet": _parquet_file,
    "parquet files": _parquet_folder,
    "arrow": _arrow,
    "arrow tables": _arrow_parts,
    "dask frame": _dask_frame,
}


def pool_of(arms: Any, like: Arms | None = None, **options: Any) -> StoredPool:
    pool = encoded_pool(Pool(arms, **options), scale=True, has_kernel=False, like=like)
    assert isinstance(pool, StoredPool)
    return pool
