"""Screen a library whose parts are scored on the workers of a Dask cluster (here of processes on this machine).

    pip install ".[dask]"
    python examples/screen_dask.py [--rows 200000] [--batches 6] [--size 16] [--workers 2] [--smoke]
    python examples/screen_dask.py --scheduler tcp://scheduler:8786 --folder /shared/library

The library is made by the program, a file for each part, in a folder that the workers see (`--folder`; by default a
temporary one). The measurements are synthetic too: the affinity of a molecule with these descriptors, with noise.
"""

import argparse
import contextlib
import tempfile
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import bkbopt as bo

D, PARTS = 8, 5


def make_library(folder: Path, n: int) -> np.ndarray:
    """Write random descriptors in parts of different sizes; all of them, to compare with."""
    rng = np.random.default_rng(0)
    rows = rng.random((n, D), dtype=np.float32)
    cuts = np.sort(rng.choice(n - 1, PARTS - 1, replace=False)) + 1
    for i, part in enumerate(np.split(rows, cuts)):
        np.save(folder / f"part-{i}.npy", part)
    return rows


def affinity(x: np.ndarray) -> np.ndarray:
    """Affinity of molecules with the descriptors `x (n, d)`, without noise."""
    return -((x[:, :4] - [0.2, 0.7, 0.5, 0.9]) ** 2).sum(1) + 0.2 * np.cos(9.0 * x[:, 4])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--size", type=int, default=16, help="of a batch")
    parser.add_argument("--workers", type=int, default=2, help="processes of the cluster that the program starts")
    parser.add_argument("--scheduler", help="address of a running cluster")
    parser.add_argument("--folder", type=Path, help="an empty folder that all workers can read")
    parser.add_argument("--smoke", action="store_true", help="a small library, two batches")
    given = parser.parse_args()
    n, batches, size = (3000, 3, 8) if given.smoke else (given.rows, given.batches, given.size)

    with contextlib.ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        library = make_library(folder, n)
        cluster = given.scheduler or stack.enter_context(
            LocalCluster(n_workers=given.workers, threads_per_worker=1, dashboard_address=None)
        )
        client = stack.enter_context(Client(cluster))
        pool = bo.Pool(folder, client=client)
        opt = bo.Optimizer(pool, direction="maximize", duplicates="avoid", seed=0)
        rng, seconds = np.random.default_rng(1), 0.0
        for number in range(batches):
            start = time.perf_counter()
            trials = opt.ask(size)
            seconds += time.perf_counter() - start
            x = np.array([list(trial.params.values()) for trial in trials])
            opt.tell(trials, affinity(x) + 0.02 * rng.standard_normal(size))
            print(f"batch {number + 1}: best value {opt.best_trial.value:.3f}")
        choice = opt.recommend()
    found = affinity(np.array([list(choice.params.values())]))[0]
    better = int((affinity(library) > found).sum())
    print(f"{n:,} rows in {PARTS} parts: {batches * size} evaluated, {1e3 * seconds / batches / size:.0f} ms a trial")
    print(f"recommended row {choice.index}: {better} rows of the library are better")


if __name__ == "__main__":  # worker processes import this file
    main()
