"""Time of a step over a pool on a Dask cluster, of 1, 2 and 4 processes on this machine.

Run it as `python -m benchmarks.cluster_pool`. The same search runs in this process first, over the same rows in eight
files; all must ask for the same rows. Each process has one thread. Columns are those of `benchmarks.large_pool`.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.large_pool import D, value
from benchmarks.report import measuring, print_table

__all__ = ["main", "measure"]

N_PARTS = 8


def measure(pool: Any, steps: int, batch: int) -> tuple[list[float], list[int | None]]:
    """First scan (s), median step, worst step (s) and a pick of a batch; and the rows that were asked for."""
    rng, seconds = np.random.default_rng(0), []
    opt = bo.Optimizer(pool, direction="maximize", seed=0, duplicates="avoid")
    for _ in range(10 + steps):
        start = time.perf_counter()
        trial = opt.ask()
        seconds.append(time.perf_counter() - start)
        opt.tell(trial, value(trial.params, rng))
    start = time.perf_counter()
    picked = len(opt.ask(batch))
    pick = (time.perf_counter() - start) / picked
    searched = seconds[10:]
    found = [searched[0], 1e3 * float(np.median(searched)), max(searched[1:]), sum(searched), 1e3 * pick]
    return found, [trial.index for trial in opt.trials]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = Arguments(__doc__)
    parser.option("--rows", 1_000_000, quick=20_000, help="rows of the pool")
    parser.option("--workers", (1, 2, 4), quick=(1, 2), help="processes of the cluster")
    parser.option("--steps", 60, quick=10, help="asks and tells after ten start-up trials")
    parser.option("--batch", 32, help="size of the batch that is asked for at the end")
    options = parser.parse_args(arguments)
    n, steps = options.rows, options.steps
    from distributed import Client, LocalCluster

    with measuring(1), tempfile.TemporaryDirectory() as folder:
        rows = np.random.default_rng(0).random((n, D), dtype=np.float32)
        for i, part in enumerate(np.array_split(rows, N_PARTS)):
            np.save(Path(folder) / f"{i}.npy", part)
        own, expected = measure(bo.Pool(folder), steps, options.batch)
        table: list[tuple[object, ...]] = [("this process", *own, "-")]
        for k in options.workers:
            with (
                LocalCluster(n_workers=k, threads_per_worker=1, dashboard_address=None) as cluster,
                Client(cluster) as client,
            ):
                found, asked = measure(bo.Pool(folder, client=client), steps, options.batch)
            table.append((f"{k} worker(s)", *found, "yes" if asked == expected else "NO"))
        print_table(
            f"{n:,} rows of {D} columns in {N_PARTS} files, {steps} steps, then ask({options.batch})",
            ("where", "first scan s", "median ask ms", "worst ask s", "all asks s", "pick ms", "same rows"),
            table,
        )


if __name__ == "__main__":
    main()
