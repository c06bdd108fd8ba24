"""The measurements of `benchmarks.kinds`, one a process: `python -P benchmarks/kind_parts.py KIND TRIALS`.

It prints a JSON object of names and numbers. It imports nothing from `benchmarks`, so that it can time another checkout
of bkbopt, given by `PYTHONPATH=CHECKOUT`, that has no such file.
"""

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import bkbopt as bo

__all__ = ["KINDS", "main", "timed"]

NOISE_SD = 0.05
#: Trials whose median is printed, the last ones.
LAST = 50

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of problem.

    Attributes:
        space: the search space.
        options: further arguments of the optimizer.
        fixed: values that each suggestion is asked for with.
        fails: whether a trial fails.
        reports: what is told: a value, or values and constraints.
    """

    space: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, Any] | None = None
    fails: Callable[[Params], bool] = lambda params: False
    reports: Callable[[Params, np.random.Generator], dict[str, Any]] = lambda p, rng: {"value": _value(p, rng)}


def _unit(name: str, value: Any) -> float:
    """A value as a number from 0 to 1, roughly."""
    if isinstance(value, str):
        return (ord(value[-1]) - ord("a")) / 4.0
    if isinstance(value, bool):
        return float(value)
    return math.log10(value) / 3.0 if name.startswith("log") else value / (9.0 if isinstance(value, int) else 1.0)


def _value(params: Params, rng: np.random.Generator, at: float = 0.4) -> float:
    """A bowl with a ripple, and noise."""
    u = np.array([_unit(name, value) for name, value in params.items()])
    return float(((u - at) ** 2).sum() + 0.1 * np.sin(6.0 * u.sum()) + NOISE_SD * rng.standard_normal())


def _values(params: Params, rng: np.random.Generator) -> dict[str, Any]:
    return {"value": [_value(params, rng), _value(params, rng, at=0.7)]}


def _limited(params: Params, rng: np.random.Generator) -> dict[str, Any]:
    excess = params["x0"] + params["x1"] - 0.6 + NOISE_SD * rng.standard_normal()
    return {"value": _value(params, rng), "constraints": {"excess": float(excess)}}


FLOATS = {f"x{j}": bo.Float(0.0, 1.0) for j in range(6)}
MIXED = {
    **{f"x{j}": bo.Float(0.0, 1.0) for j in range(4)},
    "n": bo.Int(1, 9),
    "steps": bo.Int(0, 300, step=10),
    "log": bo.Int(1, 1000, log=True),
    **{name: ["a", "b", "c"] for name in ("kind", "form")},
    "flag": [False, True],
}
BRANCHES = {
    "kind": ["a", "b", "c"],
    "x": bo.Float(0.0, 1.0),
    "y": bo.Float(0.0, 1.0, when={"kind": ["a"]}),
    "z": bo.Float(0.0, 1.0, when={"kind": ["b"]}),
    "log": bo.Int(1, 1000, log=True, when={"kind": ["b", "c"]}),
}
TWO = {"directions": ["minimize", "minimize"]}
KINDS: dict[str, Kind] = {
    "6 floats": Kind(FLOATS),
    "6 floats, one fixed": Kind(FLOATS, fixed={"x0": 0.3}),
    "6 integers of 21": Kind({f"n{j}": bo.Int(0, 20) for j in range(6)}),
    "12 choices of 4": Kind({f"c{j}": ["a", "b", "c", "d"] for j in range(12)}),
    "30 flags": Kind({f"b{j}": [False, True] for j in range(30)}),
    "10 mixed": Kind(MIXED),
    "branches": Kind(BRANCHES),
    "6 floats, a constraint": Kind(FLOATS, {"constraints": ["excess"]}, reports=_limited),
    "6 floats, some fail": Kind(FLOATS, fails=lambda p: p["x0"] + p["x1"] > 1.3),
    "6 floats, two objectives": Kind(FLOATS, TWO, reports=_values),
    "10 mixed, two objectives": Kind(MIXED, TWO, reports=_values),
    "6 floats, expected improvement": Kind(FLOATS, {"acquisition": "logei"}),
}


def timed(kind: Kind, n: int) -> dict[str, float]:
    """Milliseconds of an ask and a tell in a run of `n` trials, by processor time: of the last ones, and of all."""
    opt, rng, spent = bo.Optimizer(kind.space, seed=0, **kind.options), np.random.default_rng(1), list[float]()
    for _ in range(n):
        start = time.process_time()
        trial = opt.ask(fixed=kind.fixed)
        asked = time.process_time() - start
        told = {} if kind.fails(trial.params) else kind.reports(trial.params, rng)
        start = time.process_time()
        if told:
            opt.tell(trial, **told)
        else:
            opt.fail(trial)
        spent.append(1e3 * (asked + time.process_time() - start))
    return {f"median of the last {LAST}": statistics.median(spent[-LAST:]), "mean of all": statistics.mean(spent)}


def main(arguments: Sequence[str]) -> None:
    """Measure one kind, and print its numbers and the place of the package that was measured."""
    name, n = arguments
    torch.set_num_threads(1)
    timed(KINDS[name], 30)  # loads the modules, and compiles the loops
    print(json.dumps({"package": bo.__file__, "numbers": timed(KINDS[name], int(n))}))


if __name__ == "__main__":
    main(sys.argv[1:])
