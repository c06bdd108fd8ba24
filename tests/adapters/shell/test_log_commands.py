"""Commands that need no model do what the optimizer does, and import neither torch nor NumPy."""

import contextlib
import csv
import io
import json
import os
import signal
import sqlite3
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

import bkbopt as bo
from bkbopt.adapters import shell as cli
from bkbopt.adapters.shell import writing
from bkbopt.adapters.shell.progress import Progress
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.trials import Outcome, utc_now
from tests.adapters.shell.calls import call, process, refused, text_of, value

pty = pytest.importorskip("pty", reason="the terminals of these tests are those of POSIX")

#: Runs commands, one for each JSON list in the arguments, and prints which of the slow modules were imported.
RUNNER = """
import json, sys
from bkbopt.adapters.shell import main
for arguments in map(json.loads, sys.argv[1:]):
    assert main(arguments) == 0, arguments
print([name for name in ("torch", "numpy", "scipy", "tqdm", "pandas") if name in sys.modules])
"""


def test_commands_on_the_log_import_neither_torch_nor_numpy(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "ask", state, "-n", 4)
    commands = [
        ["tell", state, "0", "0.5", "--std", "0.1"],
        ["fail", state, "1"],
        ["set-user-attr", state, "0", "note=slow"],
        ["show", state],
        ["show", state, "--trials"],
        ["watch", state, "--once"],
        ["export", state, state + ".csv"],
        ["export", state, "-"],
        ["recover", state, "--list"],
        ["recover", state, "--older-than", "0", "--enqueue"],
    ]
    light = process(*map(json.dumps, commands), code=RUNNER)
    out, err = light.communicate(timeout=120)
    assert (light.returncode, err) == (0, "")
    assert out.splitlines()[-1] == "[]"
    assert [trial.state for trial in bo.Optimizer.load(state).trials] == ["COMPLETE", *["FAIL"] * 3, *["WAITING"] * 2]


def test_attributes_come_with_outcomes_and_alone(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "ask", state, "-n", 2)
    call(capsys, "set-user-attr", state, 0, "host=a=1", "job=17")
    (told,) = call(capsys, "tell", state, 0, 0.5, "--user-attr", "scores=[1, 2.5]", "--user-attr", "note=it is late")
    (failed,) = call(capsys, "fail", state, 1, "--user-attr", "error=oom")
    assert told["user_attrs"] == {"host": "a=1", "job": 17, "scores": [1, 2.5], "note": "it is late"}
    assert failed["user_attrs"] == {"error": "oom"}
    assert [row.get("user_attrs") for row in call(capsys, "show", state, "--trials")] == [*map(dict, attrs_of(state))]
    point = json.dumps({**bo.Optimizer.load(state).trials[0].params, "rate": 0.5})
    (new,) = call(capsys, "tell", state, 0.25, "--params", point, "--user-attr", "by=ann")
    assert new["user_attrs"] == attrs_of(state)[2] == {"by": "ann"}
    assert "got 'host'" in refused(capsys, "set-user-attr", state, 0, "host")
    twice = ("--user-attr", "a=1", "--user-attr", "a=2")
    for call_of_it in (("tell", state, 0, 1, "--replace"), ("fail", state, 2), ("tell", state, 1, "--params", point)):
        assert "--user-attr: expected each name once" in refused(capsys, *call_of_it, *twice)
    assert "NAME=VALUE: expected each name once" in refused(capsys, "set-user-attr", state, 0, "a=1", "a=2")
    assert "expected the id of a trial (0 to 2), got 9" in refused(capsys, "set-user-attr", state, 9, "host=a")


def attrs_of(state: str) -> list[dict[str, object]]:
    return [dict(trial.user_attrs) for trial in bo.Optimizer.load(state).trials]


def test_outcomes_are_those_that_the_optimizer_writes(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    opt = bo.Optimizer.load(state)
    opt.ask(4)
    call(capsys, "ask", state, "-n", 4)
    call(capsys, "tell", state, 2, "0.1", "--std", "1e-3")
    opt.tell(2, 0.1, std=1e-3)
    call(capsys, "fail", state, 0)
    opt.fail(0)
    call(capsys, "recover", state, "--older-than", 0, "--enqueue")
    opt.recover(enqueue=True)
    call(capsys, "ask", state, "-n", 3)
    opt.ask(3)
    ours = bo.Optimizer.load(state)

    def told(trial: bo.Trial) -> tuple[object, ...]:
        return trial.id, dict(trial.params), trial.state, trial.values, trial.stds

    assert list(map(told, ours.trials)) == list(map(told, opt.trials))
    assert [trial.state for trial in opt.trials] == ["FAIL", "FAIL", "COMPLETE", "FAIL", *["RUNNING"] * 3]
    for other in (1, 3):
        assert ours.trials[other].params == ours.trials[{1: 4, 3: 5}[other]].params
    message = "tell: expected a running trial, but trial 2 was told the value 0.1 already; {} replaces its outcome."
    assert message.format("--replace") in refused(capsys, "tell", state, 2, 1.0)
    with pytest.raises(bo.errors.TrialStateError, match=message.format("replace=True")):
        opt.tell(2, 1.0)


def test_a_learner_takes_no_noise_from_the_shell_either(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bo.Optimizer({"x": (0.0, 1.0)}, surrogate="krr", storage=tmp_path / "log").ask()
    message = "std: an online learner gives all values the same weight"
    assert message in refused(capsys, "tell", tmp_path / "log", 0, 1.0, "--std", 0.1)
    call(capsys, "tell", tmp_path / "log", 0, 1.0)


def test_a_flipped_bit_is_found_by_every_command_that_reads_the_row(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "ask", state, "-n", 2)
    call(capsys, "tell", state, 0, 0.25)
    with contextlib.closing(sqlite3.connect(state)) as connection, connection:
        connection.execute("UPDATE log SET objectives = '[0.75]' WHERE id = 0")
    for command in (("show",), ("show", "--trials"), ("watch", "--once"), ("export", "-"), ("tell", "0", "1")):
        assert "a row with a wrong checksum" in refused(capsys, command[0], state, *command[1:])
    call(capsys, "tell", state, 1, 0.5)


def test_a_trial_of_a_space_that_is_newer_than_the_open_file_is_told(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, storage=tmp_path / "log")
    file = LogFile(tmp_path / "log")
    opt.set_space({"x": (0.0, 2.0)})
    opt.ask()
    assert writing.finish(file, 0, Outcome((1.0,)), "tell").value == 1.0
    assert opt.trials[0].value == 1.0


# -- tables ------------------------------------------------------------------------------------------------------------


def test_a_table_has_the_columns_of_the_data_frame_and_every_bit(
    state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pandas = pytest.importorskip("pandas")
    for trial in call(capsys, "ask", state, "-n", 4)[:3]:
        call(capsys, "tell", state, trial["id"], value(trial["params"]) / 3.0)
    out = tmp_path / "trials.csv"
    out.write_text("old")
    assert call(capsys, "export", state, out) == [{"export": str(out), "trials": 4}]
    assert text_of(capsys, "export", state, "-") == out.read_text()
    frame = bo.Optimizer.load(state).trials_dataframe()
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert list(rows[0]) == list(frame.columns)
    assert [float(row["value"]) for row in rows[:3]] == list(frame["value"][:3])
    assert [row["value"] for row in rows[3:]] == [""]
    assert [float(row["params_rate"]) for row in rows] == list(frame["params_rate"])
    assert [pandas.Timestamp(row["datetime_start"]) for row in rows] == list(frame["datetime_start"])
    assert [timedelta(seconds=float(row["duration"])) for row in rows[:3]] == list(frame["duration"][:3])
    assert [name for name in os.listdir(tmp_path) if "tmp" in name] == []


def test_a_table_is_utf8_whatever_the_encoding_of_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, terminal = str(tmp_path / "log.db"), io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    bo.Optimizer({"größe": ["ä", "ö"]}, seed=0, storage=log).ask()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert cli.main(["export", log, str(tmp_path / "table.csv")]) == 0
    terminal.seek(0)
    terminal.truncate()
    assert cli.main(["export", log, "-"]) == 0
    assert terminal.buffer.getvalue() == (tmp_path / "table.csv").read_bytes()  # type: ignore[attr-defined]


@pytest.mark.parametrize("in_file", [False, True])
def test_a_table_has_the_names_of_a_pools_rows(
    in_file: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pd, log = pytest.importorskip("pandas"), str(tmp_path / "log.db")
    frame = pd.DataFrame({"label": [float(i % 7) for i in range(20)], "id": [f"m{i}" for i in range(20)]})
    if in_file:
        pytest.importorskip("pyarrow")
        frame.to_parquet(tmp_path / "rows.parquet")
    opt = bo.Optimizer(bo.Pool(tmp_path / "rows.parquet" if in_file else frame, id_column="id"), seed=0, storage=log)
    for trial in opt.ask(3):
        assert call(capsys, "tell", log, trial.id, 0.5)[0]["label"] == trial.label
    opt.enqueue({"id": "m9"})
    opt.set_pool(bo.Pool(frame.iloc[10:], id_column="id"))
    opt.ask(fixed={"id": "m15"})
    rows = list(csv.DictReader(io.StringIO(text_of(capsys, "export", log, "-"))))
    assert [row["label"] for row in rows] == [trial.label for trial in opt.trials]
    assert [row["label"] for row in rows][3:] == ["m9", "m15"]
    assert [float(row["params_label"]) for row in rows] == [trial.params["label"] for trial in opt.trials]
    assert [row["label"] for row in call(capsys, "show", log, "--trials")] == [trial.label for trial in opt.trials]


def test_a_partly_queued_point_of_a_product_has_the_label_that_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pandas, log = pytest.importorskip("pandas"), str(tmp_path / "log.db")
    solvents = pandas.DataFrame({"u": [0.1, 0.5, 0.5, 0.9]}, index=["a", "b", "twin of b", "c"])
    opt = bo.Optimizer(bo.Pool.product({"solvent": solvents, "dose": [1, 2, 3]}), seed=0, storage=log)
    queued = opt.enqueue({"solvent": "twin of b"})
    assert queued.params == {"solvent": "twin of b", "solvent.u": 0.5}
    opt.enqueue({"solvent": "c"})

    def shown() -> list[str]:
        rows = list(csv.DictReader(io.StringIO(text_of(capsys, "export", log, "-"))))
        assert [row["params"] for row in call(capsys, "show", log, "--trials")] == [t.params for t in opt.trials]
        assert bo.Optimizer.open(log).trials == opt.trials
        return [row["params_solvent"] for row in rows]

    assert shown() == ["twin of b", "c"]
    asked = bo.Optimizer.open(log).ask()  # by another process, that has read the file
    assert opt.ask(fixed={"dose": 3}).params["solvent"] == "c"
    assert (asked.id, asked.params["solvent"], shown()) == (0, "twin of b", ["twin of b", "c"])
    assert asked.index in (6, 7, 8)
    opt.enqueue({"solvent": "c"})
    opt.set_pool(bo.Pool.product({"solvent": solvents.iloc[:3], "dose": [1, 2, 3]}))  # without "c"
    again = bo.Optimizer.open(log)
    assert [again.trials[2].params, opt.trials[2].params] == [{"solvent": "c", "solvent.u": 0.9}] * 2
    rows = list(csv.DictReader(io.StringIO(text_of(capsys, "export", log, "-"))))
    assert [row["params_solvent"] for row in rows] == ["twin of b", "c", "c"]


def test_a_table_has_the_labels_of_a_products_parts_also_of_queued_trials(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pandas = pytest.importorskip("pandas")
    solvents = pandas.DataFrame({"id": ["S1", "S2", "S3"], "a": [0.1, 0.5, 0.9], "kind": ["x", "y", "x"]})
    others = pandas.DataFrame({"id": ["L1", "L2"], "a": [1.0, 2.0]})
    parts = {"solvent": bo.Pool(solvents, id_column="id"), "T": [20, 60], "ligand": bo.Pool(others, id_column="id")}
    log = tmp_path / "log"
    opt = bo.Optimizer(bo.Pool.product(parts), seed=0, storage=log)
    opt.tell_rows([0, 5, 10, 11], [1.0, 2.0, 3.0, 4.0])
    opt.enqueue({"solvent": "S2"})
    opt.enqueue({"ligand": "L2", "T": 60})
    frame = opt.trials_dataframe()
    rows = list(csv.DictReader(io.StringIO(text_of(capsys, "export", log, "-"))))
    assert set(rows[0]) == set(frame.columns)
    for name in ("params_solvent", "params_ligand"):
        assert [row[name] for row in rows] == frame[name].fillna("").tolist()
    assert [row["params"] for row in call(capsys, "show", log, "--trials")] == [t.params for t in opt.trials]


# -- progress ----------------------------------------------------------------------------------------------------------


def test_progress_counts_and_names_the_best_feasible_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, constraints=["heat"], seed=0, storage=tmp_path / "log")
    progress = Progress(LogFile(tmp_path / "log"))
    assert text_of(capsys, "watch", tmp_path / "log", "--once") == "0 complete, 0 running, 0 queued, 0 failed\n"
    opt.ask(5)
    opt.tell(0, 1.5, constraints={"heat": -1.0})
    opt.tell(3, 0.5, constraints={"heat": 1.0})
    opt.tell(1, 2.5, constraints={"heat": -1.0})
    opt.fail(2)
    opt.enqueue({"x": 0.5})
    line = text_of(capsys, "watch", tmp_path / "log", "--once")
    assert line.startswith("3 complete, 1 running, 1 queued, 1 failed; best 1.5 (trial 0); ")
    assert "trials/min; last 0 s ago" in line
    assert progress.update()
    assert not progress.update()
    opt.heartbeat(4)
    assert not progress.update()  # nothing that people look for
    assert progress.running[4].seen_at is not None
    assert progress.line(opt.trials[2].told_at + timedelta(hours=5)).endswith("; last 5 h ago")


def test_lost_trials_that_were_queued_again_are_not_counted_as_failed(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    opt = bo.Optimizer.open(state)
    opt.ask(3, heartbeat=True)
    opt.fail(0)
    opt.recover(enqueue=True)  # as `bkbopt run` does after Ctrl-C
    opt.tell(opt.ask(), 1.0)
    (shown,) = call(capsys, "show", state)
    assert (shown["complete"], shown["queued"], shown["failed"], shown["lost"]) == (1, [4], 1, 2)
    assert "1 queued, 1 failed, 2 lost; " in text_of(capsys, "watch", state, "--once")


def test_values_may_be_told_by_the_names_of_the_objectives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.db"
    directions = {"loss": "minimize", "a=b": "maximize"}
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=directions, constraints=["heat"], seed=0, storage=path)
    opt.ask(3)
    (told,) = call(capsys, "tell", path, 0, "a=b=-2", "loss=1e-3", "--constraint", "heat=0")
    assert (told["values"], told["constraints"]) == ({"loss": 1e-3, "a=b": -2.0}, {"heat": 0.0})
    (told,) = call(capsys, "tell", path, "--params", '{"x": 0.5}', "loss=1", "a=b=2")
    assert told["values"] == {"loss": 1.0, "a=b": 2.0}
    for values in (("loss=1",), ("loss=1", "a=b=2", "heat=0"), ("loss=1", "2"), ("loss=1", "loss=1", "a=b=2")):
        text = refused(capsys, "tell", path, 1, *values)
        assert f"expected loss=VALUE a=b=VALUE, or values alone in this order, got {' '.join(values)}; give" in text
    assert "invalid float value: 'heat=0'; give the value of a constraint as" in refused(
        capsys, "tell", path, 1, "heat=0"
    )
    assert bo.Optimizer.open(path).n_complete == 2


def test_a_trial_may_be_reported_as_lost(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    bo.Optimizer.open(state).ask(2)
    call(capsys, "fail", state, 0, "--lost")
    call(capsys, "fail", state, 1)
    assert [trial.id for trial in bo.Optimizer.open(state).lost_trials] == [0]
    (shown,) = call(capsys, "show", state)
    assert (shown["failed"], shown["lost"]) == (1, 1)


def test_a_failed_trial_whose_point_is_queued_by_hand_has_failed(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    opt = bo.Optimizer.open(state)
    trial = opt.ask(heartbeat=True)
    opt.fail(trial)
    opt.enqueue(trial.params)
    assert opt.lost_trials == []
    (shown,) = call(capsys, "show", state)
    assert (shown["queued"], shown["failed"], shown["lost"]) == ([1], 1, 0)
    assert "1 queued, 1 failed" in (line := text_of(capsys, "watch", state, "--once"))
    assert "lost" not in line


def test_a_value_without_its_constraint_is_the_best_only_if_there_is_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, constraints=["heat"], seed=0, storage=tmp_path / "log")
    opt.ask(3)
    for number, y, limits, best in ((0, 0.1, None, 0), (1, 0.5, {"heat": -1.0}, 1), (2, 0.2, None, 1)):
        opt.tell(number, y, constraints=limits)
        assert f"(trial {best})" in text_of(capsys, "watch", tmp_path / "log", "--once")
        assert opt.best_trial.id == best
        assert call(capsys, "show", tmp_path / "log")[0]["feasible"] == 1


def test_progress_of_several_objectives_is_their_front(tmp_path: Path) -> None:
    pytest.importorskip("botorch")
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize", "maximize"], seed=0, storage=tmp_path / "log")
    for number, values in enumerate([(1.0, 1.0), (2.0, 2.0), (2.0, 1.0), (0.0, 0.0), (0.5, 2.0)]):
        opt.tell({"x": number / 10}, values)
    progress = Progress(LogFile(tmp_path / "log"))
    assert sorted(trial.id for trial in progress.front) == [trial.id for trial in opt.best_trials] == [3, 4]
    assert progress.summary() == "front of 2"


def test_a_watch_that_is_not_on_a_terminal_prints_a_line_for_each_change_until_ctrl_c(state: str) -> None:
    opt = bo.Optimizer.open(state)
    watching = process("watch", state, "--interval", "0.01")
    assert watching.stdout is not None
    assert watching.stdout.readline() == "0 complete, 0 running, 0 queued, 0 failed\n"
    trial = opt.ask()
    assert watching.stdout.readline().startswith("0 complete, 1 running, ")
    opt.heartbeat(trial)
    opt.tell(trial, 0.5)
    assert watching.stdout.readline().startswith("1 complete, 0 running, 0 queued, 0 failed; best 0.5 (trial 0)")
    watching.send_signal(signal.SIGINT)
    assert watching.communicate(timeout=60) == ("", "")
    assert watching.returncode == 0


def test_a_watch_on_a_terminal_rewrites_one_line(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([None, None])

    def sleep(seconds: float) -> None:
        if next(looks, "end") == "end":
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    parent, child = pty.openpty()
    with os.fdopen(child, "w") as terminal:
        monkeypatch.setattr("sys.stdout", terminal)
        assert cli.main(["watch", state]) == 0
    text = ""
    with contextlib.suppress(OSError), os.fdopen(parent, newline="") as shown:  # the end of a terminal is an error
        for part in shown:
            text += part
    assert text.count("\r0 complete, 0 running, 0 queued, 0 failed  ") == 3
    assert text.count("\n") == 1


# -- trials that nobody finishes ---------------------------------------------------------------------------------------


def test_running_trials_are_listed_with_their_age_and_failed_by_it(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    opt = bo.Optimizer.open(state)
    opt.ask(2)
    opt.ask(1, heartbeat=True)
    rows = call(capsys, "recover", state, "--list")
    assert [(row["id"], row["has_heartbeat"]) for row in rows] == [(0, False), (1, False), (2, True)]
    assert all(0.0 <= row["seconds_silent"] <= row["seconds_running"] < 60.0 for row in rows)
    assert call(capsys, "recover", state, "--list", "--older-than", 60) == []
    assert call(capsys, "recover", state, "--older-than", 60) == []
    # A heartbeat may come after somebody has looked who is silent: what counts is the time of the writing.
    assert writing.lose(LogFile(state), [0, 1, 2], older_than=60.0) == []
    assert writing.lose(LogFile(state), []) == []
    assert [trial.state for trial in opt.trials] == ["RUNNING"] * 3
    failed = call(capsys, "recover", state, "--older-than", 0)
    assert [(row["id"], row["state"]) for row in failed] == [(0, "FAIL"), (1, "FAIL"), (2, "FAIL")]
    assert len(opt.trials) == 3


def test_replaced_outcomes_are_those_that_the_optimizer_writes(
    state: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    call(capsys, "ask", state, "-n", 3)
    for number, y in enumerate((1.0, 100.0, 2.0)):
        call(capsys, "tell", state, number, y)
    opt = bo.Optimizer.load(state)
    opt.tell(1, 5.0, replace=True)
    progress = Progress(LogFile(state))
    assert "best 100" in progress.summary()
    assert call(capsys, "tell", state, 1, "5", "--replace")[0]["value"] == 5.0
    assert bo.Optimizer.load(state).trials == opt.trials
    assert progress.update()
    assert progress.summary() == "best 5 (trial 1)"
    assert progress.line(utc_now()).startswith("3 complete, 0 running")


def test_only_finished_trials_have_outcomes_to_replace(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "ask", state)
    assert "trial 0 is running; leave replace out" in refused(capsys, "tell", state, 0, 1.0, "--replace")
    assert "expected the id of a finished trial" in refused(capsys, "tell", state, 1.0, "--replace", "--params", "{}")
    assert bo.Optimizer.load(state).trials[0].state == "RUNNING"
