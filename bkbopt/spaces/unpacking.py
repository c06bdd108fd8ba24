"""Tables of columns, compressed or computed, unpacked into arrays of rows with random access.

Each step of a search reads some rows at random places; reading them from a Parquet file would mean reading nearly all
of it. So such tables are unpacked once, a batch at a time, into an unnamed file in a folder for temporary files: as
float32 if that represents all columns exactly, else as float64. The system deletes the file when the pool is freed,
however the process ends. Labels of rows are unpacked into a second file.
"""

import contextlib
import itertools
import tempfile
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bkbopt._support.progress import bar
from bkbopt.errors import ArgumentError, extra
from bkbopt.spaces.columns import RANKED, choices_after
from bkbopt.spaces.stored_rows import BLOCK_ROWS, StoredPart
from bkbopt.spaces.tables import check_whole, missing_value, no_columns, no_numbers
from bkbopt.spaces.text_columns import all_different, note_many_choices

__all__ = [
    "Wanted",
    "check_parquet",
    "check_schema",
    "of_dask_frame",
    "of_parquet",
    "of_table",
    "unpacked_array",
]

#: Largest number of different values in a column of choices; with more, the column most likely names the rows.
MOST_CHOICES = 1 << 16
#: Arrow's types of numbers that float32 represents exactly.
NARROW = ("bool", "int8", "int16", "uint8", "uint16", "halffloat", "float")


@dataclass(frozen=True)
class Wanted:
    """Which columns of a table are read, and where they are unpacked.

    Attributes:
        columns: the features; None for all but `id_column`.
        id_column: the column that names the rows, or None.
        folder: for the unpacked rows; None for the system's.
        kept: columns that were choices in an earlier pool, so that they do not name rows.
        order: columns of an earlier pool, whose order features of the same names have; empty if there is none.
    """

    columns: Sequence[str] | None = None
    id_column: str | None = None
    folder: str | None = None
    kept: frozenset[str] = frozenset()
    order: tuple[str, ...] = ()

    def among(self, names: Sequence[str], index: Sequence[str] = ()) -> tuple[list[str], list[str]]:
        """The features among the names of all columns, and all columns to read: the features and `id_column`.

        Those of a stored `index` are read only if `columns` or `id_column` names them.

        Raises:
            ArgumentError: columns that are not there, or are there twice, or no features.
        """
        others = {self.id_column, *index}
        features = [name for name in names if name not in others] if self.columns is None else list(self.columns)
        read = features if self.id_column is None else [*features, self.id_column]
        if len(set(features)) < len(features):
            raise ArgumentError(f"pool: expected columns with distinct names, got {tuple(features)}.")
        for name in read:
            if list(names).count(name) != 1:
                argument = "id_column" if name == self.id_column else "columns"
                raise ArgumentError(f"{argument}: expected one of the columns {tuple(names)}, got {name!r}.")
        if not features:
            raise no_columns()
        return (list(self.order) if sorted(features) == sorted(self.order) else features), read


def of_parquet(path: Path, source: Hashable, wanted: Wanted) -> StoredPart | None:
    """The rows of a Parquet file; None where it has none.

    Raises:
        MissingPackageError: pyarrow is not installed.
        ArgumentError: no Parquet file, or columns that are refused.
    """
    with extra("parquet"):
        import pyarrow as pa
    with _opened(path) as file:
        features, read = wanted.among(file.schema_arrow.names, _stored_index(file.schema_arrow))
        batches = file.iter_batches(batch_size=BLOCK_ROWS, columns=read)
        tables = (pa.Table.from_batches([batch]) for batch in batches)
        return _unpacked(tables, file.metadata.num_rows, features, wanted, source)


def check_parquet(path: Path, wanted: Wanted) -> None:
    """Check the columns of a Parquet file by its header. Raises as `of_parquet` does."""
    with _opened(path) as file:
        check_schema(file.schema_arrow, wanted)


def check_schema(schema: Any, wanted: Wanted) -> None:
    """Check names and types of Arrow's columns. Raises as `of_parquet` does."""
    for name in wanted.among(schema.names, _stored_index(schema))[0]:
        _coder(name, schema.field(name).type, False)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A Parquet file."""
    with extra("parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except pa.ArrowInvalid as error:
        raise ArgumentError(
            f"pool: expected a Parquet or .npy file, got {path}, which is none ({error}); read other formats first, as "
            "by pandas.read_csv, and open a log by Optimizer.open(path)."
        ) from error


def of_table(table: Any, source: Hashable, wanted: Wanted) -> StoredPart | None:
    """The rows of an Arrow table or record batch; None where it has none. Raises as `of_parquet` does."""
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):  # its columns have no chunks
        table = pa.Table.from_batches([table])
    features, read = wanted.among(table.column_names, _stored_index(table.schema))
    chosen = table.select(read)
    tables = (chosen.slice(start, BLOCK_ROWS) for start in range(0, len(table), BLOCK_ROWS))
    return _unpacked(tables, len(table), features, wanted, source)


def of_dask_frame(frame: Any, source: Hashable, wanted: Wanted) -> StoredPart | None:
    """The rows of a Dask data frame, partition by partition; None where it has none. Raises as `of_parquet` does."""
    with extra("parquet"):
        import pyarrow as pa
    features, read = wanted.among([str(column) for column in frame.columns])
    chosen = frame[read]
    parts = (chosen.partitions[i].compute() for i in range(chosen.npartitions))
    tables = (pa.Table.from_pandas(part, preserve_index=False) for part in parts)
    return _unpacked(tables, None, features, wanted, source)


def unpacked_array(blocks: Iterator[NDArray[Any]], dtype: Any, dim: int, folder: str | None) -> NDArray[Any] | None:
    """Blocks of rows `(n, dim)` as one array in a file without a name; None where there are no rows."""
    n = 0
    # The array keeps the file open.
    with tempfile.TemporaryFile(dir=folder) as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype=dtype).data)
            n += len(block)
        file.flush()
        return np.memmap(file, dtype=dtype, mode="r", shape=(n, dim)) if n else None


def _unpacked(
    tables: Iterator[Any], n_rows: int | None, features: list[str], wanted: Wanted, source: Hashable
) -> StoredPart | None:
    """A part from the tables, one after the other; `n_rows` is their number of rows, if known."""
    filled = (table for table in tables if len(table))
    first = next(filled, None)
    if first is None:
        return None
    coders = [_coder(name, first.schema.field(name).type, name in wanted.kept) for name in features]
    writer = None if wanted.id_column is None else _LabelsWriter(first.schema.field(wanted.id_column), wanted.folder)

    def blocks() -> Iterator[NDArray[np.float64]]:
        start = 0
        with bar(n_rows, "rows unpacked") as done:
            for table in itertools.chain([first], filled):
                yield np.column_stack([coder(table[coder.name], start) for coder in coders])
                if writer is not None:
                    writer.write(table, start)
                start += len(table)
                done(len(table))

    dtype = np.float32 if all(coder.is_narrow for coder in coders) else np.float64
    with contextlib.nullcontext() if writer is None else writer.file:
        array = unpacked_array(blocks(), dtype, len(coders), wanted.folder)
        labels = None if writer is None else writer.finished()
    assert array is not None
    texts = [coder for coder in coders if isinstance(coder, _Choices) and coder.may_name_rows]
    for coder in texts:
        if 2 < len(coder.places) == len(array):
            raise all_different(coder.name)
    if len(coders) > 1:  # a single column is what was meant
        note_many_choices({coder.name: coder.places for coder in texts}, len(array))
    return StoredPart(
        array,
        tuple(features),
        tuple(coder.kind for coder in coders),
        None,
        {j: tuple(coder.places) for j, coder in enumerate(coders) if isinstance(coder, _Choices)},
        labels,
        source,
    )


def _stored_index(schema: Any) -> list[str]:
    """The columns in which pandas has stored the index of a data frame, by its metadata of a schema."""
    try:
        index = (schema.pandas_metadata or {})["index_columns"]
    except (ValueError, KeyError, TypeError):  # the metadata are no such JSON
        return []
    # The index of row numbers is an entry that names no column.
    return [name for name in index if isinstance(name, str)] if isinstance(index, list) else []


def _refuse_missing(column: Any, name: str, start: int) -> None:
    """Refuse a column with missing values; `start` is the number of its first row in the table."""
    if column.null_count:
        row = start + int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise missing_value(name, row)


@dataclass(frozen=True)
class _Numbers:
    """Converts pieces of a column of numbers to float64."""

    name: str
    type: Any
    kind: str
    is_narrow: bool

    def __call__(self, column: Any, start: int) -> NDArray[np.float64]:
        _refuse_missing(column, self.name, start)
        if column.type != self.type:
            raise ArgumentError(
                f"pool: expected one type in column {self.name!r}, got {self.type} and, in row {start}, {column.type}."
            )
        values = column.to_numpy()
        if self.kind in "iu":
            check_whole(self.name, values)
        return values.astype(np.float64)


@dataclass(frozen=True)
class _Choices:
    """Converts pieces of a column of choices to codes: ranks of ordered ones, else numbered in order of appearance."""

    name: str
    kind: str
    is_declared: bool
    is_kept: bool
    places: dict[Any, int] = field(default_factory=dict)
    is_narrow: ClassVar[bool] = True

    @property
    def may_name_rows(self) -> bool:
        """Whether values that are all different are refused."""
        return not (self.is_declared or self.is_kept)

    def __call__(self, column: Any, start: int) -> NDArray[np.float64]:
        _refuse_missing(column, self.name, start)
        if self.kind == RANKED:
            return np.concatenate([self._ranks(chunk) for chunk in column.chunks])
        own = column.combine_chunks()
        if self.is_declared:  # in order of appearance, not of declaration
            own = own.cast(own.type.value_type)
        own = own.dictionary_encode()
        codes = [self.places.setdefault(value, len(self.places)) for value in own.dictionary.to_pylist()]
        if len(self.places) > MOST_CHOICES and self.may_name_rows:
            raise all_different(self.name)
        return np.array(codes, dtype=np.float64)[own.indices.to_numpy()]

    def _ranks(self, chunk: Any) -> NDArray[np.float64]:
        """The ranks of a chunk, which has a dictionary of its own."""
        own = chunk.dictionary.to_pylist()
        every = choices_after(self.name, tuple(self.places), own, ranked=True, ordered=True)
        self.places.update((value, place) for place, value in enumerate(every))
        return np.array([self.places[value] for value in own], dtype=np.float64)[chunk.indices.to_numpy()]


def _letter(kind: Any) -> str | None:
    """The letter of an Arrow type, see `tables.Columns`; None for those that are neither numbers nor choices."""
    import pyarrow.types as t

    if t.is_boolean(kind):
        return "b"
    if t.is_integer(kind):
        return "i" if t.is_signed_integer(kind) else "u"
    if t.is_floating(kind):
        return "f"
    if t.is_dictionary(kind):
        return None if _letter(kind.value_type) is None else "O"
    return "O" if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind) else None


def _coder(name: str, kind: Any, is_kept: bool) -> "_Numbers | _Choices":
    letter = _letter(kind)
    if letter is None:
        raise no_numbers(name, str(kind))
    if letter == "O":
        is_declared = str(kind).startswith("dictionary")
        return _Choices(name, RANKED if is_declared and kind.ordered else "O", is_declared, is_kept)
    return _Numbers(name, kind, letter, str(kind) in NARROW)


class _LabelsWriter:
    """Writes the labels of rows into an unnamed file."""

    def __init__(self, of: Any, folder: str | None) -> None:
        import pyarrow as pa

        self._name = of.name
        self._schema = pa.schema([(of.name, of.type.value_type if pa.types.is_dictionary(of.type) else of.type)])
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  closed by `_unpacked`
        self._writer = pa.ipc.new_file(self.file, self._schema)

    def write(self, table: Any, start: int) -> None:
        column = table[self._name]
        if column.null_count:
            row = start + int(np.flatnonzero(column.is_null().to_numpy())[0])
            raise ArgumentError(f"id_column: expected a name for each row, got none in row {row}.")
        self._writer.write_table(table.select([self._name]).cast(self._schema))

    def finished(self) -> "ArrowLabels":
        """The labels, which are read from the file."""
        import pyarrow as pa

        self._writer.close()
        self.file.flush()
        with pa.ipc.open_file(pa.py_buffer(np.memmap(self.file, mode="r"))) as reader:  # which keeps the file open
            return ArrowLabels(reader.read_all()[self._name])


@dataclass(frozen=True, eq=False)
class ArrowLabels:
    """The labels of rows in a column of Arrow; see `Labels`."""

    column: Any

    def __getitem__(self, row: int) -> Hashable:
        value: Hashable = self.column[row].as_py()
        return value

    def rows_of(self, names: Sequence[Hashable]) -> list[tuple[Hashable, int]]:
        """See `Labels`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind, known = self.column.type, []
        for name in names:
            if isinstance(name, bool) != pa.types.is_boolean(kind):
                continue  # True == 1, but they are different labels
            with contextlib.suppress(pa.ArrowInvalid, pa.ArrowTypeError):
                known.append(pa.scalar(name, type=kind).as_py())
        mask = pc.is_in(self.column, value_set=pa.array(known, type=kind))
        return [(self[row], row) for row in np.flatnonzero(mask.to_numpy()).tolist()]
