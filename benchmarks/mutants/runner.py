"""Makes a mutant, a copy of the package with one fault, and runs the tests that must detect it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutants.fault import ROOT, Fault

__all__ = ["Found", "look_for", "pass_without"]

#: What the tests need next to the package.
BESIDE = ("tests", "benchmarks", "examples", "pyproject.toml", "README.md")
#: Exit status of pytest: tests ran, and some failed. Others mean that nothing was tested.
FAILED = 1


@dataclass(frozen=True)
class Found:
    """Outcome of a mutant.

    Attributes:
        fault: its fault.
        by: the test that failed; None where all passed.
        error: the end of pytest's output where it could not run.
    """

    fault: Fault
    by: str | None
    error: str | None = None


def look_for(fault: Fault, root: Path = ROOT) -> Found:
    """Whether the tests detect the mutant with that fault."""
    text = (root / "bkbopt" / fault.file).read_text(encoding="utf-8")
    with copied(root, compiled="compiled" not in text) as folder:
        (folder / "bkbopt" / fault.file).write_text(fault.sown(text), encoding="utf-8")
        done = run_tests(folder, fault.tests)
    if done.returncode == 0:
        return Found(fault, None)
    failed = re.search(r"^FAILED tests/(.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode != FAILED or failed is None:
        return Found(fault, None, done.stdout[-2000:] + done.stderr[-2000:])
    return Found(fault, failed[1])


def pass_without(tests: Sequence[str], root: Path = ROOT) -> str | None:
    """None if the tests pass without a fault, so that a failure counts; else the end of pytest's output."""
    with copied(root, compiled=True) as folder:
        done = run_tests(folder, tests)
    return None if done.returncode == 0 else done.stdout[-2000:] + done.stderr[-2000:]


@contextmanager
def copied(root: Path, *, compiled: bool) -> Iterator[Path]:
    """A copy of the package with its tests, in a temporary folder; with numba's cache only if `compiled`.

    numba does not recompile a function when a function that it calls has changed.
    """
    with tempfile.TemporaryDirectory(prefix="bkbopt-mutant-") as name:
        folder = Path(name)
        stale = shutil.ignore_patterns(*(() if compiled else ("*.nbi", "*.nbc")))
        shutil.copytree(root / "bkbopt", folder / "bkbopt", ignore=stale)
        for beside in BESIDE:
            if (root / beside).is_dir():
                shutil.copytree(root / beside, folder / beside, ignore=shutil.ignore_patterns("__pycache__"))
            elif (root / beside).exists():
                shutil.copy2(root / beside, folder / beside)
        yield folder


def run_tests(folder: Path, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run tests of the copy up to the first that fails."""
    # The same examples at every run, and one BLAS thread, as `make test` has it.
    environment = {**os.environ, "PYTHONPATH": str(folder), "CI": "1", "OMP_NUM_THREADS": "1"}
    options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-rf"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(f"tests/{test}" for test in tests)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
