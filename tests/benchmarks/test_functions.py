"""The test problems agree with BoTorch's, and their stated minima, quartiles and noise are true."""

import numpy as np
import pytest
import torch
from botorch.test_functions import Ackley, Branin, Hartmann, Levy, Rastrigin, Shekel
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from benchmarks.functions import PROBLEMS, Problem, ackley, random_peaks, schwefel
from bkbopt.errors import ArgumentError

ORACLES = {
    "branin": Branin(),
    "hartmann6": Hartmann(6),
    "ackley10": Ackley(10),
    "levy8": Levy(8),
    "rastrigin6": Rastrigin(6),
    "shekel4": Shekel(10),
}
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


@pytest.mark.parametrize("name", ORACLES)
def test_values_and_boxes_agree_with_botorch(name: str) -> None:
    problem, oracle = PROBLEMS[name], ORACLES[name]
    X = problem.sample(1_000, np.random.default_rng(0))
    expected = oracle.evaluate_true(torch.tensor(X)).numpy()
    # BoTorch keeps some of Hartmann's and Shekel's constants in single precision.
    np.testing.assert_allclose(problem.value(X), expected, rtol=1e-5 if name in ("hartmann6", "shekel4") else 1e-11)
    np.testing.assert_array_equal(np.array([problem.low, problem.high]), oracle.bounds.numpy())
    assert problem.minimum == pytest.approx(oracle.optimal_value, abs=1e-5)  # theirs has six digits


def test_schwefel_agrees_with_its_sum_written_out() -> None:
    x = [-400.0, -3.5, 0.0, 12.25, 300.0, 500.0]
    expected = 6 * 418.9828872724338 - sum(u * np.sin(abs(u) ** 0.5) for u in x)
    assert float(schwefel(6).value(x)) == pytest.approx(expected, rel=1e-14)


@every_problem
def test_minimum_is_reached_at_the_known_points_and_not_undercut_nearby(problem: Problem) -> None:
    values = problem.value(problem.minimizers)
    # Minimisers have nine digits, values are flat there; Schwefel's sums cancel terms of size 420.
    np.testing.assert_allclose(values, problem.minimum, rtol=1e-10, atol=2e-12)
    for start in problem.minimizers:
        polished = minimize(lambda x: float(problem.value(x)), start, method="Nelder-Mead", bounds=problem.bounds)
        assert polished.fun >= problem.minimum - 2e-12


@every_problem
def test_no_uniform_point_lies_below_the_minimum(problem: Problem) -> None:
    assert problem.value(problem.sample(50_000, np.random.default_rng(1))).min() > problem.minimum


@every_problem
def test_noise_is_a_tenth_of_the_interquartile_range(problem: Problem) -> None:
    values = problem.value(problem.sample(100_000, np.random.default_rng(99)))
    lower, upper = np.quantile(values, [0.25, 0.75])
    # Other points than the problem's own: each quartile has a relative error of under 1 % at 100,000 points.
    assert 10 * problem.noise_sd == pytest.approx(upper - lower, rel=0.03)


def test_noise_depends_on_seed_and_trial_only() -> None:
    branin, hartmann = PROBLEMS["branin"], PROBLEMS["hartmann6"]

    def noise(problem: Problem, seed: int, trial: int) -> float:
        x = problem.minimizers[0]
        return (problem.observe(x, seed, trial) - float(problem.value(x))) / problem.noise_sd

    assert noise(branin, 3, 5) == pytest.approx(noise(hartmann, 3, 5), abs=1e-10)
    assert len({round(noise(branin, seed, trial), 6) for seed in range(10) for trial in range(10)}) == 100
    draws = [noise(branin, 0, trial) for trial in range(2_000)]
    assert np.std(draws) == pytest.approx(1.0, rel=0.07)  # 4.5 standard errors
    assert abs(np.mean(draws)) < 0.1


@given(st.integers(1, 6), st.integers(1, 20), st.integers(0, 50))
def test_random_peaks_have_their_minimum_at_the_highest_peak(dim: int, n_peaks: int, seed: int) -> None:
    problem = random_peaks(dim, n_peaks, seed=seed)
    assert problem.value(problem.minimizers[0]) == problem.minimum
    assert problem.value(problem.sample(200, np.random.default_rng(seed))).min() > problem.minimum


def test_values_keep_the_shape_of_the_batch() -> None:
    problem = ackley(3)
    X = problem.sample(12, np.random.default_rng(0))
    batch = problem.value(X.reshape(3, 4, 3))
    assert batch.shape == (3, 4)
    np.testing.assert_allclose(batch.ravel(), [float(problem.value(x)) for x in X], rtol=1e-13)


@pytest.mark.parametrize("x", [0.5, [0.5] * 3, np.zeros((3, 1))])
def test_points_of_another_dimension_are_refused(x: object) -> None:
    with pytest.raises(ArgumentError, match="expected 2 coordinates"):
        PROBLEMS["branin"].value(x)
