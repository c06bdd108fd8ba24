"""The table of trials.

The module imports neither torch nor NumPy.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bkbopt.errors import extra
from bkbopt.optimizer.log.objectives import columns_of
from bkbopt.optimizer.log.trials import Trial, values_of

if TYPE_CHECKING:
    import pandas

__all__ = ["dataframe_of", "table_of"]


def dataframe_of(trials: Sequence[Trial], k: int, objectives: Sequence[str]) -> "pandas.DataFrame":
    """One row for each trial, with Optuna's column names: number, value(s), datetime_*, duration, params_*, state.

    Args:
        trials: the trials.
        k: number of objectives.
        objectives: their names, if they have any.

    Raises:
        MissingPackageError: pandas is not installed.
    """
    with extra("pandas"):
        import pandas

    columns = table_of(trials, k, objectives)
    nan = float("nan")
    for name, cells in columns.items():
        if name.startswith(("value", "std", "constraints_")):
            columns[name] = [nan if cell is None else cell for cell in cells]
    return pandas.DataFrame(columns)


def table_of(trials: Sequence[Trial], k: int, objectives: Sequence[str]) -> dict[str, list[Any]]:
    """The columns of the table of trials by name; missing values are None, times are in UTC, without a time zone."""
    columns: dict[str, list[Any]] = {"number": [t.id for t in trials]}
    values = [values_of(t) or (None,) * k for t in trials]
    for j, name in enumerate(columns_of("value", k, objectives)):
        columns[name] = [cells[j] for cells in values]
    if any(t.stds for t in trials):
        for j, name in enumerate(columns_of("std", k, objectives)):
            columns[name] = [t.stds[j] if t.stds else None for t in trials]
    columns["datetime_start"] = [_without_zone(t.asked_at) for t in trials]
    columns["datetime_complete"] = [_without_zone(t.told_at) for t in trials]
    columns["duration"] = [t.told_at - t.asked_at if t.told_at and t.asked_at else None for t in trials]
    for name in dict.fromkeys(name for t in trials for name in t.params):
        columns[f"params_{name}"] = [t.params.get(name) for t in trials]
    for name in dict.fromkeys(name for t in trials for name in t.constraints):
        columns[f"constraints_{name}"] = [t.constraints.get(name) for t in trials]
    for name in dict.fromkeys(name for t in trials for name in t.user_attrs):
        columns[f"user_attrs_{name}"] = [t.user_attrs.get(name) for t in trials]
    if any(t.index is not None for t in trials):
        columns["index"] = [t.index for t in trials]
    if any(t.label is not None for t in trials):
        columns["label"] = [t.label for t in trials]
    columns["state"] = [t.state for t in trials]
    return columns


def _without_zone(at: datetime | None) -> datetime | None:
    """The time in UTC; spreadsheets take no time zones."""
    return None if at is None else at.replace(tzinfo=None)
