"""The table of faults has a line for each row, and its command fails where an outcome must not be."""

import importlib
from collections import Counter
from types import SimpleNamespace

import pytest

from benchmarks import fault_table
from tests.faults.rows import FAILED, Row


@pytest.mark.parametrize("name", fault_table.HARNESSES)
def test_every_harness_gives_rows(name: str) -> None:
    assert callable(importlib.import_module(fault_table.HARNESSES[name]).rows)


@pytest.mark.parametrize(("outcome", "status"), [("intact", 0), (f"{FAILED}: a trial is lost", 1)])
def test_a_bad_outcome_ends_the_command_with_one(
    outcome: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = Row("`kill -9`", Counter({outcome: 2, "fine": 1}), unit="kills")
    monkeypatch.setitem(fault_table.HARNESSES, "kills", "harness")
    monkeypatch.setattr(importlib, "import_module", lambda name: SimpleNamespace(rows=lambda quick: [row]))
    assert fault_table.main(["--only", "kills"]) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| what was injected | how often | outcome |"
    assert lines[2].startswith("| `kill -9` | 3 kills | ")
    assert f"{outcome}: 2" in lines[2]
