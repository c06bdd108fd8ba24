"""Rows of output: one JSON object per line, and cells of tables."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from bkbopt.optimizer.log.aims import Aims
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.log_schema import to_json
from bkbopt.optimizer.log.trials import Trial, values_of

__all__ = ["Row", "aims_of", "aims_row", "as_cell", "as_line", "finished", "point"]

Row = dict[str, Any]


def aims_of(file: LogFile) -> Aims:
    """The aims of a log."""
    with file.fits():
        return Aims.of_options(file.options)


def aims_row(aims: Aims) -> Row:
    """The aims as a row of output."""
    row: Row = {"direction": aims.directions[0]}
    if aims.objectives or aims.k > 1:
        row = {"directions": aims.by_name(aims.directions)}
    return row | ({"constraints": list(aims.texts)} if aims.constraints else {})


def as_line(row: Row) -> str:
    """A row as JSON; NaN and infinities are written as in `Space.to_dict`."""
    try:
        return json.dumps(row, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(to_json(row)))


def as_cell(value: Any) -> str:
    """A cell of the table: numbers exactly, times in ISO 8601, durations in seconds."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return repr(value.total_seconds())
    return value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict | list) else repr(value)


def point(params: Mapping[str, Any], index: int | None, label: Any = None) -> Row:
    """The parameters, and the row of the pool and its name if there are any, as a row of output."""
    named = {} if label is None else {"label": label}
    return {"params": dict(params)} | ({} if index is None else {"index": index}) | named


def finished(aims: Aims, trial: Trial) -> Row:
    """A trial with its outcome, as a row of output."""
    if aims.objectives or aims.k > 1:
        values: Row = {"values": aims.by_name(values_of(trial)) if values_of(trial) else None}
    else:
        values = {"value": trial.value}
    limits = {"constraints": dict(trial.constraints), "feasible": trial.is_feasible} if trial.constraints else {}
    where = point(trial.params, trial.index, trial.label)
    attrs = {"user_attrs": dict(trial.user_attrs)} if trial.user_attrs else {}
    return {"id": trial.id, "state": trial.state, **values, **limits, **where, **attrs}
