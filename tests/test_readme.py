"""Every Python block of the README runs as it stands, in order, in one namespace."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_readme_has_python_blocks() -> None:
    assert len(BLOCKS) >= 4


def test_every_python_block_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "readme"}
    for i, block in enumerate(BLOCKS):
        exec(compile(block, f"README.md, block {i}", "exec"), namespace)


def test_readme_and_contributing_are_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) < 200
    assert len((README.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").split()) < 1500


def test_readme_names_only_files_that_exist() -> None:
    links = re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
