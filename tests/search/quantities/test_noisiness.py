"""Whether values have noise: stated, seen in repeats, or tested."""

import math

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.search.quantities.fitting import DETERMINISTIC
from tests.search.quantities.made import data, fitted, rows


def test_repeats_decide_whether_values_are_noisy() -> None:
    X, y = data(10)
    twice = X.repeat(2, 1)
    assert not fitted(twice, y.repeat(2)).noisiness.is_noisy()
    assert fitted(twice, torch.cat([y, y + 0.1])).noisiness.is_noisy()


def test_equal_repeats_of_values_of_two_kinds_decide_only_if_there_are_many() -> None:
    X, _ = data(60)
    passed = (X.sum(1) > X.sum(1).median()).double()  # another point has the same value with probability 29 / 59
    for n, may_be_chance in ((1, True), (4, True), (5, False)):
        assert fitted(torch.cat([X, X[:n]]), torch.cat([passed, passed[:n]])).noisiness.is_noisy() is may_be_chance
    assert fitted(torch.cat([X, X[:9]]), torch.cat([passed, 1.0 - passed[:9]])).noisiness.is_noisy()


def test_a_repeat_of_a_value_that_no_other_point_has_decides_also_among_labels() -> None:
    X, _ = data(60)
    values = (X[:, 0] > 0.5).double()
    values[0] = 7.0
    for row, decides in ((0, True), (1, False)):
        again = fitted(torch.cat([X, X[row : row + 1]]), torch.cat([values, values[row : row + 1]]))
        assert again.noisiness.is_noisy() is not decides


def test_of_few_points_whose_repeats_may_be_equal_by_chance_the_evidence_decides() -> None:
    X, y = data(30)
    steps, drawn = torch.floor(4.0 * X[:, 0]), torch.as_tensor(np.random.default_rng(1).integers(0, 2, 30)).double()
    assert not fitted(torch.cat([X, X[:1]]), torch.cat([y, y[:1]])).noisiness.is_noisy()
    for values in (steps, drawn):
        once, twice = fitted(X, values), fitted(torch.cat([X, X[:1]]), torch.cat([values, values[:1]]))
        assert twice.noisiness.is_noisy() == once.noisiness.is_noisy()


@pytest.mark.parametrize("std", [0.05, 1e-9])
def test_noise_stated_with_the_surrogate_decides_as_noise_told_with_the_values_does(std: float) -> None:
    X, y = data(8)
    stated, told = fitted(X, y, bo.ExactGP(noise=std**2)), fitted(X, y, std=[std] * 8)
    for m in (stated, told):
        assert m.noisiness.is_noisy() == (std > 1e-6) == (not m.noisiness.is_found_noiseless)
        assert not m.noisiness.awaits_repeat


@pytest.mark.parametrize("usual", [math.nan, 1e-9])
def test_a_single_value_that_was_given_a_large_noise_does_not_decide(usual: float) -> None:
    X, y = data(20)
    m = fitted(X, y, std=[1e6] + [usual] * 19)
    assert not m.noisiness.is_noisy()


def test_values_whose_fit_has_no_noise_are_known_to_have_none() -> None:
    X, _ = data(30)
    m = fitted(X, X.sum(1))
    assert m.surrogate.noise <= 1e-6
    assert m.noisiness.is_found_noiseless


def test_without_repeats_the_evidence_decides_whether_values_are_noisy() -> None:
    X, y = data(40)
    noise = 0.4 * torch.as_tensor(np.random.default_rng(0).standard_normal(40))
    assert not fitted(X, y).noisiness.is_noisy()
    assert fitted(X, y + noise).noisiness.is_noisy()
    assert not fitted(X, y + noise, deterministic=True).noisiness.is_noisy()


def test_different_values_of_one_point_are_noise_also_where_values_are_stated_to_be_exact(
    caplog: pytest.LogCaptureFixture,
) -> None:
    X, y = data(10)
    twice, values = X.repeat(2, 1), torch.cat([y, y + 0.125])
    m, unstated = fitted(twice, values, deterministic=True), fitted(twice, values)
    assert m.noisiness.is_noisy()
    assert (m.surrogate.noise, m.scaler) == (unstated.surrogate.noise, unstated.scaler)
    m.follow(rows(torch.cat([twice] * 2), torch.cat([values] * 2)))  # another fit
    (record,) = caplog.records
    assert record.message.startswith("deterministic, in Optuna deterministic_objective: expected the same value")
    assert "values of one point with a standard deviation of 0.0884" in record.message  # 0.125 / sqrt(2)


@pytest.mark.parametrize("gap", [0.0, 1e-5], ids=["equal values", "rounding"])
def test_repeats_with_the_noise_of_exact_values_contradict_nothing(
    gap: float, caplog: pytest.LogCaptureFixture
) -> None:
    X, y = data(10)
    m = fitted(X.repeat(2, 1), torch.cat([y, y + gap]), deterministic=True)
    assert m.surrogate.noise == DETERMINISTIC
    assert not m.noisiness.is_noisy()
    assert not caplog.records


@pytest.mark.parametrize("other", [{"std": [math.nan] * 10 + [0.3] * 10}, {"estimates": [0.0] * 20}])
def test_values_with_known_noise_and_pruned_trials_do_not_contradict_exact_ones(other: dict[str, list[float]]) -> None:
    X, y = data(10)
    pruned = "estimates" in other
    second = torch.full_like(y, math.nan) if pruned else y + 0.1
    assert not fitted(X.repeat(2, 1), torch.cat([y, second]), deterministic=True, **other).noisiness.is_noisy()
