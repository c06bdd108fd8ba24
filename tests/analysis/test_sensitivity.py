"""Shares of variance."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt import analysis


def learned(f: Callable[[np.ndarray], np.ndarray]) -> bo.Optimizer:
    """An optimizer whose mean is a function of [0, 1]^3 that it knows almost exactly."""
    X = torch.quasirandom.SobolEngine(3, scramble=True, seed=1).draw(80, dtype=torch.float64).numpy()
    surrogate = bo.ExactGP(bo.kernels.rbf(3, lengthscale=1.0, outputscale=10.0), noise=1e-6)
    opt = bo.Optimizer([(0.0, 1.0)] * 3, seed=0, surrogate=surrogate, fit=False)
    opt.tell([{f"x{j}": float(v) for j, v in enumerate(x)} for x in X], f(X))
    return opt


def test_shares_of_a_sum_are_the_terms_shares_of_its_variance() -> None:
    shares = analysis.variance_shares(learned(lambda X: 3.0 * X[:, 0] + X[:, 1]))
    # The variances of the terms are as 9 to 1; a sample of 2048 is good to about 1 / sqrt(2048).
    assert [s.first for s in shares.values()] == pytest.approx([0.9, 0.1, 0.0], abs=0.02)
    assert [s.total for s in shares.values()] == pytest.approx([0.9, 0.1, 0.0], abs=0.02)


def test_a_pure_interaction_counts_for_both_and_for_neither_alone() -> None:
    shares = analysis.variance_shares(learned(lambda X: (X[:, 0] - 0.5) * (X[:, 1] - 0.5)))
    assert [s.first for s in shares.values()] == pytest.approx([0.0, 0.0, 0.0], abs=0.04)
    assert [s.total for s in shares.values()] == pytest.approx([1.0, 1.0, 0.0], abs=0.04)


def test_shares_in_a_mixed_space_agree_with_averages_taken_by_hand(mixed: bo.Optimizer) -> None:
    space = mixed.space
    assert space is not None
    base = space.sample(400, np.random.default_rng(5))
    f = mixed.predict(space.decode(base))[0]
    averages = [
        np.mean(mixed.predict([{**p, "kind": k} for p in space.decode(base)])[0]) for k in ("adam", "sgd", "rmsprop")
    ]
    # 400 points give the variance to some 7 %.
    assert analysis.variance_shares(mixed)["kind"].first == pytest.approx(np.var(averages) / np.var(f), abs=0.05)


def test_a_flat_mean_has_no_important_parameter() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    for _ in range(4):
        opt.tell(opt.ask(), 3.0)
    assert set(analysis.variance_shares(opt).values()) == {analysis.Share(0.0, 0.0)}


def test_noise_alone_has_no_important_parameter() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    rng = np.random.default_rng(2)
    for value in 3.0 + 0.1 * rng.standard_normal(60):
        opt.tell({"x": rng.random(), "y": rng.random()}, value)
    assert opt.explains_nothing
    assert set(analysis.variance_shares(opt).values()) == {analysis.Share(0.0, 0.0)}


def test_a_single_terrible_value_hides_no_parameter() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    for i in range(12):
        opt.tell({"x": i / 11, "y": i % 3 / 2}, i / 8 + 1e-3 * (i % 3))
    opt.tell({"x": 1.0, "y": 1.0}, 1e12)
    shares = analysis.variance_shares(opt, n_samples=64)
    assert shares["x"].total > shares["y"].total
    assert shares["x"].total > 0.5


def test_a_constant_added_to_the_values_changes_no_share() -> None:
    def shares(constant: float) -> list[float]:
        opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
        for i in range(12):
            opt.tell({"x": i / 11, "y": i % 3 / 2}, i / 8 + i % 3 + constant)  # the sums are exact
        return [share.total for share in analysis.variance_shares(opt, n_samples=64).values()]

    assert shares(2.0**36) == pytest.approx(shares(0.0), abs=1e-3)  # means near 2^36 have five digits of the range
