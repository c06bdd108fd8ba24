"""Fixtures of the command line."""

from pathlib import Path

import pytest

from bkbopt.adapters import shell as cli
from tests.adapters.shell.calls import SPACE


@pytest.fixture
def state(tmp_path: Path) -> str:
    """A new log."""
    (tmp_path / "space.toml").write_text(SPACE)
    assert cli.main(["init", str(tmp_path / "space.toml"), str(tmp_path / "state")]) == 0
    return str(tmp_path / "state")
