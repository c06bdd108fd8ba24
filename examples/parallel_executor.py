"""Trials on the cores of this machine: `minimize` with an executor of `concurrent.futures`.

    python examples/parallel_executor.py [--trials 60] [--workers 4] [--seconds 0.3] [--smoke]

Processes suit black boxes that compute in Python, threads those that wait (for a program, a server, an instrument).
Each free worker gets a point at once, which takes all points in flight into account.
"""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor

from inventory import Simulator, arguments, report

import bkbopt as bo

SPACE = {"reorder_at": bo.Int(0, 120), "order": bo.Int(10, 250)}


def main() -> None:
    given = arguments("An executor of concurrent.futures")
    start = time.perf_counter()
    fresh = multiprocessing.get_context("spawn")  # not forks of this process, which has threads
    with ProcessPoolExecutor(given.workers, fresh) as executor:
        opt = bo.minimize(Simulator(given.seconds), SPACE, given.trials, executor=executor, seed=0)
    choice = opt.recommend()
    report(choice.params, given.trials, given.workers, given.seconds, time.perf_counter() - start)
    print(f"the model says {choice.mean:.2f} +- {2 * choice.std:.2f} (2 sd)")


if __name__ == "__main__":  # worker processes import this file
    main()
