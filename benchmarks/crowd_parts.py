"""The measurements of `benchmarks.crowds`, one a process: `python -P benchmarks/crowd_parts.py PART SIZE`.

It prints a JSON object of names and numbers. It imports nothing from `benchmarks`, so that it can time another checkout
of bkbopt, given by `PYTHONPATH=CHECKOUT`, that has no such file.
"""

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optuna
import torch

import bkbopt as bo
from bkbopt.adapters.optuna import BKBSampler
from bkbopt.kernels import matern52

__all__ = ["PARTS", "main"]

D_POOL, D_BOX = 10, 6
#: Values told before a pool is searched, and a plate of picks.
TOLD, PLATE = 768, 384
NOISE_SD = 0.1
#: A start-up design that no run here comes to the end of.
STARTUP = 10**9

Numbers = dict[str, float]


def _values(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A bowl with a ripple at points X (n, d) of the unit cube, with noise, (n,)."""
    centred = X - np.linspace(0.3, 0.7, X.shape[1])
    return np.asarray((centred**2).sum(1) + 0.1 * np.sin(6.0 * X.sum(1)) + NOISE_SD * rng.standard_normal(len(X)))


def _seconds(call: Callable[[], object]) -> float:
    """Processor time: on one thread it equals the time of a call on an idle machine."""
    start = time.process_time()
    call()
    return time.process_time() - start


def _pool(n_arms: int, **options: Any) -> tuple[bo.Optimizer, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(0)
    rows = rng.random((n_arms, D_POOL))
    return bo.Optimizer(bo.Pool(rows), seed=0, **options), rows, rng


def _tell_rows(opt: bo.Optimizer, rows: np.ndarray, n: int, rng: np.random.Generator) -> None:
    told = rng.choice(len(rows), min(n, len(rows)), replace=False)
    opt.tell_rows(told, _values(rows[told], rng))


def _use_once() -> None:
    """Load the modules and compile the loops that suggestions need, before anything is measured."""
    rng = np.random.default_rng(1)
    for where, d in (([(0.0, 1.0)] * D_BOX, D_BOX), (bo.Pool(rng.random((50, D_POOL))), D_POOL)):
        opt = bo.Optimizer(where, seed=1, n_startup_trials=12)
        trials = opt.ask(40)  # enough for models that compiled loops evaluate
        opt.tell(trials, _values(rng.random((40, d)), rng).tolist())
        trials = opt.ask(3)
        opt.tell(trials, [0.1, 0.2, 0.3])
        opt.surrogate.posterior(opt.encode([trials[0].params]))


def _rows_of(trials: list[bo.Trial]) -> list[int]:
    return [trial.index for trial in trials if trial.index is not None]


def pool(n_arms: int) -> Numbers:
    """Picks from a pool with values, a plate at a time."""
    opt, rows, rng = _pool(n_arms)
    _tell_rows(opt, rows, TOLD, rng)
    found: Numbers = {"first ask after 768 values: ms": 1e3 * _seconds(opt.ask)}

    def plate() -> tuple[list[bo.Trial], float]:
        start = time.process_time()
        trials = opt.ask(PLATE)
        return trials, 1e3 * (time.process_time() - start) / len(trials)

    trials, found["ask(384): ms a pick"] = plate()
    values = _values(rows[_rows_of(trials)], rng).tolist()
    found["tell of 384: ms"] = 1e3 * _seconds(lambda: opt.tell(trials, values))
    _, found["ask(384) after it, fits included: ms a pick"] = plate()
    return found


def start_up(n_arms: int) -> Numbers:
    """Picks from a pool without values."""
    opt, _, _ = _pool(n_arms, n_startup_trials=STARTUP)
    opt.ask()
    return {"start-up ask(384): ms a pick": 1e3 * _seconds(lambda: opt.ask(PLATE)) / PLATE}


def tell(n_arms: int) -> Numbers:
    """Learning a plate of new rows with a given kernel, without fits, and for comparison one pass over its features.

    The rows are drawn: with a given kernel `ask` may suggest one row for the whole plate.
    """
    surrogate = bo.BKB(matern52(D_POOL, 1.0), NOISE_SD**2)
    opt, rows, rng = _pool(n_arms, surrogate=surrogate, fit=False)
    _tell_rows(opt, rows, TOLD, rng)
    told = {trial.index for trial in opt.trials}
    untold = [row for row in rng.permutation(len(rows)).tolist() if row not in told]
    for row in untold[:PLATE]:
        opt.enqueue({f"x{j}": float(v) for j, v in enumerate(rows[row])})
    trials = opt.ask(PLATE)
    chosen = rows[_rows_of(trials)]
    values = _values(chosen, rng).tolist()
    X = torch.as_tensor(chosen)
    one_pass = statistics.median(_seconds(lambda: opt.surrogate.posterior(X)) for _ in range(9))

    def learn() -> None:
        opt.tell(trials, values)
        _ = opt.surrogate  # what was told is learnt when it is first needed

    learning = _seconds(learn)
    return {
        "one pass over the features of 384 rows: ms": 1e3 * one_pass,
        "tell of 384 and learning them: ms": 1e3 * learning,
        "tell and learning / one pass": learning / one_pass,
    }


def box(count: int) -> Numbers:
    """Picks in a box after 300 values."""
    rng = np.random.default_rng(0)
    opt = bo.Optimizer([(0.0, 1.0)] * D_BOX, seed=0)
    X = rng.random((300, D_BOX))
    opt.tell([{f"x{j}": float(v) for j, v in enumerate(x)} for x in X], _values(X, rng))
    opt.ask()
    return {f"ask({count}): ms a pick": 1e3 * _seconds(lambda: opt.ask(count)) / count}


def sampler(running: int) -> Numbers:
    """Asks of the Optuna sampler while this number of trials run; one call an ask."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rng = np.random.default_rng(0)
    space: dict[str, Any] = {f"x{j}": optuna.distributions.FloatDistribution(0.0, 1.0) for j in range(D_BOX)}
    study = optuna.create_study(sampler=BKBSampler(seed=0))
    X = rng.random((300, D_BOX))
    for x, value in zip(X, _values(X, rng).tolist(), strict=True):
        params = dict(zip(space, x.tolist(), strict=True))
        study.add_trial(optuna.create_trial(params=params, distributions=space, value=value))
    study.ask(space)
    spent = [_seconds(lambda: study.ask(space)) for _ in range(running - 1)]
    return {f"{running:,} running, the last twenty asks: ms": 1e3 * statistics.median(spent[-20:])}


def turn(running: int) -> Numbers:
    """A tell and an ask in turns while this number of trials run, after 1,000 values."""
    rng = np.random.default_rng(0)
    opt = bo.Optimizer([(0.0, 1.0)] * D_BOX, seed=0)
    X = rng.random((1_000, D_BOX))
    opt.tell([{f"x{j}": float(v) for j, v in enumerate(x)} for x in X], _values(X, rng))
    return _turns(opt, running, lambda trial: np.array([[*trial.params.values()]]), rng)


def pool_turn(running: int) -> Numbers:
    """The same in a pool of 100,000 rows, after 768 values."""
    opt, rows, rng = _pool(100_000)
    _tell_rows(opt, rows, TOLD, rng)
    return _turns(opt, running, lambda trial: rows[[trial.index]], rng)


def _turns(opt: bo.Optimizer, running: int, row: Callable[[bo.Trial], np.ndarray], rng: np.random.Generator) -> Numbers:
    trials = opt.ask(running)

    def tell_and_ask() -> None:
        done = trials.pop(int(rng.integers(len(trials))))
        opt.tell(done, float(_values(row(done), rng)[0]))
        trials.append(opt.ask())

    spent = [_seconds(tell_and_ask) for _ in range(96)]
    return {
        f"{running:,} running, tell and ask: ms by median": 1e3 * statistics.median(spent),
        f"{running:,} running, tell and ask: ms on average": 1e3 * statistics.fmean(spent),
    }


def pending(n_pending: int) -> Numbers:
    """Asks beside many pending points and few values; the points were queued, which needs no model."""
    rng = np.random.default_rng(0)
    opt = bo.Optimizer([(0.0, 1.0)] * D_BOX, seed=0)
    X = rng.random((50 + n_pending, D_BOX))
    points = [{f"x{j}": float(v) for j, v in enumerate(x)} for x in X]
    opt.tell(points[:50], _values(X[:50], rng))
    for point in points[50:]:
        opt.enqueue(point)
    opt.ask(n_pending)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    first = _seconds(opt.ask)
    later = statistics.median(_seconds(opt.ask) for _ in range(5))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return {
        f"{n_pending:,} pending, first ask: ms": 1e3 * first,
        f"{n_pending:,} pending, later asks: ms": 1e3 * later,
        f"{n_pending:,} pending, growth of the peak: MB": grown / unit,
    }


PARTS: dict[str, Callable[[int], Numbers]] = {
    "pool": pool,
    "start_up": start_up,
    "tell": tell,
    "box": box,
    "sampler": sampler,
    "turn": turn,
    "pool_turn": pool_turn,
    "pending": pending,
}


def main(arguments: Sequence[str]) -> None:
    """Measure one part, and print its numbers and the place of the package that was measured."""
    part, size = arguments
    torch.set_num_threads(1)
    _use_once()
    print(json.dumps({"package": bo.__file__, "numbers": PARTS[part](int(size))}))


if __name__ == "__main__":
    main(sys.argv[1:])
