"""Arrays and data frames as tables of numbers: columns named, choices numbered, ranges scaled.

| symbol | shape  | units   | meaning                                                   |
| ------ | ------ | ------- | --------------------------------------------------------- |
| table  | (A, d) | user's  | raw values; of columns that are not numeric the codes     |
| X      | (A, d) | encoded | numeric columns and ranks scaled to [0, 1], and codes     |
"""

import numbers
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.arrays import as_points
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.columns import RANKED, Columns, choices_after, columns_of, sampled_rows
from bkbopt.spaces.values import as_float, as_python, is_hashable, is_real, shown

__all__ = [
    "as_objects",
    "check_column",
    "check_whole",
    "empty_pool",
    "features_of",
    "ids_of",
    "is_numeric_table",
    "kind_of",
    "labels_of",
    "missing_value",
    "no_columns",
    "no_numbers",
    "read_table",
    "selected",
]

#: Doubles represent all whole numbers up to this one.
MAX_WHOLE = 2**53


def is_numeric_table(arms: Sequence[Any]) -> bool:
    """Whether a list holds rows of numbers, rather than objects."""
    return (
        all(isinstance(a, Sequence | np.ndarray | Tensor) and not isinstance(a, str | bytes) for a in arms)
        and all(isinstance(v, int | float | np.number) for a in arms[:1] for v in a)
        and len({len(a) for a in arms}) <= 1
    )


def empty_pool() -> ArgumentError:
    """The error for a pool without arms."""
    return ArgumentError("pool: expected at least one arm, got an empty pool.")


def check_whole(name: str, values: np.ndarray[Any, Any] | Iterable[int]) -> None:
    """Refuse whole numbers in a column that doubles do not represent.

    Raises:
        ArgumentError: one beyond 2^53 that a double would round.
    """
    if isinstance(values, np.ndarray):
        if values.dtype.itemsize < 8:
            return
        values = np.unique(values[(values > MAX_WHOLE) | (values < -MAX_WHOLE)]).tolist()
    far = next((value for value in values if as_float(value) != value), None)
    if far is not None:
        raise ArgumentError(
            f"pool: expected whole numbers up to 2^53 in column {name!r}, or larger ones that doubles represent, got "
            f"{shown(far)}; subtract the smallest, or pass them as floats if they may be rounded."
        )


def no_numbers(name: str, got: str) -> ArgumentTypeError:
    """The error for a column of dates, decimal numbers or anything else that is neither a number nor a choice."""
    return ArgumentTypeError(
        f"pool: expected numbers or text in column {name!r}, got {got}; convert it to numbers, or leave it out, as by "
        "bo.Pool(..., columns=[...])."
    )


def missing_value(name: str, row: int, got: str = "one") -> ArgumentError:
    """The error for a column with a gap, or with a number that is not finite."""
    expected = "no missing values" if got == "one" else "finite values"
    return ArgumentError(
        f"pool: expected {expected}, got {got} in column {name!r}, row {row}; drop or impute such rows, or, if the "
        "column is no feature, name the features: bo.Pool(..., columns=[...]), in the shell --column NAME."
    )


def no_columns() -> ArgumentError:
    """The error for a pool without columns."""
    return ArgumentError("pool: expected at least one column, got none.")


def read_table(
    arms: Any, known: Columns | None, id_column: str | None, *, scale: bool, kept: Collection[str] = ()
) -> tuple[Columns, Tensor]:
    """The columns and the raw values `(A, d)` of an array or a data frame.

    Args:
        arms: the rows.
        known: columns of an earlier table; the encoding is kept, and new choices follow the old ones.
        id_column: a column that names the rows; it is left out.
        scale: whether numeric columns are scaled to [0, 1].
        kept: columns that were choices in an earlier table, whose encoding is not known here.

    Raises:
        ArgumentError: an empty table, NaN or infinite values, two columns of one name, other columns than the known
            ones, or whole numbers that doubles do not represent.
        ArgumentTypeError: neither numbers nor a data frame, or a column of dates or of decimal numbers.
    """
    table, names, kinds, choices = _as_table(arms, id_column, known, kept)
    if not len(table):
        raise empty_pool()
    if not table.shape[1]:
        raise no_columns()
    if known is not None:
        return known.extended(names, choices), table
    limits = table.min(0).values, table.max(0).values
    sample = table[torch.from_numpy(sampled_rows(len(table)))] if scale else None
    return columns_of(names, kinds, choices, limits, sample), table


def labels_of(arms: Any, id_column: str | None) -> list[Hashable] | None:
    """The labels of rows: the values of a column, or the index of a data frame; None for other tables.

    Raises:
        ArgumentError: no such column, or values that are missing or not distinct.
    """
    if not hasattr(arms, "iloc"):
        if id_column is not None:
            raise ArgumentError(
                f"id_column: expected a data frame that has it, got {type(arms).__name__}; leave id_column out."
            )
        return None
    ids = arms.index if id_column is None else ids_of(arms, id_column)
    return list(map(as_python, ids.tolist()))


def ids_of(arms: Any, id_column: str) -> Any:
    """The column of a data frame that names the rows; raises as `labels_of` does."""
    names = [str(column) for column in arms.columns]
    if names.count(id_column) != 1:
        raise ArgumentError(f"id_column: expected one of the columns {tuple(names)}, got {id_column!r}.")
    ids = arms.iloc[:, names.index(id_column)]
    missing = ids.isna()
    if missing.any():
        raise ArgumentError(f"id_column: expected a name for each row, got none in row {int(missing.argmax())}.")
    if (again := ids.duplicated()).any():  # `is_unique` of older versions of pandas is wrong about lone surrogates
        twice = as_python(ids[again].iloc[0])
        raise ArgumentError(f"id_column: expected distinct names in {id_column!r}, got {twice!r} twice.")
    return ids


def selected(arms: Any, columns: Sequence[str], id_column: str | None) -> Any:
    """The given columns of a data frame, and its `id_column`."""
    if not hasattr(arms, "iloc"):
        raise ArgumentError(f"columns: expected a table whose columns have names, got {type(arms).__name__}.")
    names = [str(column) for column in arms.columns]
    chosen = [*columns, *([] if id_column is None else [id_column])]
    bad = next((name for name in chosen if names.count(name) != 1), None)
    if bad is not None:
        raise ArgumentError(f"columns: expected one of the columns {tuple(names)}, got {bad!r}.")
    return arms.iloc[:, [names.index(name) for name in chosen]]


def _as_table(
    arms: Any, id_column: str | None, known: Columns | None, kept: Collection[str]
) -> tuple[Tensor, tuple[str, ...], tuple[str, ...], dict[int, tuple[Any, ...]]]:
    """Raw values (A, d), names and kinds of the columns, and the choices of those that are not numeric."""
    if not hasattr(arms, "iloc"):
        table = as_points(arms, None, name="pool").detach().clone()
        d = table.shape[1]
        of_floats = isinstance(arms, Tensor) and arms.is_floating_point()  # NumPy has no bfloat16
        given = table.numpy() if of_floats else np.asarray(arms.cpu() if isinstance(arms, Tensor) else arms)
        for j in range(d) if given.dtype.kind in "iu" else ():
            check_whole(f"x{j}", given[:, j])
        return table, tuple(f"x{j}" for j in range(d)), ("f",) * d, {}
    if not hasattr(arms, "columns"):
        raise ArgumentError("pool: expected a data frame or a table of rows, got a Series; pass series.to_frame().")
    features, names = features_of(arms, id_column)
    columns, choices, kinds = [np.zeros((len(features), 0))], {}, []
    earlier: Mapping[int, tuple[Any, ...]] = {} if known is None else known.choices
    for j, name in enumerate(names):
        series = features.iloc[:, j]
        check_column(name, series)
        if series.dtype.kind in "iufb":
            kinds.append(series.dtype.kind)
            columns.append(series.to_numpy(dtype=np.float64)[:, None])
            continue
        given = series.tolist()
        is_declared = hasattr(series.dtype, "categories")
        kind = None if is_declared or not given or j in earlier or name in kept else kind_of(given)
        if kind is not None:
            check_whole(name, (int(v) for v in given if isinstance(v, numbers.Integral)))
            kinds.append(kind)
            columns.append(np.array(list(map(as_float, given)))[:, None])
            continue
        # Values in order of first appearance, or as they are declared in order; a later pool may append some.
        ordered = bool(getattr(series.dtype, "ordered", False))
        kind = (RANKED if ordered else "O") if known is None or j not in earlier else known.kinds[j]
        own = map(as_python, series.cat.categories) if ordered and kind == RANKED else dict.fromkeys(given)
        values = choices_after(name, earlier.get(j, ()), tuple(own), ranked=kind == RANKED, ordered=ordered)
        choices[j], place = values, {v: float(i) for i, v in enumerate(values)}
        kinds.append(kind)
        columns.append(np.array([place[v] for v in given], dtype=np.float64)[:, None])
    return as_points(np.hstack(columns), None, name="pool"), names, tuple(kinds), choices


def features_of(arms: Any, id_column: str | None) -> tuple[Any, tuple[str, ...]]:
    """The columns of a data frame without that of the names of rows, and their names."""
    features = arms.loc[:, [str(column) != id_column for column in arms.columns]]
    names = tuple(str(column) for column in features.columns)
    if len(set(names)) < len(names):
        raise ArgumentError(f"pool: expected columns with distinct names, got {names}.")
    return features, names


def check_column(name: str, series: Any) -> None:
    """Refuse gaps, whole numbers that doubles do not represent, and values that are neither numbers nor choices."""
    missing = series.isna()
    if missing.any():
        raise missing_value(name, int(missing.to_numpy().argmax()))
    if series.dtype.kind in "iu":
        check_whole(name, series.to_numpy(dtype=f"{series.dtype.kind}8"))
    if series.dtype.kind == "f" and not np.isfinite(values := series.to_numpy(dtype=np.float64)).all():
        row = int((~np.isfinite(values)).argmax())
        raise missing_value(name, row, str(values[row]))
    if series.dtype.kind in "iufb":
        return
    given = series.tolist()
    if set(map(type, given)) <= {str, int, float, bool}:  # the usual case, without a look at each value
        return
    is_declared = hasattr(series.dtype, "categories")
    bad = next((v for v in given if not (is_hashable(v) and (is_declared or _is_choice(v)))), None)
    if bad is not None:
        raise no_numbers(name, shown(bad))


def _is_choice(value: object) -> bool:
    """Whether a value may be a number or a choice: dates, durations and numbers that are not real are neither."""
    if isinstance(value, date | time | timedelta | np.datetime64 | np.timedelta64) or type(value).__name__ == "Period":
        return False
    return isinstance(value, bool) or is_real(value) or not isinstance(value, numbers.Number)


def kind_of(values: Sequence[object]) -> str | None:
    """Numpy's letter for values that all are numbers, or all flags; None for others."""
    if all(isinstance(value, bool | np.bool_) for value in values):
        return "b"
    if not all(map(is_real, values)):
        return None
    return "i" if all(isinstance(value, numbers.Integral) for value in values) else "f"


def as_objects(arms: Any) -> Sequence[Any]:
    """A pool of objects: a nonempty sequence."""
    if not isinstance(arms, Sequence):
        raise ArgumentTypeError(f"pool: expected a list of objects as before, got {type(arms).__name__}.")
    if not arms:
        raise empty_pool()
    return arms
