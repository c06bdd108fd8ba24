"""The functions of many columns are what their table says, and their comparison runs to its end."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from benchmarks import high_dimensions
from benchmarks.functions import PROBLEMS
from benchmarks.high_dimensions import COLUMNS, TASKS, diabetes, embedded, ridge_error


def test_columns_that_are_added_have_no_effect() -> None:
    hartmann = PROBLEMS["hartmann6"]
    wide, rng = embedded(hartmann, 100), np.random.default_rng(0)
    (best,) = np.array(wide.minimizers)
    assert wide.value(best) == pytest.approx(hartmann.minimum, abs=1e-6)
    lines = np.where(np.eye(100, dtype=bool), 0.9, best)  # each moves along one column
    active = np.nonzero(np.abs(wide.value(lines) - wide.value(best)) > 1e-6)[0]
    assert len(active) == 6
    others = np.setdiff1d(np.arange(100), active)
    moved = np.tile(best, (20, 1))
    moved[:, others] = rng.random((20, 94))
    np.testing.assert_allclose(wide.value(moved), wide.value(best), rtol=1e-14)


def test_ridge_regression_is_scikit_learns_on_columns_over_the_roots_of_their_penalties() -> None:
    X, y = diabetes()
    powers, half = np.random.default_rng(0).uniform(-1.0, 5.0, (2, 65)), len(y) // 2
    expected = []
    for row in powers:
        A, errors = X / 10.0 ** (row / 2.0), []
        for learnt, left in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
            model = Ridge(alpha=1.0, fit_intercept=False).fit(A[learnt], y[learnt])
            errors.append(np.mean((model.predict(A[left]) - y[left]) ** 2))
        expected.append(np.mean(errors))
    np.testing.assert_allclose(ridge_error(powers), expected, rtol=1e-8)


@pytest.mark.parametrize("name", TASKS)
def test_functions_have_the_columns_of_the_table(name: str) -> None:
    assert TASKS[name]().note == f"{COLUMNS[name]} floats, noise sd = 0.1 IQR"
    assert name in (high_dimensions.__doc__ or "")


@pytest.mark.slow
def test_comparison_runs_and_says_what_a_trial_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    high_dimensions.main(["--quick", "--trials", "12", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path)])
    out = capsys.readouterr().out
    for word in ("ackley20-off", "hartmann6-100", "random", "bkb_spherical", "ms/trial", "the whole set"):
        assert word in out
