"""Logs over pools whose rows are not in the log, but in a file that is given by --pool."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from tests.adapters.shell.calls import call, refused

FRAME = pd.DataFrame(np.random.default_rng(0).random((30, 2)), columns=["u", "v"]).assign(
    name=[f"m{i}" for i in range(30)]
)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_commands_take_the_rows_of_a_pool_from_a_file(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    frame, rows, log = pd.read_csv(tmp_path / "rows.csv"), tmp_path / f"rows.{ending}", tmp_path / "log.db"
    if ending == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(rows)
    opt = bo.Optimizer(bo.Pool(frame, id_column="name"), seed=0, n_startup_trials=4, storage=log)
    opt.tell_rows(["m3", "m7", "m12"], [3.0, 1.0, 2.0])
    (best,) = call(capsys, "best", log, "--pool", rows)
    assert best["label"] == opt.recommend().label == "m7"
    assert best["observed"]["label"] == "m7"
    first, second = call(capsys, "ask", log, "-n", "2", "--pool", rows)
    assert [first["label"], second["label"]] == [trial.label for trial in opt.trials[3:]]
    (queued,) = call(capsys, "enqueue", log, '{"name": "m9"}', "--pool", rows)
    assert (queued["label"], queued["index"]) == ("m9", 9)
    (told,) = call(capsys, "tell", log, "--params", '{"name": "m20"}', "0.5", "--pool", rows)
    assert (told["label"], told["value"]) == ("m20", 0.5)
    if ending == "parquet":  # the file is read by the same lines for all commands, and the pictures take long
        return
    (report,) = call(capsys, "report", log, tmp_path / "run.html", "--pool", rows)
    assert report["trials"] == 7
    call(capsys, "plot", log, tmp_path / "run.png", "--kind", "convergence", "--pool", rows)


def test_other_rows_and_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.db"
    bo.Optimizer(bo.Pool(FRAME, id_column="name"), storage=log, seed=0)
    assert "in the shell --pool with a file of them" in refused(capsys, "ask", log)
    FRAME.iloc[::-1].to_csv(tmp_path / "rows.csv", index=False)
    assert "expected the 30 rows of the log, got 30 other rows" in refused(
        capsys, "ask", log, "--pool", tmp_path / "rows.csv"
    )
    (tmp_path / "empty.csv").write_text("")
    assert "empty.csv: expected a CSV file in UTF-8, got No columns" in refused(
        capsys, "ask", log, "--pool", tmp_path / "empty.csv"
    )
    assert "no.csv: No such file" in refused(capsys, "ask", log, "--pool", tmp_path / "no.csv")
