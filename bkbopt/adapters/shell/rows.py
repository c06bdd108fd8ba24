"""Rows of output: one JSON object per line, and cells of tables."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from bkbopt.optimizer.log_file import LogFile
from bkbopt.optimizer.log_schema import to_json
from bkbopt.optimizer.objectives import stored_names
from bkbopt.optimizer.trials import Trial

if TYPE_CHECKING:
    from bkbopt import Optimizer

__all__ = ["Aims", "Row", "as_cell", "as_line", "finished", "point"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Aims:
    """Directions, constraints and names of the objectives of an optimizer; empty if they have none."""

    directions: tuple[str, ...]
    constraints: tuple[str, ...]
    objectives: tuple[str, ...] = ()

    @classmethod
    def of(cls, file: LogFile) -> "Aims":
        """The aims of a log."""
        with file.fits():
            options = file.options
            return cls(tuple(options["directions"]), tuple(options["constraints"]), stored_names(options))

    @classmethod
    def of_optimizer(cls, opt: "Optimizer") -> "Aims":
        """The aims of an optimizer."""
        return cls(opt.directions, opt.constraints, opt.objectives)

    @property
    def row(self) -> Row:
        """The aims as a row of output."""
        aims: Row = {"direction": self.directions[0]}
        if self.objectives or len(self.directions) > 1:
            aims = {"directions": self.by_name(self.directions)}
        return aims | ({"constraints": list(self.constraints)} if self.constraints else {})

    def by_name(self, items: Sequence[Any]) -> dict[str, Any] | list[Any]:
        """One item for each objective, by its name, or as a list if they have none."""
        return dict(zip(self.objectives, items, strict=True)) if self.objectives else list(items)


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
    if aims.objectives or len(aims.directions) > 1:
        values: Row = {"values": aims.by_name(trial.values) if trial.values else None}
    else:
        values = {"value": trial.value}
    limits = {"constraints": dict(trial.constraints), "feasible": trial.is_feasible} if trial.constraints else {}
    where = point(trial.params, trial.index, trial.label)
    attrs = {"user_attrs": dict(trial.user_attrs)} if trial.user_attrs else {}
    return {"id": trial.id, "state": trial.state, **values, **limits, **where, **attrs}
