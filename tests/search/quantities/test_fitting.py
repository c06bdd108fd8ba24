"""Fits of a quantity: the least noise of labels and ratings."""

import pytest
import torch

from bkbopt.kernels import matern52
from bkbopt.search.quantities.least_noise import LARGEST_LEAST, MOST_KINDS, OF_EACH
from bkbopt.surrogates.fit import fit_hyperparameters
from bkbopt.surrogates.fit_data import FitData
from tests.search.quantities.made import data, fitted

#: The bound of a fit is a logarithm.
ROUNDING = 1e-12


def in_kinds(y: torch.Tensor, kinds: int) -> torch.Tensor:
    """The values rounded to whole numbers, which are about equally frequent."""
    return torch.floor(kinds * y.argsort().argsort().double() / len(y))


@pytest.mark.parametrize("kinds", [2, 4, MOST_KINDS])
def test_values_of_few_kinds_have_at_least_the_noise_of_rounding(kinds: int) -> None:
    n = OF_EACH * kinds
    X, y = data(n)
    m = fitted(X, in_kinds(y, kinds), first=n)
    assert m.surrogate.noise >= min(1.0 / (kinds**2 - 1.0), LARGEST_LEAST) * (1.0 - ROUNDING)
    assert not m.is_noiseless


def test_repeats_are_no_further_points_of_a_kind() -> None:
    X, y = data(2 * OF_EACH - 1)
    labels = (y > y.median()).double()
    assert fitted(X.repeat(4, 1), labels.repeat(4), first=4 * len(X)).surrogate.noise < 0.1 * LARGEST_LEAST


def test_values_of_many_kinds_have_no_least_noise() -> None:
    X, _ = data(200)
    steps = in_kinds(X[:, 0], MOST_KINDS + 1)
    assert fitted(X[:, :1], steps, first=200).surrogate.noise < 1.0 / (MOST_KINDS**2 - 1.0)


def test_labels_that_are_stated_to_be_exact_have_no_noise() -> None:
    X, y = data(40)
    assert fitted(X, in_kinds(y, 2), deterministic=True, first=40).is_noiseless


def test_a_fit_finds_no_less_than_the_least_noise_of_its_data() -> None:
    X, y = data(30)
    one = torch.ones(30, dtype=torch.float64)
    free, bounded = (
        fit_hyperparameters(FitData(X, one, y - y.mean(), 0.0, 0.0 * one, least_noise=least), matern52(2), 0.01)[1]
        for least in (0.0, 0.03)
    )
    assert free < 1e-4
    assert bounded == pytest.approx(0.03, rel=ROUNDING)
