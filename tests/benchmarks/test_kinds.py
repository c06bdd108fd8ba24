"""The benchmark of kinds of problems runs each of them, and measures another version in turns."""

from pathlib import Path

import pytest

from benchmarks import kinds
from benchmarks.kind_parts import KINDS, timed
from tests.benchmarks.test_crowds import HERE


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_timed(kind: str) -> None:
    numbers = timed(KINDS[kind], 14)
    assert len(numbers) == 2
    assert min(numbers.values()) > 0.0


def test_versions_are_measured_in_turns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[tuple[str, int, Path]] = []

    def measure(kind: str, trials: int, checkout: Path) -> dict[str, float]:
        ran.append((kind, trials, checkout))
        return {"ms": 2.0 if checkout == HERE else 3.0}

    monkeypatch.setattr(kinds, "_measure", measure)
    kinds.main(["--kinds", "30 flags", "--repeats", "2", "--against", "/other"])
    assert ran == [("30 flags", 200, HERE), ("30 flags", 200, Path("/other"))] * 2
    row = next(line for line in capsys.readouterr().out.splitlines() if "30 flags, ms" in line)
    assert [float(cell) for cell in row.split()[-3:]] == [2.0, 3.0, 1.5]
