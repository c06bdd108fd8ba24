"""Calls of the command line, in this process and in others."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bkbopt as bo
from bkbopt.adapters import shell as cli
from tests.faults.processes import forked

ROOT = Path(__file__).resolve().parents[3]
SPACE = """
direction = "maximize"
seed = 3
n_startup_trials = 6

[space]
rate = { type = "float", low = 1e-3, high = 1.0, log = true }
width = { type = "int", low = 16, high = 64, step = 16 }
kind = ["fast", "slow"]
level = { type = "categorical", choices = [1, 2.5, true] }
threads = 4
"""
IN_PYTHON = {
    "rate": bo.Float(1e-3, 1.0, log=True),
    "width": bo.Int(16, 64, step=16),
    "kind": ["fast", "slow"],
    "level": [1, 2.5, True],
    "threads": 4,
}


def value(params: dict[str, Any]) -> float:
    return float(-((params["rate"] - 0.1) ** 2) - params["width"] / 640 - (params["kind"] == "slow"))


def call(capsys: pytest.CaptureFixture[str], *arguments: object, said: str = "") -> list[dict[str, Any]]:
    """What a command that succeeds prints, one object a line; `said` is what it says on standard error."""
    return [json.loads(line) for line in text_of(capsys, *arguments, said=said).splitlines()]


def text_of(capsys: pytest.CaptureFixture[str], *arguments: object, said: str = "") -> str:
    """What a command that succeeds prints; `said` is what it says on standard error."""
    capsys.readouterr()
    status = cli.main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert (status, err) == (0, said)
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line on standard error of a command that fails; standard output stays empty."""
    capsys.readouterr()
    try:
        status = cli.main([str(a) for a in arguments])
    except SystemExit as stop:
        status = int(stop.code or 0)
    out, err = capsys.readouterr()
    assert status in (1, 2)
    assert out == ""
    assert err.startswith("bkbopt: error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}


def process(*arguments: object, code: str | None = None) -> subprocess.Popen[str]:
    """A command in a process of its own; `code` runs in place of the command line's module."""
    start = ["-m", "bkbopt"] if code is None else ["-c", code]
    return subprocess.Popen(
        [sys.executable, *start, *map(str, arguments)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Copy:
    """A command in a copy of this process, which has imported everything: it starts at once, and may be killed."""

    def __init__(self, *arguments: object) -> None:
        self._out, self._err = (tempfile.TemporaryFile("w+") for _ in range(2))  # noqa: SIM115  # read at the end
        self.pid = forked(lambda: self._work(list(map(str, arguments))))
        self._status: int | None = None

    def _work(self, arguments: list[str]) -> None:
        os.dup2(self._out.fileno(), 1)
        os.dup2(self._err.fileno(), 2)
        with open(1, "w", closefd=False) as sys.stdout, open(2, "w", closefd=False) as sys.stderr:
            status = cli.main(arguments)
        os._exit(status)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def has_ended(self) -> bool:
        if self._status is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if found else None
        return self._status is not None

    def ended(self) -> tuple[int | None, str, str]:
        """The exit status at the end, standard output and error."""
        wait_until(self.has_ended, 240.0)
        printed = []
        for file in (self._out, self._err):
            file.seek(0)
            printed.append(file.read())
            file.close()
        return self._status, printed[0], printed[1]


def wait_until(condition: Callable[[], object], limit: float = 120.0) -> None:
    """Wait for a condition that is sure to come."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"nothing after {limit} s"
        time.sleep(0.02)


def has_ended(pid: int) -> bool:
    """Whether there is no such process, or it is one that nobody has waited for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"
