"""The schema of a log file (an SQLite database), and the conversion of trials to rows and back.

| table   | contents of a row                                                                            |
| ------- | -------------------------------------------------------------------------------------------- |
| options | an argument of the optimizer by name, as JSON                                                |
| spaces  | a search space as JSON, or a pool: its columns as JSON and the rows of an array; the last    |
|         | row is the space of new trials                                                               |
| log     | a trial: state, parameters as JSON, values, times                                            |
| trials  | (a view) the trials for other programs, see `view_of`                                        |

| column of log          | meaning                                                                       |
| ---------------------- | ----------------------------------------------------------------------------- |
| id                     | number of the trial, 0, 1, ...                                                |
| state                  | WAITING (queued), RUNNING, COMPLETE or FAIL                                   |
| params                 | the active parameters by name, JSON; NaN and infinities as {"float": "nan"};  |
|                        | for a named row of a pool also "label": {"label": name}, see `LABEL`          |
| space                  | number of the space or pool from which the trial was proposed                 |
| pool_row               | row of the pool, or null                                                      |
| objectives, stds       | lists of numbers, JSON, or null                                               |
| constraints            | numbers by name, JSON                                                         |
| diagnostics            | record of the ask (`bkbopt.search.trials.reports.Diagnostics`), JSON, or null |
| asked_at, told_at      | ISO 8601, UTC                                                                 |
| seen_at                | time of the last heartbeat, or null; of lost trials told_at                   |
| place                  | place in the order of completion, 0, 1, ...; null before                      |
| change                 | number of the last change of this trial; the log numbers all changes 1, 2, ... |
| checksum               | the CRC-32 of the columns before it, and of user_attrs if that is not null     |
| user_attrs             | attributes by name, JSON, or null without any                                  |

The tables options and spaces have a checksum, too, since SQLite does not detect flipped bits in a value. A log gets the
column user_attrs, and version 3, with its first attribute; without one it stays readable for earlier versions of
bkbopt. The schema of a file must be exactly the one that follows from its options and spaces, so that no foreign code
in it is executed.
"""

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from bkbopt.optimizer.log.limits import Limits
from bkbopt.optimizer.log.trials import Entry, Trial, values_of
from bkbopt.search.trials.reports import Diagnostics
from bkbopt.search.trials.states import COMPLETE, FAIL, RUNNING, WAITING

__all__ = [
    "ADD_ATTRS",
    "APPLICATION_ID",
    "CHANGE",
    "CHECKSUM",
    "COLUMNS",
    "TABLES",
    "TABLES_WITH_ATTRS",
    "VERSION",
    "WITH_ATTRS",
    "Row",
    "checked",
    "checksum",
    "decode",
    "encode",
    "from_json",
    "is_plain",
    "to_json",
    "view_of",
]

#: "bkbo": SQLite's application id, which the command `file` shows.
APPLICATION_ID = 0x626B626F
#: Version of the schema, and that of a log with attributes.
VERSION, WITH_ATTRS = 2, 3

TABLES = {
    "options": "CREATE TABLE options (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL)",
    "spaces": "CREATE TABLE spaces (id INTEGER PRIMARY KEY, space TEXT NOT NULL, pool BLOB, checksum INTEGER NOT NULL)",
    "log": "CREATE TABLE log (id INTEGER PRIMARY KEY, state TEXT NOT NULL, params TEXT NOT NULL, "
    "space INTEGER NOT NULL, pool_row INTEGER, objectives TEXT, stds TEXT, constraints TEXT NOT NULL, "
    "diagnostics TEXT, asked_at TEXT NOT NULL, told_at TEXT, seen_at TEXT, place INTEGER UNIQUE, "
    "change INTEGER NOT NULL UNIQUE, checksum INTEGER NOT NULL)",
}
COLUMNS = (
    "id, state, params, space, pool_row, objectives, stds, constraints, diagnostics, asked_at, told_at, seen_at, "
    "place, change, checksum"
)
#: What makes a log one with attributes, and the text of its table then, as SQLite writes it.
ADD_ATTRS = "ALTER TABLE log ADD COLUMN user_attrs TEXT"
TABLES_WITH_ATTRS = {**TABLES, "log": f"{TABLES['log'][:-1]}, user_attrs TEXT)"}
#: Places of the number of the last change and of the checksum in a row of `log`.
CHANGE, CHECKSUM = 13, 14
#: Largest whole number in a row, far below SQLite's limit, so that adding one cannot overflow.
MOST = 2**60
#: The name of a pool's row among the parameters, an object with this single key; parameters are no such objects. It is
#: under this key, too, or with underscores behind it where a column is called so.
LABEL = "label"
#: Largest number of parameters and of constraints in the view; SQLite limits the columns of a view.
MOST_COLUMNS = 1000

Row = tuple[Any, ...]


def to_json(value: object) -> str:
    """JSON text; equal values give equal text, and numbers are read back exactly."""
    return json.dumps(_with_words(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _with_words(value: Any) -> Any:
    """Replace NaN and infinities, which strict JSON lacks, by objects as in `Space.to_dict`."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, Mapping):
        return {key: _with_words(item) for key, item in value.items()}
    return list(map(_with_words, value)) if isinstance(value, list | tuple) else value


def is_plain(value: object) -> bool:
    """Whether a label or a choice is a number, a flag or text, which files keep as they are."""
    return isinstance(value, bool | int | float | str)


def from_json(text: str) -> Any:
    """The inverse of `to_json`, with lists in place of tuples.

    Raises:
        ValueError: not JSON, or too deeply nested.
    """
    try:
        return (_WORDS if _WORD in text else _PLAIN).decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refused(word: str) -> float:
    raise ValueError(f"the JSON constant {word}")


def _without_words(found: dict[str, Any]) -> Any:
    word = found.get("float")
    return float(word) if len(found) == 1 and word in ("nan", "inf", "-inf") else found


_WORD = '{"float":'
# For speed: decoders are made once, and the one with a hook for each object is only used where it is needed.
_PLAIN = json.JSONDecoder(parse_constant=_refused)
_WORDS = json.JSONDecoder(parse_constant=_refused, object_hook=_without_words)


def checksum(cells: Row) -> int:
    """The CRC-32 of a row without its last column."""
    return zlib.crc32(repr(cells).encode("utf-8", "surrogatepass"))


def checked(row: Row, at: int = -1) -> Row:
    """The row if its checksum, cell `at`, is right; `ValueError` otherwise. Attributes are behind the checksum."""
    if checksum((*row[:at], *(cell for cell in row[at:][1:] if cell is not None))) != row[at]:
        raise ValueError("a row with a wrong checksum")
    return row


def encode(entry: Entry, change: int) -> Row:
    """A trial as a row of `log`; only that of a trial with attributes has a cell for them."""
    t = entry.trial
    cells = (
        t.id,
        t.state,
        to_json({**t.params, **_labelled(t)}),
        entry.space,
        t.index,
        to_json(values_of(t)) if values_of(t) else None,
        None if t.stds is None else to_json(t.stds),
        to_json(t.constraints),
        None if entry.diagnostics is None else to_json(asdict(entry.diagnostics)),
        _stamp(t.asked_at),
        _stamp(t.told_at),
        _stamp(entry.seen_at),
        entry.place,
        change,
    )
    attrs = (to_json(t.user_attrs),) if t.user_attrs else ()
    return (*cells, checksum((*cells, *attrs)), *attrs)


def _stamp(at: datetime | None) -> str | None:
    """A time in UTC, without a time zone, as files have it."""
    return None if at is None else at.astimezone(UTC).replace(tzinfo=None).isoformat()


def _labelled(trial: Trial) -> dict[str, Any]:
    """The name of the trial's row for the file; empty if there is none, or one without a JSON form."""
    key, label = LABEL, trial.label
    if not is_plain(label):
        return {}
    try:
        str(label).encode()
    except UnicodeEncodeError:  # lone surrogates, which SQLite does not take
        return {}
    while key in trial.params:
        key += "_"
    return {key: {LABEL: label}}


def _without_label(params: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The inverse of `_labelled`: the parameters, and the name of the row or None."""
    labels = {key: value[LABEL] for key, value in params.items() if isinstance(value, dict) and list(value) == [LABEL]}
    if len(labels) > 1 or not all(map(is_plain, labels.values())):
        raise ValueError("several names of a row, or one that is none")
    return {key: value for key, value in params.items() if key not in labels}, next(iter(labels.values()), None)


def decode(row: Row, n_objectives: int, limits: Limits, n_spaces: int) -> Entry:
    """The trial of a row, without its point; `limits` are those of its constraints.

    Raises:
        ValueError: the row was not written by `encode`, or not for an optimizer with these objectives, constraints and
            spaces.
    """
    number, state, params, space, pool_row, objectives, stds, constraints = checked(row, CHECKSUM)[:8]
    diagnostics, asked, told, seen, place, change = row[8:CHECKSUM]
    attrs = row[CHECKSUM + 1 :]
    given, label = _without_label(_object(params))
    values, partial = ((), ()) if objectives is None else _values(objectives, n_objectives)
    trial = Trial(
        _whole(number),
        given,
        None if pool_row is None else _whole(pool_row),
        state,
        values,
        _measured(constraints, limits),
        None if stds is None else _deviations(stds, n_objectives),
        _time(asked),
        None if told is None else _time(told),
        label,
        {} if attrs in ((), (None,)) else _object(attrs[0]),
        limits,
        partial,
    )
    gave = bool(values or partial or trial.constraints)
    is_over = {WAITING: False, RUNNING: False, COMPLETE: True, FAIL: True}.get(state)
    if is_over is None or gave != (state == COMPLETE) or (stds is not None and not (values or partial)):
        raise ValueError(f"a trial in the state {state!r} with values {values or partial}")
    if (place is not None, told is not None) != (is_over, is_over) or not (_whole(change) and _whole(space) < n_spaces):
        raise ValueError("a finished trial without completion time and place, or a running one with them")
    return Entry(
        trial,
        space,
        place=None if place is None else _whole(place),
        seen_at=None if seen is None else _time(seen),
        diagnostics=None if diagnostics is None else _diagnostics(diagnostics),
    )


def _text(cell: Any) -> str:
    if not isinstance(cell, str):
        raise ValueError(f"a {type(cell).__name__} instead of text")
    return cell


def _whole(cell: Any) -> int:
    if type(cell) is not int or not 0 <= cell <= MOST:
        raise ValueError("a number that is not whole, is negative or is too large")
    return cell


def _object(cell: Any) -> dict[str, Any]:
    """The JSON object of a cell, which is no number: a name may be "float", with the text "nan"."""
    found = from_json(text := _text(cell))
    if isinstance(found, float) and text.startswith(_WORD):
        found = {"float": repr(found)}
    if not isinstance(found, dict):
        raise ValueError(f"a {type(found).__name__} instead of a JSON object")
    return found


def _number(value: Any) -> float:
    if type(value) is not float or not math.isfinite(value):
        raise ValueError("a value that is not a finite number")
    return value


def _values(cell: Any, n: int) -> tuple[tuple[float, ...], tuple[float | None, ...]]:
    """The values of all objectives, or else those of some, null for the others."""
    found = from_json(_text(cell))
    if not isinstance(found, list) or len(found) != n:
        raise ValueError(f"something other than {n} numbers")
    known = tuple(_number(value) for value in found if value is not None)
    if not known:
        raise ValueError("values that are all null")
    return (known, ()) if len(known) == n else ((), tuple(found))


def _deviations(cell: Any, n: int) -> tuple[float | None, ...]:
    """Standard deviations, null where they are unknown."""
    found = from_json(_text(cell))
    if not isinstance(found, list) or len(found) != n or any(one is not None and _number(one) < 0.0 for one in found):
        raise ValueError(f"something other than {n} standard deviations")
    return tuple(found)


def _measured(cell: Any, limits: Limits) -> dict[str, float]:
    found = _object(cell)
    if not set(found) <= set(limits):
        raise ValueError("a constraint with an unknown name")
    return {name: _number(value) for name, value in found.items()}


def _time(cell: Any) -> datetime:
    found = datetime.fromisoformat(_text(cell))
    if found.tzinfo is not None:
        raise ValueError("a time with a time zone")
    return found.replace(tzinfo=UTC)


_WHOLE_FIELDS = ("trial", "n_values", "n_inducing")
_FIELDS = tuple(f.name for f in fields(Diagnostics))


def _diagnostics(cell: Any) -> Diagnostics:
    found = _object(cell)
    if tuple(found) != _FIELDS:
        raise ValueError("diagnostics with unknown or missing fields")
    for name, value in found.items():
        if value is None and name not in ("trial", "n_values", "ask_seconds"):
            continue
        if name in _WHOLE_FIELDS:
            _whole(value)
        elif type(value) is not float:
            raise ValueError("diagnostics that are not numbers")
    return Diagnostics(**found)


# -- for readers -------------------------------------------------------------------------------------------------------


def view_of(
    value_columns: Sequence[str],
    constraint_names: Sequence[str],
    param_names: Sequence[str],
    *,
    has_attrs: bool = False,
) -> str:
    """The view `trials`, with the columns of `Optimizer.trials_dataframe`, except known noise and labels.

    All attributes, if the log has any, are one column of JSON. Names with a null character have no column, since SQL
    cannot contain it.
    """
    param_names, constraint_names = ([n for n in names if "\0" not in n] for names in (param_names, constraint_names))
    columns = ["id AS number"]
    columns += [
        f"json_extract(objectives, '$[{j}]') AS {name if name.isidentifier() and name.isascii() else _quoted(name)}"
        for j, name in enumerate(value_columns)
        if "\0" not in name
    ]
    columns += ["asked_at AS datetime_start", "told_at AS datetime_complete"]
    columns += ["round((julianday(told_at) - julianday(asked_at)) * 86400.0, 3) AS duration"]
    columns += [_cell("params", name) for name in param_names[:MOST_COLUMNS]]
    columns += [_cell("constraints", name) for name in constraint_names[:MOST_COLUMNS]]
    columns += ["user_attrs"] * has_attrs
    columns += ['pool_row AS "index"', "state"]
    return f"CREATE VIEW trials AS SELECT {', '.join(columns)} FROM log"


def _quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _cell(column: str, name: str) -> str:
    """The SQL expression of a name in a JSON column; JSON paths cannot contain names with quotes."""
    alias = _quoted(f"{column}_{name}")
    if name.isalnum() and name.isascii():
        return f"json_extract({column}, '$.\"{name}\"') AS {alias}"
    own = name.replace("'", "''")
    return f"(SELECT atom FROM json_each({column}) WHERE key = '{own}') AS {alias}"
