"""Many processes and threads on one log; `make faults` runs the full numbers."""

from pathlib import Path

import pytest

from tests.faults import crowds
from tests.faults.rows import Row

pytestmark = pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="processes are copied by fork")


def is_exact(row: Row) -> bool:
    return all(outcome.startswith("exact") for outcome in row.outcomes)


def test_processes_on_one_file_lose_nothing_and_propose_nothing_twice(tmp_path: Path) -> None:
    row = crowds.processes(tmp_path / "a", 8, 4)
    assert is_exact(row), row.outcome
    row = crowds.processes(tmp_path / "b", 2, 3, startup=3)
    assert is_exact(row), row.outcome


def test_processes_make_the_same_file_at_once(tmp_path: Path) -> None:
    row = crowds.makers(tmp_path / "a", 6, 2)
    assert is_exact(row), row.outcome


def test_readers_see_only_what_fits_together(tmp_path: Path) -> None:
    row = crowds.readers(tmp_path / "a", 4)
    assert is_exact(row), row.outcome


@pytest.mark.parametrize("on_disk", [True, False])
def test_threads_share_an_optimizer(tmp_path: Path, on_disk: bool) -> None:
    row = crowds.threads(tmp_path / "a", 8, 4, on_disk=on_disk)
    assert is_exact(row), row.outcome


def test_copies_of_a_process_go_on_with_an_open_optimizer(tmp_path: Path) -> None:
    row = crowds.forks(tmp_path / "a", 2, 4)
    assert is_exact(row), row.outcome


def test_a_fork_waits_for_what_other_threads_do(tmp_path: Path) -> None:
    row = crowds.forks_beside_a_thread(tmp_path / "a", 4)
    assert is_exact(row), row.outcome


@pytest.mark.slow
def test_a_long_run_leaves_no_files_and_little_memory(tmp_path: Path) -> None:
    row = crowds.soak(tmp_path / "a", 2_000, 400)
    assert not row.failures
    memory = float(row.outcome.split(" MB of memory")[0].rpartition(" ")[2])
    assert memory < 50.0
