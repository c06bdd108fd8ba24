"""Xopt, libEnsemble and Optimas drive the generator, each in a program of its own."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gest_api", reason="gest-api is not installed")

ROOT = Path(__file__).resolve().parents[3]
DRIVER = Path(__file__).with_name("driver.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "workers"),
    [
        ("xopt", "none"),
        ("xopt", "threads"),
        ("libensemble", "threads"),
        ("libensemble", "processes"),
        ("libensemble", "generator in a process"),
        ("optimas", "threads"),
        ("optimas", "processes"),
    ],
)
def test_a_framework_drives_the_generator_to_the_optimum(framework: str, workers: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, str(DRIVER), framework, workers, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    known = json.loads(done.stdout.splitlines()[-1])
    # What framework and generator have on record is the same: values by point, and how many have none.
    assert [values[:2] for values in known["values"]] == known["rows"]
    assert known["states"].count("FAIL") == known["failed rows"] >= 1
    assert len(known["rows"]) + known["failed rows"] >= 24
    # When the run ends some points have been suggested that nobody evaluates any more.
    assert known["states"].count("RUNNING") <= 3
    x, n, value = known["best"]
    assert (n, x) == (1, pytest.approx(0.5, abs=0.02))
    assert value == pytest.approx(1.04, abs=0.01)
