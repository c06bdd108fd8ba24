"""One modelled quantity: times of fits, and how values, units and known noise are passed to its surrogate."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from torch import Tensor

import bkbopt as bo
from bkbopt.errors import ArgumentError
from bkbopt.kernels import ScaledKernel, rbf
from bkbopt.search.quantities import fitting
from bkbopt.search.quantities.marked_rows import GROWTH, last_mark
from tests.search.quantities.made import data, fitted, learnt, quantity, rows

INF, NAN = math.inf, math.nan


def test_marks_are_each_fifteen_percent_after_the_one_before() -> None:
    marks = sorted({last_mark(n, 10) for n in range(10, 3000)})
    assert marks[0] == 10
    assert last_mark(9, 10) == 0
    assert all(b == max(a + 1, math.ceil(GROWTH * a)) for a, b in pairwise(marks))


def test_marks_wait_for_the_values_of_a_third_of_the_running_trials() -> None:
    alone = [last_mark(n, 10) for n in range(3000)]
    assert [last_mark(n, 10, lambda row: 2) for n in range(3000)] == alone
    few, many = (sorted({last_mark(n, 10, lambda row, p=p: p) for n in range(10, 3000)}) for p in (30, 10_000))
    assert all(b == math.ceil(GROWTH * a) + min(a, 30) // 3 for a, b in pairwise(few))
    assert all(b == math.ceil(GROWTH * a) + a // 3 for a, b in pairwise(many))


def test_hyperparameters_change_at_marks_only() -> None:
    X, y = data(40)
    followed, kernels = quantity(), []
    for n in range(1, 41):
        followed.follow(rows(X[:n], y[:n], first=10))
        assert followed.ready == (n >= 10)
        kernels.append(followed.surrogate.kernel if followed.ready else None)
        if followed.ready:
            assert followed.surrogate.observations.total == n
    changed = [n + 1 for n in range(1, 40) if kernels[n] is not kernels[n - 1]]
    assert changed == [10, 12, 14, 17, 20, 23, 27, 32, 37]


def test_another_version_of_the_rows_is_learnt_from_the_beginning() -> None:
    X, y = data(20)
    moved = quantity()
    moved.follow(rows(X, y))
    moved.follow(rows(X.flip(0), y.flip(0), version=1))
    fresh = fitted(X.flip(0), y.flip(0))
    at = data(5, seed=1)[0]
    assert all(torch.equal(a, b) for a, b in zip(moved.predict(at), fresh.predict(at), strict=True))


def test_nothing_is_fitted_with_fit_false() -> None:
    kernel = rbf(2, 0.3)
    X, y = data(20)
    m = fitted(X, y, bo.ExactGP(kernel, noise=0.01), fit=False)
    assert m.surrogate.kernel is kernel
    assert m.surrogate.noise == 0.01
    assert torch.equal(m.surrogate.observations.s, -y)  # only the direction


@pytest.mark.parametrize("surrogate", [bo.BKB, lambda: bo.BKB(rbf(2)), lambda: bo.BKB(noise=0.1)])
def test_fit_false_needs_kernel_and_noise(surrogate: Any) -> None:
    with pytest.raises(ArgumentError, match="fit: expected a surrogate with kernel and noise"):
        bo.Optimizer([(0.0, 1.0)] * 2, surrogate=surrogate(), fit=False)


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_exact_values_beside_noisy_ones_leave_the_posterior_well_conditioned(share: float) -> None:
    rng = np.random.default_rng(0)
    X, y = data(40)
    std = np.where(rng.random(40) < share, 0.0, 0.3)
    m = fitted(X, y + torch.as_tensor(std * rng.standard_normal(40)), bo.BKB(), std=std)
    obs, noise = m.surrogate.observations, m.surrogate.noise
    assert float(obs.n.max()) / noise <= 1.0001e8  # a noise variance of 1e-8, that of deterministic objectives
    found = m.surrogate.posterior(X)
    K, S = m.surrogate.kernel, m.surrogate.inducing
    # The same formula by least squares, whose errors are those of the root of the normal equations.
    A = torch.cat([obs.n.sqrt()[:, None] * K(obs.X, S), noise**0.5 * torch.linalg.cholesky(K(S, S)).T])
    b = torch.cat([obs.s / obs.n.sqrt(), torch.zeros(len(S), dtype=torch.float64)])
    mean = K(X, S) @ torch.linalg.lstsq(A, b[:, None]).solution[:, 0]
    assert float(((found.mean - mean).abs() / found.stddev).max()) < 1e-4


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e6])
def test_noise_given_in_the_users_units_is_kept(unit: float) -> None:
    X, y = data(30)
    m = quantity(bo.ExactGP(noise=(0.1 * unit) ** 2))
    for n in (10, 30):  # and at the next fit too
        m.follow(rows(X[:n], y[:n] * unit))
        assert m.noise_std == pytest.approx(0.1 * unit, rel=1e-9)


def test_fit_finds_the_relevant_column() -> None:
    X, _ = data(60)
    short, long = fitted(X, torch.sin(6.0 * X[:, 0])).surrogate.kernel.lengthscale.tolist()  # type: ignore[attr-defined]
    assert long > 3.0 * short


def test_units_of_y_do_not_change_the_fit() -> None:
    X, y = data(30)
    # Powers of two: the scaled values are the same to the last bit.
    one, large, small = (
        fitted(X, y * unit).surrogate.kernel.theta  # type: ignore[attr-defined]
        for unit in (1.0, 2.0**500, 2.0**-500)
    )
    assert torch.equal(one, large)
    assert torch.equal(one, small)


def test_predictions_are_in_the_users_units_and_direction() -> None:
    X, y = data(40)
    for sign in (-1.0, 1.0):
        mean, sd = fitted(X, 1e3 * y + 5e4, sign=sign).predict(X)
        # Without noise the posterior mean is the value but for the noise that the fit leaves.
        torch.testing.assert_close(mean, 1e3 * y + 5e4, rtol=0.0, atol=20.0)
        assert bool((sd >= 0.0).all())
        assert float(sd.max()) < 100.0


def test_kernel_without_hyperparameters_gets_a_fitted_scale() -> None:
    X, y = data(20)
    m = fitted(X, y, bo.ExactGP(kernel=lambda A, B: torch.exp(-torch.cdist(A, B))))
    assert float(m.surrogate.kernel.diag(X[:1])[0]) != 1.0


@pytest.mark.parametrize("unit", [math.exp(-12.0), math.exp(12.0)])
def test_units_of_a_kernel_without_hyperparameters_do_not_matter(unit: float) -> None:
    X, y = data(20)
    expected, found = (
        fitted(X, y, bo.ExactGP(kernel=lambda A, B, c=c: c * torch.exp(-torch.cdist(A, B)))).predict(X + 0.1)
        for c in (1.0, unit)
    )
    for a, b in zip(expected, found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=0.0)


# -- values that are no numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_infinite_values_count_as_the_best_or_worst_finite_one(sign: float) -> None:
    X, y = data(12)
    hostile = y.clone()
    hostile[3], hostile[7] = INF, -INF
    finite = torch.cat([y[:3], y[4:7], y[8:]])
    plain = y.clone()
    plain[3], plain[7] = finite.max(), finite.min()
    assert torch.equal(learnt(fitted(X, hostile, sign=sign, first=12)), learnt(fitted(X, plain, sign=sign, first=12)))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_pruned_trial_has_its_estimate_or_else_the_worse_quartile(sign: float) -> None:
    X, y = data(12)
    quartile = sign * float(torch.quantile(sign * torch.cat([y[:5], y[6:]]), 0.25))
    for estimate, value in ((0.3, 0.3), (NAN, quartile)):
        pruned, estimates, plain = y.clone(), torch.full_like(y, NAN), y.clone()
        pruned[5], estimates[5], plain[5] = NAN, estimate, value
        a, b = fitted(X, pruned, estimates=estimates, sign=sign, first=12), fitted(X, plain, sign=sign, first=12)
        assert torch.equal(learnt(a), learnt(b))


def test_the_quartile_of_the_largest_doubles_is_finite() -> None:
    X, y = data(12)
    y = 1.7e308 * torch.sign(y - y.mean())
    y[5] = NAN
    assert bool(torch.isfinite(learnt(fitted(X, y, first=12))).all())


def test_without_a_finite_value_there_is_no_model() -> None:
    X, _ = data(8)
    m = quantity()
    m.follow(rows(X, [INF] * 8))
    assert not m.ready
    m.follow(rows(X, [INF] * 4 + [1.0, 2.0, 3.0, 4.0]))
    assert m.ready


# -- known noise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("surrogate", [bo.ExactGP, lambda *a, **k: bo.BKB(*a, **k, qbar=1e6, max_inducing=None)])
@pytest.mark.parametrize("repeats", [False, True])
def test_known_noise_is_that_of_scikit_learns_alpha(surrogate: Any, repeats: bool) -> None:
    X, y = data(25)
    if repeats:
        X = X[torch.arange(25) % 15]
    std = torch.as_tensor(np.random.default_rng(2).uniform(0.02, 0.6, 25))
    m = fitted(X, y, surrogate(rbf(2, 0.3), noise=0.05), std=std, sign=1.0, fit=False)
    oracle = GaussianProcessRegressor(RBF(0.3), alpha=std.square().numpy(), optimizer=None).fit(X.numpy(), y.numpy())
    at = data(30, seed=4)[0]
    mean, sd = oracle.predict(at.numpy(), return_std=True)
    found = m.predict(at)
    # Cholesky of a matrix with condition number 25 / 0.02^2, 6e4; the variance subtracts from one.
    np.testing.assert_allclose(found[0], mean, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(found[1], sd, rtol=0.0, atol=1e-7)


def test_known_and_fitted_noise_may_be_mixed() -> None:
    X, y = data(20)
    std = torch.full((20,), NAN, dtype=torch.float64)
    std[::2] = 0.3
    m = fitted(X, y, bo.ExactGP(rbf(2, 0.3), noise=0.01), std=std, sign=1.0, fit=False)
    alpha = torch.where(torch.isfinite(std), std.square(), 0.01).numpy()
    oracle = GaussianProcessRegressor(RBF(0.3), alpha=alpha, optimizer=None).fit(X.numpy(), y.numpy())
    at = data(30, seed=4)[0]
    np.testing.assert_allclose(m.predict(at)[0], oracle.predict(at.numpy()), rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-9, 1e100])
def test_known_noise_is_in_the_users_units_where_nothing_is_fitted(unit: float) -> None:
    X, y = data(20)
    std = torch.as_tensor(np.random.default_rng(2).uniform(0.02, 0.6, 20))

    def predicted(u: float) -> list[Tensor]:
        kernel = ScaledKernel(rbf(2, 0.3), torch.tensor(2.0 * math.log(u), dtype=torch.float64))
        m = fitted(X, u * y, bo.ExactGP(kernel, noise=0.05 * u**2), std=u * std, fit=False)
        return [part / u for part in m.predict(data(30, seed=4)[0])]

    for one, other in zip(predicted(1.0), predicted(unit), strict=True):
        # As above; the variance is the square of the deviation.
        torch.testing.assert_close(one, other, rtol=0.0, atol=1e-7)


def test_known_noise_is_kept_where_everything_else_is_fitted() -> None:
    X, y = data(40)
    std = torch.as_tensor(np.random.default_rng(1).uniform(0.1, 0.5, 40))
    m = fitted(X, y + std * torch.as_tensor(np.random.default_rng(2).standard_normal(40)), std=std, first=40)
    # The surrogate's noise has the variance lam / weight.
    sd = (m.surrogate.noise / m.surrogate.observations.n).sqrt() * m.scaler.scale * m.scaler.unit
    torch.testing.assert_close(sd, std, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize(("told", "true", "unknown"), [(0.5, 0.5, 0.02), (1e-3, 1e-3, 0.3), (0.5, 0.1, 0.05)])
def test_unknown_noise_is_fitted_to_the_values_that_have_it(told: float, true: float, unknown: float) -> None:
    rng = np.random.default_rng(0)
    X, given = torch.as_tensor(rng.random((110, 1))), torch.arange(110) < 70
    y = torch.sin(6.0 * X[:, 0]) + torch.where(given, true, unknown) * torch.as_tensor(rng.standard_normal(110))
    m = fitted(X, y, std=torch.where(given, told, NAN), first=110)
    sd = m.surrogate.noise**0.5 * m.scaler.scale * m.scaler.unit
    # Standard deviations of 40 values have relative errors of 11 %; with one factor for all noise: 0.07, 0.2, 0.01.
    assert sd == pytest.approx(unknown, rel=0.35)


@pytest.mark.parametrize("wrong", [-1e9, -1e3, 1e3, 1e9])
@pytest.mark.parametrize("others", [NAN, 0.05])
def test_a_value_with_noise_beyond_the_range_of_the_others_counts_as_none(wrong: float, others: float) -> None:
    X, y = data(25)
    y = y + 0.05 * torch.as_tensor(np.random.default_rng(3).standard_normal(25))
    std = torch.full((25,), others, dtype=torch.float64)
    std[0], y[0] = 1e3 * abs(wrong), wrong
    without = fitted(X[1:], y[1:], std=std[1:], first=24).predict(X)
    # The number of points is in the prior of the constant mean, and in the choice of a structure by evidence.
    for found, expected in zip(fitted(X, y, std=std, first=25).predict(X), without, strict=True):
        torch.testing.assert_close(found, expected, rtol=0.1, atol=0.02)


def test_a_majority_of_outdated_values_leaves_the_scale_to_the_others() -> None:
    X, y = data(45)
    drifted = y + torch.where(torch.arange(45) < 30, 1e4, 0.0)
    std = torch.where(torch.arange(45) < 30, 1e6, NAN)
    found = fitted(X, drifted, std=std, first=45).predict(X[30:])[0]
    torch.testing.assert_close(found, y[30:], rtol=0.0, atol=0.05)


def test_stated_noise_is_kept_where_values_are_stated_to_be_deterministic() -> None:
    X, y = data(20)
    m = fitted(X, y, bo.ExactGP(noise=0.04), deterministic=True)
    assert m.surrogate.noise == m.scaler.noise(0.2)
    assert not m.noisiness.is_noisy()


def linear(A: Tensor, B: Tensor) -> Tensor:
    return A @ B.T


@pytest.mark.parametrize("n", [1, 64, 65, 200])
def test_kappa_squared_is_the_largest_prior_variance_of_all_points_and_arms(n: int) -> None:
    X = torch.linspace(0.01, 12.0, n, dtype=torch.float64)[:, None]  # later points are larger
    surrogate, nothing = bo.BKB(linear, noise=1.0), X[:0]
    followed = quantity(surrogate, fit=False)
    for i in range(n):
        followed.follow(rows(X[: i + 1], X[: i + 1, 0], first=1))
        # The last digit may follow the size of a block: a product of matrices.
        assert followed.context(None, nothing).kappa2 == pytest.approx(float(X[i] ** 2), rel=1e-14)
    whole = fitted(X, X[:, 0], surrogate, fit=False, first=1)
    # To the last bit what one that has followed the points says, or suggestions would depend on the process.
    assert whole.context(None, nothing).kappa2 == followed.context(None, nothing).kappa2
    arms = torch.tensor([[3.0], [20.0], [1.0]], dtype=torch.float64)
    assert whole.context(3, nothing, arms).kappa2 == 400.0
    assert whole.context(2, nothing, arms[::2] / 1e3).kappa2 == pytest.approx(float(X[-1] ** 2), rel=1e-14)
    assert whole.context(None, nothing).kappa2 == pytest.approx(float(X[-1] ** 2), rel=1e-14)


def test_every_door_counts_the_arms_of_a_pool_in_kappa_squared() -> None:
    arms = np.append(np.linspace(0.0, 1.0, 30), 12.0)[:, None]
    seen: list[float] = []

    def schedule(progress: bo.confidence.ScheduleContext) -> float:
        seen.append(progress.kappa2)
        return 0.0  # never looks at what is uncertain, and so not at the last arm

    options = {"surrogate": bo.BKB(linear, noise=0.01), "fit": False, "n_startup_trials": 1, "beta": schedule}
    opt = bo.Optimizer(bo.Pool(arms), direction="minimize", seed=0, **options)  # type: ignore[arg-type]
    opt.tell({"index": 1}, 1.0)
    opt.ask()
    assert opt.beta == 0.0
    opt.regret_certificate()
    assert len(seen) == 3
    assert all(kappa2 == pytest.approx(144.0) for kappa2 in seen)


def losses(n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Points of a square, losses from 0.05 to 1 with noise that is a fifth of each, and these without noise."""
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(rng.random((n, 2)))
    loss = 0.05 * torch.exp(3.0 * ((X - 0.3).square().sum(1) * 2.0).clamp_max(1.0))
    return X, loss * torch.exp(0.2 * torch.as_tensor(rng.standard_normal(n))), loss


def test_warped_values_predict_losses_and_their_deviations_better(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = losses(120, 0)
    warped = fitted(X, y)
    monkeypatch.setattr(fitting, "is_better_warped", lambda *_: False)
    plain = fitted(X, y)
    assert warped.scaler.warp_range < INF == plain.scaler.warp_range
    at, seen, loss = losses(2000, 1)
    good = loss < 0.1
    z = []
    for model in (warped, plain):
        mean, sd = model.predict(at)
        z.append((seen - mean) / torch.hypot(sd, torch.full_like(sd, model.noise_std)))
    assert 0.005 < warped.noise_std < 0.02 < plain.noise_std  # a fifth of the best losses, which are 0.05
    # The noise of the bad losses is not that of the good ones.
    assert 0.7 < float(z[0][good].std()) < 1.5
    assert float(z[1][good].std()) < 0.5


def test_values_are_not_warped_where_kernel_or_noise_are_given_or_values_are_few() -> None:
    X, y, _ = losses(120, 0)
    assert fitted(X, y, bo.ExactGP(kernel=rbf(2))).scaler.warp_range == INF
    assert fitted(X, y, bo.ExactGP(noise=0.02**2)).scaler.warp_range == INF
    assert fitted(X, y, std=torch.full_like(y, 0.02)).scaler.warp_range == INF
    assert fitted(X[:20], y[:20]).scaler.warp_range == INF


def test_one_of_several_objectives_is_warped_too() -> None:
    X, y, _ = losses(120, 0)
    assert fitted(X, y, winsorised=False).scaler.warp_range < INF


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_values_that_the_points_do_not_explain_are_constant(noise: float) -> None:
    rng = np.random.default_rng(1)  # with noise alone, a kernel is a little better than a constant in one case of three
    X, e = torch.as_tensor(rng.random((60, 2))), torch.as_tensor(rng.standard_normal(60))
    assert fitted(X, 3.0 + noise * e, first=60).is_constant
    assert not fitted(X, X[:, 0] + noise * e, first=60).is_constant
    assert not fitted(X[:19], 3.0 + noise * e[:19], first=19).is_constant  # too few to say so
    assert not fitted(X, 3.0 + noise * e, first=60, fit=False).is_constant


def test_warped_values_learnt_one_by_one_are_those_met_at_once() -> None:
    X, y, _ = losses(130, 0)
    followed = quantity()
    for n in range(110, 131):
        followed.follow(rows(X[:n], y[:n]))
    at_once = fitted(X, y)
    assert followed.scaler == at_once.scaler
    assert followed.scaler.warp_range < INF
    at = losses(5, 1)[0]
    assert all(torch.equal(a, b) for a, b in zip(followed.predict(at), at_once.predict(at), strict=True))
    assert followed.noise_std == at_once.noise_std


def test_rows_after_the_mark_may_be_learnt_later() -> None:
    X, y = data(45)
    followed, late = quantity(bo.BKB()), quantity(bo.BKB())
    for n in range(10, 46):
        followed.follow(rows(X[:n], y[:n]))
        late.follow(rows(X[:n], y[:n]).at_mark())
    assert late.surrogate.observations.total == followed.mark < 45
    for _ in range(2):  # rows that are known already change nothing
        late.follow(rows(X, y))
        late.follow(rows(X, y).at_mark())
        there = (one.model(X[:3])(X) for one in (followed, late))
        assert all(map(torch.equal, *there))
