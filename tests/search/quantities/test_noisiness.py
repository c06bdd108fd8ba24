"""Whether values have noise: stated, seen in repeats, or tested."""

import numpy as np
import pytest
import torch

import bkbopt as bo
from tests.search.quantities.made import data, fitted


def test_repeats_decide_whether_values_are_noisy() -> None:
    X, y = data(10)
    twice = X.repeat(2, 1)
    assert not fitted(twice, y.repeat(2)).noisiness.is_noisy()
    assert fitted(twice, torch.cat([y, y + 0.1])).noisiness.is_noisy()


@pytest.mark.parametrize("std", [0.05, 1e-9])
def test_noise_stated_with_the_surrogate_decides_as_noise_told_with_the_values_does(std: float) -> None:
    X, y = data(8)
    stated, told = fitted(X, y, bo.ExactGP(noise=std**2)), fitted(X, y, std=[std] * 8)
    for m in (stated, told):
        assert m.noisiness.is_noisy() == (std > 1e-6) == (not m.noisiness.is_found_noiseless)
        assert not m.noisiness.awaits_repeat


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
