"""The benchmark of many workers measures every part, on the given checkout."""

from pathlib import Path

import pytest

import bkbopt
from benchmarks import crowd_parts, crowds
from benchmarks.crowd_parts import PARTS

HERE = Path(bkbopt.__file__).resolve().parents[1]


@pytest.mark.parametrize(("part", "size"), [("start_up", 500), ("box", 2), ("sampler", 3), ("pending", 9)])
def test_every_part_gives_positive_numbers(part: str, size: int) -> None:
    numbers = PARTS[part](size)
    assert all(value > 0 for name, value in numbers.items() if "MB" not in name)


@pytest.mark.parametrize(("part", "count"), [("pool", 4), ("tell", 3)])
def test_plates_are_picked_told_and_learnt(part: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd_parts, "PLATE", 6)
    monkeypatch.setattr(crowd_parts, "TOLD", 20)
    numbers = PARTS[part](60)
    assert len(numbers) == count
    assert min(numbers.values()) > 0


def test_versions_are_measured_in_turns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[tuple[str, int, Path]] = []

    def measure(part: str, size: int, checkout: Path) -> dict[str, float]:
        ran.append((part, size, checkout))
        return {"ms": {HERE: 2.0}.get(checkout, 3.0) + len(ran) // 3}

    monkeypatch.setattr(crowds, "measure", measure)
    crowds.main(["--parts", "box", "sampler", "--repeats", "3", "--against", "/other"])
    assert [(part, checkout == HERE) for part, _, checkout in ran[:6]] == [("box", True), ("box", False)] * 3
    assert [size for _, size, _ in ran[6::6]] == [100, 1_000]
    row = next(line for line in capsys.readouterr().out.splitlines() if "box, ms" in line)
    assert [float(cell) for cell in row.split()[-3:]] == [3.0, 4.0, pytest.approx(4 / 3, rel=1e-3)]


@pytest.mark.slow
def test_a_process_measures_the_checkout_it_is_told() -> None:
    assert crowds.measure("start_up", 500, HERE)


@pytest.mark.slow
def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"expected a checkout|failed"):
        crowds.measure("start_up", 500, tmp_path)
