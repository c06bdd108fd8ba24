"""Notebooks and their sources belong together, and each runs through at its smoke size."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="the extra notebooks brings it")

import nbformat

from notebooks import build
from tests.sweeps import slow_but

ROOT = Path(__file__).resolve().parents[2]
each_notebook = pytest.mark.parametrize("name", build.NAMES)


def written(name: str) -> nbformat.NotebookNode:
    return nbformat.read(build.HERE / f"{name}.ipynb", as_version=4)


def source(name: str) -> str:
    return (build.HERE / f"{name}.py").read_text(encoding="utf-8")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, str(build.HERE / "build.py"), *arguments],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_every_notebook_has_its_source() -> None:
    assert sorted(path.stem for path in build.HERE.glob("*.ipynb")) == build.NAMES
    assert "variance_starvation" in build.NAMES


def test_the_readme_of_the_folder_lists_every_notebook() -> None:
    assert (
        sorted(re.findall(r"\((\w+)\.ipynb\)", (build.HERE / "README.md").read_text(encoding="utf-8"))) == build.NAMES
    )


@each_notebook
def test_a_notebook_is_that_of_its_source(name: str) -> None:
    def parts(cells: list[nbformat.NotebookNode]) -> list[tuple[str, str, str]]:
        return [(cell.id, cell.cell_type, cell.source) for cell in cells]

    assert parts(written(name).cells) == parts(build.cells_of(source(name))), "run: make notebooks ARGS=" + name


@each_notebook
def test_a_notebook_was_run_from_its_first_cell_to_its_last_without_errors_or_warnings(name: str) -> None:
    cells = [cell for cell in written(name).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]


@each_notebook
def test_a_notebook_shows_a_picture_and_is_small(name: str) -> None:
    outputs = [output for cell in written(name).cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert (build.HERE / f"{name}.ipynb").stat().st_size < 400_000


@each_notebook
def test_a_notebook_begins_with_its_title_and_ends_with_assertions(name: str) -> None:
    first, *_, last = build.cells_of(source(name))
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    assert last.cell_type == "code"
    assert "\nassert " in last.source


# One of them always; `-m notebook` runs all.
@pytest.mark.notebook
@pytest.mark.parametrize("name", slow_but({"how_it_scales"}, build.NAMES))
def test_a_notebook_runs_and_its_assertions_hold_at_its_smoke_size(name: str) -> None:
    before = (build.HERE / f"{name}.ipynb").read_bytes()
    done = run(name, "--smoke")
    assert done.returncode == 0, done.stderr
    assert (build.HERE / f"{name}.ipynb").read_bytes() == before


def test_cells_are_split_at_their_markers_and_text_loses_its_hashes() -> None:
    code, text = build.cells_of(
        "# a preamble\n\n# %%\nx = 1  # %% no marker\n\n# %% [markdown]\n# # Title\n#\n# text\n"
    )
    assert (code.cell_type, code.source) == ("code", "x = 1  # %% no marker")
    assert (text.cell_type, text.source) == ("markdown", "# Title\n\ntext")


def test_a_cell_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="AssertionError"):
        build.executed("# %%\nassert False\n", tmp_path)


def test_an_unknown_name_is_refused() -> None:
    done = run("no_such_notebook")
    assert done.returncode == 2
    assert "no_such_notebook" in done.stderr
