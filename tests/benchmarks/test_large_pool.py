"""The benchmarks of large pools run to their end at a tiny size."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import cluster_pool, large_pool


def test_the_file_has_the_rows_that_were_asked_for(tmp_path: Path) -> None:
    large_pool.write_rows(tmp_path / "rows", 1000)
    rows = np.memmap(tmp_path / "rows", np.float32, "r", shape=(1000, large_pool.D))
    assert 0.0 <= rows.min() < 0.01
    assert 0.99 < rows.max() < 1.0
    assert len(np.unique(rows, axis=0)) == 1000


@pytest.mark.slow
def test_a_table_is_printed_with_an_extrapolation_that_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large_pool.main(["--rows", "500", "1500", "--steps", "12", "--batch", "3", "--folder", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    small, large, far = (next(line for line in lines if name in line) for name in ("  500 ", "  1,500 ", "100,000,000"))
    assert "extrapolated" in far
    assert len(small.split()) == len(large.split()) == len(far.split()) - 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of event loops and sockets that the cluster is done with
def test_workers_ask_for_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    cluster_pool.main(["--rows", "2000", "--steps", "5", "--batch", "3", "--workers", "2"])
    (row,) = (line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  2 worker"))
    assert row[-1] == "yes"
