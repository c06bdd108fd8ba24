"""A noisy black box for the examples of parallel runs: the daily cost of a warehouse with a reorder rule.

Whenever stock plus outstanding orders fall to `reorder_at` or below, `order` more pieces are ordered; they arrive five
days later. A day's demand is Poisson with mean 8. An order costs 40, a piece in stock 0.1 a day, a back-ordered piece 2
a day.
"""

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

DEMAND, LEAD_DAYS = 8.0, 5
ORDER_COST, HOLDING_COST, BACKLOG_COST = 40.0, 0.1, 2.0


def daily_cost(params: Mapping[str, Any], days: int, rng: np.random.Generator) -> float:
    """Mean cost of a day over the simulated days."""
    stock, due, total = params["reorder_at"] + params["order"], [0] * LEAD_DAYS, 0.0
    for demand in rng.poisson(DEMAND, days).tolist():
        stock += due.pop(0) - demand
        ordered = params["order"] if stock + sum(due) <= params["reorder_at"] else 0
        due.append(ordered)
        total += ORDER_COST * (ordered > 0) + HOLDING_COST * max(stock, 0) + BACKLOG_COST * max(-stock, 0)
    return total / days


@dataclass(frozen=True)
class Simulator:
    """The black box: a short, therefore noisy simulation, and a wait that stands for the time of a real one."""

    seconds: float
    days: int = 400

    def __call__(self, params: Mapping[str, Any]) -> float:
        time.sleep(self.seconds)
        return daily_cost(params, self.days, np.random.default_rng())


def arguments(about: str) -> argparse.Namespace:
    """The command line shared by the examples of parallel runs."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--trials", type=int, default=60, help="evaluations (default 60)")
    parser.add_argument("--workers", type=int, default=4, help="evaluations at once (default 4)")
    parser.add_argument("--seconds", type=float, default=0.3, help="seconds of an evaluation (default 0.3)")
    parser.add_argument("--smoke", action="store_true", help="a few trials that take no time")
    given = parser.parse_args()
    if given.smoke:
        given.trials, given.workers, given.seconds = 14, 2, 0.02
    return given


def report(params: Mapping[str, Any], n_trials: int, n_workers: int, seconds: float, elapsed: float) -> None:
    """Print the time of the run, and the daily cost of its answer over 50,000 fresh days."""
    print(f"{n_trials} trials of {seconds} s each on {n_workers} workers took {elapsed:.1f} s")
    cost = daily_cost(params, 50_000, np.random.default_rng(0))
    print(f"reorder at {params['reorder_at']}, order {params['order']}: {cost:.2f} a day")
