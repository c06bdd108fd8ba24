"""After kills the log has all acknowledged trials; `make faults` runs the full numbers."""

from pathlib import Path

import pytest

import bkbopt as bo
from tests.faults import kills
from tests.faults.processes import Acknowledgements

pytestmark = pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="processes are copied by fork")


@pytest.mark.parametrize(
    "options", [{}, {"writers": 4}, {"startup": 3}, {"files": 8}], ids=["one", "four", "model", "new"]
)
def test_killed_loops_lose_nothing_that_was_acknowledged(tmp_path: Path, options: dict[str, int]) -> None:
    assert set(kills.loops(tmp_path, 5, **options).outcomes) == {"intact"}


def test_killed_commands_leave_the_state_before_or_after(tmp_path: Path) -> None:
    assert set(kills.shells(tmp_path, 3).outcomes) == {"intact"}


@pytest.mark.parametrize(
    "promise",
    [
        {"what": "asked", "id": 0, "params": {"x": 0.5, "k": 1, "c": "red"}},
        {"what": "told", "id": 1, "params": {"x": 0.25, "k": 3, "c": "red"}, "value": 1.0},
        {"what": "failed", "id": 0, "params": {"x": 0.25, "k": 3, "c": "red"}},
        {"what": "queued", "id": 7, "params": {}},
    ],
)
def test_the_check_notices_what_is_not_in_the_log(tmp_path: Path, promise: dict[str, object]) -> None:
    run = kills.Loops(tmp_path)
    run.path.parent.mkdir()
    run.notes.append(tmp_path / "notes")
    past = {"x": 0.25, "k": 3, "c": "red"}
    run.opened().tell(past, kills.value_of(past))
    Acknowledgements(run.notes[0]).add(**promise)  # type: ignore[arg-type]
    assert "was lost" in kills.check(run)


def test_an_empty_file_is_made_a_log_and_is_none_when_it_is_only_opened(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    path.touch()
    with pytest.raises(bo.errors.StateFileError, match="got an empty file; make a log: Optimizer"):
        bo.Optimizer.open(path)
    assert bo.Optimizer({"x": (0.0, 1.0)}, storage=path).ask().id == 0
    assert len(bo.Optimizer.open(path).trials) == 1
