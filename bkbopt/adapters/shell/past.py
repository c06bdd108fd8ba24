"""`bkbopt tell --from`: past data from a CSV file, with a line for each trial, as users or `bkbopt export` write it."""

import argparse
import contextlib
import csv
import functools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bkbopt.adapters.shell.opening import as_aims, names_of, opened
from bkbopt.adapters.shell.rows import Row, as_cell
from bkbopt.adapters.shell.usage import as_number, json_or_text
from bkbopt.adapters.shell.writing import check_outcome
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer.log.aims import Aims
from bkbopt.optimizer.log.attributes import checked_attrs
from bkbopt.optimizer.log.objectives import columns_of
from bkbopt.optimizer.log.trials import Outcome
from bkbopt.search.trials.states import COMPLETE, FAIL

if TYPE_CHECKING:
    from bkbopt import Optimizer

__all__ = ["tell_file"]

#: Columns of an exported table that are not read, beside the prefixes of the others.
BESIDES = ("number", "datetime_start", "datetime_complete", "duration", "state", "index", "label")
#: The column with the ids of trials, as `bkbopt ask` prints them.
ID = "id"
PARAMS, CONSTRAINTS, ATTRS = "params_", "constraints_", "user_attrs_"
#: What a cell with a value has to be, and one with a number that need not be known, for messages.
NEEDED = "a finite number (or FAIL in a column state, for a trial without a value)"
KNOWN = "a finite number (or an empty cell, where it is unknown)"


@dataclass(frozen=True)
class _Table:
    """The lines of a file: their numbers, and their cells by column, as they are written."""

    path: str
    columns: tuple[str, ...]
    lines: tuple[tuple[int, dict[str, str]], ...]

    def error(self, line: int, column: str, expected: str, text: str) -> ArgumentError:
        got = repr(text) if text else "an empty cell"
        return ArgumentError(f"{self.path}: line {line}, column {column!r}: expected {expected}, got {got}.")

    def number(self, line: int, column: str, text: str, expected: str) -> float:
        """The finite number of a cell; messages say what was `expected`."""
        number = float("nan")
        with contextlib.suppress(ValueError):
            number = as_number(float, text)
        if not abs(number) < float("inf"):
            raise self.error(line, column, expected, text)
        return number


@dataclass(frozen=True)
class _Outcomes:
    """The columns of values, of their standard deviations, and of constraints and attributes by name."""

    aims: Aims
    values: list[str]
    stds: list[str]
    limits: dict[str, str]
    attrs: dict[str, str]

    def read(self, table: _Table, line: int, cells: dict[str, str]) -> Outcome:
        """What a line gave: the values, those of constraints, or both; of a failed trial nothing."""
        cells = {column: text.strip() for column, text in cells.items()}
        attrs = self._attrs(table, line, cells)
        if cells.get("state", COMPLETE) == FAIL:
            return Outcome(user_attrs=attrs)
        limits = {name: table.number(line, at, cells[at], KNOWN) for name, at in self.limits.items() if cells[at]}
        some = any(cells[at] for at in self.values)
        measured = self.values if some or not limits else []
        values = [None if some and not cells[at] else table.number(line, at, cells[at], NEEDED) for at in measured]
        stds = [table.number(line, at, cells[at], KNOWN) if cells[at] else None for at in self.stds]
        stds = stds if any(std is not None for std in stds) else []
        try:
            return check_outcome(self.aims, values, limits, stds, attrs=attrs)
        except ArgumentError as error:
            raise ArgumentError(f"{table.path}: line {line}: {error}") from None

    def _attrs(self, table: _Table, line: int, cells: dict[str, str]) -> dict[str, Any]:
        try:
            return checked_attrs({name: _value(cells[at]) for name, at in self.attrs.items() if cells[at]})
        except (ArgumentError, ArgumentTypeError) as error:
            raise ArgumentError(f"{table.path}: line {line}: {error}") from None


def tell_file(args: argparse.Namespace) -> Iterator[Row]:
    """Tell all lines of a file but those that were told before, or none if any is refused."""
    from bkbopt.optimizer.past.told_lines import tell_lines

    path, rows = args.past, _read(args.past)
    opt = opened(args)
    k = len(opt.directions)
    values = args.value or columns_of("value", k, opt.objectives)
    table = _table(path, rows, {*values, *opt.objectives, *_own_names(opt)})
    if not args.value and not set(values) & set(table.columns) and opt.objectives:  # a table of the user's own
        values = list(opt.objectives)
    stds = [name for name in columns_of("std", k, opt.objectives) if name in table.columns]
    if len(values) != k:
        raise ArgumentError(f"--value: expected {k}, one for each objective, got {values}.")
    missing = [name for name in values if name not in table.columns]
    if missing:
        raise ArgumentError(
            f"{table.path}: expected a column {missing[0]!r} with values, got the columns {list(table.columns)}; name "
            "yours by --value, once for each objective."
        )
    limits = {name: column for name in _measured(opt) if (column := _column(table, name, CONSTRAINTS)) is not None}
    params = _Params.of(opt, table, {*values, *stds, *limits.values()})
    read = {*values, *stds, *limits.values(), *params.columns.values(), *([ID] if params.is_by_id else [])}
    attrs = {name.removeprefix(ATTRS): name for name in table.columns if name.startswith(ATTRS) and name not in read}
    told = [line for line in table.lines if _is_over(table, *line)]
    outcomes = _Outcomes(as_aims(opt), values, stds, limits, attrs)
    lines = [(params.read(table, *line), outcomes.read(table, *line)) for line in told]
    trials = tell_lines(opt, lines, again=args.again)
    failed = sum(trial.state == FAIL for trial in trials)
    ignored = [column for column in table.columns if column not in {*read, *attrs.values(), *BESIDES}]
    counts = {"complete": len(trials) - failed, "failed": failed, "told_before": len(lines) - len(trials)}
    yield {"from": table.path, **counts, "ignored_columns": ignored}


def _read(path: str) -> list[tuple[int, list[str]]]:
    """The lines of a file that are not empty, with their numbers; the first one, with the names, may be."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        try:
            head = next(reader, [])
            return [(reader.line_num, head), *((reader.line_num, cells) for cells in reader if any(cells))]
        except UnicodeDecodeError as error:
            raise ArgumentError(f"{path}: expected a CSV file in UTF-8, got {error}; save it as UTF-8.") from None
        except csv.Error as error:  # a cell that is too long, as one whose quotation mark is not closed
            where = f"{path}: line {reader.line_num}"
            raise ArgumentError(f"{where}: expected the cells of a CSV file, got {error}; check its quotes.") from None


def _own_names(opt: "Optimizer") -> Iterator[str]:
    """The names of the columns that are those of the optimizer's own names, which may end with a blank."""
    row = None if opt.pool is None else opt.pool.pool.id_column
    for prefix, own in ((PARAMS, names_of(opt)), (CONSTRAINTS, _measured(opt)), ("", () if row is None else (row,))):
        for name in own:
            yield from (name, f"{prefix}{name}")


def _measured(opt: "Optimizer") -> list[str]:
    """The constraints, and what was one once: a table that is told again has its column."""
    own = names_of(opt)
    return [name for name in opt.limits if name in opt.constraints or name not in own]


def _table(path: str, rows: Sequence[tuple[int, list[str]]], own: Collection[str]) -> _Table:
    """The table of a file; blanks around the names of columns are left out, except of those that are `own` names."""
    (_, head), *lines = rows
    columns = tuple(name if name in own else name.strip() for name in head)
    if len(set(columns)) < len(columns) or not columns or not lines:
        got = f"the names {list(columns)}" + (" and no line of data" if columns and not lines else "")
        raise ArgumentError(f"{path}: expected a line of distinct column names and lines of data, got {got}.")
    separators = [
        name for name, mark in (("semicolons", ";"), ("tabs", "\t")) if len(columns) == 1 and mark in columns[0]
    ]
    if separators:
        raise ArgumentError(
            f"{path}: expected cells separated by commas, got {separators[0]}; save it with commas, and with points in "
            "numbers."
        )
    for line, cells in lines:
        if len(cells) != len(columns):
            raise ArgumentError(
                f"{path}: line {line}: expected as many cells, separated by commas, as the first line has names, "
                f"{len(columns)}, got {len(cells)}."
            )
    return _Table(path, columns, tuple((at, dict(zip(columns, row, strict=True))) for at, row in lines))


def _is_over(table: _Table, line: int, cells: dict[str, str]) -> bool:
    """Whether a trial is complete or failed; running and queued ones of an exported table are left out."""
    state = cells.get("state", COMPLETE).strip()
    if state not in (COMPLETE, FAIL, "RUNNING", "WAITING"):
        raise table.error(line, "state", "COMPLETE, FAIL, RUNNING or WAITING", state)
    return state in (COMPLETE, FAIL)


def _column(table: _Table, name: str, prefix: str) -> str | None:
    """The column of a name, with the prefix of an exported table or without."""
    return next((column for column in (f"{prefix}{name}", name) if column in table.columns), None)


def _number(text: str) -> float | int | None:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return as_number(kind, text)
    return None


def _value(text: str) -> Any:
    """The value of a cell, which the space or the pool checks: a number, other JSON, or else text."""
    number = _number(text)
    if number is not None:
        return number
    if text.lower() in ("true", "false"):  # spreadsheets write TRUE
        return text.lower() == "true"
    return json_or_text(text)


@dataclass(frozen=True)
class _Params:
    """The parameters of the lines.

    Attributes:
        opt: the optimizer.
        columns: the column of each parameter that has one; the one that names the pool's rows if none has.
        is_by_id: whether the table has ids of trials in place of parameters.
    """

    opt: "Optimizer"
    columns: dict[str, str]
    is_by_id: bool = False

    @classmethod
    def of(cls, opt: "Optimizer", table: _Table, taken: set[str]) -> "_Params":
        """The columns of the parameters, none of which is among those that are `taken` for values."""
        names = names_of(opt)
        found = {name: _column(table, name, PARAMS) for name in names}
        columns = {name: column for name, column in found.items() if column is not None and column not in taken}
        optional = [n for n, p in opt.space.items if p.when or p.n_values == 1] if opt.space is not None else []
        missing = [name for name in names if name not in columns and name not in optional]
        rows = () if opt.pool is None else (opt.pool.pool.id_column, "index")
        row = next((name for name in rows if name in table.columns and name not in taken), None)
        if row is not None and not columns:
            return cls(opt, {row: row})
        if not columns and ID in table.columns and ID not in taken:
            return cls(opt, {}, is_by_id=True)
        if missing:
            raise ArgumentError(
                f"{table.path}: expected a column for each parameter, got none for {missing[0]!r} among "
                f"{list(table.columns)}; add it, or name it {PARAMS + missing[0]!r}, or give, in place of all, ids of "
                f"trials, as `bkbopt ask` prints them, in a column {ID!r}."
            )
        return cls(opt, columns)

    def read(self, table: _Table, line: int, cells: dict[str, str]) -> dict[str, Any] | int:
        """The parameters of a line, which are a point of the space or pool; or the id of its trial."""
        if self.is_by_id:
            number = _number(text := cells[ID].strip())
            if not isinstance(number, int) or number < 0:
                raise table.error(line, ID, "the id of a trial, a whole number", text)
            return number
        params: dict[str, Any] = {}
        for name, column in self.columns.items():
            text, by_text = cells[column].strip(), self._by_text[name]
            choices = by_text.get(cells[column]) or by_text.get(text, [])  # blanks may be part of a choice
            if len(choices) > 1:
                raise table.error(line, column, f"text of one choice, since that of {choices} is the same", text)
            if choices:
                params[name] = choices[0]
            elif text:  # an empty cell is that of an inactive parameter, or of the choice None
                params[name] = _value(text)
        params = self._without_gaps(params)
        try:
            self.opt.encode([params])
        except (ArgumentError, ArgumentTypeError) as error:
            raise ArgumentError(f"{table.path}: line {line}: {error}") from None
        return params

    def _without_gaps(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters without inactive ones, whose cells are empty; an empty cell may also be the choice ""."""
        from bkbopt.optimizer.past.told_lines import without_gaps

        params = dict(without_gaps(self.opt, params))
        if self.opt.space is not None and "" in params.values():
            with contextlib.suppress(ArgumentError):  # a wrong value of a switch is refused with the other values
                active = self.opt.space.active(params)
                params = {name: value for name, value in params.items() if value != "" or name in active}
        return params

    @functools.cached_property
    def _by_text(self) -> dict[str, dict[str, list[Any]]]:
        """The listed values of each parameter by the text of their cells."""
        out: dict[str, dict[str, list[Any]]] = {name: {} for name in self.columns}
        for name, by_text in out.items():
            for value in self._choices(name):
                by_text.setdefault(as_cell(value), []).append(value)
        return out

    def _choices(self, name: str) -> list[Any]:
        """The listed values of a parameter that have a cell."""
        space, pool = self.opt.space, self.opt.pool
        if space is not None:
            return list(getattr(space.parameters[name], "listed", ()))
        assert pool is not None
        if pool.columns is None or name not in pool.names:  # the name or number of a row
            return []
        return list(pool.columns.choices.get(pool.names.index(name), ()))
