"""Optimizers in use, and calls on them that are to be refused."""

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import bkbopt as bo
from bkbopt.errors import BkbError

SPACE = {"x": (0.0, 1.0), "n": bo.Int(1, 5), "kind": ["a", "b"]}
OK = {"x": 0.5, "n": 2, "kind": "a"}
NAN, INF = math.nan, math.inf
FRAME = pd.DataFrame(
    {"dose": np.arange(12) / 10.0, "solvent": ["water", "oil", "acid"] * 4}, index=[f"row {i}" for i in range(12)]
)


def told() -> bo.Optimizer:
    """An optimizer with eight values, two trials running (8 and 9) and one in the queue (10)."""
    opt = bo.Optimizer(SPACE, seed=0, n_startup_trials=4, constraints=["g"])
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, trial.params["x"] + trial.params["n"])
    opt.ask(2)
    opt.enqueue({"x": 0.75})
    return opt


def front() -> bo.Optimizer:
    """Two objectives, two constraints, five values, two trials running (5 and 6)."""
    opt = bo.Optimizer(SPACE, directions=["minimize", "maximize"], constraints=["g", "h"], seed=0, n_startup_trials=9)
    for _ in range(5):
        trial = opt.ask()
        opt.tell(trial, [trial.params["x"], trial.params["n"]], constraints={"g": -1.0})
    opt.ask(2)
    return opt


def table() -> bo.Optimizer:
    """A data frame with labels; five values, two trials running (5 and 6)."""
    opt = bo.Optimizer(FRAME, seed=0, n_startup_trials=9)
    for trial in opt.ask(5):
        opt.tell(trial, trial.params["dose"])
    opt.ask(2)
    return opt


def state(opt: bo.Optimizer) -> bytes:
    """All that a state file holds."""
    with tempfile.TemporaryDirectory() as folder:
        opt.save(Path(folder) / "state")
        return (Path(folder) / "state").read_bytes()


VALUES: dict[str, Any] = {
    "nan": NAN,
    "inf": INF,
    "minus inf": -INF,
    "none": None,
    "complex": 1j,
    "numpy complex": np.complex128(1.0),
    "string": "3.0",
    "bool": True,
    "pair": [1.0, 2.0],
    "empty": [],
    "ragged": [[1.0], [1.0, 2.0]],
    "matrix": np.ones((2, 2)),
    "dict": {"value": 1.0},
    "object": object(),
    "nan in an array": np.array([NAN]),
    "complex tensor": torch.tensor(1j),
    "overflowing integer": 10**400,
    "datetime": np.datetime64("2026-01-01"),
    "missing": pd.NA,
}
#: Those that are no error as the noise of a value: it is unknown.
UNKNOWN = ("none", "nan", "nan in an array", "missing")
PARAMS: dict[str, Any] = {
    "above": OK | {"x": 1.5},
    "below": OK | {"x": -0.1},
    "nan": OK | {"x": NAN},
    "inf": OK | {"x": INF},
    "none": OK | {"x": None},
    "string for a number": OK | {"x": "0.5"},
    "complex": OK | {"x": 0.5j},
    "bool for a number": OK | {"x": True},
    "array": OK | {"x": np.array([0.1, 0.2])},
    "fraction of a whole number": OK | {"n": 2.5},
    "whole number outside": OK | {"n": 6},
    "unknown choice": OK | {"kind": "c"},
    "unhashable choice": OK | {"kind": ["a"]},
    "unknown name": OK | {"z": 1.0},
    "missing name": {"x": 0.5, "n": 2},
    "no names": {},
    "index outside of a pool": {"index": 1},
}
#: Fine where only some of the parameters are given.
PARTIAL = {"missing name", "no names"}
HANDLES: dict[str, Any] = {
    "none": None,
    "string": "0",
    "float": 8.0,
    "bool": True,
    "unknown": 99,
    "negative": -1,
    "huge": 10**30,
    "numbers": [1, 2],
    "array": np.array([8]),
    "set": {8},
    "mixed rows": [OK, None],
    "bad second row": [OK, OK | {"x": 7.0}],
}
Call = Callable[[bo.Optimizer], object]
#: Values that a single objective takes and that are no error elsewhere.
ROWS = {"pair"}
CALLS: dict[str, Call] = {
    **{f"tell a trial {k}": lambda o, v=v: o.tell(8, v) for k, v in VALUES.items()},
    **{f"tell params {k}": lambda o, v=v: o.tell(OK, v) for k, v in VALUES.items()},
    **{f"tell rows {k}": lambda o, v=v: o.tell([OK, OK], v) for k, v in VALUES.items() if k not in ROWS},
    **{f"tell std {k}": lambda o, v=v: o.tell(8, 1.0, std=v) for k, v in VALUES.items() if k not in UNKNOWN},
    **{f"tell a constraint {k}": lambda o, v=v: o.tell(8, 1.0, constraints={"g": v}) for k, v in VALUES.items()},
    **{
        f"tell rows where some fail {k}": lambda o, v=v: o.tell([OK, OK], v, invalid="fail")
        for k, v in VALUES.items()
        if k not in ROWS
    },
    **{f"tell at {k}": lambda o, p=p: o.tell(p, 1.0) for k, p in PARAMS.items()},
    **{f"predict at {k}": lambda o, p=p: o.predict([OK, p]) for k, p in PARAMS.items()},
    **{f"queue {k}": lambda o, p=p: o.enqueue(p) for k, p in PARAMS.items() if k not in PARTIAL},
    **{f"ask with {k} held": lambda o, p=p: o.ask(fixed=p) for k, p in PARAMS.items() if k not in PARTIAL},
    **{
        f"tell to {k}": lambda o, h=h: o.tell(h, [1.0, 2.0] if isinstance(h, list) else 1.0) for k, h in HANDLES.items()
    },
    **{f"fail {k}": lambda o, h=h: o.fail(h) for k, h in HANDLES.items()},
    "fail params outside": lambda o: o.fail({"x": 5.0}),
    "fail one of two twice": lambda o: o.fail([8, 9, 8]),
    "tell twice": lambda o: o.tell(0, 1.0),
    "tell one twice at once": lambda o: o.tell([8, 8], [1.0, 2.0]),
    "tell the second of two again": lambda o: o.tell([8, 0], [1.0, 2.0]),
    "tell a queued trial": lambda o: o.tell(10, 1.0),
    "fail a queued trial": lambda o: o.fail(10),
    "fail after tell": lambda o: o.fail(0),
    "rows and values of other length": lambda o: o.tell([OK, OK], [1.0]),
    "rows and stds of other length": lambda o: o.tell([OK, OK], [1.0, 2.0], std=[0.1]),
    "nan among values": lambda o: o.tell([OK, OK], [1.0, NAN]),
    "none among values": lambda o: o.tell([OK, OK], [1.0, None]),
    "negative std": lambda o: o.tell(8, 1.0, std=-0.1),
    "unknown constraint": lambda o: o.tell(8, 1.0, constraints={"heat": 1.0}),
    "constraints in a list": lambda o: o.tell(8, 1.0, constraints=[1.0]),
    "neither value nor constraint": lambda o: o.tell(8, None, constraints={}),
    "invalid": lambda o: o.tell(OK, 1.0, invalid="skip"),
    "columns without a frame": lambda o: o.tell([OK], [1.0], columns=["x"]),
    "columns in a string": lambda o: o.tell(pd.DataFrame([OK | {"y": 1.0}]), "y", columns="x"),
    "columns that are not there": lambda o: o.tell(pd.DataFrame([OK | {"y": 1.0}]), "y", columns=["x", "z"]),
    "frame without the column": lambda o: o.tell(pd.DataFrame([OK]), "loss"),
    "frame without the constraint": lambda o: o.tell(pd.DataFrame([OK]), [1.0], constraints={"g": "heat"}),
    "frame with a stranger": lambda o: o.tell(pd.DataFrame([OK | {"z": 1.0}]), [1.0]),
    "frame with nan": lambda o: o.tell(pd.DataFrame([OK | {"x": NAN}]), [1.0]),
    "frame with nan values": lambda o: o.tell(pd.DataFrame([OK | {"loss": NAN}]), "loss"),
    "frame with text for values": lambda o: o.tell(pd.DataFrame([OK | {"loss": "3"}]), "loss", invalid="fail"),
    "frame with a column twice": lambda o: o.tell(pd.DataFrame([[0.5, 2, "a", 1]], columns=[*OK, "x"]), [1.0]),
    **{f"ask {n!r}": lambda o, n=n: o.ask(n) for n in (0, -1, 1.5, NAN, INF, "3", True, [2], 2j)},
    **{f"useful workers {n!r}": lambda o, n=n: o.useful_workers(limit=n) for n in (0, 1.5, "3", NAN)},
    **{f"hold {v!r}": lambda o, v=v: o.ask(fixed=v) for v in ([1], "x", 3)},
    **{f"queue {v!r}": lambda o, v=v: o.enqueue(v) for v in ([1], "x", 3, None)},
    **{f"set the space {v!r}": lambda o, v=v: o.set_space(v) for v in (None, 3, {}, {"x": (1.0, 0.0)}, {"x": []})},
    "set a pool on a space": lambda o: o.set_pool([[1.0]]),
    "tell rows of a space": lambda o: o.tell_rows([0], [1.0]),
    "hypervolume of two": lambda o: o.hypervolume([1.0, 2.0]),
    "predict a number": lambda o: o.predict([3.0]),
    "predict a string": lambda o: o.predict("x"),
}
#: Calls on an optimizer with several objectives.
FRONT_CALLS: dict[str, Call] = {
    **{f"values {k}": lambda o, v=v: o.tell(5, v) for k, v in VALUES.items() if k != "pair"},
    **{f"second value {k}": lambda o, v=v: o.tell(5, [1.0, v]) for k, v in VALUES.items() if k not in ("bool", "none")},
    "no value of any": lambda o: o.tell(5, [None, None]),
    **{f"values of rows {k}": lambda o, v=v: o.tell([OK, OK], v) for k, v in VALUES.items() if k != "matrix"},
    **{
        f"values of rows where some fail {k}": lambda o, v=v: o.tell([OK, OK], v, invalid="fail")
        for k, v in VALUES.items()
        if k != "matrix"
    },
    **{f"stds {k}": lambda o, v=v: o.tell(5, [1, 2], std=v) for k, v in VALUES.items() if k not in ("none", "pair")},
    **{f"reference {k}": lambda o, v=v: o.hypervolume(v) for k, v in VALUES.items() if k != "pair"},
    "three values": lambda o: o.tell(5, [1.0, 2.0, 3.0]),
    "one column for two": lambda o: o.tell(pd.DataFrame([OK | {"y": 1.0}]), "y"),
    "text among the columns": lambda o: o.tell(pd.DataFrame([OK | {"y": 1.0, "z": "2"}]), ["y", "z"]),
    "best trial": lambda o: o.best_trial,
    "recommendation": lambda o: o.recommend(),
    "certificate": lambda o: o.regret_certificate(),
}
#: Calls on a pool.
POOL_CALLS: dict[str, Call] = {
    **{
        f"tell_rows {rows!r}": lambda o, rows=rows: o.tell_rows(rows, [1.0])
        for rows in (["nobody"], [12], [-1], [True], [1.5], [None], "row 1", 3, [["row 1"]], ["row 1", "row 2"])
    },
    "rows without a value": lambda o: o.tell_rows(["row 1"], [NAN]),
    **{
        f"at {params!r}": lambda o, params=params: o.tell(params, 1.0)
        for params in (
            {"index": "row 1"},
            {"index": 12},
            {"dose": 0.1},
            {"dose": 0.1, "solvent": "mud"},
            {"dose": "0.1", "solvent": "oil"},
            {"dose": NAN, "solvent": "oil"},
            {"dose": 0.1, "solvent": "oil", "x": 1.0},
        )
    },
    **{
        f"{verb} {params!r}": lambda o, call=call, params=params: call(o, params)
        for verb, call in (("hold", lambda o, p: o.ask(fixed=p)), ("queue", lambda o, p: o.enqueue(p)))
        for params in ({"dose": 0.55}, {"solvent": "mud"}, {"x": 1.0}, {"index": 12}, {"index": "row 1"}, [1])
    },
    **{
        f"pool {i}": lambda o, pool=pool: o.set_pool(pool)
        for i, pool in enumerate(
            (None, 3, [], FRAME[["dose"]], FRAME.iloc[:0], FRAME.assign(dose=NAN), [[1.0, 2.0, 3.0]])
        )
    },
    "set a space on a pool": lambda o: o.set_space({"x": (0.0, 1.0)}),
}
VICTIMS: dict[str, tuple[Callable[[], bo.Optimizer], dict[str, Call]]] = {
    "a single objective": (told, CALLS),
    "several objectives": (front, FRONT_CALLS),
    "a pool": (table, POOL_CALLS),
}


def fault(call: Callable[[], object]) -> str | None:
    """What is wrong with the refusal of a call, or None."""
    try:
        call()
    except BkbError as error:
        typed = isinstance(error, (ValueError, TypeError, KeyError, RuntimeError))
        return None if typed and len(str(error)) > 20 else f"a poor error: {error!r}"
    except Exception as error:  # noqa: BLE001  # which is what must not happen
        return f"a foreign error: {error!r}"
    return "no error"
