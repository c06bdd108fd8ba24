"""The wheel contains everything that the package needs, and works without the checkout."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import bkbopt
from tests.sweeps import slow_but

ROOT = Path(__file__).resolve().parents[1]
SMOKE = """
import bkbopt as bo
assert bo.__file__.startswith({target!r}), bo.__file__
options = dict(n_startup_trials=4, storage="runs.db", seed=0)
opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2, {{"x": (0.0, 1.0)}}, n_trials=5, **options)
assert len(bo.Optimizer.open("runs.db").trials) == 5
assert opt.diagnostics[-1].n_inducing is not None
from bkbopt.adapters.shell import main
raise SystemExit(main(["best", "runs.db"]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (found,) = folder.glob("*.whl")
    return found


def test_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("bkbopt/")}
    files = [path for path in (ROOT / "bkbopt").rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    assert packed == {str(path.relative_to(ROOT)) for path in files}
    assert "bkbopt/py.typed" in packed


# Compiling the loops of the copy takes four times as long as all the rest; nightly tests do it.
@pytest.mark.parametrize("compiled", slow_but([False], [True, False]))
def test_installed_wheel_works_without_the_checkout(compiled: bool, wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(target)  # what an installer does with a wheel of pure Python, but for scripts
    script = tmp_path / "smoke.py"
    script.write_text(SMOKE.format(target=str(target)), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={
            "PYTHONPATH": str(target),
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "NUMBA_DISABLE_JIT": str(int(not compiled)),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert '"x"' in run.stdout


def test_version_is_the_same_everywhere(wheel: Path) -> None:
    cited = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    released = re.findall(r"^## \[([\w.]+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited == [bkbopt.__version__]
    assert wheel.name.split("-")[1] == bkbopt.__version__
    assert released[0] == bkbopt.__version__
