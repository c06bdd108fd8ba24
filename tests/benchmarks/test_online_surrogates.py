"""The table of learners as surrogates is printed, and its columns are right."""

import numpy as np
import pytest

from benchmarks import __main__ as programs
from benchmarks import online_surrogates
from benchmarks.sample_efficiency import problem_named


def test_table_has_a_row_for_each_surrogate(capsys: pytest.CaptureFixture[str]) -> None:
    online_surrogates.main(["--quick", "--surrogates", "bkb", "pkawv", "--trials", "13"])
    out = capsys.readouterr().out
    assert "branin, d = 2, 13 trials" in out
    for row in ("  bkb ", "  pkawv "):
        assert row in out
    assert "online" in programs.PROGRAMS


def test_all_surrogates_meet_the_same_start_and_noise() -> None:
    problem = problem_named("branin")
    one, two = (online_surrogates.run_surrogate(name, problem, 12, 3) for name in ("bkb", "prosnkons"))
    np.testing.assert_array_equal(one.xs[:10], two.xs[:10])
    np.testing.assert_array_equal(one.ys_noisy[:10], two.ys_noisy[:10])


@pytest.mark.slow
def test_learners_with_a_budget_fill_it() -> None:
    problem, n = problem_named("branin"), min(online_surrogates.TRIALS.values())
    runs = [online_surrogates.run_surrogate(name, problem, 26, 0) for name in ("kogd", *online_surrogates.BUDGETS)]
    assert n > 26
    points = [run.xs for run in runs]
    # Alike until there are 20 terms, and each its own way then.
    for a, others in enumerate(points):
        np.testing.assert_array_equal(others[:18], points[0][:18])
        assert all((others[20:] != b[20:]).any() for b in points[a + 1 :])


def test_the_fastest_has_all_its_trials_at_equal_time() -> None:
    rows = online_surrogates.measure(["bkb", "krr"], problem_named("branin"), 14, 1)
    fastest = min(rows, key=lambda row: float(str(row[3])))
    assert fastest[-1] == 14.0
