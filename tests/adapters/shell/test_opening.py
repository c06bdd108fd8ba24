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
    call(capsys, "plot", log, tmp_path / "p.svg", "--kind", "pool", "--x", "u", "--y", "v", "--pool", rows)
    assert "confidence bound" in (tmp_path / "p.svg").read_text()
    assert "expected --x and --y" in refused(capsys, "plot", log, tmp_path / "p.svg", "--kind", "pool", "--pool", rows)


def test_init_makes_the_log_of_a_search_over_the_rows_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, log = tmp_path / "rows.csv", tmp_path / "log.db"
    FRAME.assign(remark="").to_csv(rows, index=False)
    features = ("--column", "v", "--column", "u")
    options = ("--id-column", "name", "--direction", "maximize", "--duplicates", "avoid", "--seed", "3")
    (made,) = call(capsys, "init", "--pool", rows, *features, *options, log)
    assert made == {"state": str(log), "direction": "maximize", "arms": 30, "parameters": ["v", "u"]}
    pool = bo.Pool(pd.read_csv(rows), id_column="name", columns=["v", "u"])
    opt = bo.Optimizer(pool, direction="maximize", duplicates="avoid", seed=3)
    asked = call(capsys, "ask", log, "-n", "4", "--pool", rows)
    assert [trial["label"] for trial in asked] == [trial.label for trial in opt.ask(4)]
    assert bo.Optimizer.load(log, pool=pool).duplicates == "avoid"


def test_init_takes_rows_without_names_and_the_log_in_front_of_the_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "rows.npy", FRAME[["u", "v"]].to_numpy())
    (made,) = call(capsys, "init", tmp_path / "log.db", "--pool", tmp_path / "rows.npy")
    assert (made["direction"], made["arms"], made["parameters"]) == ("minimize", 30, ["x0", "x1"])
    assert call(capsys, "ask", tmp_path / "log.db", "--pool", tmp_path / "rows.npy")[0]["params"].keys() == {"x0", "x1"}


def test_init_refuses_what_does_not_go_with_its_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, space, log = tmp_path / "rows.csv", tmp_path / "space.toml", tmp_path / "log.db"
    FRAME.to_csv(rows, index=False)
    space.write_text('[space]\nkind = ["a", "b"]\n')
    (tmp_path / "top.toml").write_text('pool = "rows.csv"\n')
    (tmp_path / "below.toml").write_text('[space]\npool = "rows.csv"\n')
    way = "begins with: bkbopt init --pool ROWS STATE"
    for arguments, *messages in (
        ((rows, log), "expected a TOML file", way),
        ((tmp_path / "top.toml", log), "pool: expected no such option", way),
        ((tmp_path / "below.toml", log), "expected a parameter that varies, got fixed values of ['pool'] only", way),
        ((space, log, "--seed", "3"), "--seed: expected only with --pool"),
        ((space, log, "--id-column", "name"), "--id-column: expected only with --pool"),
        ((space,), "expected SPACE.toml and STATE, or --pool ROWS and STATE, got"),
        (("--pool", rows), "expected STATE with --pool, got []"),
        (("--pool", rows, space, log), "expected STATE with --pool, got"),
        (("--pool", rows, rows, "--force"), "state: expected another file than the rows of the pool"),
        (("--pool", rows, "--id-column", "no", log), "id_column: expected one of the columns"),
        (("--pool", tmp_path / "rows.npy", "--column", "x0", log), "--column: expected only with a CSV file"),
        (("--pool", tmp_path / "no.csv", log), "no.csv: No such file"),
    ):
        error = refused(capsys, "init", *arguments)
        assert all(message in error for message in messages)
    assert not log.exists()


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
