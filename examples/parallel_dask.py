"""Trials on a Dask cluster (here of processes on this machine): `minimize` with the client's executor.

    pip install ".[dask]"
    python examples/parallel_dask.py [--trials 60] [--workers 4] [--seconds 0.3] [--smoke]

On your own cluster, connect by `Client("tcp://scheduler:8786")`; the rest is the same.
"""

import time

import inventory
from distributed import Client, LocalCluster
from inventory import Simulator, arguments, report

import bkbopt as bo

SPACE = {"reorder_at": bo.Int(0, 120), "order": bo.Int(10, 250)}


def main() -> None:
    given = arguments("A Dask cluster")
    with (
        LocalCluster(n_workers=given.workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.upload_file(inventory.__file__)  # the black box must be importable where it runs
        # pure=False: Dask would else hand out the old value where the same parameters are evaluated again.
        executor = client.get_executor(pure=False)
        start = time.perf_counter()
        opt = bo.minimize(
            Simulator(given.seconds), SPACE, given.trials, executor=executor, n_workers=given.workers, seed=0
        )
        elapsed = time.perf_counter() - start
    choice = opt.recommend()
    report(choice.params, given.trials, given.workers, given.seconds, elapsed)
    print(f"the model says {choice.mean:.2f} +- {2 * choice.std:.2f} (2 sd)")


if __name__ == "__main__":  # worker processes import this file
    main()
