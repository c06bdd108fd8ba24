"""Pending points: counted for the variance, not for the mean, and taken back without a trace."""

import numpy as np
import pytest
import torch
from torch import Tensor

from bkbopt import BKB, ExactGP, FourierGP, LearnerSurrogate
from bkbopt.kernels import matern52
from bkbopt.posterior.model import Model
from bkbopt.surrogates import Surrogate

# Short enough a lengthscale that no point lies in the others' span but for 1e-3 of the noise.
KERNEL, NOISE = matern52(2, 0.2), 0.05
NONE = torch.zeros(0, 2, dtype=torch.float64)
MAKERS = {
    "exact": lambda: ExactGP(KERNEL, NOISE),
    "bkb, all points": lambda: BKB(KERNEL, NOISE, qbar=1e12, max_inducing=None),
    "bkb": lambda: BKB(KERNEL, NOISE),
    "bkb, small": lambda: BKB(KERNEL, NOISE, max_inducing=10),
    "fourier": lambda: FourierGP(KERNEL, NOISE, n_frequencies=40),
    "krr": lambda: LearnerSurrogate(KERNEL, NOISE, learner="krr"),
}


def random_points(n: int, seed: int) -> Tensor:
    return torch.as_tensor(np.random.default_rng(seed).random((n, 2)))


@pytest.fixture(params=MAKERS)
def gp(request: pytest.FixtureRequest) -> Surrogate:
    """A surrogate that knows thirty points."""
    made: Surrogate = MAKERS[request.param]()
    X = random_points(30, 0)
    made.observe(X, torch.sin(5.0 * X[:, 0]))
    return made


XS = random_points(60, 1)


def close(a: Model, b: Model, tol: float = 1e-9) -> None:
    for one, two in zip(a(XS), b(XS), strict=True):
        np.testing.assert_allclose(one, two, rtol=0.0, atol=tol)


def test_pending_points_leave_the_mean_and_shrink_the_variance_step_by_step(gp: Surrogate) -> None:
    gp.hallucinate(random_points(6, 2), NONE, 0.0)  # by now the dictionary covers what it will cover
    before, (mean, variance) = gp.model, gp.model(XS)
    gp.hallucinate(NONE, NONE, 0.0)
    pending = random_points(6, 2)
    for p in range(1, 7):
        model = gp.hallucinate(pending[:p], NONE, 0.0)
        new_mean, new_variance = model(XS)
        np.testing.assert_allclose(new_mean, mean, rtol=0.0, atol=1e-9)
        assert float((new_variance - variance).max()) <= 1e-12
        # With the budget full the dictionary hardly sees a new point, and its variance falls by little.
        part = 1.0 if getattr(gp, "max_inducing", None) == 10 else 0.9
        assert float(model(pending[p - 1 : p])[1]) < part * float(before(pending[p - 1 : p])[1])
        variance = new_variance


def test_pending_points_equal_observations_at_the_mean(gp: Surrogate) -> None:
    pending = random_points(4, 2)
    model = gp.hallucinate(pending, NONE, 0.0)
    mean, _ = gp.model(pending)
    # Whatever the surrogate is: linear regression on the features of the model just made, with the residual on top.
    Z, Zs = model.features(torch.cat([gp.observations.X, pending])), model.features(XS)
    if isinstance(gp, ExactGP):
        told = ExactGP(KERNEL, NOISE)
        told.observe(torch.cat([gp.observations.X, pending]), torch.cat([gp.observations.s, mean]))
        close(model, told.model)
        return
    V = Z.T @ Z + NOISE * torch.eye(Z.shape[1], dtype=torch.float64)
    expected_mean = Zs @ torch.linalg.solve(V, Z.T @ torch.cat([gp.observations.s, mean]))
    expected = model.features.residual(XS, Zs) + NOISE * (Zs * torch.linalg.solve(V, Zs.T).T).sum(1)
    np.testing.assert_allclose(model(XS)[0], expected_mean, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(model(XS)[1], expected, rtol=0.0, atol=1e-11)


def test_taking_a_pending_point_back_restores_the_variance_and_changes_the_epoch(gp: Surrogate) -> None:
    pending = random_points(3, 2)
    one = gp.hallucinate(pending[:2], NONE, 0.0)
    three = gp.hallucinate(pending, NONE, 0.0)
    again = gp.hallucinate(pending[:2], NONE, 0.0)
    assert again.epoch not in (one.epoch, three.epoch)
    # `one` was made before the third point entered the dictionary; a fresh model on today's features compares like
    # with like.
    gp.hallucinate(NONE, NONE, 0.0)
    close(again, gp.hallucinate(pending[:2], NONE, 0.0), 1e-12)
    none = gp.hallucinate(NONE, NONE, 0.0)
    close(none, gp.model, 1e-14)
    assert none.epoch != again.epoch


def test_block_and_one_by_one_agree(gp: Surrogate) -> None:
    pending = random_points(20, 2)
    gp.hallucinate(pending, NONE, 0.0)
    gp.hallucinate(NONE, NONE, 0.0)
    for p in range(1, 21):
        steps = gp.hallucinate(pending[:p], NONE, 0.0)
    gp.hallucinate(NONE, NONE, 0.0)
    close(gp.hallucinate(pending, NONE, 0.0), steps, 1e-10)


def test_the_same_point_pending_twice_counts_twice(gp: Surrogate) -> None:
    x = random_points(1, 2)
    gp.hallucinate(x, NONE, 0.0)
    prior = float(gp.model(x)[1])
    once, twice = (float(gp.hallucinate(x.repeat(k, 1), NONE, 0.0)(x)[1]) for k in (1, 2))
    assert twice < once < prior
    # Where the dictionary covers the point, each evaluation adds 1 / lam to the precision.
    if not isinstance(gp, BKB) or gp.qbar > 1e6:
        assert 1.0 / once == pytest.approx(1.0 / prior + 1.0 / NOISE, rel=1e-6)
        assert 1.0 / twice == pytest.approx(1.0 / prior + 2.0 / NOISE, rel=1e-6)


@pytest.mark.parametrize("name", ["exact", "bkb, all points", "fourier"])
def test_observing_a_pending_point_equals_never_having_had_it_pending(name: str) -> None:
    X, pending = random_points(30, 0), random_points(4, 2)
    with_pending, without = MAKERS[name](), MAKERS[name]()
    for gp in (with_pending, without):
        gp.observe(X, torch.sin(5.0 * X[:, 0]))
    with_pending.hallucinate(pending, NONE, 0.0)
    for i in range(4):
        for gp in (with_pending, without):
            gp.observe(pending[i : i + 1], [float(i)])
        with_pending.hallucinate(pending[i + 1 :], NONE, 0.0)
    close(with_pending.model, without.model)
    close(with_pending.hallucinate(NONE, NONE, 0.0), without.model)


def test_an_arrival_keeps_the_epoch_and_the_variance(gp: Surrogate) -> None:
    pending = random_points(3, 2)
    gp.hallucinate(pending, NONE, 0.0)
    before = gp.hallucinate(pending, NONE, 0.0)
    draws = getattr(gp, "n_draws", 0)
    gp.observe(pending[:1], [0.3])
    after = gp.hallucinate(pending[1:], NONE, 0.0)
    if getattr(gp, "n_draws", 0) == draws:
        np.testing.assert_allclose(after(XS)[1], before(XS)[1], rtol=0.0, atol=1e-9)
    if isinstance(gp, BKB) and gp.n_draws == draws:
        assert after.epoch == before.epoch  # V did not shrink: what the lazy search over a pool relies on


def test_failed_points_lower_the_mean_near_them_and_leave_the_posterior(gp: Surrogate) -> None:
    failed, pending = random_points(2, 3), random_points(2, 2)
    gp.hallucinate(torch.cat([pending, failed]), NONE, 0.0)
    mean, variance = gp.posterior(XS).mean.clone(), gp.posterior(XS).variance.clone()
    model = gp.hallucinate(pending, failed, -10.0)
    assert bool((model(failed)[0] < gp.model(failed)[0] - 0.5).all())
    assert float(model(failed)[1].max()) < float(variance.max())
    assert torch.equal(gp.posterior(XS).mean, mean)
    assert torch.equal(gp.posterior(XS).variance, variance)
    assert len(gp.observations) == 30
    # Far away nothing is known, and nothing is feared.
    far = torch.full((1, 2), 50.0, dtype=torch.float64)
    if not isinstance(gp, FourierGP):
        assert abs(float(model(far)[0])) < 1e-6


def test_failed_points_equal_observations_at_the_lie() -> None:
    for name in ("exact", "bkb, all points", "fourier"):
        gp, told = MAKERS[name](), MAKERS[name]()
        X, failed = random_points(30, 0), random_points(2, 3)
        for one in (gp, told):
            one.observe(X, torch.sin(5.0 * X[:, 0]))
        model = gp.hallucinate(NONE, failed, -3.0)
        told.observe(failed, [-3.0, -3.0])
        close(model, told.model, 1e-8)


def test_hallucination_keeps_the_data_and_the_frozen_models() -> None:
    for make in MAKERS.values():
        gp = make()
        gp.observe(random_points(30, 0), np.arange(30.0))
        frozen = gp.model
        values = [v.clone() for v in frozen(XS)]
        gp.hallucinate(random_points(8, 2), random_points(2, 3), -1.0)
        gp.observe(random_points(3, 4), [1.0, 2.0, 3.0])
        for a, b in zip(frozen(XS), values, strict=True):
            assert torch.equal(a, b)
