"""FORKS and SkeGD against sketches, projections and Newton steps written out."""

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from bkbopt.errors import ArgumentError
from bkbopt.kernels import rbf
from bkbopt.learners import BOGD, BPAS, FOGD, KOGD, NOGD, RBP, Forgetron, OnlineLearner, Projectron
from bkbopt.learners.expansions import expansion
from bkbopt.learners.numerics.losses import LOSSES, Array
from bkbopt.learners.on_features.forks import FORKS, SkeGD
from tests.learners.streams import margins, normal_rows
from tests.sweeps import sweep

LENGTH = 0.8
B = 12
RHO = 45


def linear(A: torch.Tensor, B_: torch.Tensor) -> torch.Tensor:
    return A @ B_.T


class Literal:
    """Both algorithms with dense matrices, from scratch each time; the random matrices are the learner's own."""

    def __init__(self, learner: FORKS | SkeGD, K: Array, y: Array) -> None:
        self.learner, self.K, self.y, self.k = learner, K, y, learner._k
        sketches = learner._sketches
        self.S = np.zeros((len(sketches.columns), len(sketches.Phi_pp)))
        np.put_along_axis(self.S, sketches.columns, sketches.signs, 1)
        self.sampled = sketches.sampled

    def slope(self, t: int, p: float) -> float:
        return float(LOSSES[self.learner.loss].slope(np.array(self.y[t]), np.array(p)))

    def map(self, points: list[int]) -> None:
        K, S = self.K[np.ix_(points, points)], self.S[: len(points)]
        e, E = np.linalg.eigh(S.T @ K @ S)
        half = E[:, -self.k :] * np.sqrt(np.maximum(e[-self.k :], 0.0))
        self.landmarks = [points[i] for i in self.sampled]
        self.Z = self.K[:, self.landmarks] @ np.linalg.pinv(S.T @ K[:, self.sampled], rcond=1e-10) @ half

    def run(self) -> Array:
        n, room = len(self.y), 2 * B
        p = np.zeros(n)
        points: list[int] = []
        a: list[float] = []
        t = 0
        while len(points) < room:
            p[t] = self.K[t, points] @ np.array(a) if points else 0.0
            g = self.slope(t, p[t])
            if g != 0.0:
                points.append(t)
                a.append(-0.2 * g)
            t += 1
        self.map(points)
        w = np.linalg.lstsq(self.Z[points], self.K[np.ix_(points, points)] @ np.array(a), rcond=None)[0]
        A = 0.01 * np.eye(self.k)
        for since in range(1, n - t + 1):
            w, A = self.round(t, w, A, p)
            if since % RHO == 0:
                old = self.Z @ w
                points = [*points, t]
                self.map(points)
                w, A = np.linalg.lstsq(self.Z[points], old[points], rcond=None)[0], 0.01 * np.eye(self.k)
                if isinstance(self.learner, FORKS):
                    w = np.zeros(self.k)
            t += 1
        return p

    def round(self, t: int, w: Array, A: Array, p: Array) -> tuple[Array, Array]:
        z = self.Z[t]
        if isinstance(self.learner, SkeGD):
            p[t] = z @ w
            return w - min(0.2, 1.0 / (z @ z)) * self.slope(t, p[t]) * z, A
        C = self.learner._bound()
        # Projection on |w.z| <= C in the norm of A, then the step with this round's gradient in A.
        if abs(z @ w) > C:
            v = np.linalg.solve(A, z)
            w = w - (z @ w - np.sign(z @ w) * C) / (z @ v) * v
        p[t] = np.clip(z @ w, -C, C)
        g = self.slope(t, p[t]) * z
        A = A + (2.0 * np.outer(z, z) if self.learner.curvature == "auto" else self.learner.curvature * np.outer(g, g))
        return w - np.linalg.solve(A, g), A


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared"])
@pytest.mark.parametrize("kind", [FORKS, SkeGD])
@pytest.mark.parametrize("kernel", [None, rbf(3, LENGTH).__call__], ids=["computed", "called"])
def test_learner_follows_the_formulas(kind: type[FORKS | SkeGD], loss: str, kernel: object) -> None:
    X, y = normal_rows(300)
    learner = kind.paper(
        loss=loss,
        budget=B,
        rank=4,
        blocks=2,
        refresh_every=RHO,
        decomposition="exact",
        kernel=kernel,
        lengthscale=LENGTH,
        seed=1,
    )
    p = margins(learner, X, y)
    assert learner.n_refreshes_ >= 3
    K = rbf(3, LENGTH)(torch.tensor(X), torch.tensor(X)).numpy()
    # Newton steps start from A = 0.01 I and pseudo-inverses have conditions of 1e3.
    np.testing.assert_allclose(p, Literal(learner, K, y).run(), rtol=0, atol=1e-9)


def test_exact_weights_of_the_squared_loss_are_its_second_derivative() -> None:
    X, y = normal_rows(300)
    options = {"budget": B, "rank": 4, "blocks": 2, "refresh_every": RHO, "lengthscale": LENGTH, "seed": 1}
    learner = FORKS.paper(loss="squared", curvature="auto", clip=1e6, decomposition="exact", **options)
    p = margins(learner, X, y)
    K = rbf(3, LENGTH)(torch.tensor(X), torch.tensor(X)).numpy()
    np.testing.assert_allclose(p, Literal(learner, K, y).run(), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("loss", "given"), [("hinge", {"curvature": 0.25, "clip": 4.0}), ("absolute", {"curvature": 0.5, "clip": 1e6})]
)
def test_default_weights_and_bounds_are_those_of_the_other_newton_learners(loss: str, given: dict[str, float]) -> None:
    X, y = normal_rows(300)
    values = y if loss == "hinge" else 30.0 * X[:, 0] ** 3
    p, expected = (FORKS(loss=loss, budget=B, **options).progressive(X, values) for options in ({}, given))
    np.testing.assert_array_equal(p, expected)


def test_squared_loss_is_learnt_with_a_small_ridge() -> None:
    X, _ = normal_rows(600)
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1]
    p = FORKS(loss="squared", alpha=0.01, budget=30).progressive(X, y)
    # 0.65 was seen; with weights of 0.5 l'^2 it was -0.5.
    assert np.mean((p - y)[200:] ** 2) < 0.5 * np.var(y)


def test_hinge_is_followed_up_to_its_kink() -> None:
    # A clipped margin lies on the kink of the hinge at C = 1: which side rounding says decides the gradient.
    X, y = normal_rows(300)
    learner = FORKS.paper(
        budget=B, rank=4, refresh_every=RHO, clip=0.9, lengthscale=LENGTH, seed=1, decomposition="exact"
    )
    p = margins(learner, X, y)
    K = rbf(3, LENGTH)(torch.tensor(X), torch.tensor(X)).numpy()
    np.testing.assert_allclose(p, Literal(learner, K, y).run(), rtol=0, atol=1e-9)
    assert np.abs(p[learner.switched_at_ :]).max() == 0.9


@pytest.mark.parametrize("kind", [FORKS, SkeGD])
def test_eigenpairs_that_follow_equal_the_exact_ones_at_full_rank(kind: type[FORKS | SkeGD]) -> None:
    X, y = normal_rows(300)
    options = {"loss": "logistic", "budget": B, "rank": 3, "refresh_every": 30, "kernel": linear, "seed": 0}
    p = margins(kind.paper(decomposition="eigen", **options), X, y)
    # The kernel has rank three.
    np.testing.assert_allclose(p, margins(kind.paper(decomposition="exact", **options), X, y), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", [FORKS, SkeGD])
def test_eigenpairs_that_follow_predict_the_same_up_to_the_first_refresh(kind: type[FORKS | SkeGD]) -> None:
    X, y = normal_rows(300)
    options = {"budget": B, "refresh_every": RHO, "lengthscale": LENGTH, "seed": 0}
    learner = kind.paper(decomposition="eigen", **options)
    p, exact = margins(learner, X, y), margins(kind.paper(decomposition="exact", **options), X, y)
    refreshed = learner.switched_at_ + RHO
    np.testing.assert_array_equal(p[:refreshed], exact[:refreshed])
    assert (p[refreshed:] != exact[refreshed:]).any()


def test_first_prediction_after_a_refresh_is_zero() -> None:
    X, y = normal_rows(300)
    learner = FORKS.paper(budget=B, refresh_every=RHO, lengthscale=LENGTH, seed=0)
    p = margins(learner, X, y)
    first = learner.switched_at_ + RHO
    assert not p[first : len(p) : RHO].any()
    assert np.count_nonzero(p[learner.switched_at_ :] == 0.0) == learner.n_refreshes_


def test_sketched_descent_keeps_its_hypothesis_over_a_refresh() -> None:
    X, y = normal_rows(300)
    learner = SkeGD.paper(loss="logistic", budget=B, rank=3, kernel=linear, refresh_every=RHO, seed=0)
    learner.partial_fit(X[:1], y[:1], classes=[-1, 1])
    for t in range(1, len(X)):
        before = learner.n_refreshes_, learner.support_.T @ learner.weights_
        learner.learn_one(X[t], y[t])
        if learner.n_refreshes_ > before[0]:
            # The last step is in: f(x) = v.x has moved along x_t alone. The features hold any v.
            moved = learner.support_.T @ learner.weights_ - before[1]
            np.testing.assert_allclose(np.cross(moved, X[t]), 0.0, rtol=0, atol=1e-10)
    assert learner.n_refreshes_ > 3


def test_without_n_refreshes_the_map_stays() -> None:
    X, y = normal_rows(300)
    learner = FORKS.paper(budget=B, refresh_every=None, seed=0).fit(X, y)
    assert learner.n_refreshes_ == 0
    assert len(learner._sketched) == 2 * B


def test_landmarks_are_points_of_the_first_stage() -> None:
    X, y = normal_rows(300)
    learner = FORKS.paper(budget=B, sample=5, rank=2, seed=0, lengthscale=LENGTH).fit(X, y)
    assert learner.dictionary_size_ == 5
    early = X[: learner.switched_at_]
    distances = np.abs(learner.support_[:, None] - early[None]).max(-1).min(1)
    # They come back from units of the lengthscale.
    np.testing.assert_allclose(distances, 0.0, atol=1e-15)


def adversarial(name: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    X, y = normal_rows(400)
    if name == "repeats":  # one point a block, the labels of every other block flipped
        X, y = np.repeat(X[:40], 10, axis=0), np.repeat(y[:40] * np.tile([1.0, -1.0], 20), 10)
    if name == "flips":
        y = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    if name == "drift":
        X = X + np.linspace(0.0, 30.0, 400)[:, None]
    if name == "narrow":
        X = X * 1e-9
    return X, y


@pytest.mark.parametrize(("name", "loss"), sweep(["repeats", "flips", "drift", "narrow"], LOSSES))
def test_adversarial_streams_stay_finite(name: str, loss: str) -> None:
    X, y = adversarial(name)
    for learner in (
        FORKS.paper(loss=loss, budget=B, refresh_every=20, seed=0),
        SkeGD.paper(loss=loss, budget=B, refresh_every=20, seed=0),
    ):
        p = margins(learner, X, y)
        assert np.isfinite(p).all()
        assert np.abs(p).max() < 1e4


def test_learner_is_better_than_guessing() -> None:
    X, y = normal_rows(3000)
    for learner in (FORKS.paper(rank=15, refresh_every=None, seed=0), SkeGD.paper(rank=15, refresh_every=None, seed=0)):
        p = margins(learner, X, y)
        # The labels' noise alone is wrong in a sixth of the rows.
        assert np.mean(p[500:] * y[500:] <= 0.0) < 0.25


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FORKS.paper(blocks=3, sketch=10), "sketch: expected a multiple of the 3 blocks, got 10"),
        (lambda: FORKS.paper(budget=10, sample=21), "sample: expected at most the buffer's 20 points, got 21"),
        (lambda: FORKS.paper(sample=5, rank=6), "rank: expected at most 5 features, got 6"),
        (lambda: FORKS.paper(budget=40, sketch=4, rank=5), "rank: expected at most the sketch's 4 dimensions, got 5"),
        (lambda: FORKS.paper(refresh_every=0), "refresh_every: expected a whole number >= 1"),
        (lambda: FORKS.paper(decomposition="qr"), "decomposition: expected one of eigen, exact, got 'qr'"),
        (lambda: FORKS.paper(alpha=0.0), "alpha: expected a positive ridge"),
        (lambda: FORKS.paper(curvature=-1.0), "curvature: expected a weight >= 0"),
        (lambda: FORKS.paper(clip=0.0), "clip: expected a positive bound"),
        (lambda: SkeGD.paper(step=-0.1), "step: expected a positive learning rate"),
    ],
)
def test_parameters_out_of_range_are_refused_at_the_first_row(make: Callable[[], FORKS | SkeGD], message: str) -> None:
    learner = make()
    before = dict(vars(learner))
    with pytest.raises(ArgumentError, match=message):
        learner.learn_one(np.zeros(3), 1)
    assert vars(learner) == before


@pytest.mark.parametrize("rows", [1, 7, 64])
@pytest.mark.parametrize("kind", [FORKS, SkeGD])
def test_blocks_may_end_anywhere(kind: type[FORKS | SkeGD], rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = normal_rows(300)
    options = {"budget": B, "refresh_every": RHO, "lengthscale": LENGTH, "seed": 0}
    p = margins(kind(**options), X, y)
    monkeypatch.setattr(expansion, "GAUSSIAN_ROWS", rows)
    np.testing.assert_array_equal(margins(kind(**options), X, y), p)


SIZES: list[dict[str, int]] = [{}, {"sample": 1, "rank": 1, "seed": 2}, {"sample": 7, "rank": 3}]


@pytest.mark.parametrize(
    ("kind", "way", "sizes"), sweep([FORKS, SkeGD], ["eigen", "exact"], SIZES, together=2), ids=str
)
def test_saved_learner_goes_on_alike_in_both_stages(
    kind: type[FORKS | SkeGD], way: str, sizes: dict[str, int], tmp_path: Path
) -> None:
    X, y = normal_rows(300)
    for stop in (3, 60, 200):
        options = {"budget": B, "refresh_every": RHO, "lengthscale": LENGTH, "decomposition": way, "seed": 0}
        learner = kind(**{**options, **sizes})
        learner.partial_fit(X[:stop], y[:stop])
        learner.save(tmp_path / "state")
        again = kind.load(tmp_path / "state")
        np.testing.assert_array_equal(again.decision_function(X), learner.decision_function(X))
        np.testing.assert_array_equal(margins(again, X[stop:], y[stop:]), margins(learner, X[stop:], y[stop:]))
        assert (again.n_refreshes_, again.switched_at_) == (learner.n_refreshes_, learner.switched_at_)


def test_defaults_follow_the_budget() -> None:
    X, y = normal_rows(300)
    for kind, budget, rank, sample in ((NOGD, 30, 3, 30), (SkeGD, 30, 3, 6), (FORKS, 5, 1, 1)):
        learner = kind.paper(budget=budget).fit(X, y)
        assert learner._M.shape == (rank, sample)


@pytest.mark.parametrize("kind", [RBP, Forgetron, BPAS, BOGD, Projectron, KOGD, FOGD, NOGD, SkeGD, FORKS])
def test_new_parameters_wait_for_the_next_fit(kind: type[OnlineLearner], tmp_path: Path) -> None:
    X, y = normal_rows(200)
    small = {"frequencies": 10} if kind is FOGD else {} if kind is KOGD else {"budget": 10}
    learner = kind.paper(**small).partial_fit(X[:100], y[:100])
    expected = copy.deepcopy(learner).partial_fit(X[100:], y[100:]).decision_function(X)
    learner.set_params(lengthscale=3.0, **{name: 2 * value for name, value in small.items()})
    learner.save(tmp_path / "state")
    for one in (learner, kind.load(tmp_path / "state")):
        np.testing.assert_array_equal(one.partial_fit(X[100:], y[100:]).decision_function(X), expected)
        assert one.get_params()["lengthscale"] == 3.0
        again = kind.paper(lengthscale=3.0, **{name: 2 * value for name, value in small.items()}).fit(X, y)
        np.testing.assert_array_equal(one.fit(X, y).decision_function(X), again.decision_function(X))
