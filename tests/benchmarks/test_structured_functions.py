"""Each function has its stated minimum and its stated difficulty."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks import structured_functions as structured
from benchmarks.functions import Array, Problem
from benchmarks.structured_functions import MixedProblem

FLOATS = (
    structured.bowl,
    structured.valley,
    structured.ridge,
    structured.rotated_rastrigin,
    structured.rotated_ackley,
    structured.rotated_griewank,
    structured.ripples,
    structured.mirrored_schwefel,
    structured.gallagher,
    structured.steps,
)
MIXED = (structured.mixed_bowl, structured.mixed_ripples)
SEPARABLE = ("ripples", "schwefel")
PROBLEMS = [make(dim, seed) for make in (*FLOATS, *MIXED) for dim, seed in ((5, 0), (10, 1))]
every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)


def near(problem: Problem, n: int) -> Array:
    """Points around the minimiser at distances of all orders, in the box and on the levels."""
    rng = np.random.default_rng(2)
    best, width = np.array(problem.minimizers[0]), problem.high - problem.low
    scales = 10.0 ** rng.uniform(-5.0, -0.5, (n, 1))
    steps = scales * width * rng.standard_normal((n, problem.dim)) * (rng.random((n, problem.dim)) < 0.7)
    if isinstance(problem, MixedProblem):
        whole = np.array(problem.kinds) != "float"
        steps[:, whole] = np.round(steps[:, whole])
    return np.clip(best + steps, problem.low, problem.high)


@every_problem
def test_the_minimum_is_at_the_minimiser_and_nowhere_else(problem: Problem) -> None:
    assert len(problem.minimizers) == 1
    best = np.array(problem.minimizers[0])
    # Schwefel's sums cancel terms of size 420; rotated differences leave squares of rounding errors.
    assert float(problem.value(best)) == pytest.approx(problem.minimum, abs=2e-12)
    assert problem.value(problem.sample(50_000, np.random.default_rng(1))).min() > problem.minimum
    around = near(problem, 20_000)
    away = np.abs(around - best).max(1) > 1e-4 * (problem.high - problem.low).max()
    assert away.sum() > 10_000
    assert problem.value(around[away]).min() > problem.minimum


@pytest.mark.parametrize("make", FLOATS)
def test_a_local_search_from_the_minimiser_finds_nothing_lower(make: structured.Maker) -> None:
    problem = make(5, 1)
    (start,) = problem.minimizers
    polished = minimize(lambda x: float(problem.value(x)), start, method="Nelder-Mead", bounds=problem.bounds)
    assert polished.fun >= problem.minimum - 2e-12


@every_problem
def test_the_minimiser_is_well_inside_and_off_the_centre(problem: Problem) -> None:
    place = (np.array(problem.minimizers[0]) - problem.low) / (problem.high - problem.low)
    kinds = problem.kinds if isinstance(problem, MixedProblem) else ("float",) * problem.dim
    floats = place[[kind == "float" for kind in kinds]]
    assert floats.min() > 0.05
    assert floats.max() < 0.95
    # A choice may move the minimiser by a tenth of the range: of the mixed ones only most are off.
    assert np.median(np.abs(floats - 0.5)) > 0.1
    integers = place[[kind == "int" for kind in kinds]]
    assert np.all((integers > 0) & (integers < 1) & (integers != 0.5))


@pytest.mark.parametrize("make", [*FLOATS, *MIXED])
def test_a_seed_decides_the_function(make: structured.Maker) -> None:
    first, again, other = (make(5, seed) for seed in (3, 3, 4))
    X = first.sample(100, np.random.default_rng(0))
    np.testing.assert_array_equal(first.value(X), again.value(X))
    if not isinstance(first, MixedProblem):  # whose boxes differ
        assert np.abs(first.value(X) - other.value(X)).min() > 0
    assert first.minimizers == again.minimizers != other.minimizers


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if not isinstance(p, MixedProblem)], ids=lambda p: p.name)
def test_only_sums_over_coordinates_are_separable(problem: Problem) -> None:
    X = problem.sample(200, np.random.default_rng(4))
    Y = problem.sample(200, np.random.default_rng(5))
    crossed = [np.where(np.arange(problem.dim) == 0, a, b) for a, b in ((X, Y), (Y, X))]
    parts = [problem.value(points) for points in (X, Y, *crossed)]
    interaction = np.abs(parts[0] + parts[1] - parts[2] - parts[3]).max() / problem.iqr
    assert (interaction < 1e-10) == problem.name.startswith(SEPARABLE)


def test_bowls_have_the_condition_that_they_are_asked_for() -> None:
    problem = structured.bowl(4, seed=0, condition=500.0)
    best, steps = np.array(problem.minimizers[0]), np.eye(4)
    hessian = [
        [float(problem.value(best + a + b) - problem.value(best + a - b)) / 2 for b in steps / 10] for a in steps / 10
    ]
    curvatures = np.linalg.eigvalsh(np.array(hessian) * 100)
    np.testing.assert_allclose(curvatures, 2 * 500.0 ** (np.arange(4) / 3), rtol=1e-9)


def test_the_valley_has_a_floor_that_leads_to_the_minimum_and_shows_through_the_noise() -> None:
    problem = structured.valley(5, seed=0)
    best = np.array(problem.minimizers[0])
    # A local search that meets no noise ends at the minimum, or at the one other minimum of Rosenbrock's function.
    start = np.clip(best + 0.5, problem.low, problem.high)
    found = minimize(lambda x: float(problem.value(x)), start, method="BFGS", options={"maxiter": 2_000})
    np.testing.assert_allclose(found.x, best, rtol=0, atol=1e-3)
    # Of the floor's fall most is deeper than the noise: where w = 0 the value is log(1 + d - 1).
    assert np.log(5) > 5 * problem.noise_sd


@pytest.mark.parametrize("dim", [5, 10])
def test_ripples_have_about_ten_wells_a_coordinate(dim: int) -> None:
    problem = structured.ripples(dim, seed=0)
    wells = []
    for j in range(dim):
        line = np.tile(problem.minimizers[0], (20_001, 1))
        line[:, j] = np.linspace(*problem.bounds[j], 20_001)
        values = problem.value(line)
        wells.append(int(((values[1:-1] < values[:-2]) & (values[1:-1] < values[2:])).sum()))
    assert min(wells) >= 6
    assert np.mean(np.log10(wells)) == pytest.approx(1.0, abs=0.15)


def test_steps_are_flat_but_for_the_remainder() -> None:
    problem = structured.steps(5, seed=0)
    best = np.array(problem.minimizers[0])
    rng = np.random.default_rng(0)
    inside = best + 0.2 * rng.uniform(-1, 1, (1_000, 5))  # |z| < 0.45: all round to zero
    assert problem.value(inside).max() < 0.01 * 0.45**2
    assert problem.value(inside).max() < 0.01 * problem.noise_sd
    X = problem.sample(1_000, rng)
    jumps = np.abs(problem.value(X + 1e-7) - problem.value(X))
    assert np.median(jumps) < 1e-6


def test_gallaghers_highest_peak_is_alone() -> None:
    problem = structured.gallagher(5, seed=0)
    best = np.array(problem.minimizers[0])
    far = problem.sample(100_000, np.random.default_rng(0))
    far = far[np.abs(far - best).max(1) > 4]
    assert problem.value(far).min() > -9.1 - 1e-12  # the second highest


@pytest.mark.parametrize("make", MIXED)
def test_no_other_levels_or_choice_reach_the_minimum(make: structured.Maker) -> None:
    problem = make(5, 1)
    assert isinstance(problem, MixedProblem)
    assert problem.kinds == ("float", "float", "int", "int", "choice")
    rest = [range(int(low), int(high) + 1) for low, high in problem.bounds[2:]]
    best = np.array(problem.minimizers[0])
    floats = problem.sample(200, np.random.default_rng(0))[:, :2]
    floats[0] = best[:2]
    for levels in itertools.product(*rest):
        values = problem.value(np.column_stack([floats, np.tile(levels, (200, 1))]))
        assert values.min() > problem.minimum + (1e-3 * problem.iqr if levels != tuple(best[2:]) else -1e-12)


@pytest.mark.parametrize("make", MIXED)
def test_samples_of_mixed_problems_are_on_all_levels(make: structured.Maker) -> None:
    problem = make(10, 0)
    assert isinstance(problem, MixedProblem)
    X = problem.sample(2_000, np.random.default_rng(0))
    for j, kind in enumerate(problem.kinds):
        low, high = problem.bounds[j]
        if kind == "float":
            assert len(np.unique(X[:, j])) == 2_000
        else:
            np.testing.assert_array_equal(np.unique(X[:, j]), np.arange(low, high + 1))
            assert 4 <= high - low + 1 <= 20


def test_rotations_are_orthogonal() -> None:
    basis = structured.rotation(6, np.random.default_rng(0))
    np.testing.assert_allclose(basis @ basis.T, np.eye(6), rtol=0, atol=1e-14)
