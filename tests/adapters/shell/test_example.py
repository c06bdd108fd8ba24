"""The example for the shell runs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bkbopt as bo
from tests.adapters.shell.calls import ROOT


@pytest.mark.slow  # four processes that start torch
def test_the_shell_example_runs_and_goes_on_where_it_was(tmp_path: Path) -> None:
    if shutil.which("awk") is None or shutil.which("sh") is None:
        pytest.skip("needs sh and awk")
    pytest.importorskip("matplotlib")
    tool = tmp_path / "bkbopt"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bkbopt.adapters.shell "$@"\n')
    tool.chmod(0o755)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    for trials in ("2", "3"):
        done = subprocess.run(
            ["sh", str(ROOT / "examples" / "shell" / "optimise.sh"), trials, str(tmp_path / "out")],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    best, table, plot = map(json.loads, done.stdout.splitlines())
    assert best["params"]["head"] == 60
    assert table["trials"] == len((tmp_path / "out" / "pump.csv").read_text().splitlines()) - 1 == 3
    assert plot["kind"] == "overview"
    assert len(bo.Optimizer.load(tmp_path / "out" / "pump.db").trials) == 3
    assert (tmp_path / "out" / "pump.png").stat().st_size > 0


def test_the_shell_example_s_pump_prints_one_number_and_fails_where_it_bursts() -> None:
    if shutil.which("awk") is None:
        pytest.skip("needs awk")

    def pump(speed: float, impeller: int) -> subprocess.CompletedProcess[str]:
        params = {"speed": speed, "impeller": impeller, "stages": 3, "blades": "curved", "head": 60}
        given = [word for name, value in params.items() for word in ("-v", f"{name}={value}")]
        return subprocess.run(
            ["awk", *given, "-f", str(ROOT / "examples" / "shell" / "pump.awk")],
            env={**os.environ, "BKBOPT_TRIAL": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert 0.0 < float(pump(2500.0, 140).stdout) < 10.0
    assert float(pump(2500.0, 140).stdout) < float(pump(900.0, 100).stdout)
    burst = pump(4000.0, 240)
    assert (burst.returncode, burst.stdout, burst.stderr) == (3, "", "the impeller bursts\n")
