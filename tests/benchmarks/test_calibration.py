"""The benchmark of certificates and bands prints its tables; the maxima of its targets are right."""

import numpy as np
import pytest

import benchmarks.__main__ as programs
from benchmarks import calibration


def test_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    calibration.main(["--problems", "pool prior2", "pool limited2", "--runs", "1", "--values", "12"])
    printed = capsys.readouterr().out
    assert "regret certificate at 0.95, 1 runs" in printed
    assert "share of fresh points" in printed
    assert "calibration" in programs.PROGRAMS


@pytest.mark.parametrize("name", ["prior2", "limited2", "branin"])
def test_no_feasible_point_exceeds_the_maximum_of_a_target(name: str) -> None:
    target = calibration.target_named(name, 0)
    X = np.random.default_rng(1).random((5000, target.dim))
    assert 0.4 < target.feasible(X).mean() < 0.6 if name == "limited2" else target.feasible(X).all()
    values = target.value(X[target.feasible(X)])
    assert values.max() <= target.maximum
    assert target.maximum - values.max() < 0.1 * target.iqr
