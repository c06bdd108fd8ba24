"""Trials as rows of a log and back, and rows that are refused."""

import json
import math
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkbopt.optimizer.log import log_schema
from bkbopt.optimizer.log.trials import Entry, Outcome, Trial
from bkbopt.search.trials.reports import Diagnostics
from bkbopt.search.trials.states import COMPLETE, FAIL, RUNNING, WAITING

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
finite = st.floats(allow_nan=False, allow_infinity=False)
# Lone surrogates are refused when a space is described; a NUL cannot be in an SQL string, so no view names it.
text = st.text(st.characters(exclude_categories=["Cs"]))
choices = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), text)
diagnostics = st.builds(
    Diagnostics,
    trial=st.integers(0, 10**6),
    n_values=st.integers(0, 10**6),
    ask_seconds=finite,
    n_inducing=st.none() | st.integers(0, 300),
    beta=st.none() | finite,
    confidence_gap=st.none() | finite,
)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    state = draw(st.sampled_from([WAITING, RUNNING, COMPLETE, FAIL]))
    names = text | st.sampled_from(["label", "label_"])
    trial = Trial(draw(st.integers(0, 10**9)), draw(st.dictionaries(names, choices)), asked_at=NOW, state=state)
    attrs = draw(st.just({}) | st.dictionaries(text, choices | st.lists(choices) | st.dictionaries(text, finite)))
    trial = replace(trial, label=draw(choices), user_attrs=attrs)
    entry = Entry(trial, draw(st.integers(0, 2)), diagnostics=draw(st.none() | diagnostics))
    if state in (WAITING, RUNNING):
        return replace(entry, seen_at=draw(st.sampled_from([None, NOW])))
    limits = draw(st.dictionaries(st.sampled_from(["g", "h"]), finite))
    both = st.tuples(finite, finite) | st.tuples(finite, st.none()) | st.tuples(st.none(), finite)
    values = draw(both) if state == COMPLETE else ()
    stds = draw(st.none() | st.tuples(st.just(0.5), finite.map(abs))) if values else None
    outcome = Outcome.of(values, limits if values else {}, stds)
    return entry.finished(outcome, draw(st.integers(0, 10**9)), NOW)


def same(left: Any, right: Any) -> bool:
    """Equal to the last bit, NaN like NaN, and of one type."""
    return repr(left) == repr(right)


@given(entries(), st.integers(1, 2**60))
def test_a_trial_comes_back_from_its_row_to_the_last_bit(entry: Entry, change: int) -> None:
    row = log_schema.encode(entry, change)
    assert same(log_schema.decode(row, 2, ["g", "h"], 3), entry)
    db = sqlite3.connect(":memory:")
    db.execute(log_schema.TABLES_WITH_ATTRS["log"] if entry.trial.user_attrs else log_schema.TABLES["log"])
    db.execute(f"INSERT INTO log VALUES ({', '.join('?' * len(row))})", row)
    assert db.execute("SELECT * FROM log").fetchone() == row
    db.close()


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_text_that_stands_for_a_number_elsewhere_comes_back_by_the_name_float(text: str) -> None:
    entry = Entry(Trial(0, {"float": text}, asked_at=NOW, user_attrs={"float": text}), 0)
    assert log_schema.decode(log_schema.encode(entry, 1), 1, (), 1) == entry


@given(entries(), st.data())
def test_a_row_with_another_cell_is_refused(entry: Entry, data: st.DataObject) -> None:
    row = list(log_schema.encode(entry, 1))
    place = data.draw(st.integers(0, len(row) - 1))
    row[place] = data.draw(
        st.one_of(st.none(), st.integers(0, 3), st.text(max_size=3)).filter(lambda v: v != row[place])
    )
    with pytest.raises(ValueError, match="checksum"):
        log_schema.decode(tuple(row), 2, ["g", "h"], 3)


def crafted(**cells: Any) -> log_schema.Row:
    """A row of a complete trial with other cells, and the checksum that belongs to them."""
    entry = Entry(Trial(0, {"x": 0.5}, asked_at=NOW), 0).finished(Outcome((1.0,), {"g": 0.0}), 0, NOW)
    row = dict(zip(log_schema.COLUMNS.split(", "), log_schema.encode(entry, 1), strict=True)) | cells
    return (*list(row.values())[:-1], log_schema.checksum(tuple(row.values())[:-1]))


@pytest.mark.parametrize(
    "cells",
    [
        {"id": -1},
        {"id": "0"},
        {"id": 0.0},
        {"state": "DONE"},
        {"state": None},
        {"state": RUNNING},
        {"state": FAIL},
        {"params": "[]"},
        {"params": "0.5"},
        {"params": '{"x": NaN}'},
        {"params": b"{}"},
        {"params": "{"},
        {"params": "[" * 100_000},
        {"params": '{"label":{"label":null}}'},
        {"params": '{"label":{"label":[1]}}'},
        {"params": '{"label":{"label":"a"},"label_":{"label":"b"}}'},
        {"space": 1},
        {"space": None},
        {"pool_row": -1},
        {"pool_row": "1"},
        {"objectives": "[1.0,2.0]"},
        {"objectives": "[1]"},
        {"objectives": "[true]"},
        {"objectives": "[null]"},
        {"objectives": '[{"float":"nan"}]'},
        {"objectives": "1.0"},
        {"objectives": None, "constraints": "{}"},
        {"objectives": None, "stds": "[1.0]"},
        {"stds": "[-1.0]"},
        {"constraints": '{"k":1.0}'},
        {"constraints": '{"g":1}'},
        {"constraints": None},
        {"diagnostics": "{}"},
        {"diagnostics": "[]"},
        {"asked_at": None},
        {"asked_at": "yesterday"},
        {"asked_at": "2026-01-01T00:00:00+01:00"},
        {"told_at": None},
        {"place": None},
        {"place": -1},
        {"place": 0.5},
    ],
    ids=lambda cells: f"{next(iter(cells))}={str(next(iter(cells.values())))[:20]}",
)
def test_a_row_that_no_optimizer_writes_is_refused(cells: dict[str, Any]) -> None:
    assert log_schema.decode(crafted(), 1, ["g"], 1).trial.value == 1.0
    with pytest.raises(ValueError):  # noqa: PT011  # whatever Python says: the file is named above
        log_schema.decode(crafted(**cells), 1, ["g"], 1)


@given(st.recursive(choices, lambda inner: st.lists(inner) | st.dictionaries(text, inner)))
def test_json_reads_back_to_the_last_bit(value: Any) -> None:
    written = log_schema.to_json(value)
    assert same(log_schema.from_json(written), value) or "float" in written
    json.loads(written, parse_constant=pytest.fail)


def test_json_has_words_for_what_strict_json_has_not() -> None:
    for value in (math.nan, math.inf, -math.inf):
        assert same(log_schema.from_json(log_schema.to_json({"x": [value]})), {"x": [value]})
