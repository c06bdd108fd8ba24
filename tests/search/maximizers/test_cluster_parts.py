"""Pools on a Dask cluster: the same suggestions, whatever happens to the workers."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError
from bkbopt.spaces.pool import EncodedPool, Pool
from bkbopt.spaces.stored import StoredPool, encoded_pool
from tests.spaces.stored_sources import FRAME, ROWS, mapped, parquet

distributed = pytest.importorskip("distributed")
ROOT = Path(__file__).resolve().parents[3]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of event loops and sockets that the cluster is done with
]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, processes=False, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def pool_of(arms: Any, client: Any, **options: Any) -> StoredPool:
    out = encoded_pool(Pool(arms, client=client, **options), scale=True, has_kernel=False)
    assert isinstance(out, StoredPool)
    return out


def test_rows_on_workers_are_those_in_memory(client: Any, tmp_path: Path) -> None:
    for i, piece in enumerate(np.split(ROWS, [7, 7, 300])):
        np.save(tmp_path / f"{i}.npy", piece)
    memory = EncodedPool(Pool(ROWS), scale=True, has_kernel=False)
    for arms in (tmp_path, pytest.importorskip("dask.array").from_array(ROWS, chunks=(120, 2))):
        pool = pool_of(arms, client)
        assert len(pool.rows.parts) > 2
        assert torch.equal(pool.X[:], memory.X)
        assert pool.fingerprint == memory.fingerprint
        assert pool.rows_at(pool.X[300]) == memory.rows_at(memory.X[300]) == [7, 300]
        assert pool.decode(299) == memory.decode(299)


def test_tables_on_workers_are_those_in_memory(client: Any, tmp_path: Path) -> None:
    parquet(tmp_path / "0.parquet", FRAME[:260])
    parquet(tmp_path / "1.parquet", FRAME[260:])
    memory = EncodedPool(Pool(FRAME, id_column="name"), scale=True, has_kernel=False)
    for arms in (tmp_path, pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=3)):
        pool = pool_of(arms, client, id_column="name")
        assert pool.columns.choices == memory.columns.choices  # type: ignore[union-attr]
        assert torch.equal(pool.X[:], memory.X)
        assert (pool.label(499), pool.rows_named(["m499", "m3"])) == ("m499", [499, 3])


def test_errors_of_workers_are_raised_in_this_process(client: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.where(ROWS[5] == ROWS, np.nan, ROWS))
    with pytest.raises(ArgumentError, match=r"expected finite values, got nan in column .*, row 5"):
        pool_of(tmp_path, client)
    with pytest.raises(ArgumentError, match="client: expected files or Dask collections"):
        pool_of(mapped(tmp_path / "rows"), client)


@pytest.mark.parametrize(
    "options", [{}, {"duplicates": "avoid"}, {"acquisition": "logei"}, {"acquisition": "thompson"}], ids=str
)
def test_asks_are_those_over_the_rows_in_memory(client: Any, options: dict[str, Any], tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((2000, 3), dtype=np.float32)
    for i, piece in enumerate(np.split(rows, [1, 900])):
        np.save(tmp_path / f"{i}.npy", piece)
    asked = []
    for pool in (rows, bo.Pool(tmp_path, client=client)):
        opt, rng = bo.Optimizer(pool, seed=0, **options), np.random.default_rng(1)
        for step in range(20):
            trials = opt.ask(3) if step % 5 == 4 else [opt.ask(fixed={})]
            opt.tell(trials, [trial.params["x0"] ** 2 + 0.1 * rng.standard_normal() for trial in trials])
        asked.append([trial.index for trial in opt.trials])
    assert asked[0] == asked[1]


def test_a_search_goes_on_where_workers_are_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.search.maximizers.cluster_kills"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "36 asked, equal: True" in done.stdout
