"""How close the search of a box comes to the largest upper confidence bound.

Run it as `python -m benchmarks.argmax_gap`. The models are those of optimizers after noisy trials of functions of six
floats. On each of them the search of an ask is compared with a thorough one: 16 times the candidates, 200 starts and
200 steps of each, with the results of the first search among its starts.

- gap: by how much the bound found is below that of the thorough search, in standard deviations at the latter's point;
- found: how often it is less than 0.001;
- ms: time of the search.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.functions import PROBLEMS as FUNCTIONS
from benchmarks.report import measuring, print_table
from bkbopt.search.criteria.criterion import UpperBound
from bkbopt.search.maximizers.box import BoxMaximizer, SearchSettings

__all__ = ["gap", "main", "studied"]

THOROUGH = SearchSettings(n_raw=16_384, n_starts=200, max_iterations=200, n_scan=200, n_scans=10)
FOUND = 1e-3
NOISE = 0.1
D = 6


def ripples(x: np.ndarray) -> float:
    """A bowl with ripples in each column, about unit range."""
    return float(((x - np.linspace(0.3, 0.7, D)) ** 2).sum() + 0.1 * np.sin(15.0 * x).sum())


def hartmann(x: np.ndarray) -> float:
    """Hartmann's function."""
    return float(FUNCTIONS["hartmann6"].value(x))


PROBLEMS: dict[str, Callable[[np.ndarray], float]] = {"Hartmann-6": hartmann, "ripples": ripples}


def studied(function: Callable[[np.ndarray], float], n_trials: int, seed: int) -> bo.Optimizer:
    """An optimizer after noisy trials of a function over the unit cube."""
    rng = np.random.default_rng([seed, 7])
    opt = bo.Optimizer([(0.0, 1.0)] * D, seed=seed)
    for _ in range(n_trials):
        trial = opt.ask()
        opt.tell(trial, function(np.array(list(trial.params.values()))) + NOISE * rng.standard_normal())
    return opt


def gap(opt: bo.Optimizer, beta: float, seed: int, settings: SearchSettings | None = None) -> tuple[float, float]:
    """The gap of one search with the settings, in standard deviations, and the seconds it takes."""
    surrogate = opt.surrogate
    model, X = surrogate.model, surrogate.observations.X
    good = X[surrogate.fitted().topk(5).indices]
    assert opt.space is not None
    score = UpperBound.over(model, beta)
    usual, thorough = BoxMaximizer(opt.space, settings), BoxMaximizer(opt.space, THOROUGH)
    start = time.perf_counter()
    found = usual.ranked(score, good, np.random.default_rng(seed), lambda *_: True)[:1]
    seconds = time.perf_counter() - start
    best = thorough.ranked(score, torch.cat([found, good]), np.random.default_rng(seed), lambda *_: True)[:1]
    scores = score(torch.cat([found, best]))
    return max(float(scores[1] - scores[0]), 0.0) / float(model(best)[1].sqrt()), seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row a function."""
    parser = Arguments(__doc__)
    parser.option("--seeds", 10, quick=2, help="models of each function")
    parser.option("--trials", 300, quick=60, help="noisy trials that a model has learnt")
    parser.option("--beta", 3.0, help="standard deviations in the upper confidence bound")
    options = parser.parse_args(arguments)
    n_seeds, n_trials = options.seeds, options.trials
    rows = []
    with measuring(1):
        for name, function in PROBLEMS.items():
            measured = [gap(studied(function, n_trials, seed), options.beta, seed) for seed in range(n_seeds)]
            gaps, seconds = np.array(measured).T
            rows.append((name, gaps.mean(), gaps.max(), (gaps < FOUND).mean(), 1e3 * np.median(seconds)))
    title = f"after {n_trials} trials, beta {options.beta:g}, {n_seeds} seeds"
    print_table(title, ("function", "mean gap, sd", "largest", "found", "ms"), rows)


if __name__ == "__main__":
    main()
