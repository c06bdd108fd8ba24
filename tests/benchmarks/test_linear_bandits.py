"""The comparison of bandits runs at a tiny size, and what it counts is true."""

import numpy as np
import pytest
import torch

from benchmarks import __main__ as programs
from benchmarks import linear_bandits as bandits
from bkbopt.learners import FeatureBandit


class Fixed:
    """Pulls one arm only, and keeps what it is told."""

    def __init__(self, arm: int) -> None:
        self.arm, self.told = arm, []

    def select(self, X: np.ndarray) -> int:
        return self.arm

    def learn_one(self, x: np.ndarray, y: float) -> None:
        self.told.append((x, y))


def test_every_table_prints_with_a_row_for_each_player(capsys: pytest.CaptureFixture[str]) -> None:
    bandits.main(["--quick", "--arms", "30", "--steps", "12", "--seeds", "1"])
    out = capsys.readouterr().out
    for problem, (_, players) in bandits.PROBLEMS.items():
        assert f"{problem}: 30 arms, 12 steps, noise sd 0.1, 1 seeds" in out
        for name, how, _ in players():
            assert any(line.split(how)[0].strip() == name for line in out.splitlines() if how in line)
    assert "bandits" in programs.PROGRAMS


def test_regret_is_that_of_the_arms_without_noise() -> None:
    problem = bandits.linear_problem(20, 0.7, seed=3)
    best, worst = int(problem.f.argmax()), int(problem.f.argmin())
    runs = [bandits.play(Fixed(arm), problem, 40, seed=1) for arm in (best, worst)]
    gap = problem.f.max() - problem.f
    assert (runs[0].regret, runs[0].last) == (0.0, 0.0)
    assert runs[1].regret == pytest.approx(40.0 * gap[worst])
    assert runs[1].last == pytest.approx(gap[worst] / gap.mean())
    # The same noise for both.
    noise = [np.array([y for _, y in run.player.told]) - problem.f[run.arms] for run in runs]
    np.testing.assert_allclose(noise[0], noise[1], rtol=0.0, atol=1e-14)
    assert 0.05 < noise[0].std() < 0.15


@pytest.mark.parametrize("fall", [0.7, 1.0])
def test_linear_problems_are_linear_in_the_unit_ball(fall: float) -> None:
    problem = bandits.linear_problem(100, fall, seed=0)
    theta, residual, *_ = np.linalg.lstsq(problem.X, problem.f, rcond=None)
    assert residual.max() < 1e-20
    assert np.linalg.norm(theta) == pytest.approx(1.0, abs=1e-6)
    assert np.linalg.norm(problem.X, axis=1).max() == pytest.approx(1.0)
    assert not np.array_equal(problem.f, bandits.linear_problem(100, fall, seed=1).f)


def test_kernel_problem_has_norm_one_at_most_on_its_arms() -> None:
    problem = bandits.kernel_problem(40, seed=0)
    X = torch.as_tensor(problem.X)
    K = bandits.rbf(2, bandits.LENGTHSCALE)(X, X).numpy()
    # The interpolant of least norm on the arms, which is that of the function where they are many.
    norm = problem.f @ np.linalg.lstsq(K, problem.f, rcond=1e-12)[0]
    assert 0.5 < norm <= 1.0 + 1e-6


def test_bkb_with_a_linear_kernel_chooses_as_ridge_regression_does_once_its_dictionary_spans() -> None:
    problem = bandits.linear_problem(60, 1.0, seed=2)
    bkb = bandits.BKBPlayer(bandits.LinearKernel(), False, 0)
    ridge = FeatureBandit(bandits._identity, lam=bandits.LAM, beta=2.0)
    rng = np.random.default_rng(0)
    for arm in rng.integers(60, size=200):
        y = float(problem.f[arm] + 0.1 * rng.standard_normal())
        bkb.learn_one(problem.X[arm], y)
        ridge.learn_one(problem.X[arm], y)
    assert len(bkb.surrogate.inducing) >= bandits.DIM
    assert bkb.select(problem.X) == ridge.select(problem.X)
    posterior = bkb.surrogate.posterior(problem.X)
    mean, width = ridge.bounds(problem.X)
    np.testing.assert_allclose(posterior.mean, mean, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(2.0 * posterior.stddev, width, rtol=0.0, atol=1e-8)
