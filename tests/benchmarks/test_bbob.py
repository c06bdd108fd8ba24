"""The functions of BBOB as tasks: their minima, and what is said where their package is missing."""

import numpy as np
import pytest

from benchmarks import bbob, optuna_quality
from benchmarks.tasks import TASKS

needs_ioh = pytest.mark.skipif(not bbob.is_installed(), reason="ioh, the package with the functions, is not installed")


@needs_ioh
@pytest.mark.parametrize("instance", bbob.INSTANCES)
@pytest.mark.parametrize("number", range(1, bbob.N_FUNCTIONS + 1))
def test_no_point_is_below_the_minimum_which_the_minimiser_reaches(number: int, instance: int) -> None:
    problem = bbob.bbob(number, instance)
    # The functions add the minimum last: relative rounding of the larger of the two terms, which is the minimum.
    assert problem.value(problem.minimizers[0]) == pytest.approx(problem.minimum, abs=1e-12 * abs(problem.minimum))
    assert (problem.value(problem.sample(1000, np.random.default_rng(0))) > problem.minimum).all()


@needs_ioh
def test_the_first_function_is_the_squared_distance_to_its_minimiser() -> None:
    problem = bbob.bbob(1, 2)
    X = problem.sample(100, np.random.default_rng(0))
    squares = ((X - np.array(problem.minimizers[0])) ** 2).sum(1)
    np.testing.assert_allclose(problem.value(X), squares + problem.minimum, rtol=1e-13)


@needs_ioh
def test_tasks_are_reached_by_their_names() -> None:
    task, exact = TASKS["bbob2-f08"](), TASKS["bbob2-f08-noiseless"]()
    params, problem = {f"x{j}": 0.5 for j in range(5)}, bbob.bbob(8, 2)
    assert exact.observe(params, 0, 3) == (problem.value([0.5] * 5), problem.value([0.5] * 5))
    assert (task.minimum, task.scale) == (problem.minimum, problem.iqr)


def test_a_missing_package_is_named_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bbob, "is_installed", lambda: False)
    with pytest.raises(SystemExit, match="pip install ioh"):
        optuna_quality.main(["--set", "bbob-held-out", "--peers", "random"])
