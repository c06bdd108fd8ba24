"""Outliers: which values are left out of a fit, and what the others make of them."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.kernels import SumKernel, matern52
from bkbopt.posterior.observations import Observations
from bkbopt.search.quantities import outliers
from bkbopt.search.quantities.fitting import Fitter, ModelOptions
from bkbopt.search.quantities.outliers import judge, occur_once, without_outliers
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.surrogates.fit import log_evidence
from bkbopt.surrogates.fit_data import FitData
from tests.search.quantities.made import data, fitted, learnt
from tests.sweeps import slow_but

NOISE = 0.05
WRONG = {11: 2.0, 37: -3.0, 52: 1.0, 70: -1.5}


def noisy(n: int = 90, seed: int = 0) -> tuple[Tensor, Tensor]:
    X, y = data(n, seed)
    return X, y + NOISE * torch.as_tensor(np.random.default_rng([seed, 1]).standard_normal(n))


def with_errors(wrong: dict[int, float] | None = None, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Values to minimise with errors of 20 to 60 standard deviations of the noise, better and worse."""
    X, y = noisy(seed=seed)
    wrong = WRONG if wrong is None else wrong
    for row, error in wrong.items():
        y[row] += error
    return X, y


def checked(X: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The data with a right value at each wrong one's point."""
    rows = list(WRONG)
    right = data(90)[1][rows]
    return torch.cat([X, X[rows]]), torch.cat([y, right])


@pytest.mark.parametrize("seed", range(4))
def test_normal_noise_has_no_outliers(seed: int) -> None:
    assert fitted(*noisy(seed=seed)).outliers == {}


@pytest.mark.parametrize("surrogate", [bo.ExactGP(), bo.BKB(), bo.ExactGP(kernel=matern52(2))])
def test_errors_are_found_and_the_noise_is_that_of_the_others(surrogate: object) -> None:
    found = fitted(*checked(*with_errors()), surrogate, first=94)
    assert found.outliers.keys() == WRONG.keys()
    # The standard error of a standard deviation from some 90 values is 8 %.
    assert found.noise_std == pytest.approx(NOISE, rel=0.25)


def test_predictions_are_those_without_the_errors() -> None:
    X, y = checked(*with_errors())
    right = torch.ones(len(y), dtype=torch.bool)
    right[list(WRONG)] = False
    mean, _ = fitted(X, y, first=94).predict(X)
    alone, _ = fitted(X[right], y[right], first=90).predict(X)
    # Not equal: values are scaled with the others, and the wrong ones have weights of some thousandths.
    assert float((mean - alone).abs().max()) < 0.2 * NOISE


def test_an_outlier_has_the_noise_of_its_distance_from_the_prediction() -> None:
    found = fitted(*with_errors({37: 3.0}), first=90)
    assert found.outliers.keys() == {37}
    surrogate = found.surrogate
    away = float(learnt(found)[37] - surrogate.posterior(surrogate.observations.X[37:38]).mean)
    expected = surrogate.noise / away**2
    # The posterior has the value with this weight, a thousandth; the prediction does not have it.
    assert found.outliers == {37: pytest.approx(expected, rel=0.01)}
    assert float(surrogate.observations.n[37]) == found.outliers[37]


def test_the_only_good_value_of_a_screen_keeps_its_weight_until_it_is_repeated() -> None:
    rng = np.random.default_rng(0)
    X = torch.linspace(0.0, 1.0, 30, dtype=torch.float64)[:, None]
    y = torch.as_tensor(0.5 * rng.standard_normal(30))
    y[12] += 10.0
    alone = fitted(X, y, sign=1.0, first=30)
    assert alone.outliers == {}
    assert float(alone.surrogate.observations.n[12]) == 1.0
    assert alone.noise_std < 1.0
    X, y = torch.cat([X, X[12:13]]), torch.cat([y, torch.zeros(1)])
    assert fitted(X, y, sign=1.0, first=31).outliers.keys() == {12}


def test_a_better_value_that_a_repeat_confirms_is_no_outlier() -> None:
    X, y = with_errors({11: -2.0})
    X, y = torch.cat([X, X[11:12]]), torch.cat([y, y[11:12] + NOISE])
    found = fitted(X, y, first=91)
    assert found.outliers == {}
    assert float(found.surrogate.observations.n[11]) == 2.0


@pytest.mark.parametrize(
    "options",
    [
        {"std": torch.full((90,), NOISE)},
        {"std": torch.tensor([NOISE, *[math.nan] * 89])},
        {"surrogate": bo.ExactGP(noise=NOISE**2)},
        {"deterministic": True},
    ],
)
def test_values_whose_noise_is_stated_have_no_outliers(options: dict[str, object]) -> None:
    assert fitted(*with_errors(), first=90, **options).outliers == {}


@pytest.mark.parametrize("row", slow_but({703}, range(700, 708)))
def test_a_single_error_among_many_values_is_found(row: int) -> None:
    X, y = noisy(1200, seed=row)
    y[row] += 1.5
    assert fitted(X, y, first=1200).outliers.keys() == {row}


def test_values_without_noise_have_no_outliers() -> None:
    X, y = data(90)
    assert fitted(X, torch.where(X[:, 0] > 0.9, y + 3.0, y), first=90).outliers == {}


def test_the_substitute_for_the_value_of_a_pruned_trial_is_no_outlier() -> None:
    X, y = with_errors({37: 3.0})
    estimates = torch.full_like(y, math.nan)
    best = int(y.argmin())
    y[best], estimates[best] = math.nan, 3.0  # far from what the values around it lead to expect
    found = fitted(X, y, first=90, estimates=estimates)
    assert found.outliers.keys() == {37}
    assert float(found.surrogate.observations.n[best]) == 1.0


def test_few_values_have_no_outliers() -> None:
    X, y = with_errors({11: 30.0})
    assert fitted(X[:19], y[:19], first=19).outliers == {}
    assert fitted(X[:20], y[:20], first=20).outliers.keys() == {11}


def test_outliers_follow_the_direction_and_the_unit() -> None:
    X, y = checked(*with_errors())
    same = fitted(X, 1e6 - 1e3 * y, sign=1.0, first=94)
    # The same up to rounding in the unit of the values.
    assert same.outliers == pytest.approx(dict(fitted(X, y, first=94).outliers), rel=1e-9)


def test_errors_among_few_values_are_found_though_short_lengthscales_explain_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    X = torch.as_tensor(rng.random((30, 2)))
    y = (X[:, 0] - 0.3).square() + (X[:, 1] - 0.6).square() + 0.02 * torch.as_tensor(rng.standard_normal(30))
    y[[13, 23]] -= 1.0
    assert 13 in fitted(X, y, first=30).outliers
    monkeypatch.setattr(outliers, "EARLY", 0)
    assert fitted(X, y, first=30).outliers == {}


def test_a_fit_with_all_values_stays_if_it_has_more_evidence() -> None:
    X = torch.linspace(0.0, 1.0, 40, dtype=torch.float64)[:, None]
    v = 0.1 * torch.sin(torch.arange(40.0, dtype=torch.float64))
    v[20] = -6.0
    may_be = torch.ones_like(v, dtype=torch.bool)
    smooth, rough = matern52(1, 0.5), matern52(1, 1e-6)
    for kernel, expected in ((smooth, {20}), (rough, set())):
        # Value 20 is an outlier under both kernels; the prior density of the rough one is tiny.
        assert bool(judge(X, v, may_be, v > -6.0, kernel, 0.01).is_outlier[20])
        kept = without_outliers(X, v, may_be, smooth, 0.5, smooth, lambda *_, kernel=kernel: (kernel, 0.01, 0.0))
        assert {*(~kept).nonzero()[:, 0].tolist()} == expected


def test_fits_without_outliers_continue_a_stationary_fit_and_no_other() -> None:
    X, y = noisy()
    observed, start = Observations(2), matern52(2)
    observed.add(X, (y - y.mean()) / y.std())
    fitter = Fitter(ModelOptions(bo.BKB()), 1.0, winsorised=True)
    anew = fitter._refitted(start, observed, None)
    # Ripples would explain the outliers that are left.
    rippled = SumKernel((matern52(2, 1.0), matern52(2, 0.1)))
    kernel, *others = fitter._refitted(start, observed, (rippled, 0.01))
    assert torch.equal(kernel.theta, anew[0].theta)
    assert others == [*anew[1:]]
    # The optimizer stops where a step gains less than 2e-9 of the log posterior, which is about 74; several may follow.
    kernel, noise, mean = fitter._refitted(start, observed, (matern52(2, 0.3), 0.5))
    assert not torch.equal(kernel.theta, anew[0].theta)
    data = FitData.of(observed)
    assert log_evidence(data, kernel, noise) == pytest.approx(log_evidence(data, anew[0], anew[1]), abs=1e-5)
    assert mean == pytest.approx(anew[2], abs=1e-4)  # the root of that, by a flat maximum


def judged(v: list[float], points: list[float]) -> tuple[list[bool], list[bool]]:
    """Whether further values are outliers, and unchecked, beside 40 values near zero on a line."""
    X = torch.cat([torch.linspace(0.0, 1.0, 40, dtype=torch.float64), torch.tensor(points, dtype=torch.float64)])
    values = torch.cat([0.1 * torch.sin(torch.arange(40.0, dtype=torch.float64)), torch.tensor(v).double()])
    every = torch.ones_like(values, dtype=torch.bool)
    found = judge(X[:, None], values, every, every, matern52(1, 0.5), 0.01)
    return found.is_outlier[40:].tolist(), found.is_unchecked[40:].tolist()


def test_most_of_the_values_close_to_a_suspect_decide() -> None:
    assert judged([3.0, 3.0], [0.5, 0.5])[0] == [False, False]
    assert judged([3.0, 3.0, 3.0, 0.0], [0.5] * 4)[0][:3] == [False, False, False]
    assert judged([3.0, 0.0, 0.1, 0.0], [0.5] * 4)[0] == [True, False, False, False]
    assert judged([3.0, -3.0], [0.5, 0.5])[0] == [True, True]


def test_the_rarer_of_two_labels_is_no_error() -> None:
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.random((100, 4)))
    y = torch.zeros(100, dtype=torch.float64)
    y[[5, 40, 77]] = 1.0
    assert fitted(X, y, sign=1.0, first=100).outliers == {}
    y[5] += 1e-3
    assert occur_once(y).nonzero()[:, 0].tolist() == [5]


def test_only_better_values_are_checked_first() -> None:
    far = 1.5  # three lengthscales from the others
    assert judged([9.0], [far]) == ([True], [True])
    assert judged([-9.0], [far]) == ([True], [False])


def test_the_state_has_no_outliers_before_a_fit_and_without_one() -> None:
    X, y = with_errors()
    assert fitted(X[:2], y[:2]).outliers == {}
    plain = Quantity(fitted(X, y, first=90).fitter, seed=0, stream=0)
    assert plain.outliers == {}
    assert fitted(X, y, bo.ExactGP(kernel=matern52(2), noise=0.01), fit=False).outliers == {}
    assert math.isfinite(fitted(X, y, first=90).noise_std)
