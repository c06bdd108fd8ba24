"""A search on a cluster of processes, some of which are killed, and the same search in memory; run by a test.

python -m tests.search.maximizers.cluster_kills
"""

import os
import signal
import tempfile
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import bkbopt as bo

ROWS = np.random.default_rng(0).random((6000, 3), dtype=np.float32)
#: Before these steps a worker is killed: in the start-up trials, before the first scan, and between two steps.
KILLS = (3, 10, 17)


def value(params: dict[str, float]) -> float:
    return float(np.sin(5.0 * params["x0"]) + np.cos(4.0 * params["x1"]) + params["x2"])


def asked(pool: object, cluster: LocalCluster | None = None) -> list[int | None]:
    rng, out = np.random.default_rng(1), []
    opt = bo.Optimizer(pool, seed=0, duplicates="avoid")
    for step in range(24):
        if cluster is not None and step in KILLS:
            nanny = list(cluster.workers.values())[step % 2]
            os.kill(nanny.process.pid, signal.SIGKILL)
        for trial in opt.ask(4 if step % 6 == 5 else 1):
            out.append(trial.index)
            opt.tell(trial, value(trial.params) + 0.1 * rng.standard_normal())
    return out


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for i, piece in enumerate(np.split(ROWS, [10, 2500, 5000])):
            np.save(Path(folder) / f"{i}.npy", piece)
        found = asked(bo.Pool(folder, client=client), cluster)
    print(f"{len(found)} asked, equal: {found == asked(ROWS)}")


if __name__ == "__main__":
    main()
