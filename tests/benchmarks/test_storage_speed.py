"""The benchmark of logs times the right calls, on logs with the right content."""

from pathlib import Path

import optuna
import pytest

import bkbopt as bo
from benchmarks import storage_speed


def test_logs_of_both_kinds_are_timed_in_turns_and_hold_the_same_number_of_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_speed, "CALLS", 2)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logs = [storage_speed.ours(tmp_path, 20), storage_speed.optunas(tmp_path, 20, "journal")]
    times = storage_speed.time_calls(logs)
    assert all(part > 0.0 for row in times for part in row)
    ours, theirs = ((tmp_path / name).read_text().splitlines() for name in ("ours.csv", "optuna.csv"))
    assert len(ours) == len(theirs) == 1 + 20 + 2
    assert bo.Optimizer.open(tmp_path / "ours20.db").n_complete == 22


def test_commands_of_the_shell_are_timed_and_do_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_speed, "COMMANDS", 1)
    storage_speed.ours(tmp_path, 20)
    times = storage_speed.of_processes(tmp_path / "ours20.db")
    assert len(times) == 4
    assert all(part > 0.0 for part in times)
    states = [trial.state for trial in bo.Optimizer.open(tmp_path / "ours20.db").trials[20:]]
    assert states == ["COMPLETE", "FAIL", "RUNNING"]
