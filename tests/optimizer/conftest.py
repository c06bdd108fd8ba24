"""The path of a log, for tests of logs in files, and certificates that take less time."""

from pathlib import Path

import pytest

from bkbopt.search import certificate
from bkbopt.search.quantities import quantity
from bkbopt.surrogates import hyperparameters


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates of fewer draws and steps, for tests of what does not depend on the number of these."""
    for module, name, few in (
        (certificate, "N_DRAWS", 40),
        (certificate, "N_CANDIDATES", 100),
        (certificate, "ITERATIONS", 3),
        (quantity, "N_ENSEMBLE", 8),
        (hyperparameters, "MOST", 40),
    ):
        assert getattr(module, name) > few
        monkeypatch.setattr(module, name, few)
