"""The baseline: its posterior equals independent formulas, and its runs behave as in the paper."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from benchmarks.algorithm1 import (
    PoolProblem,
    RBFPool,
    draw_dictionary,
    make_pool_problem,
    nystrom_posterior,
    run_algorithm1,
)
from bkbopt.errors import ArgumentError

LAM = 0.09
LENGTHSCALE = 0.8
SETTINGS = {"lam": LAM, "qbar": 2.0, "beta": 3.0}


def pulls_of(problem: PoolProblem, n_pulls: int, n_unique: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    arms = rng.choice(rng.choice(len(problem.f), n_unique, replace=False), n_pulls)
    return arms, np.array([problem.pull(arm, rng) for arm in arms])


def tallies(arms: np.ndarray, rewards: np.ndarray, n_arms: int) -> tuple[np.ndarray, np.ndarray]:
    return np.bincount(arms, minlength=n_arms).astype(float), np.bincount(arms, rewards, minlength=n_arms)


def test_full_dictionary_gives_the_exact_gaussian_process() -> None:
    problem = make_pool_problem(500)
    arms, rewards = pulls_of(problem, n_pulls=120, n_unique=40)
    counts, sums = tallies(arms, rewards, 500)
    pool = RBFPool(problem.X, LENGTHSCALE)
    mean, leverage = nystrom_posterior(pool, np.flatnonzero(counts), counts, sums, LAM)
    oracle = GaussianProcessRegressor(RBF(LENGTHSCALE, "fixed"), alpha=LAM, optimizer=None)
    exact_mean, exact_sd = oracle.fit(problem.X[arms], rewards).predict(problem.X, return_std=True)
    # Both sides solve systems with condition numbers near 1e3 / LAM, so about 1e-12 is what double precision allows.
    np.testing.assert_allclose(mean, exact_mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(LAM * leverage, exact_sd**2, rtol=0, atol=1e-10)


def test_partial_dictionary_gives_equation_4_written_over_pulls() -> None:
    problem = make_pool_problem(300, seed=1)
    arms, rewards = pulls_of(problem, n_pulls=80, n_unique=50)
    counts, sums = tallies(arms, rewards, 300)
    dictionary = np.flatnonzero(counts)[::5]
    mean, leverage = nystrom_posterior(RBFPool(problem.X, LENGTHSCALE), dictionary, counts, sums, LAM)
    K = RBF(LENGTHSCALE)(problem.X)
    # The projected kernel q = k_S^T K_SS^-1 k_S between all arms and the pulls, repeats included.
    q = K[:, dictionary] @ np.linalg.solve(K[np.ix_(dictionary, dictionary)], K[np.ix_(dictionary, arms)])
    solved = np.linalg.solve(q[arms] + LAM * np.eye(len(arms)), np.column_stack([rewards, q.T]))
    # The plain solve with K_SS loses four to five digits; the features do not.
    np.testing.assert_allclose(mean, q @ solved[:, 0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(LAM * leverage, 1 - np.einsum("ij,ji->i", q, solved[:, 1:]), rtol=0, atol=1e-9)


def test_block_size_does_not_change_the_posterior() -> None:
    problem = make_pool_problem(200)
    counts, sums = tallies(*pulls_of(problem, n_pulls=60, n_unique=30), 200)
    pool, dictionary = RBFPool(problem.X, LENGTHSCALE), np.flatnonzero(counts)[::2]
    whole = nystrom_posterior(pool, dictionary, counts, sums, LAM, block_rows=None)
    parts = nystrom_posterior(pool, dictionary, counts, sums, LAM, block_rows=7)
    np.testing.assert_allclose(parts, whole, rtol=1e-12)  # products of other shapes sum in another order


def test_equal_arms_in_the_dictionary_are_harmless() -> None:
    problem = make_pool_problem(100)
    X = np.vstack([problem.X, problem.X[:10]])
    counts = np.zeros(110)
    counts[[0, 1, 2, 100, 101]] = 1.0
    sums = np.concatenate([problem.f, problem.f[:10]]) * counts
    mean, leverage = nystrom_posterior(RBFPool(X, LENGTHSCALE), np.flatnonzero(counts), counts, sums, LAM)
    np.testing.assert_allclose(mean[:10], mean[100:], rtol=0, atol=1e-12)
    assert (leverage > 0).all()
    assert leverage[0] < 1 / (2 + LAM) + 1e-12  # two pulls at one point


def test_regret_of_a_step_goes_down() -> None:
    early, late = [], []
    for seed in range(4):
        problem = make_pool_problem(400, d=2, lengthscale=0.3, seed=seed)
        run = run_algorithm1(problem, 300, lam=LAM, qbar=2.0, beta=5.0, seed=0)
        # In units of what a random arm loses.
        steps = np.diff(run.regret, prepend=0.0) / (problem.f.max() - problem.f).mean()
        assert (steps >= 0).all()
        early.append(steps[:100].mean())
        late.append(steps[-100:].mean())
    assert np.mean(early) < 0.5
    assert np.mean(late) < 0.2 * np.mean(early)


def test_a_seed_decides_everything() -> None:
    problem = make_pool_problem(200, seed=4)
    first, second = (run_algorithm1(problem, 60, **SETTINGS, seed=5) for _ in range(2))
    other = run_algorithm1(problem, 60, **SETTINGS, seed=6)
    np.testing.assert_array_equal(first.arms, second.arms)
    np.testing.assert_array_equal(first.rewards, second.rewards)
    np.testing.assert_array_equal(first.m, second.m)
    assert not np.array_equal(first.arms, other.arms)


def test_pulled_arms_enter_the_dictionary_as_often_as_their_pulls_and_leverage_say() -> None:
    counts = np.array([0.0, 1.0, 4.0, 2.0, 50.0])
    leverage = np.array([9.0, 0.3, 0.05, 0.0, 0.02])
    rng = np.random.default_rng(0)
    entered = np.zeros(5)
    for _ in range(4_000):
        entered[draw_dictionary(counts, leverage, 1.5, 3, rng)] += 1
    # Arm 3 has no chance of its own and enters only as the latest arm of an empty draw, which arm 4 prevents.
    expected = np.array([0.0, 0.45, 0.3, 0.0, 1.0])
    np.testing.assert_allclose(entered / 4_000, expected, rtol=0, atol=0.035)  # 4.5 standard errors
    assert entered[[0, 3, 4]].tolist() == [0, 0, 4_000]


def test_huge_qbar_keeps_every_pulled_arm() -> None:
    run = run_algorithm1(make_pool_problem(200), 50, lam=LAM, qbar=1e9, beta=3.0, seed=0)
    assert [len(set(run.arms[:t].tolist())) for t in range(50)] == run.m.tolist()


def test_empty_draw_keeps_the_latest_arm() -> None:
    run = run_algorithm1(make_pool_problem(200), 50, lam=LAM, qbar=1e-12, beta=3.0, seed=0)
    assert run.m.tolist() == [0] + [1] * 49


def test_constant_width_equals_a_callable_that_returns_it() -> None:
    problem, seen = make_pool_problem(200), []

    def width(t: int, total_leverage: float) -> float:
        seen.append((t, total_leverage))
        return 3.0

    run = run_algorithm1(problem, 40, lam=LAM, qbar=2.0, beta=width, seed=1)
    np.testing.assert_array_equal(run.arms, run_algorithm1(problem, 40, **SETTINGS, seed=1).arms)
    assert [t for t, _ in seen] == list(range(1, 40))
    assert seen[0][1] == pytest.approx(1 / (1 + LAM), rel=1e-12)  # one pull of one arm


def test_equal_scores_go_to_the_lowest_index() -> None:
    problem = make_pool_problem(20, d=2)
    doubled = PoolProblem(np.vstack([problem.X] * 2), np.tile(problem.f, 2), problem.noise_sd, problem.lengthscale)
    run = run_algorithm1(doubled, 30, **SETTINGS, seed=0, first_arm=3, block_rows=20)
    assert run.arms[0] == 3
    assert run.arms.max() < 20


def test_pool_problem_has_unit_deviation_and_the_noise_it_says() -> None:
    problem = make_pool_problem(5_000, noise_sd=0.3)
    assert problem.f.std() == pytest.approx(1.0, rel=1e-12)
    assert problem.X.shape == (5_000, 6)
    rng = np.random.default_rng(0)
    noise = np.array([problem.pull(7, rng) for _ in range(4_000)]) - problem.f[7]
    assert noise.std() == pytest.approx(0.3, rel=0.05)  # 4.5 standard errors
    assert abs(noise.mean()) < 4.5 * 0.3 / np.sqrt(4_000)


@pytest.mark.parametrize("bad", [{"n_steps": 0}, {"lam": 0.0}, {"qbar": -1.0}])
def test_impossible_settings_are_refused(bad: dict[str, float]) -> None:
    settings = {"n_steps": 5, **SETTINGS, "seed": 0, **bad}
    with pytest.raises(ArgumentError, match="n_steps, lam, qbar"):
        run_algorithm1(make_pool_problem(20), **settings)
