"""What can be said of the arms of a `Pool` when it is made: no files are read beyond their headers."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bkbopt._support.file_paths import at_home
from bkbopt.spaces.parts import Product
from bkbopt.spaces.sources import Parts, check_sources, is_stored
from bkbopt.spaces.tables import (
    check_column,
    empty_pool,
    features_of,
    ids_of,
    is_numeric_table,
    labels_of,
    no_columns,
    read_table,
    selected,
)

if TYPE_CHECKING:
    from bkbopt.spaces.pool import Pool

__all__ = ["check_arms"]


def check_arms(pool: "Pool") -> None:
    """Check arms and options of a pool, as far as they do not depend on an optimizer or an earlier pool.

    Raises:
        ArgumentError, ArgumentTypeError: see `Pool`.
        MissingPackageError: pyarrow is needed, and not installed.
        FileNotFoundError: there is no such file.
    """
    arms = pool.arms
    if isinstance(arms, Product | Parts):
        return
    for path in arms if isinstance(arms, list | tuple) else [arms]:
        is_path = isinstance(path, os.PathLike) or (path is arms and isinstance(path, str))
        if is_path and not Path(at_home(path)).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    if is_stored(arms):
        check_sources(pool)
    elif hasattr(arms, "iloc") and hasattr(arms, "columns"):
        _check_frame(arms, pool.id_column, pool.columns)
    else:
        labels_of(arms, pool.id_column)
        if pool.columns is not None:
            selected(arms, pool.columns, pool.id_column)
        if isinstance(arms, Sequence) and not len(arms):
            raise empty_pool()
        if not isinstance(arms, Sequence) or is_numeric_table(arms):
            read_table(arms, None, None, scale=False)


def _check_frame(frame: Any, id_column: str | None, columns: Sequence[str] | None) -> None:
    """Check the rows and the columns of a data frame; raises as `labels_of` and `read_table` do."""
    if id_column is not None:
        ids_of(frame, id_column)
    features, names = features_of(frame if columns is None else selected(frame, columns, id_column), id_column)
    if not len(features):
        raise empty_pool()
    if not names:
        raise no_columns()
    for j, name in enumerate(names):
        check_column(name, features.iloc[:, j])
