"""Replaces nodes of a JSON text, and cells, by hostile values."""

import copy
import json
import random
from typing import Any

__all__ = ["edited", "hostile_cell"]

_MARK = "@@{}@@"
#: Texts that `json.dumps` would not write.
RAW = [
    "1e400",
    "-1e400",
    "NaN",
    "-Infinity",
    "1" + "0" * 400,
    "-1" + "0" * 400,
    "1" + "0" * 5000,
    '"\\ud800"',
    "[" * 200 + "]" * 200,
    "[" * 100_000,
    '{"a":' * 300 + "1" + "}" * 300,
    '{"x":1,"x":2}',
    "",
    "1.0.0",
    '{"float":"nan"}',
    '{"float":"inf"}',
    '{"float":"-inf"}',
]
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    2,
    -1,
    3.5,
    0.0,
    1.0,
    -0.0,
    0.5,
    0.1,
    0.999999999999,
    -0.5,
    1e-300,
    5e-324,
    1e300,
    1e308,
    -1e308,
    1e18,
    7,
    1000,
    10**6,
    10**9,
    10**12,
    10**18,
    2**31,
    2**53,
    2**62,
    2**63,
    2**64,
    -(2**63),
    10**30,
    "",
    "x",
    "nan",
    "a" * 5_000,
    "a" * 200_000,
    "\x00",
    "q\"'; DROP TABLE log; --",
    "ucb",
    "logei",
    "thompson",
    "maximize",
    "every",
    "uniform",
    "matern52",
    "BKB",
    "ExactGP",
    "FourierGP",
    "LearnerSurrogate",
    "pkawv",
    "kons",
    "Batch",
    "Theorem2",
    "running",
    "Chowdhury",
    [],
    {},
    [1],
    [None],
    ["a"],
    [[]],
    {"a": 1},
    {"float": "x"},
    {"object": 0},
    {"object": -1},
    {"object": 10**9},
    ["x"] * 1000,
    [0.5] * 3000,
    list(range(100_000)),
]


def edited(text: str, rng: random.Random) -> tuple[str, str]:
    """The text with one to three nodes replaced, removed, doubled or renamed, and what was done."""
    if rng.random() < 0.04:
        raw = rng.choice(RAW)
        return raw, f"= {raw[:40]!r}"
    value, notes, raws = json.loads(text), [], []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        value, note = _changed(value, rng, raws)
        notes.append(note)
    out = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for i, raw in enumerate(raws):
        out = out.replace(f'"{_MARK.format(i)}"', raw)
    return out, "; ".join(notes)


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All nodes of a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [path for key, item in list(items)[:200] for path in _paths(item, (*at, key))]
    return [at, *inner]


def _changed(value: Any, rng: random.Random, raws: list[str]) -> tuple[Any, str]:
    path = rng.choice(_paths(value))
    if not path:
        return _instead(value, rng, raws), "the whole"
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    key, how = path[-1], rng.choice(["replace"] * 6 + ["remove", "double", "rename"])
    note = f"{'.'.join(map(str, path))} {how}"
    if how == "remove":
        del holder[key]
    elif how == "double" and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif how == "rename" and isinstance(holder, dict):
        holder[rng.choice(["", "x", "other", "n" * 3000, *holder])] = holder.pop(key)
    else:
        holder[key] = _instead(holder[key], rng, raws)
        note += f" {str(raws[-1] if raws else holder[key])[:40]!r}"
    return value, note


def _instead(old: Any, rng: random.Random, raws: list[str]) -> Any:
    """A hostile value, often of the old one's type, which passes more checks."""
    if rng.random() < 0.15:
        raws.append(rng.choice([raw for raw in RAW if len(raw) < 90_000]))
        return _MARK.format(len(raws) - 1)
    alike = [value for value in VALUES if type(value) is type(old)]
    numbers = [value for value in VALUES if type(value) in (int, float)] if isinstance(old, int | float) else []
    return copy.deepcopy(rng.choice(rng.choice([VALUES, alike or VALUES, numbers or VALUES])))


def hostile_cell(rng: random.Random) -> tuple[Any, str]:
    """A value of a cell of a table."""
    cells = [None, 0, 1, -1, 3, 2.5, 1e308, 2**62, 2**63 - 1, -(2**63), "", "x", "0", b"", b"\x00\xff", "9" * 5000]
    cells += ["null", "[]", "{}", "RUNNING", "WAITING", "COMPLETE", "FAIL", "PRUNED", "complete", "\x00", "[" * 100_000]
    cells += ["2026-01-01", "2026-01-01T00:00:00+00:00", "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999", "é" * 99]
    value = rng.choice(cells)
    return value, repr(value)[:40]
