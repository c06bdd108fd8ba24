"""`bkbopt compile`, and what is said while loops are compiled."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bkbopt as bo
from bkbopt.adapters import shell as cli
from bkbopt.adapters.shell import model_commands
from tests.fresh_loops import fresh_loop

ROOT = Path(__file__).resolve().parents[3]
#: Compiles all loops, and prints the ones that are decorated and have no code.
PROGRAM = """
import ast, importlib, json
from pathlib import Path

import bkbopt
from bkbopt.adapters.shell import main

assert main(["compile"]) == 0
root, missing = Path(bkbopt.__file__).parent, []
for path in root.rglob("*.py"):
    for f in ast.parse(path.read_text()).body:
        decorators = {d.id for d in getattr(f, "decorator_list", []) if isinstance(d, ast.Name)}
        if decorators & {"compiled", "fused", "fast"}:
            module = importlib.import_module("bkbopt." + ".".join(path.relative_to(root).with_suffix("").parts))
            loop = getattr(module, f.name)
            loop = getattr(loop, "_dispatcher", loop)
            if loop is None or not loop.signatures:
                missing.append(f.name)
print(json.dumps(missing))
"""


@pytest.mark.slow
def test_all_loops_are_compiled_but_the_one_that_needs_hundreds_of_values(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def lines() -> list[Any]:
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    first, missing = lines()
    assert first["compiled"] > 80
    assert missing == ["fold"]
    again = lines()[0]
    assert again["compiled"] == 0


def test_somebody_at_a_terminal_is_told_that_loops_are_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_commands, "ask", lambda args: [{"value": fresh_loop(tmp_path / args.state)(1.0)}])
    assert cli.main(["ask", "a"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert cli.main(["ask", "b"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"value": 2.0}
    assert err.startswith("bkbopt: Compiling loops")


def test_a_progress_bar_says_that_loops_are_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bo.minimize(lambda p: fresh_loop(tmp_path)(p["x"]), {"x": (0.0, 1.0)}, 2, seed=0)
    assert capsys.readouterr().err == ""
    bo.minimize(lambda p: fresh_loop(tmp_path / "b")(p["x"]), {"x": (0.0, 1.0)}, 2, seed=0, show_progress_bar=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("bkbopt: Compiling loops") == 1
