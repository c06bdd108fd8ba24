"""After a power cut the log has all acknowledged trials; `make faults` runs the full numbers."""

import functools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults import disk_calls, power_loss
from tests.faults.disk_calls import Call, Kind
from tests.memory import memory_folder

pytestmark = [
    pytest.mark.skipif(disk_calls.missing() is not None, reason=str(disk_calls.missing())),
    pytest.mark.xdist_group("power loss"),  # one process for all: the recording takes as long as the tests
]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory(dir=memory_folder()) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def calls(folder: Path) -> list[Call]:
    return power_loss.record(folder, rows_at_once=40)


def outcomes(calls: list[Call], folder: Path, *, whole: bool = False) -> Iterator[str]:
    for i, cut in enumerate(power_loss.cuts(calls, str(folder / "watched"), most=1 + whole)):
        place = folder / "disk"
        place.mkdir()
        found = power_loss.check(cut, place, whole=whole and i % power_loss.EVERY == 0)
        shutil.rmtree(place)
        yield found


def test_every_disk_that_a_power_cut_may_leave_holds_what_was_said(calls: list[Call], folder: Path) -> None:
    assert set(outcomes(calls, folder, whole=True)) == {"intact"}


def is_of(call: Call, what: str) -> bool:
    """Whether a call synchronises a file whose name ends so."""
    return call.kind == Kind.SYNC and call.path.endswith(what)


@pytest.mark.parametrize("what", ["", "-journal", "watched"], ids=["all", "journals", "the folder"])
def test_the_check_notices_what_was_not_synchronised(calls: list[Call], folder: Path, what: str) -> None:
    drops: Callable[[Call], bool] = functools.partial(is_of, what=what)
    assert any(outcome.startswith("FAILED") for outcome in outcomes([c for c in calls if not drops(c)], folder))
