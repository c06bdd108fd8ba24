"""Every Python block of a guide runs as it stands, in order, in one namespace for each guide."""

import re
from pathlib import Path

import pytest

from tests.sweeps import slow_but

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
NAMES = sorted(path.stem for path in GUIDES.glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


# The two slow guides take two fifths of the time of all.
@pytest.mark.parametrize("name", slow_but({*NAMES} - {"kernels-noise-budgets", "migrating"}, NAMES))
def test_every_python_block_of_a_guide_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((GUIDES / f"{name}.md").read_text(encoding="utf-8"))
    assert blocks
    namespace: dict[str, object] = {"__name__": name}
    for i, block in enumerate(blocks):
        exec(compile(block, f"{name}.md, block {i}", "exec"), namespace)


def test_guides_name_only_files_that_exist() -> None:
    root = GUIDES.parents[1]
    named = {name for path in GUIDES.glob("*.md") for name in re.findall(r"`(examples/[\w./]+)`", path.read_text())}
    assert named
    assert [name for name in sorted(named) if not (root / name).exists()] == []
