"""`bkbopt compile`: compile all loops before they are needed, as when a container image is built."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bkbopt._support.compiled import watched
from bkbopt.adapters.shell.rows import Row

__all__ = ["compile_all"]

#: Trials after which a search has compared all structures of its kernel.
TRIALS = 60
#: Rows of the pools, and of the streams, after which every learner has filled its budget.
ROWS, STREAM = 200, 1_000


def compile_all(args: argparse.Namespace) -> Iterator[Row]:
    """Compile the loops that are not in numba's cache yet, by short runs of all that has loops."""
    from tqdm import tqdm

    began, names = time.monotonic(), list[str]()
    runs = {"boxes": _boxes, "pools": _pools, "several objectives": _several_objectives, "learners": _learners}
    with watched(names.append), tqdm(runs.items(), file=sys.stderr, disable=True if args.quiet else None) as bar:
        for name, run in bar:
            bar.set_description(name)
            run()
    yield {"compiled": len(names), "seconds": round(time.monotonic() - began, 1)}


def _value(params: Mapping[str, Any]) -> float:
    """A function with a trend, ripples and an interaction."""
    x = np.array([v / 9.0 if k == "n" else v == "x" if k == "kind" else v for k, v in params.items()], dtype=float)
    return float(((x - 0.3) ** 2).sum() + 0.1 * np.cos(20.0 * x).sum() + x[0] * x[-1])


def _boxes() -> None:
    from bkbopt import Categorical, Float, Int, minimize

    space = {"a": Float(0.0, 1.0), "b": Float(0.0, 1.0), "n": Int(1, 9), "kind": Categorical(["x", "y"])}
    minimize(_value, space, TRIALS, seed=0)
    for acquisition in ("logei", "thompson"):
        minimize(_value, space, 14, seed=0, acquisition=acquisition)


def _pools() -> None:
    from bkbopt import Optimizer, Pool, minimize

    rows = np.random.default_rng(0).random((ROWS, 3))
    minimize(_value, rows, TRIALS, seed=0)
    minimize(_value, Pool.product({name: list(np.linspace(0.0, 1.0, 30)) for name in "abc"}), 14, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", rows)
        pool = Pool(np.load(Path(folder) / "rows.npy", mmap_mode="r"))
        told = [t.params for t in minimize(_value, pool, 14, seed=0).trials]
        Optimizer(pool, seed=0).tell(told, [*map(_value, told)])


def _several_objectives() -> None:
    from bkbopt import Float, minimize

    def f(p: dict[str, float]) -> tuple[float, float]:
        return _value(p), _value({name: 1.0 - x for name, x in p.items()})

    minimize(f, {"a": Float(0.0, 1.0), "b": Float(0.0, 1.0)}, 14, directions=["minimize", "minimize"], seed=0)


def _learners() -> None:
    from bkbopt import learners

    rng = np.random.default_rng(0)
    X = rng.random((STREAM, 3))
    y = X @ X[0]
    for name in learners.__all__:
        made = getattr(learners, name)
        if isinstance(made, type) and issubclass(made, learners.OnlineLearner) and made is not learners.OnlineLearner:
            learner = made()
            learner.fit(X, y > np.median(y) if learners.get_loss(learner.loss).task == "classification" else y)
            learner.predict(X)
