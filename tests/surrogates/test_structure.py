"""The kernel's structure is that with the largest evidence."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bkbopt.kernels import (
    ARDKernel,
    ColumnsKernel,
    FittableKernel,
    Kernel,
    RotatedKernel,
    SphericalKernel,
    SumKernel,
    matern52,
)
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates import fit as fit_module
from bkbopt.surrogates import structure
from bkbopt.surrogates.fit import Fit, FitSettings, fit_from
from bkbopt.surrogates.fit_data import MANY, FitData
from bkbopt.surrogates.structure import FEWEST, fit_structure, stationary_start

Function = Callable[[Tensor], Tensor]


def observed(f: Function, n: int, dim: int, noise_sd: float, seed: int = 0, levels: int = 0) -> Observations:
    """Standardised values of `f` at random points; the last column has `levels` categories, if any."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, dim, generator=generator, dtype=torch.float64)
    if levels:
        X[:, -1] = (levels * X[:, -1]).floor()
    y = f(X)
    y = (y - y.mean()) / y.std() + noise_sd * torch.randn(n, generator=generator, dtype=torch.float64)
    observations = Observations(dim, X.device)
    observations.add(X, y)
    return observations


def chosen(observations: Observations, categorical: tuple[int, ...] = ()) -> object:
    kernel, _ = fit_structure(
        observations,
        matern52(observations.dim, categorical=categorical),
        1e-2,
        fit_noise=True,
        rng=np.random.default_rng(0),
    )
    return kernel


def separable(X: Tensor) -> Tensor:
    return ((X - 0.4).square() * 20.0 + torch.cos(20.0 * X)).sum(1)


def rotation(dim: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64))[0]


def bowl(X: Tensor) -> Tensor:
    weights = 1e3 ** torch.linspace(0.0, 1.0, X.shape[1], dtype=torch.float64)
    return ((X - 0.45) @ rotation(X.shape[1])).square() @ weights


def test_sum_of_functions_of_one_column_gets_a_kernel_for_each_column() -> None:
    kernel = chosen(observed(separable, 200, 4, 0.1))
    assert isinstance(kernel, SumKernel)
    assert isinstance(kernel.parts[1], ColumnsKernel)


def rippled_bowl(X: Tensor) -> Tensor:
    Y = (X - 0.4) @ rotation(X.shape[1])
    return 20.0 * Y.square().sum(1) + torch.cos(20.0 * Y).sum(1)


def test_ripples_that_are_no_sum_over_columns_get_a_kernel_of_their_own() -> None:
    data, rng = observed(rippled_bowl, 400, 3, 0.1), np.random.default_rng(0)
    kernel, noise = fit_structure(data, matern52(3), 0.01, fit_noise=True, rng=rng)
    assert isinstance(kernel, SumKernel)
    trend, ripples = kernel.parts
    assert isinstance(trend, ARDKernel)
    assert isinstance(ripples, ARDKernel)
    assert bool((ripples.lengthscale < 0.5 * trend.lengthscale).all())
    # The noise variance is 0.01, of which ripples may explain a part. A stationary kernel takes the ripples for noise.
    few = FitData.of(data).subset(structure.COMPARED, np.random.default_rng(0))
    assert noise < 0.02
    assert structure._Search(few, matern52(3), 0.01, True).plain().noise > 0.05


@pytest.mark.parametrize(("longest", "starts"), [(0.8, 2), (0.08, 1)])
def test_ripples_that_seem_flat_in_a_column_are_continued_from_equal_lengthscales_too(
    monkeypatch: pytest.MonkeyPatch, longest: float, starts: int
) -> None:
    ripples = matern52(3, lengthscale=[0.05, 0.05, longest])
    tried: list[SumKernel] = []

    def fit(_: object, kernel: SumKernel, noise: float, **__: object) -> Fit:
        tried.append(kernel)
        return Fit(kernel, noise, float(len(tried)))

    monkeypatch.setattr(structure, "fit_from", fit)
    data = FitData.of(observed(rippled_bowl, 30, 3, 0.1))
    found = structure._continued(data, Fit(SumKernel((matern52(3), ripples)), 0.01, 0.0), True)
    assert len(tried) == starts
    assert found.kernel is tried[-1]
    lengths = tried[-1].parts[1].theta[:3].exp()
    torch.testing.assert_close(lengths, torch.tensor([0.05, 0.05, 0.05 if starts == 2 else longest]).double())


@pytest.mark.parametrize("noise", [0.1, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_noise_is_not_taken_for_ripples(seed: int, noise: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(120, 5, generator=generator, dtype=torch.float64)
    K = matern52(5, lengthscale=[0.4, 0.6, 0.8, 1.0, 1.5])(X, X) + noise * torch.eye(120, dtype=torch.float64)
    observations = Observations(5, X.device)
    observations.add(X, torch.linalg.cholesky(K) @ torch.randn(120, generator=generator, dtype=torch.float64))
    assert not any(isinstance(part, ARDKernel) for part in getattr(chosen(observations), "parts", [])[1:])


def test_a_sum_over_columns_extrapolates() -> None:
    import bkbopt as bo

    data, fresh = observed(separable, 200, 4, 0.1), observed(separable, 500, 4, 0.0, seed=1)
    errors = []
    for kernel in (chosen(data), matern52(4)):
        model = bo.ExactGP(kernel, noise=0.01)
        model.observe(data.X, data.s)
        errors.append(float((model.posterior(fresh.X).mean - fresh.s).square().mean()))
    assert errors[0] < 0.1 * errors[1]


def test_rotated_bowl_gets_a_rotation_to_its_axes() -> None:
    kernel = chosen(observed(bowl, 200, 4, 0.02))
    assert isinstance(kernel, RotatedKernel)
    # The steepest axis; 0.99 is an angle of 8 degrees.
    steepest, expected = kernel.R[:, 0], rotation(4)[:, -1]
    assert abs(float(steepest @ expected)) > 0.99
    torch.testing.assert_close(kernel.R.T @ kernel.R, torch.eye(4, dtype=torch.float64), rtol=0.0, atol=1e-12)


def test_categories_are_not_rotated() -> None:
    kernel = chosen(observed(lambda X: bowl(X[:, :3]) + 50.0 * X[:, 3], 200, 4, 0.02, levels=3), categorical=(3,))
    assert isinstance(kernel, RotatedKernel)
    expected = torch.zeros(4, dtype=torch.float64)
    expected[3] = 1.0
    assert torch.equal(kernel.R[3], expected)
    assert torch.equal(kernel.R[:, 3], expected)


@pytest.mark.parametrize("seed", range(3))
def test_draw_from_the_plain_kernel_keeps_it(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(120, 5, generator=generator, dtype=torch.float64)
    K = matern52(5, lengthscale=[0.4, 0.6, 0.8, 1.0, 1.5])(X, X) + 1e-2 * torch.eye(120, dtype=torch.float64)
    y = torch.linalg.cholesky(K) @ torch.randn(120, generator=generator, dtype=torch.float64)
    observations = Observations(5, X.device)
    observations.add(X, y)
    assert isinstance(chosen(observations), ARDKernel)


def test_few_points_have_no_structure() -> None:
    assert isinstance(chosen(observed(bowl, FEWEST - 1, 4, 0.0)), ARDKernel)


def test_line_has_no_structure() -> None:
    assert isinstance(chosen(observed(separable, 100, 1, 0.1)), ARDKernel)


def same(first: tuple[Kernel, float], second: tuple[Kernel, float]) -> bool:
    a, b = first[0], second[0]
    assert isinstance(a, FittableKernel)
    assert isinstance(b, FittableKernel)
    return type(a) is type(b) and torch.equal(a.theta, b.theta) and first[1] == second[1]


def test_of_several_fits_to_many_points_the_one_with_the_largest_evidence_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.random((460, 3)))
    observations = Observations(3)
    observations.add(X, torch.sin(20.0 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * torch.as_tensor(rng.standard_normal(460)))

    def fitted(tries: int) -> tuple[Kernel, float]:
        monkeypatch.setattr(structure, "TRIES", tries)
        return fit_structure(observations, matern52(3), 0.1, fit_noise=True, rng=np.random.default_rng(2))

    monkeypatch.setattr(structure, "MERGED_FROM", math.inf)  # which another test is about
    alone = fitted(3)  # 460 points are not many
    monkeypatch.setattr(structure, "SEVERAL", 400)
    monkeypatch.setattr(structure, "JUDGED", 460)
    settings = FitSettings(max_iterations=structure.AGAIN)
    data = FitData.of(observations)
    continued = fit_from(data, *alone, fit_noise=True, with_mean=True, settings=settings)
    first = fitted(1)
    assert same(first, (continued.kernel, continued.noise))

    def evidence(kernel: Kernel, noise: float) -> float:
        assert isinstance(kernel, FittableKernel)
        K = kernel(X, X) + noise * torch.eye(460, dtype=torch.float64)
        values, ones = observations.s / observations.n, torch.ones(460, dtype=torch.float64)
        weights = torch.linalg.solve(K, ones)
        mean = weights @ values / (weights @ ones + 1.0)  # the best one under its prior of precision one
        density = torch.distributions.MultivariateNormal(mean * ones, K).log_prob(values) - mean**2 / 2.0
        return float(density + kernel.log_prior())

    found = [evidence(*best) for best in (first, fitted(2), fitted(3))]
    assert found == sorted(found)
    assert found[-1] > found[0] + 5.0
    assert found[0] > evidence(*alone)  # it is continued on all 460 points, of which the first fit has 400


def product(X: Tensor) -> Tensor:
    return torch.cos(7.0 * X[:, 0]) * torch.cos(4.0 * X[:, 1])


def comparison(monkeypatch: pytest.MonkeyPatch, f: Function, n: int) -> tuple[tuple[Kernel, float], list[Fit]]:
    """The chosen kernel and noise variance, and all fits that were made."""
    fits: list[Fit] = []

    def fit(*arguments: Any, **options: Any) -> Fit:
        fits.append(fit_from(*arguments, **options))
        return fits[-1]

    monkeypatch.setattr(structure, "fit_from", fit)
    rng = np.random.default_rng(0)
    return fit_structure(observed(f, n, 4, 0.1), matern52(4), 1e-2, fit_noise=True, rng=rng), fits


@pytest.mark.parametrize("f", [separable, bowl, product])
@pytest.mark.parametrize("n", [30, 120])
def test_giving_up_changes_no_choice(monkeypatch: pytest.MonkeyPatch, f: Function, n: int) -> None:
    early, _ = comparison(monkeypatch, f, n)
    monkeypatch.setattr(structure, "PROMISING", -math.inf)
    monkeypatch.setattr(fit_module, "GIVEN_UP_AFTER", 1_000)
    assert same(comparison(monkeypatch, f, n)[0], early)


def test_after_a_rotation_without_gain_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def rotations() -> int:
        _, fits = comparison(monkeypatch, product, 120)
        return sum(isinstance(fit.kernel, RotatedKernel) for fit in fits)

    assert rotations() == 1
    monkeypatch.setattr(structure, "PROMISING", -math.inf)
    assert rotations() > 1


def test_sums_that_stay_below_the_stationary_kernel_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def sum_values() -> list[float]:
        _, fits = comparison(monkeypatch, product, 120)
        values = [fit.value for fit in fits if isinstance(fit.kernel, SumKernel)]
        assert max(values) < fits[0].value
        return values

    early = sum_values()
    monkeypatch.setattr(fit_module, "GIVEN_UP_AFTER", 1_000)
    assert all(late > value for late, value in zip(sum_values(), early, strict=True))


def test_same_data_give_the_same_kernel() -> None:
    data = observed(separable, 450, 3, 0.1)
    first, second = chosen(data), chosen(data)
    assert isinstance(first, SumKernel)
    assert isinstance(second, SumKernel)
    assert torch.equal(first.theta, second.theta)


def wide_bowl(X: Tensor) -> Tensor:
    return (X - 0.4).square().sum(1)


def few_ripples(X: Tensor) -> Tensor:
    return torch.cos(12.0 * X[:, :2]).sum(1)


def test_bowl_of_many_columns_is_a_trend() -> None:
    kernel = chosen(observed(wide_bowl, 200, MANY + 1, 0.1))
    assert isinstance(kernel, SumKernel)
    assert isinstance(kernel.parts[1], SphericalKernel)


def few_waves(X: Tensor) -> Tensor:
    return torch.cos(5.0 * X[:, :2]).sum(1)


def inactive(kernel: object) -> tuple[int, ...]:
    base = kernel.parts[0] if isinstance(kernel, SumKernel) else kernel
    assert isinstance(base, ARDKernel)
    return base.inactive


def test_ripples_of_few_of_many_columns_are_no_trend() -> None:
    assert isinstance(chosen(observed(few_ripples, 200, MANY + 10, 0.1)), ARDKernel)


def test_waves_of_few_of_many_columns_have_a_kernel_of_these_only() -> None:
    kernel = chosen(observed(few_waves, 200, MANY + 10, 0.1))
    assert isinstance(kernel, SumKernel)  # with a trend of the same columns
    assert inactive(kernel) == tuple(range(2, MANY + 10))
    assert [part.numeric for part in kernel.parts] == [(0, 1), [0, 1]]


def test_categories_are_never_inactive() -> None:
    kernel = chosen(observed(few_waves, 200, MANY + 10, 0.1, levels=3), categorical=(MANY + 9,))
    base = kernel.parts[0] if isinstance(kernel, SumKernel) else kernel
    assert isinstance(base, ARDKernel)
    assert (base.numeric, base.categorical) == ((0, 1), (MANY + 9,))


def test_all_columns_that_matter_stay() -> None:
    def ripples(X: Tensor) -> Tensor:
        return torch.cos(3.0 * X).sum(1)

    assert not inactive(chosen(observed(ripples, 400, MANY + 2, 0.05)))


@pytest.mark.parametrize("seed", range(3))
def test_columns_of_noise_are_not_chosen_by_chance(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    observations = Observations(100)
    observations.add(
        torch.rand(60, 100, generator=generator, dtype=torch.float64),
        torch.randn(60, generator=generator, dtype=torch.float64),
    )
    assert not inactive(chosen(observations))


def test_stationary_start_has_the_inactive_columns_of_a_fitted_kernel() -> None:
    start, few = matern52(4, categorical=[1]), matern52(4, 0.1, categorical=[1], inactive=[0, 3])
    for fitted in (few, SumKernel((few, SphericalKernel.start(4, [1])))):
        found = stationary_start(fitted, start)
        assert isinstance(found, ARDKernel)
        assert (found.inactive, found.categorical) == ((0, 3), (1,))
        assert torch.equal(found.theta, matern52(2, categorical=[1]).theta)
    assert stationary_start(RotatedKernel(start, rotation(4)), start) is start


@pytest.mark.parametrize(
    ("gain", "gain_of_trend", "few", "trend"),  # one of 32 columns: 3 + 1 + log(32) = 7.5
    [(8.0, 0.0, True, False), (7.0, 0.0, False, False), (8.0, 4.0, True, True)],
)
def test_few_columns_need_a_gain_for_the_choice_of_them_and_may_have_a_trend(
    monkeypatch: pytest.MonkeyPatch, gain: float, gain_of_trend: float, few: bool, trend: bool
) -> None:
    def fit(_: object, kernel: Kernel, noise: float, **__: object) -> Fit:
        is_one = len(inactive(kernel)) == 31
        return Fit(kernel, noise, gain * is_one + gain_of_trend * isinstance(kernel, SumKernel))

    monkeypatch.setattr(structure, "fit_from", fit)
    kernel = chosen(observed(few_ripples, 50, 32, 0.1))
    assert not inactive(chosen(observed(few_ripples, 49, 32, 0.1)))
    assert bool(inactive(kernel)) == few
    assert isinstance(kernel, SumKernel) == trend


def test_bowl_of_few_columns_has_no_trend() -> None:
    kernel = chosen(observed(wide_bowl, 200, 4, 0.1))
    assert not any(isinstance(part, SphericalKernel) for part in getattr(kernel, "parts", [kernel]))


@pytest.mark.parametrize(
    ("rotated", "sum_of_rotated", "sum_of_plain", "expected"),
    [
        (9.0, 9.0, 5.0, "sum of plain"),  # 9 is less than the margin of 10 for the angles of five columns
        (15.0, 15.0, 2.0, "rotated"),
        (15.0, 20.0, 2.0, "sum of rotated"),
        (15.0, 20.0, 30.0, "sum of plain"),  # where the sum explains what a rotation seemed to
        (0.0, 0.0, 2.0, "plain"),
    ],
)
def test_all_four_kernels_are_compared_each_with_its_margin(
    monkeypatch: pytest.MonkeyPatch, rotated: float, sum_of_rotated: float, sum_of_plain: float, expected: str
) -> None:
    def kind(kernel: object) -> str:
        if isinstance(kernel, SumKernel):
            return "sum of " + kind(kernel.parts[0])
        return "rotated" if isinstance(kernel, RotatedKernel) else "plain"

    values = {"plain": 0.0, "rotated": rotated, "sum of rotated": sum_of_rotated, "sum of plain": sum_of_plain}
    monkeypatch.setattr(structure, "fit_from", lambda _, kernel, noise, **__: Fit(kernel, noise, values[kind(kernel)]))
    assert kind(chosen(observed(bowl, 30, 5, 0.1))) == expected


@pytest.mark.parametrize("seed", range(3))
def test_noise_as_large_as_the_signal_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(rng.random((100, 6)))
    f = X[:, 0] + X[:, 1]
    y = (f - f.mean()) / f.std() + torch.as_tensor(rng.standard_normal(100))
    observations = Observations(6)
    observations.add(X, y / y.std())
    _, noise = fit_structure(observations, matern52(6), 0.01, fit_noise=True, rng=np.random.default_rng(0))
    # A half is right. Of fits that start with little noise only, all three end below 0.01.
    assert 0.3 < noise < 0.7
