"""Full disks, permissions, removed files, and errors at every call; `make faults` runs all of it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import disk_calls, disk_errors, disks
from tests.faults.rows import FAILED

pytestmark = pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="processes are copied by fork")

#: They take a second or two each.
LONG = ("tell of many", "save over", "stopped process (SIGSTOP)", "unusual names")
LISTED = [
    pytest.param(name, id=name, marks=[pytest.mark.slow] if any(word in name for word in LONG) else [])
    for name in disks.CASES
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others may enter: some cases are another user's, to whom pytest's folders are closed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.parametrize("name", LISTED)
def test_a_spoilt_file_or_folder_is_refused_and_nothing_changes(folder: Path, name: str) -> None:
    outcome = disks.outcome(name, folder / "case")
    if outcome.startswith(disks.LEFT_OUT):
        pytest.skip(outcome)
    assert outcome in (disks.THEN_FINE, disks.AS_IT_SHOULD)


@pytest.mark.skipif(disk_calls.missing() is not None, reason=str(disk_calls.missing()))
def test_an_error_of_any_call_is_an_answer_that_is_true() -> None:
    rows = list(disk_errors.rows(quick=True))
    assert len(rows) == len(disk_errors.INJECTED)
    assert [row.outcome for row in rows if row.failures] == []
    assert not any(what.startswith(FAILED) for row in rows for what in row.outcomes)
    assert all(row.outcomes["refused, unchanged"] for row in rows)
