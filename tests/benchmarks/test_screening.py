"""The benchmark of screening, on a small table."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import screening


def data(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.random((300, 3)).astype(np.float32)
    np.savez(folder / "casp.npz", X=X, y=(X.sum(1) * 5.0).astype(np.float32))
    return folder


def test_the_lowest_hundredth_of_casp_is_wanted(tmp_path: Path) -> None:
    library = screening.Library.read(data(tmp_path), "casp")
    assert library.wanted.sum() == 3
    assert library.y[library.wanted].min() > library.y[~library.wanted].max()


def test_a_row_that_is_evaluated_twice_is_an_error(tmp_path: Path) -> None:
    library = screening.Library.read(data(tmp_path), "casp")
    twice = lambda *_: ([np.array([1, 2]), np.array([2, 3])], [0.0, 0.0])  # noqa: E731
    with pytest.raises(AssertionError, match="expected different rows"):
        screening.screened(twice, library, tmp_path, 2, 2, 0)


def test_a_table_is_printed_for_a_file_of_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    screening.main(["--quick", "--data", str(data(tmp_path)), "--batch", "10", "--batches", "3"])
    lines = capsys.readouterr().out.splitlines()
    ours, most = (next(line.split() for line in lines if line.startswith(f"  {name}")) for name in ("bkbopt", "most"))
    assert float(ours[1]) >= 1.0
    assert most[1] == "3"


def test_where_the_data_are_missing_the_program_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    screening.main(["--data", str(tmp_path), "--sets", "w7a"])
    assert "w7a not found in" in capsys.readouterr().out
