"""Theorem 1 of Calandriello et al. (2019), measured: leverages within a factor alpha, and a bounded dictionary.

The theorem's qbar keeps a point for certain until qbar * n * leverage < 1. Leverages sum to the effective dimension, so
thousands of evaluations must have been made before anything is dropped. A heavily evaluated grid with single
evaluations between its points is such a past; the steps measured continue it.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from bkbopt import BKB
from bkbopt.confidence import theorem1_qbar
from bkbopt.kernels import ARDKernel, gram, matern
from bkbopt.posterior.observations import Observations

NOISE, DELTA, ALPHA = 1.0, 0.1, 3.0
HEAVY, SINGLE, STEPS, SEEDS = 6, 80, 8, 50


@dataclass
class Run:
    """Results of one run: extremes of approximate / exact leverage, sizes, and the theorem's bound on them."""

    low: float
    high: float
    largest: int
    bound: float
    smallest_part: float


def rough(lengthscale: float) -> ARDKernel:
    """The roughest Matern kernel: with a smooth one a dropped point has no residual, and every ratio is 1."""
    return matern(1, 0.5, lengthscale)


def exact_leverages(kernel: ARDKernel, obs: Observations, arms: torch.Tensor) -> tuple[np.ndarray, float]:
    """Leverages of all `arms`, and the effective dimension, from the counts form written out."""
    K = gram(kernel, obs.X).numpy()
    n = obs.n.numpy()
    k = kernel(arms, obs.X).numpy()
    E = np.linalg.inv(K + NOISE * np.diag(1.0 / n))
    d_eff = float((1.0 - NOISE / n * E.diagonal()).sum())
    return (1.0 - ((k @ E) * k).sum(1)) / NOISE, d_eff


def run(seed: int, kernel: ARDKernel, qbar: float, pulls: int) -> Run:
    """Continue a past of `HEAVY` points with `pulls` evaluations each and `SINGLE` points with one."""
    rng = np.random.default_rng(seed)
    arms = torch.as_tensor(rng.random((HEAVY + SINGLE + 200, 1)))
    X = arms[: HEAVY + SINGLE].clone()
    n = torch.ones(len(X), dtype=torch.float64)
    n[:HEAVY] = pulls
    s = n * torch.sin(6.0 * X[:, 0]) + n.sqrt() * torch.as_tensor(rng.standard_normal(len(X)))
    past = Observations(1)
    past.add(X, s / n, n)
    bkb = BKB(kernel, NOISE, qbar=qbar, resample="every", max_inducing=None, seed=seed)
    bkb.rebuild(past, kernel, NOISE)  # one draw from the exact leverages, since so few points are all taken first
    out = Run(np.inf, 0.0, 0, np.inf, 1.0)
    for _ in range(STEPS):
        posterior = bkb.posterior(arms)
        exact, d_eff = exact_leverages(kernel, bkb.observations, arms)
        ratio = posterior.leverage.numpy() / exact
        out.low, out.high = min(out.low, ratio.min()), max(out.high, ratio.max())
        m = len(bkb.inducing)
        out.largest, out.bound = max(out.largest, m), min(out.bound, 3.0 * (1.0 + 1.0 / NOISE) * ALPHA * qbar * d_eff)
        out.smallest_part = min(out.smallest_part, m / len(bkb.observations))
        # GP-UCB's own choice, so that the points depend on past dictionaries, as the theorem allows.
        x = arms[int((posterior.mean + 2.0 * posterior.stddev).argmax())]
        if rng.random() < 0.5:
            x = arms[rng.integers(len(arms))]
        bkb.observe(x[None], float(torch.sin(6.0 * x)) + rng.standard_normal())
    return out


def failures(runs: list[Run]) -> int:
    return sum(r.low < 1.0 / ALPHA or r.high > ALPHA or r.largest > r.bound for r in runs)


def test_theorem_1_holds_with_its_own_qbar_over_fifty_seeds() -> None:
    pulls = 20_000
    horizon = HEAVY * pulls + SINGLE + STEPS
    qbar = theorem1_qbar(horizon, DELTA)
    assert qbar == pytest.approx(72.0 * np.log(4.0 * horizon / DELTA))
    runs = [run(seed, rough(200.0), qbar, pulls) for seed in range(SEEDS)]
    # Points really were dropped, or the theorem would have had nothing to say.
    assert all(r.smallest_part < 0.95 for r in runs)
    # It promises at most 10 % failures; there are none.
    assert failures(runs) == 0


def test_a_qbar_hundreds_of_times_smaller_holds_too_in_nearly_all_runs() -> None:
    # The practical setting: most points are dropped, and what is kept is left to chance.
    runs = [run(seed, rough(20.0), 4.0, 30) for seed in range(SEEDS)]
    assert all(r.smallest_part < 0.2 for r in runs)
    assert failures(runs) <= DELTA * SEEDS
    assert all(r.high > 1.05 for r in runs)  # not the exact GP by another name
