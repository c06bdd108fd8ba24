"""BKB: the exact GP in the limit, 10,000 updates equal a fresh computation, and wide variances under a budget."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from bkbopt import BKB, ExactGP
from bkbopt.confidence import theorem1_qbar
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.kernels import Kernel, gram, matern52, rbf
from bkbopt.surrogates import bkb as module

KERNEL = matern52(3, [0.3, 0.4, 0.6], 2.0)
NOISE = 0.05
EVERYTHING = {"qbar": 1e12, "max_inducing": None}


def data_with_repeats(n: int = 150, unique: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`n` evaluations of `unique` points in three dimensions, the repeats at the end."""
    rng = np.random.default_rng(seed)
    X = rng.random((unique, 3))[np.append(np.arange(unique), rng.integers(0, unique, n - unique))]
    return X, np.sin(5.0 * X[:, 0]) + X[:, 1] + NOISE**0.5 * rng.standard_normal(n)


def queries(X: np.ndarray) -> np.ndarray:
    return np.vstack([np.random.default_rng(9).random((40, 3)), X[:10], [[40.0, -3.0, 0.0]]])


def numpy_features(kernel: Kernel, S: Tensor, X: np.ndarray) -> np.ndarray:
    e, U = np.linalg.eigh(gram(kernel, S).numpy())
    return kernel(torch.as_tensor(X), S).numpy() @ (U / np.sqrt(e))


def equation_4(
    kernel: Kernel, Z: np.ndarray, y: np.ndarray, lam: float, Zs: np.ndarray, Xs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of Calandriello et al. (2019), Equation 4, in numpy, a row of `Z` for every evaluation."""
    V = Z.T @ Z + lam * np.eye(Z.shape[1])
    residual = np.maximum(kernel.diag(torch.as_tensor(Xs)).numpy() - (Zs * Zs).sum(1), 0.0)
    return Zs @ np.linalg.solve(V, Z.T @ y), residual + lam * (Zs * np.linalg.solve(V, Zs.T).T).sum(1)


# -- the exact limit -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resample", ["every", "delayed"])
@pytest.mark.parametrize("parts", [1, 5, 150])
def test_all_points_as_inducing_points_give_the_exact_gp(resample: str, parts: int) -> None:
    X, y = data_with_repeats()
    exact, bkb = ExactGP(KERNEL, NOISE), BKB(KERNEL, NOISE, resample=resample, **EVERYTHING)
    for part in np.array_split(np.arange(150), parts):
        bkb.observe(X[part], y[part])
        exact.observe(X[part], y[part])
    assert len(bkb.inducing) == 60
    a, b = bkb.posterior(queries(X)), exact.posterior(queries(X))
    # The kernel matrix has a condition number of 1e4.
    np.testing.assert_allclose(a.mean, b.mean, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(a.variance, b.variance, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(a.covariance, b.covariance, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(a.leverage, b.variance / NOISE, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(bkb.effective_dimension(), exact.effective_dimension(), rtol=1e-10)
    np.testing.assert_allclose(bkb.fitted(), exact.fitted(), rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("resample", ["every", "delayed"])
def test_any_dictionary_gives_equation_4(resample: str) -> None:
    X, y = data_with_repeats(300, 120)
    bkb = BKB(KERNEL, NOISE, resample=resample, qbar=1.5, max_inducing=30)
    for x, v in zip(X, y, strict=True):
        bkb.observe(x[None], v)
    assert len(bkb.inducing) <= 30
    posterior = bkb.posterior(queries(X))
    Z, Zs = (numpy_features(KERNEL, bkb.inducing, T) for T in (X, queries(X)))
    mean, variance = equation_4(KERNEL, Z, y, NOISE, Zs, queries(X))
    np.testing.assert_allclose(posterior.mean, mean, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(posterior.variance, variance, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(bkb.fitted(), bkb.posterior(bkb.observations.X).mean, rtol=0.0, atol=1e-11)
    # The part of the leverages that the features see, and the residual's with n times each capped at its bound, 1.
    obs = bkb.observations
    T = torch.as_tensor(X)
    seen = (bkb.posterior(T).variance - bkb.model.features.residual(T, bkb.model.features(T))) / NOISE
    residual = bkb.model.features.residual(obs.X, bkb.model.features(obs.X))
    expected = float(seen.sum()) + float((obs.n * residual / NOISE).clamp_max(1.0).sum())
    assert bkb.effective_dimension() == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("dictionary", ["rls", "uniform"])
@pytest.mark.parametrize("max_inducing", [1, 3, 20, 60])
@pytest.mark.parametrize("noise", [1e-3, 0.05, 5.0])
def test_effective_dimension_bounds_that_of_the_exact_gp_whatever_the_dictionary(
    dictionary: str, max_inducing: int, noise: float
) -> None:
    # What the safe radius of Theorem 2 and Chowdhury's width stand on, which have no factor for a poor dictionary.
    X, y = data_with_repeats(300, 120)
    bkb, exact = BKB(KERNEL, noise, dictionary=dictionary, max_inducing=max_inducing), ExactGP(KERNEL, noise)
    for gp in (bkb, exact):
        gp.observe(X, y)
    true = exact.effective_dimension()
    assert true - 1e-9 <= bkb.effective_dimension() <= min(bkb.leverage_sum() + 1e-9, 121.0 + max_inducing)
    # Equation 5 to the letter, evaluation by evaluation.
    assert bkb.leverage_sum() == pytest.approx(float(bkb.posterior(X).leverage.sum()), rel=1e-9)
    if noise == 1e-3:
        assert bkb.leverage_sum() > 5.0 * bkb.effective_dimension()
        assert true > 0.95 * 120.0  # a bound of less than 1 a point would not do
    assert exact.leverage_sum() == true


def test_starved_variance_is_equation_4_without_the_residual() -> None:
    X, y = data_with_repeats()
    honest, starved = (BKB(KERNEL, NOISE, max_inducing=20, variance=v) for v in ("dtc", "sor"))
    for gp in (honest, starved):
        gp.observe(X, y)
    a, b = honest.posterior(queries(X)), starved.posterior(queries(X))
    np.testing.assert_array_equal(a.mean, b.mean)
    Z = honest.model.features(torch.as_tensor(queries(X)))
    residual = honest.model.features.residual(torch.as_tensor(queries(X)), Z)
    np.testing.assert_allclose(a.variance - b.variance, residual, rtol=0.0, atol=1e-13)
    assert float(residual[-1]) == pytest.approx(2.0)


# -- ten thousand steps ----------------------------------------------------------------------------------------------


def ten_thousand() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """10,000 evaluations of 2,000 points in the plane, and points to look at."""
    rng = np.random.default_rng(0)
    X = rng.random((2000, 2))[rng.integers(0, 2000, 10_000)]
    return X, np.sin(6.0 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(10_000), rng.random((300, 2)) * 1.5


def check_against_scratch(bkb: BKB, X: np.ndarray, y: np.ndarray, Xs: np.ndarray) -> None:
    posterior = bkb.posterior(Xs)
    Z, Zs = (numpy_features(bkb.kernel, bkb.inducing, T) for T in (X, Xs))
    mean, variance = equation_4(bkb.kernel, Z, y, bkb.noise, Zs, Xs)
    assert float(posterior.variance.min()) >= 0.0
    np.testing.assert_allclose(posterior.mean, mean, rtol=1e-9, atol=1e-9 * np.abs(mean).max())
    # The residual is a difference of two numbers near the prior variance 1, through a dictionary of condition 1e4.
    np.testing.assert_allclose(posterior.variance, variance, rtol=1e-9, atol=2e-12)


def test_ten_thousand_steps_of_the_delayed_schedule_equal_a_computation_from_scratch() -> None:
    X, y, Xs = ten_thousand()
    bkb = BKB(matern52(2, 1.0), 0.09)
    for part in np.array_split(np.arange(10_000), 200):
        bkb.observe(X[part], y[part])  # so few rows are learnt one by one
        assert float(bkb.posterior(Xs[:50]).variance.min()) >= 0.0
    assert bkb.observations.total == 10_000
    assert bkb.n_draws > 5
    assert len(bkb.inducing) < 100
    check_against_scratch(bkb, X, y, Xs)


@pytest.mark.parametrize("refactor_every", [pytest.param(512, marks=pytest.mark.slow), 10**9])
def test_ten_thousand_steps_under_a_fixed_dictionary_equal_a_computation_from_scratch(
    monkeypatch: pytest.MonkeyPatch, refactor_every: int
) -> None:
    monkeypatch.setattr(module, "REFACTOR_EVERY", refactor_every)
    X, y, Xs = ten_thousand()
    bkb = BKB(matern52(2, 1.0), 0.09, dictionary="uniform", max_inducing=60, leverage_budget=1e12)
    bkb.observe(X[:100], y[:100])
    S, draws = bkb.inducing.clone(), bkb.n_draws
    for part in np.array_split(np.arange(100, 10_000), 200):
        bkb.observe(X[part], y[part])
    assert torch.equal(bkb.inducing, S)
    assert bkb.n_draws == draws
    check_against_scratch(bkb, X, y, Xs)


def test_points_that_nearly_coincide_are_learnt_one_by_one_without_too_long_projections() -> None:
    line = torch.linspace(0.0, 1.0, 101)[:, None].double()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.random((1, 1))
        for _ in range(20):
            near = X[rng.integers(len(X))] + 10.0 ** -rng.uniform(0.0, 6.0) * rng.standard_normal(1)
            X = np.append(X, near[None].clip(0.0, 1.0), 0)
        bkb = BKB(rbf(1, 0.1), 1e-8)
        for x in X:
            bkb.observe(x[None], np.sin(5.0 * x))  # a KernelError where the projection is longer than the point
        features = bkb.model.features
        # A thousandth is where the kernel is refused.
        assert float((features(line) ** 2).sum(1).max()) < 1.0 + 1e-3


# -- budgets and draws -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_inducing", [1, 2, 40])
@pytest.mark.parametrize("parts", [250, 3])
def test_budget_binds_and_the_variance_stays_above_what_no_dictionary_sees(max_inducing: int, parts: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((250, 3))
    y = np.sin(5.0 * X[:, 0])
    kernel, noise = matern52(3, 0.2), 1e-6
    bkb = BKB(kernel, noise, max_inducing=max_inducing)
    for part in np.array_split(np.arange(250), parts):
        bkb.observe(X[part], y[part])
        assert len(bkb.inducing) <= max_inducing
    assert bkb.sampling_scale > 1.0
    assert bkb.noise == noise  # the posterior's own lam is not the sampling's
    Xs = np.vstack([rng.random((200, 3)), X, rng.random((5, 3)) + 30.0])
    variance = bkb.posterior(Xs).variance.numpy()
    np.testing.assert_allclose(variance[-5:], 1.0, rtol=1e-12)
    # A projection on fewer points leaves more: never less than what is left by all points without noise, which is
    # all but equal to the exact posterior variance here.
    T, Ts = torch.as_tensor(X), torch.as_tensor(Xs)
    K_sX = kernel(Ts, T).numpy()
    interpolation = 1.0 - (K_sX * np.linalg.solve(gram(kernel, T).numpy(), K_sX.T).T).sum(1)
    assert (variance >= interpolation - 1e-10).all()
    assert np.median(variance[:200]) > 0.5 * np.median(interpolation[:200])


@pytest.mark.parametrize("resample", ["every", "delayed"])
def test_coins_for_pulls_and_for_points_agree_where_they_are_sure_and_only_there(resample: str) -> None:
    X, y = data_with_repeats(150, 40)

    def learnt(coins: str, qbar: float) -> BKB:
        bkb = BKB(KERNEL, 1.0, resample=resample, coins=coins, qbar=qbar, max_inducing=None)
        for x, v in zip(X, y, strict=True):
            bkb.observe(x[None], v)
        return bkb

    # The oversampling of Theorem 1 for a horizon of 150 steps: every coin is sure, and the posterior the same.
    arm, pull = (learnt(coins, theorem1_qbar(150, 0.05)) for coins in ("arm", "pull"))
    assert torch.equal(arm.inducing, pull.inducing)
    assert torch.equal(arm.posterior(queries(X)).variance, pull.posterior(queries(X)).variance)
    # At qbar = 2 a point that was evaluated several times is left out more often.
    assert not torch.equal(learnt("arm", 2.0).inducing, learnt("pull", 2.0).inducing)


def test_uniform_dictionary_fills_its_size() -> None:
    X, y = data_with_repeats()
    bkb = BKB(KERNEL, NOISE, dictionary="uniform", max_inducing=17)
    bkb.observe(X, y)
    assert len(bkb.inducing) == 17


@pytest.mark.parametrize("resample", ["every", "delayed"])
def test_empty_draws_keep_the_latest_point(resample: str) -> None:
    # With lam a million times the prior variance every leverage is 1e-6, and nearly every draw comes back empty.
    bkb = BKB(rbf(3), 1e6, qbar=1.0, resample=resample, leverage_budget=1.0 + 1e-9)
    X, y = data_with_repeats(50, 50)
    for x, v in zip(X, y, strict=True):
        bkb.observe(x[None], v)
        assert bkb.inducing.tolist() == [x.tolist()]
    posterior = bkb.posterior(X)
    np.testing.assert_allclose(posterior.variance, 1.0, rtol=1e-4)
    assert bkb.n_draws >= 49


def test_delayed_schedule_draws_when_the_leverages_exceed_the_budget() -> None:
    X, y = data_with_repeats(200, 120)
    small, large = (BKB(KERNEL, 1.0, qbar=1.0, leverage_budget=C, max_inducing=None) for C in (1.5, 6.0))
    every = BKB(KERNEL, 1.0, qbar=1.0, resample="every", max_inducing=None)
    for gp in (small, large, every):
        for x, v in zip(X, y, strict=True):
            gp.observe(x[None], v)
    assert 5 < large.n_draws < small.n_draws < every.n_draws == 199


@pytest.mark.parametrize("max_inducing", [None, 60])
def test_a_point_beyond_the_budget_is_appended_while_there_is_room(max_inducing: int | None) -> None:
    rng = np.random.default_rng(0)
    X, C = torch.as_tensor(rng.random((400, 3))), 1.5
    # With qbar = 1 no point is certain to be drawn.
    bkb = BKB(KERNEL, 2.0, qbar=1.0, leverage_budget=C, max_inducing=max_inducing)
    bkb.observe(X[:1], [0.0])
    appended, drawn, size = 0, [len(bkb.inducing)], 1
    for x in X[1:]:
        before = bkb.n_draws
        bkb.observe(x[None], [float(x.sum())])
        if bkb.n_draws == before:
            # The residuals that the dictionary has left out since the last draw stay within the budget.
            assert 1.0 + bkb._spent <= C
            appended += len(bkb.inducing) > size
        else:  # it was full, or a quarter larger than drawn
            assert size + 1 > 1.25 * drawn[-1] + 8 or size + 1 == max_inducing
            drawn.append(len(bkb.inducing))
        size = len(bkb.inducing)
    assert appended > 5 * bkb.n_draws > 5


def test_same_seed_same_dictionaries() -> None:
    X, y = data_with_repeats(200, 200)
    gps = [BKB(KERNEL, 1.0, qbar=1.0, seed=s) for s in (3, 3, 4)]
    for gp in gps:
        for x, v in zip(X, y, strict=True):
            gp.observe(x[None], v)
    assert torch.equal(gps[0].inducing, gps[1].inducing)
    assert not torch.equal(gps[0].inducing, gps[2].inducing)


@pytest.mark.parametrize("parts", [1, 3, 120])
def test_log_growth_bounds_the_log_determinant(parts: int) -> None:
    # What Theorem 2's running radius stands on, whichever way the data came.
    X, y = data_with_repeats(120, 80)
    bkb = BKB(KERNEL, NOISE)
    for part in np.array_split(np.arange(120), parts):
        bkb.observe(X[part], y[part])
    K = KERNEL(torch.as_tensor(X), torch.as_tensor(X)).numpy()
    logdet = float(np.linalg.slogdet(np.eye(120) + K / NOISE)[1])
    assert logdet <= bkb.log_growth < 4.0 * logdet


# -- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"qbar": 0.99}, ArgumentError, r"^qbar: expected a number >= 1, got 0.99"),
        ({"qbar": math.nan}, ArgumentError, r"^qbar: expected a number >= 1, got nan"),
        ({"qbar": "2"}, ArgumentTypeError, r"^qbar: expected a number >= 1, got '2' of type str"),
        ({"resample": "sometimes"}, ArgumentError, r"^resample: expected one of .*delayed.*every.*, got 'sometimes'"),
        ({"coins": "each"}, ArgumentError, r"^coins: expected one of .*arm.*pull.*, got 'each'"),
        ({"dictionary": "best"}, ArgumentError, r"^dictionary: expected one of .*, got 'best'"),
        ({"variance": "fitc"}, ArgumentError, r"^variance: expected one of .*, got 'fitc'"),
        ({"leverage_budget": 1.0}, ArgumentError, r"^leverage_budget: expected a number > 1, got 1.0"),
        ({"max_inducing": 0}, ArgumentError, r"^max_inducing: expected a whole number >= 1, or None, got 0"),
        ({"max_inducing": 2.5}, ArgumentError, r"^max_inducing: expected a whole number >= 1, or None, got 2.5"),
        ({"max_inducing": True}, ArgumentTypeError, r"^max_inducing: expected a whole number"),
        ({"dictionary": "uniform", "max_inducing": None}, ArgumentError, r"^max_inducing: expected a number with"),
    ],
)
def test_bad_options_are_refused(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BKB(**arguments)  # type: ignore[arg-type]


def test_whole_numbers_of_any_kind_are_taken_for_sizes() -> None:
    assert BKB(max_inducing=np.int64(7)).max_inducing == 7
    assert BKB(max_inducing=7.0).max_inducing == 7  # type: ignore[arg-type]


@pytest.mark.parametrize("max_inducing", [None, 24])
def test_known_points_learnt_in_one_call_give_what_single_steps_give(
    max_inducing: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.random((60, 2)))
    rows = torch.as_tensor(np.where(rng.random(400) < 0.9, rng.integers(0, 40, 400), rng.integers(0, 60, 400)))
    y, weight = torch.as_tensor(rng.standard_normal((2, 400)))
    weight = torch.where(weight > 0.0, 1.0, weight.exp())
    monkeypatch.setattr(module, "REFACTOR_EVERY", 50)

    def learnt() -> BKB:
        model = BKB(rbf(2, 0.15), noise=0.2, leverage_budget=1.2, max_inducing=max_inducing)
        model.observe(X[:40], torch.sin(5.0 * X[:40, 0]))
        model.observe(X[rows], y, weight, in_turn=True)
        return model

    lengths = list[int]()
    following = BKB._next_rows

    def counted(self: BKB, keys: list[bytes], weights: list[float], start: int) -> list[int]:
        found = following(self, keys, weights, start)
        lengths.append(len(found))
        return found

    monkeypatch.setattr(BKB, "_next_rows", counted)
    together = learnt()
    monkeypatch.setattr(BKB, "_next_rows", lambda *arguments: [])
    singly = learnt()
    assert max(lengths) > 5
    assert together.n_draws == singly.n_draws > 2
    assert together.log_growth == singly.log_growth
    for name in ("w", "root", "V"):
        assert torch.equal(getattr(together.model, name), getattr(singly.model, name))
    for name in ("n", "s", "repeats"):
        assert torch.equal(getattr(together.observations, name), getattr(singly.observations, name))
