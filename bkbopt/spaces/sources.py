"""Pools that are not read into memory: arrays in files, Parquet files, Arrow tables, Dask collections."""

import functools
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bkbopt._support.file_paths import at_home
from bkbopt.errors import ArgumentError, ArgumentTypeError, extra
from bkbopt.spaces.remote import RemotePart
from bkbopt.spaces.stored_rows import StoredPart
from bkbopt.spaces.tables import empty_pool
from bkbopt.spaces.unpacking import (
    Wanted,
    check_parquet,
    check_schema,
    of_dask_frame,
    of_parquet,
    of_table,
    unpacked_array,
)

if TYPE_CHECKING:
    from bkbopt.spaces.pool import Pool

__all__ = ["Parts", "check_sources", "is_stored", "parts_of"]


#: Suffixes of the files that are read from a folder.
SUFFIXES = (".parquet", ".npy")


class Parts(tuple[StoredPart | RemotePart, ...]):
    """The parts of a pool, already read."""

    __slots__ = ()


def is_stored(arms: Any) -> bool:
    """Whether the rows of a pool stay where they are stored; for a list, whether this holds for all of its items."""
    if isinstance(arms, list | tuple) and not isinstance(arms, Parts):
        # A list of strings is a list of objects, not of paths.
        return len(arms) > 0 and all(is_stored(part) and not isinstance(part, str) for part in arms)
    if isinstance(arms, str):
        return Path(arms).suffix in SUFFIXES or Path(at_home(arms)).exists()
    return isinstance(arms, Parts | np.memmap | os.PathLike) or _is_arrow(arms) or _is_dask(arms)


def parts_of(
    pool: "Pool",
    known: Sequence[StoredPart | RemotePart] = (),
    kept: Collection[str] = (),
    order: Sequence[str] = (),
) -> Parts:
    """The parts of a pool for which `is_stored` holds; those among the `known` ones are not read again.

    The values of columns that are `kept` as choices may all be different. Columns that have the names of an earlier
    pool's have their `order`, too.

    Raises:
        MissingPackageError: pyarrow is needed, and not installed.
        FileNotFoundError: there is no such file.
        ArgumentError, ArgumentTypeError: rows or columns that are refused; see `Pool`.
    """
    if isinstance(pool.arms, Parts):
        return pool.arms
    given = pool.arms if isinstance(pool.arms, list | tuple) else [pool.arms]
    read = _read if pool.client is None else functools.partial(_remote, pool.client)
    folder = None if pool.folder is None else at_home(pool.folder)
    wanted = Wanted(pool.columns, pool.id_column, folder, frozenset(kept), tuple(order))
    by_source = {part.source: part for part in known}
    parts: list[StoredPart | RemotePart] = []
    for one in given:
        for each in _files(one) if isinstance(one, str | os.PathLike) else [one]:
            for number, piece in enumerate([each] if pool.client is None else _pieces(each)):
                source = (*_identity(each), number, wanted.columns, wanted.id_column)
                part = by_source[source] if source in by_source else read(piece, source, wanted)
                if part is not None and len(part):
                    parts.append(part)
    if not parts:
        raise empty_pool()
    return Parts(parts)


def check_sources(pool: "Pool") -> None:
    """Check the columns of stored rows by the headers of their files, of a folder that of the first one.

    Raises as `parts_of` does.
    """
    wanted = Wanted(pool.columns, pool.id_column)
    for one in pool.arms if isinstance(pool.arms, list | tuple) else [pool.arms]:
        source = _files(one)[0] if isinstance(one, str | os.PathLike) else one
        if pool.client is not None:
            _pieces(source)
        if isinstance(source, Path) and source.suffix != ".npy":
            check_parquet(source, wanted)
        elif isinstance(source, Path):
            _of_array(_mapped(source), None, wanted)
        elif isinstance(source, np.ndarray):
            _of_array(source, None, wanted)
        elif _is_arrow(source):
            check_schema(source.schema, wanted)
        elif _is_frame(source):
            wanted.among([str(column) for column in source.columns])
        else:
            _checked(source)


def _files(path: str | os.PathLike[str]) -> list[Path]:
    """A file, or those of a folder in the order of their names."""
    path = Path(at_home(path))
    if not path.is_dir():
        return [path]
    files = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES)
    if not files:
        raise ArgumentError(f"pool: expected Parquet or .npy files in {path}, found none.")
    return files


class _Same:
    """An object, equal to itself only; it stays alive."""

    def __init__(self, what: object) -> None:
        self._what = what

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._what is other._what

    def __hash__(self) -> int:
        return id(self._what)


def _identity(source: Any) -> tuple[Any, ...]:
    """A key that stays equal as long as the rows of a source do not change."""
    if isinstance(source, Path):
        now = source.stat()
        return str(source.resolve()), now.st_mtime_ns, now.st_size
    return (_Same(source),)


def _read(source: Any, key: tuple[Any, ...], wanted: Wanted) -> StoredPart | None:
    if isinstance(source, Path):
        if source.suffix != ".npy":
            return of_parquet(source, key, wanted)
        source = _mapped(source)
    if isinstance(source, np.ndarray):
        return _of_array(source, key, wanted)
    if _is_arrow(source):
        return of_table(source, key, wanted)
    if _is_frame(source):
        return of_dask_frame(source, key, wanted)
    return _of_dask_array(source, key, wanted)


def _mapped(path: Path) -> Any:
    """The array of a `.npy` file."""
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        if "Python objects" in str(error):
            raise ArgumentTypeError(f"pool: expected real numbers, got an array of objects in {path}.") from error
        raise ArgumentError(f"pool: expected a .npy file, got {path}: {error}") from error


def _pieces(source: Any) -> list[Any]:
    """What one call on a worker reads: a whole file, a partition or a block of rows."""
    if isinstance(source, Path):
        return [source]
    if not _is_dask(source):
        raise ArgumentError(
            f"client: expected files or Dask collections, which workers can read, got {type(source).__name__}; pass "
            "the path of a file that they see."
        )
    if _is_frame(source):
        return [source.partitions[i] for i in range(source.npartitions)]
    rows = _checked(source).rechunk({1: -1})
    return [rows.blocks[i] for i in range(rows.numblocks[0])]


def _remote(client: Any, piece: Any, source: tuple[Any, ...], wanted: Wanted) -> RemotePart:
    """A piece of a source on a worker."""
    read = _read if isinstance(piece, Path) else _of_frame if _is_frame(piece) else _of_array
    return RemotePart(client, source, read, piece, (), wanted)


def _of_frame(frame: Any, key: tuple[Any, ...], wanted: Wanted) -> StoredPart | None:
    """A part from a data frame that was computed on this worker."""
    with extra("parquet"):
        import pyarrow as pa
    return of_table(pa.Table.from_pandas(frame, preserve_index=False), key, wanted)


def _of_array(array: np.ndarray[Any, Any], key: tuple[Any, ...] | None, wanted: Wanted) -> StoredPart:
    """A part from an array, without a copy."""
    if array.ndim != 2 or not array.shape[1]:
        raise ArgumentError(f"pool: expected shape (n, d), got {array.shape}; one row a point.")
    if array.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"pool: expected real numbers, got an array of dtype {array.dtype}.")
    if wanted.id_column is not None:
        raise ArgumentError("id_column: expected a table with columns that have names, got an array; leave it out.")
    every = tuple(f"x{j}" for j in range(array.shape[1]))
    names = tuple(wanted.among(every)[0])
    selected = None if names == every else tuple(map(every.index, names))
    return StoredPart(array, names, ("f",) * len(names), selected, source=key)


def _of_dask_array(array: Any, key: tuple[Any, ...], wanted: Wanted) -> StoredPart | None:
    """A part from a Dask array, computed block by block."""
    rows = _checked(array).rechunk({1: -1})
    dtype = np.float32 if rows.dtype.itemsize <= (4 if rows.dtype.kind == "f" else 2) else np.float64
    blocks = (np.asarray(rows.blocks[i].compute()) for i in range(rows.numblocks[0]))
    if rows.dtype.kind in "iu" and rows.dtype.itemsize == 8:
        dtype = rows.dtype  # whose numbers are checked as those of a file
    unpacked = unpacked_array(blocks, dtype, rows.shape[1], wanted.folder)
    return None if unpacked is None else _of_array(unpacked, key, wanted)


def _checked(array: Any) -> Any:
    if getattr(array, "ndim", None) != 2:
        raise ArgumentError(f"pool: expected a Dask array (n, d) or data frame, got {type(array).__name__}.")
    return array


def _is_frame(collection: Any) -> bool:
    return hasattr(collection, "partitions") and hasattr(collection, "columns")


def _is_arrow(arms: Any) -> bool:
    return type(arms).__module__.partition(".")[0] == "pyarrow" and hasattr(arms, "column_names")


def _is_dask(arms: Any) -> bool:
    return hasattr(arms, "__dask_graph__")
