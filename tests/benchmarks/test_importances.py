"""The benchmark of importances."""

import math

import numpy as np
import pytest

from benchmarks import importances


def test_true_indices_are_those_in_closed_form() -> None:
    first, total = importances.FUNCTIONS["Ishigami, and a column without effect"].indices()
    # Ishigami and Homma (1990): variances with a = 7, b = 0.1.
    of_y, of_x, of_xz = 49.0 / 8.0, 0.5 * (1.0 + 0.1 * math.pi**4 / 5.0) ** 2, 8.0 * 0.01 * math.pi**8 / 225.0
    exact = np.array([of_x, of_y, 0.0, 0.0]), np.array([of_x + of_xz, of_y, of_xz, 0.0])
    # 8,192 quasi-random points leave an error of 0.01.
    assert first == pytest.approx(exact[0] / exact[0].sum(), abs=0.02)
    assert total == pytest.approx(exact[1] / exact[1].sum(), abs=0.02)


def test_all_evaluators_are_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    importances.main(["--quick"])
    rows = [line.split("  ") for line in capsys.readouterr().out.splitlines() if line.startswith("  100 by")]
    found = {(row[1], cells[0]): list(map(float, cells[1:])) for row in rows if (cells := [c for c in row[2:] if c])}
    assert len(found) == 2 * len(importances.EVALUATORS)
    assert all(0.0 <= distance <= 1.0 for cells in found.values() for distance in cells[:2])
