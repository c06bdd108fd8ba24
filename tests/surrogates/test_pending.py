"""Pending points: many at once are covered as one after the other would be, by the rule on exact residuals."""

from collections import Counter

import numpy as np
import pytest
import torch

from bkbopt import BKB
from bkbopt.kernels import gram, matern52
from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.surrogates.pending import Fork, uncovered

KERNEL = matern52(3, [0.3, 0.4, 0.6], 2.0)
NOISE = 0.05
NONE = torch.zeros(0, 3, dtype=torch.float64)


def points(n: int, seed: int) -> torch.Tensor:
    return torch.as_tensor(np.random.default_rng(seed).random((n, 3)))


def fitted(**options: object) -> BKB:
    gp = BKB(KERNEL, NOISE, **options)
    X = points(40, 0)
    gp.observe(X, torch.sin(5.0 * X[:, 0]))
    return gp


def unseen(S: torch.Tensor, X: torch.Tensor) -> np.ndarray:
    """k(x, x) less its projection on the span of S, by numpy's least squares, for every row of X."""
    K, k = gram(KERNEL, S).numpy(), KERNEL(S, X).numpy()
    return KERNEL.diag(X).numpy() - (k * np.linalg.lstsq(K, k, rcond=None)[0]).sum(0)


@pytest.mark.parametrize("room", [None, 1, 7, 1000])
@pytest.mark.parametrize("threshold", [0.0, 0.02, 0.3, 10.0])
def test_each_point_is_judged_by_what_those_before_it_leave_unseen(room: int | None, threshold: float) -> None:
    S, X = points(6, 1), points(50, 2)
    features = Nystrom.from_points(KERNEL, S)
    state = GaussianState.from_data(features(S), torch.ones(6).double(), torch.ones(6).double(), NOISE)
    expected: list[int] = []
    for i, x in enumerate(X):
        known = float(state.leverage(features(x[None]))[0])
        if (
            len(expected) < (room or 50)
            and float(unseen(torch.cat([S, X[expected]]), x[None])[0]) / NOISE + known > threshold / NOISE
        ):
            expected.append(i)
    found = uncovered(features, state, X, room, lambda leverage, residual, x: leverage > threshold / NOISE)
    assert found == expected
    if room is None and threshold == 0.3:
        assert 10 < len(found) < 40  # the example leaves something out and takes something in


def test_a_point_is_asked_about_with_its_own_leverage_and_residual() -> None:
    S, X = points(6, 1), points(1, 2)
    features = Nystrom.from_points(KERNEL, S)
    state = GaussianState.from_data(features(S), torch.ones(6).double(), torch.ones(6).double(), NOISE)
    asked: list[tuple[float, float, torch.Tensor]] = []
    assert uncovered(features, state, X, None, lambda *a: bool(asked.append(a))) == []
    leverage, residual, x = asked[0]
    assert torch.equal(x, X[0])
    assert residual == pytest.approx(
        float(unseen(S, X)[0]), rel=1e-9
    )  # the kernel matrix has a condition number of 1e2
    assert leverage == pytest.approx(residual / NOISE + float(state.leverage(features(X))[0]), rel=1e-12)


@pytest.mark.parametrize("count", [3, 16, 17, 60, 600])
def test_after_many_pending_points_the_state_is_that_of_its_dictionary(count: int) -> None:
    gp, pending = fitted(), points(count, 3)
    before = len(gp.inducing)
    model = gp.hallucinate(pending, NONE, 0.0)
    assert len(gp.inducing) > before
    assert len(gp.inducing) <= 300
    # A literal computation: the same inducing points, every pending point an evaluation.
    K = gram(KERNEL, gp.inducing).numpy()
    obs = gp.observations
    seen, new = (KERNEL(T, gp.inducing).numpy() for T in (obs.X, pending))
    query = points(20, 4)
    k = KERNEL(query, gp.inducing).numpy()
    A = seen.T @ (obs.n.numpy()[:, None] * seen) + new.T @ new + NOISE * K
    starved = NOISE * np.einsum("ij,ji->i", k, np.linalg.solve(A, k.T))
    residual = KERNEL.diag(query).numpy() - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T))
    # The kernel matrices of 300 points have condition numbers of 1e6.
    np.testing.assert_allclose(model(query)[1], starved + residual, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("count", [40, 600])
def test_no_pending_point_is_left_that_a_draw_would_take_for_certain(count: int) -> None:
    gp, pending = fitted(max_inducing=None), points(count, 3)
    gp.hallucinate(pending, NONE, 0.0)
    # With qbar = 2 a leverage above 1 makes the draw certain.
    residual = unseen(gp.inducing, pending)
    leverage = gp.posterior(pending).leverage.numpy()
    assert ((leverage < 1.0 + 1e-9) | (residual < 1e-3 * NOISE)).all()


def test_points_beyond_max_inducing_are_not_appended() -> None:
    gp = fitted(max_inducing=50)
    gp.hallucinate(points(600, 3), NONE, 0.0)
    assert len(gp.inducing) == 50


@pytest.mark.parametrize("pending", [NONE, torch.zeros(3, 3).double()])
def test_a_kernel_is_never_asked_about_no_points(pending: torch.Tensor) -> None:
    def kernel(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        assert len(A)
        assert len(B)
        return KERNEL(A, B)

    gp = BKB(kernel, NOISE)
    gp.observe(torch.zeros(30, 3).double(), torch.ones(30))
    gp.hallucinate(pending, NONE, 0.0)
    assert len(gp.inducing) == 1


def test_an_arrival_takes_the_pending_point_from_the_fork_and_leaves_its_covariance() -> None:
    state = GaussianState.from_data(torch.eye(2).double(), torch.ones(2).double(), torch.ones(2).double(), NOISE)
    fork, z = Fork(Counter({b"a": 2, b"b": 1}), state), torch.ones(2).double()
    arrived = fork.observe(b"b", z)
    assert (arrived.pending, arrived.state) == (Counter({b"a": 2}), state)
    stranger = fork.observe(b"c", z)
    assert stranger.pending == fork.pending
    assert torch.equal(stranger.state.V, state.V + torch.ones(2, 2))
