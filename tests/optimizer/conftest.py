"""The path of a log, for tests of logs in files."""

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"
