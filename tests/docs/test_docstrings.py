"""Every example in a docstring gives the stated output."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [path.relative_to(ROOT) for path in sorted((ROOT / "bkbopt").rglob("*.py"))]
MODULES = [
    ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    for file in FILES
    if ">>> " in (ROOT / file).read_text(encoding="utf-8")
]


def test_examples_are_found() -> None:
    assert "bkbopt.optimizer.optimizer" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_give_what_they_say(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.FAIL_FAST)
    assert result.attempted > 0
    assert result.failed == 0, "see the captured output"
