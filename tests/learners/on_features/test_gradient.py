"""Descent on explicit features against the formulas written out."""

import numpy as np
import pytest
import torch

from bkbopt.errors import ArgumentError, NotReadyError
from bkbopt.kernels import matern52, rbf
from bkbopt.learners.numerics.losses import LOSSES, Array
from bkbopt.learners.on_features import _loops_features as loops
from bkbopt.learners.on_features.gradient import FOGD, NOGD
from bkbopt.posterior.features.nystrom import Nystrom
from tests.learners.streams import margins, normal_rows

LENGTH = 0.8
STEP = 0.2


def slope(loss: str, y: float, p: float) -> float:
    return float(LOSSES[loss].slope(np.array(y), np.array(p)))


def test_cosines_and_sines_are_numpys() -> None:
    rng = np.random.default_rng(0)
    turns = np.concatenate([rng.normal(size=1000), [0.0, 0.25, 0.5, 0.75, 1.0, -0.25, -0.5, 1e6 + 0.125]])
    z = np.empty(2 * len(turns))
    loops.fourier_row(turns[None], float(len(turns)), np.ones(1), z)
    # One unit in the last place of the argument 2 pi t, t the turns without the whole ones.
    part = 2.0 * np.pi * (turns - np.rint(turns))
    np.testing.assert_allclose(z, np.concatenate([np.cos(part), np.sin(part)]), rtol=0, atol=1e-15)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", [None, matern52(3, [0.5, 1.0, 2.0], outputscale=1.7)], ids=["gaussian", "matern"])
def test_fogd_is_descent_on_its_features(loss: str, kernel: object) -> None:
    X, y = normal_rows(300)
    learner = FOGD.paper(loss=loss, frequencies=40, step=STEP, kernel=kernel, lengthscale=LENGTH, seed=1)
    p = margins(learner, X, y)
    angles = 2.0 * np.pi * X @ learner._omega
    Z = np.hstack([np.cos(angles), np.sin(angles)]) * np.sqrt((1.0 if kernel is None else 1.7) / 40)
    w = np.zeros(80)
    for t, z in enumerate(Z):
        # 300 sums of 80 terms in another order.
        assert p[t] == pytest.approx(z @ w, abs=1e-11)
        w -= STEP * slope(loss, y[t], z @ w) * z


def test_fourier_features_approach_their_kernel() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    learner = FOGD.paper(frequencies=20_000, lengthscale=LENGTH, seed=0).fit(X, [-1] * 29 + [1])
    Z = np.array([row(learner, x) for x in X])
    K = rbf(3, LENGTH)(torch.tensor(X), torch.tensor(X)).numpy()
    # Five standard deviations of a mean of 20,000 cosines.
    np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=5.0 / np.sqrt(2.0 * 20_000))


def row(learner: FOGD, x: Array) -> Array:
    z = np.empty(2 * learner.frequencies)
    loops.fourier_row(learner._omega, 1.0, x, z)
    return z


def test_fogd_refuses_kernels_without_a_known_spectrum() -> None:
    with pytest.raises(ArgumentError, match="kernel: expected an ARDKernel, whose spectral density is known"):
        FOGD.paper(kernel=lambda A, B: A @ B.T).learn_one(np.zeros(2), 1)
    with pytest.raises(ArgumentError, match="frequencies: expected a whole number >= 1"):
        FOGD.paper(frequencies=0).learn_one(np.zeros(2), 1)


def literal_nogd(X: Array, y: Array, loss: str, B: int, k: int, height: float = 1.0) -> Array:
    kernel = rbf(3, LENGTH, height)
    K = kernel(torch.tensor(X), torch.tensor(X)).numpy()
    terms: list[int] = []
    a: list[float] = []
    p = np.zeros(len(X))
    w = M = None
    for t in range(len(X)):
        if len(terms) == B and M is None:
            lam, V = np.linalg.eigh(K[np.ix_(terms, terms)])
            M = (V[:, -k:] / np.sqrt(lam[-k:])).T
            w = np.linalg.pinv(M).T @ np.array(a)  # w^T = a^T M^+
        if M is None:
            p[t] = K[t, terms] @ np.array(a) if terms else 0.0
            g = slope(loss, y[t], p[t])
            if g != 0.0:
                terms.append(t)
                a.append(-STEP * g)
        else:
            z = M @ K[t, terms]
            p[t] = z @ w
            w = w - min(STEP, 1.0 / (z @ z)) * slope(loss, y[t], p[t]) * z
    return p


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", [None, rbf(3, LENGTH).__call__], ids=["computed", "called"])
def test_nogd_is_descent_on_nystrom_features(loss: str, kernel: object) -> None:
    X, y = normal_rows(300)
    learner = NOGD.paper(loss=loss, budget=30, rank=8, step=STEP, kernel=kernel, lengthscale=LENGTH)
    p = margins(learner, X, y)
    assert learner.switched_at_ is not None
    assert learner.switched_at_ < 150
    # The eighth eigenvalue is a tenth of the first: rounding grows little.
    np.testing.assert_allclose(p, literal_nogd(X, y, loss, 30, 8), rtol=0, atol=1e-11)


def test_steps_that_are_too_long_are_cut() -> None:
    X, y = normal_rows(300)
    learner = NOGD.paper(loss="hinge", budget=30, rank=8, step=STEP, kernel=rbf(3, LENGTH, 20.0))
    p = margins(learner, X, y)
    Z = learner.feature_map_(torch.tensor(X))
    assert float((STEP * (Z * Z).sum(1) > 1.0).double().mean()) > 0.5
    np.testing.assert_allclose(p, literal_nogd(X, y, "hinge", 30, 8, 20.0), rtol=0, atol=1e-10)


def test_nogd_of_full_rank_goes_on_with_its_hypothesis() -> None:
    X, y = normal_rows(300)
    learner = NOGD.paper(budget=20, rank=20, lengthscale=LENGTH)
    learner.partial_fit(X[:1], y[:1], classes=[-1, 1])
    t = 1
    while learner.dictionary_size_ < 19:
        learner.learn_one(X[t], y[t])
        t += 1
    while learner.switched_at_ is None:
        one_stage = NOGD.paper(budget=21, lengthscale=LENGTH).fit(X[: t + 1], y[: t + 1])
        learner.learn_one(X[t], y[t])
        t += 1
    # The features' root is good to the root of the condition of K, 1e4 here.
    np.testing.assert_allclose(learner.decision_function(X), one_stage.decision_function(X), rtol=0, atol=1e-11)


def test_weights_and_features_tell_one_hypothesis() -> None:
    X, y = normal_rows(300)
    learner = NOGD.paper(budget=30, rank=8, lengthscale=LENGTH)
    with pytest.raises(NotReadyError, match="feature_map_: expected a learner in its second stage"):
        _ = learner.feature_map_
    learner.fit(X, y)
    f = learner.decision_function(X)
    K = rbf(3, LENGTH)(torch.tensor(X), torch.tensor(learner.support_)).numpy()
    # Through M^T w, whose entries are some tens, in another order.
    np.testing.assert_allclose(K @ learner.weights_, f, rtol=0, atol=1e-12)
    features = learner.feature_map_
    Z = features(torch.tensor(X))
    np.testing.assert_allclose(Z.numpy() @ learner._w, f, rtol=0, atol=1e-12)
    whole = Nystrom.from_points(rbf(3, LENGTH), torch.tensor(learner.support_))
    # Eight of thirty directions see less than all of them.
    assert (
        features.residual(torch.tensor(X), Z) >= whole.residual(torch.tensor(X), whole(torch.tensor(X))) - 1e-12
    ).all()


def test_repeated_points_make_no_features_of_rounding() -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 50, axis=0)
    y = np.tile([-1.0, 1.0], 100)
    learner = NOGD.paper(loss="squared", budget=30, rank=30, lengthscale=LENGTH)
    assert np.isfinite(learner.progressive(X, y)).all()
    assert len(learner._w) <= 4


def test_rank_beyond_the_budget_is_refused() -> None:
    with pytest.raises(ArgumentError, match="rank: expected at most 10 features, got 11"):
        NOGD.paper(budget=10, rank=11).learn_one(np.zeros(2), 1)
