"""PKAWV against Kernel-AWV, the paper's literal second algorithm, and its regret bound."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.kernels import matern52, rbf
from bkbopt.learners import PKAWV, KernelAWV, OnlineKRR
from bkbopt.learners.features import Taylor
from bkbopt.posterior.features import Nystrom, RandomFourier

RNG = np.random.default_rng(5)
N = 330
X = RNG.uniform(-1.0, 1.0, (N, 3))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.standard_normal(N)
OPTIONS = {"lam": 0.3, "lengthscale": 0.6}


def one_by_one(model: PKAWV, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    predictions = np.zeros(len(X))
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        predictions[t] = model.predict_one(x) if t else 0.0
        model.learn_one(x, target)
    return predictions


@pytest.mark.parametrize(
    "options", [{"features": X}, {"features": "nystrom", "oversampling": 1e9}], ids=["given", "KORS"]
)
@pytest.mark.parametrize(("forward", "exact"), [(True, KernelAWV), (False, OnlineKRR)])
def test_with_all_rows_as_inducing_points_it_is_the_exact_learner(
    options: dict[str, object], forward: bool, exact: type[OnlineKRR]
) -> None:
    model = PKAWV.paper(forward=forward, **OPTIONS, **options)  # type: ignore[arg-type]
    # The root of the kernel matrix cuts eigenvalues below 1e-13 of the largest.
    np.testing.assert_allclose(model.progressive(X, Y), exact.paper(**OPTIONS).progressive(X, Y), atol=1e-10)
    model.partial_fit(X[:50], -Y[:50])
    reference = exact.paper(**OPTIONS).fit(np.vstack([X, X[:50]]), np.append(Y, -Y[:50]))
    np.testing.assert_allclose(model.predict(X), reference.predict(X), atol=1e-10)


def test_taylor_features_of_high_degree_are_the_exact_learner() -> None:
    rows = X[:, :2]  # two columns, of which this degree has 325 features and not 2,925
    model, exact = PKAWV.paper(degree=24, lengthscale=1.2, lam=0.3), KernelAWV.paper(lengthscale=1.2, lam=0.3)
    np.testing.assert_allclose(model.progressive(rows, Y), exact.progressive(rows, Y), atol=1e-10)


def literal_second_algorithm(model: PKAWV) -> tuple[np.ndarray, int]:
    """Algorithm 2 by dense solves: K_t (rows so far x dictionary), alpha = (K^T K + lam K_II)^-1 K^T (y, 0)."""

    def k(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-((A[:, None] - B) ** 2).sum(-1) / (2.0 * model.lengthscale**2))

    uniforms = np.random.default_rng(model.seed).random(N)
    rows: list[int] = []
    p: list[float] = []
    out = np.zeros(N)
    for t in range(N):
        kI = k(X[rows], X[t : t + 1])[:, 0]
        c = 1.0 - float(kI @ np.linalg.solve(k(X[rows], X[rows]) + model.kors_ridge * np.diag(p), kI))
        probability = min(1.0, model.oversampling * (1.0 + model.eps) * c / (c + model.kors_ridge))
        if uniforms[t] < probability:
            rows.append(t)
            p.append(probability)
        if rows:
            K, K_II = k(X[: t + 1], X[rows]), k(X[rows], X[rows])
            alpha = np.linalg.solve(K.T @ K + model.lam * K_II, K[:t].T @ Y[:t])
            out[t] = K[t] @ alpha
    return out, len(rows)


def test_growing_features_give_the_papers_predictions() -> None:
    model = PKAWV.paper(features="nystrom", lam=0.3, lengthscale=0.4, kors_ridge=2.0, oversampling=0.5, seed=3)
    predictions, size = literal_second_algorithm(model)
    # The literal form squares the condition of the kernel matrix; that is the whole difference.
    np.testing.assert_allclose(model.progressive(X, Y), predictions, atol=1e-7)
    assert model.dictionary_size_ == size
    assert 10 < size < 200


@pytest.mark.parametrize(
    "options",
    [{"degree": 2}, {"degree": 4}, {"forward": False}, {"features": X[::5]}, {"features": "nystrom"}],
    ids=["M=2", "M=4", "ridge", "given", "nystrom"],
)
def test_rows_one_by_one_and_in_batches_predict_what_the_stream_does(options: dict[str, object]) -> None:
    whole = PKAWV.paper(**OPTIONS, **options).progressive(X, Y)  # type: ignore[arg-type]
    single = one_by_one(PKAWV.paper(**OPTIONS, **options), X, Y)  # type: ignore[arg-type]
    np.testing.assert_allclose(single, whole, atol=1e-11)
    model = PKAWV.paper(**OPTIONS, **options)  # type: ignore[arg-type]
    parts = [model.progressive(X[a:b], Y[a:b]) for a, b in pairwise([0, 1, 4, 5, 60, 199, N])]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-11)


def test_first_prediction_of_a_block_does_not_know_its_targets() -> None:
    changed = Y.copy()
    changed[200] += 5.0
    a, b = PKAWV.paper(**OPTIONS).progressive(X, Y), PKAWV.paper(**OPTIONS).progressive(X, changed)
    np.testing.assert_array_equal(a[:201], b[:201])
    assert abs(a[201] - b[201]) > 1e-6


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([0.01, 1.0, 30.0]), st.floats(0.1, 100.0))
def test_regret_stays_below_its_bound_on_any_stream(seed: int, unique: int, lam: float, scale: float) -> None:
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1.0, 1.0, (unique, 2))[rng.integers(0, unique, 60)]
    model = PKAWV.paper(lam=lam, degree=3)
    model.progressive(points, scale * rng.choice([-1.0, 1.0], 60))
    assert model.regret_ <= model.regret_bound_ * (1.0 + 1e-9) + 1e-9 * scale**2


def test_attributes_are_those_of_the_features() -> None:
    model = PKAWV.paper(**OPTIONS)
    predictions = model.progressive(X, Y)
    Z = Taylor(3, 2, OPTIONS["lengthscale"])(torch.from_numpy(X)).numpy()
    A = Z.T @ Z + 0.3 * np.eye(10)
    assert model.logdet_ == pytest.approx(np.linalg.slogdet(A / 0.3)[1], rel=1e-10)
    w = np.linalg.solve(A, Z.T @ Y)
    least = np.sum((Y - Z @ w) ** 2) + 0.3 * w @ w
    assert model.regularised_minimum_ == pytest.approx(least, rel=1e-10)
    assert model.regret_ == pytest.approx(np.sum((predictions - Y) ** 2) - least, rel=1e-9)
    assert model.dictionary_size_ == 10


def test_bound_is_for_the_largest_target_of_all_batches() -> None:
    model = PKAWV.paper(**OPTIONS)
    for y in (Y, 3.0 * Y, 0.1 * Y):
        model.progressive(X, y)
    assert model.regret_bound_ == pytest.approx(9.0 * np.max(Y**2) * model.logdet_, rel=1e-12)


def test_growing_features_and_ridge_promise_no_regret_bound() -> None:
    assert PKAWV.paper(features="nystrom").fit(X, Y).regret_bound_ == float("inf")
    assert PKAWV.paper(forward=False).fit(X, Y).regret_bound_ == float("inf")


def test_a_feature_map_of_the_package_serves() -> None:
    kernel = rbf(3, 0.6)
    features = Nystrom.from_points(kernel, torch.from_numpy(X[::5].copy()))
    ours = PKAWV.paper(features=features, lam=0.3).progressive(X, Y)
    np.testing.assert_allclose(ours, PKAWV.paper(features=X[::5], **OPTIONS).progressive(X, Y), atol=1e-10)


def test_feature_maps_of_numbers_are_saved_and_others_are_asked_for(tmp_path: Path) -> None:
    fourier = RandomFourier.from_kernel(rbf(3, 0.6), 20, np.random.default_rng(0))
    nystrom = Nystrom.from_points(rbf(3, 0.6), torch.from_numpy(X[::5].copy()))
    for features in (fourier, Taylor(3, 2), nystrom):
        model = PKAWV.paper(features=features, lam=0.3).fit(X, Y)
        model.save(tmp_path / "learner")
        if features is nystrom:
            with pytest.raises(ArgumentError, match="pass features= with the same map to load"):
                PKAWV.load(tmp_path / "learner")
        loaded = PKAWV.load(tmp_path / "learner", features=nystrom)
        assert type(loaded.features) is type(features)
        np.testing.assert_array_equal(loaded.progressive(X, Y), model.progressive(X, Y))


def test_inducing_points_of_another_kernel_serve() -> None:
    kernel = matern52(3, 0.7)
    ours = PKAWV.paper(features=X, kernel=kernel, lam=0.3).progressive(X, Y)
    np.testing.assert_allclose(ours, KernelAWV.paper(kernel=kernel, lam=0.3).progressive(X, Y), atol=1e-10)


def test_rows_before_the_first_inducing_point_are_predicted_as_zero() -> None:
    model = PKAWV.paper(features="nystrom", oversampling=1e-2, **OPTIONS)
    predictions = model.progressive(X, Y)
    first = int(np.flatnonzero(predictions)[0])
    assert first > 4
    assert one_by_one(PKAWV.paper(features="nystrom", oversampling=1e-2, **OPTIONS), X, Y) == pytest.approx(
        predictions, abs=1e-11
    )
    assert PKAWV.paper(features="nystrom", oversampling=1e-2).fit(X[:4], Y[:4]).predict(X).tolist() == [0.0] * N


def test_limit_stops_the_growth() -> None:
    assert PKAWV.paper(features="nystrom", kors_ridge=1e-3, max_features=25).fit(X, Y).dictionary_size_ == 25


def test_repeated_points_grow_nothing() -> None:
    model = PKAWV.paper(features="nystrom", oversampling=1e9, kors_ridge=1e-8).fit(
        np.repeat(X[:5], 40, axis=0), np.repeat(Y[:5], 40)
    )
    assert model.logdet_ == pytest.approx(
        np.linalg.slogdet(np.eye(5) + 40.0 * rbf(3, 1.0)(*[torch.from_numpy(X[:5].copy())] * 2).numpy())[1], rel=1e-6
    )


def test_too_large_taylor_basis_is_refused_with_its_size() -> None:
    model = PKAWV.paper(degree=7)
    with pytest.raises(ArgumentError, match="gives 5843355957, and a matrix of"):
        model.fit(np.zeros((2, 80)), [0.0, 1.0])
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    "bad",
    [
        {"lam": 0.0},
        {"kors_ridge": -1.0},
        {"oversampling": 0.0},
        {"eps": 1.0},
        {"max_features": 0},
        {"degree": -1, "features": "taylor"},
    ],
)
def test_parameters_out_of_range_are_refused_by_their_names(bad: dict[str, float]) -> None:
    with pytest.raises(ArgumentError, match=f"^{next(iter(bad))}: expected"):
        PKAWV.paper(**{"features": "nystrom", **bad}).fit(X, Y)  # type: ignore[arg-type]


def test_taylor_features_are_for_the_gaussian_only() -> None:
    with pytest.raises(ArgumentError, match="which is for the Gaussian"):
        PKAWV.paper(kernel=matern52(3)).fit(X, Y)


@pytest.mark.parametrize("bad", ["fourier", X[:, :2], np.full((2, 3), np.nan)])
def test_other_features_are_refused(bad: object) -> None:
    with pytest.raises(ArgumentError, match=r"features|X: expected finite"):
        PKAWV.paper(features=bad).fit(X, Y)


class Failing:
    """A map that returns something else from its n-th call on."""

    size = 3

    def __init__(self, then: object) -> None:
        self.left, self.then = 10**9, then

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        self.left -= 1
        if self.left > 0:
            return X
        if isinstance(self.then, Exception):
            raise self.then
        return X * self.then if isinstance(self.then, float) else X[:, :2]

    def residual(self, X: torch.Tensor, Z: torch.Tensor) -> torch.Tensor:
        return Z[:, 0]

    residual_covariance = residual


@pytest.mark.parametrize("then", [float("nan"), "columns", RuntimeError("its own")], ids=str)
def test_map_of_the_user_that_fails_half_way_leaves_all_as_it_was(then: object) -> None:
    features = Failing(then)
    model = PKAWV.paper(features=features).partial_fit(X[:10], Y[:10])
    before = model.predict(X)
    features.left = 3
    with pytest.raises(RuntimeError if isinstance(then, Exception) else ArgumentError, match=r"its own|check the map"):
        model.partial_fit(np.tile(X, (3, 1)), np.tile(Y, 3))
    features.left = 10**9
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.n_rounds_ == 10
    assert model.features is features
    fresh = PKAWV.paper(features=Failing(then))
    fresh.features.left = 2
    with pytest.raises((RuntimeError, ArgumentError)):
        fresh.fit(X, Y)
    assert set(vars(fresh)) == set(fresh.get_params())


@pytest.mark.parametrize(
    "features",
    [Taylor(2, 2), Nystrom.from_points(rbf(5, 1.0), torch.zeros(1, 5, dtype=torch.float64))],
    ids=["taylor", "nystrom"],
)
def test_map_of_other_rows_is_refused(features: object) -> None:
    with pytest.raises(ArgumentError, match=r"features: expected a map|X: expected 2 columns"):
        PKAWV.paper(features=features).fit(X, Y)


def test_default_bounds_the_features_of_rows_with_many_columns() -> None:
    rows = np.random.default_rng(0).standard_normal((1200, 150))
    assert PKAWV().fit(rows, rows[:, 0]).dictionary_size_ == 500


def test_no_features_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="features: expected 'nystrom'"):
        PKAWV.paper(features=None).fit(X, Y)
