"""The points that a fit of bounded cost uses."""

import numpy as np
import pytest
import torch

from bkbopt.kernels import matern52
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.fit import FitSettings, fit_hyperparameters, log_evidence, log_marginal_likelihood
from bkbopt.surrogates.fit_data import MANY, FitData


def crowded(n: int = 600, far: int = 40, seed: int = 0) -> Observations:
    """Points of a search: some anywhere, most of them near one point."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.random((far, 3)), 0.5 + 0.01 * rng.standard_normal((n - far, 3))])
    y = np.sin(7.0 * X).sum(1) + 0.1 * rng.standard_normal(n)
    observations = Observations(3, torch.device("cpu"))
    observations.add(torch.as_tensor(X), torch.as_tensor(y))
    return observations


def test_all_points_are_used_where_they_are_few() -> None:
    data = FitData.of(crowded(50))
    assert data.subset(50, np.random.default_rng(0)) is data


def test_subset_has_the_number_asked_for_and_every_point_once() -> None:
    data = FitData.of(crowded())
    for most in (1, 2, 99, 599):
        subset = data.subset(most, np.random.default_rng(0))
        assert len(torch.unique(subset.U, dim=0)) == len(subset.U) == most


def test_points_that_lie_far_apart_are_all_taken() -> None:
    observations = crowded()
    subset = FitData.of(observations).subset(100, np.random.default_rng(1))
    alone = observations.X[((observations.X - 0.5).abs() > 0.1).any(1)]
    assert len(alone) > 30
    for x in alone:
        assert bool((x == subset.U).all(1).any())


def test_of_many_columns_the_first_points_are_taken_and_others_at_random() -> None:
    rng = np.random.default_rng(0)
    observations = Observations(MANY + 1)
    observations.add(torch.as_tensor(rng.random((500, MANY + 1))), torch.as_tensor(rng.random(500)))
    first, second = (FitData.of(observations).subset(101, np.random.default_rng(seed)) for seed in (0, 1))
    assert torch.equal(first.U[:50], observations.X[:50])
    assert torch.equal(second.U[:50], observations.X[:50])
    in_both = (first.U[50:, None] == second.U[None, 50:]).all(2).sum()
    assert len(first.U) == 101
    assert 0 < in_both < 15  # 51 of 450 points, twice: 6 are expected


def test_spread_of_repeats_is_shared_out_by_their_number() -> None:
    observations = Observations(1, torch.device("cpu"))
    X = torch.linspace(0.0, 1.0, 10, dtype=torch.float64)[:, None].repeat(3, 1)
    y = torch.randn(30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    observations.add(X, y)
    whole = FitData.of(observations)
    half = whole.subset(5, np.random.default_rng(0))
    assert float(half.repeats.sum()) == 10.0
    assert half.within == pytest.approx(0.5 * whole.within, rel=1e-12)


def test_lengthscales_of_a_subset_are_near_those_of_all_points() -> None:
    observations = crowded()
    fits = [
        fit_hyperparameters(observations, matern52(3), 1e-2, with_mean=True, settings=FitSettings(max_points=most))
        for most in (120, 600)
    ]
    few, whole = (fit[0].lengthscale for fit in fits)  # type: ignore[attr-defined]
    # 0.2 on the logarithm is what 40 points leave open.
    torch.testing.assert_close(few.log(), whole.log(), rtol=0.0, atol=0.2)


def test_merged_data_keep_the_sums_of_all_values() -> None:
    observations = crowded()
    observations.add(observations.X[:5], torch.linspace(-1.0, 1.0, 5, dtype=torch.float64))  # with repeats
    data, merged = FitData.of(observations), FitData.of(observations).merged(100, np.random.default_rng(0))
    assert data.merged(len(data.U), np.random.default_rng(0)) is data
    assert len(merged.U) == len(torch.unique(merged.U, dim=0)) == 100
    for of in (lambda d: d.n, lambda d: d.n * d.ybar, lambda d: d.n[:, None] * d.U, lambda d: d.repeats + 1.0):
        torch.testing.assert_close(of(merged).sum(0), of(data).sum(0), rtol=1e-12, atol=1e-12)
    squares = [d.within + float(d.n @ d.ybar.square()) for d in (data, merged)]
    assert squares[1] == pytest.approx(squares[0], rel=1e-12)


def test_groups_of_points_far_from_the_origin_are_the_same() -> None:
    rng = np.random.default_rng(0)
    X = (torch.as_tensor(rng.random((2000, 2))) * 2**20).round() / 2**20  # so that the sums are exact
    near, far = Observations(2), Observations(2)
    for observations, away in ((near, 0.0), (far, 2.0**30)):
        observations.add(X + away, torch.sin(6.0 * X[:, 0]))
    expected, found = (FitData.of(each).merged(400, np.random.default_rng(0)) for each in (near, far))
    assert torch.equal(found.n, expected.n)
    torch.testing.assert_close(found.U - 2.0**30, expected.U, rtol=0.0, atol=1e-6)


def test_values_close_to_one_another_are_merged_as_repeats_of_one_point() -> None:
    rng = np.random.default_rng(0)
    places, which = torch.as_tensor(rng.random((20, 2))), torch.as_tensor(rng.integers(20, size=200))
    y = torch.sin(6.0 * places[which]).sum(1) + 0.5 * torch.as_tensor(rng.standard_normal(200))
    near, repeats = Observations(2), Observations(2)
    near.add(places[which] + 1e-9 * torch.as_tensor(rng.standard_normal((200, 2))), y)
    repeats.add(places[which], y)
    merged, kernel = FitData.of(near).merged(40, np.random.default_rng(1)), matern52(2)
    found, expected = (
        float(log_marginal_likelihood(data, kernel, torch.tensor(0.25, dtype=torch.float64)))
        for data in (merged, FitData.of(repeats))
    )
    assert found == pytest.approx(expected, rel=1e-6)  # the points are 1e-9 apart, over a noise of 0.5


def test_many_noisy_values_determine_a_kernel_better_than_a_subset() -> None:
    rng = np.random.default_rng(2)
    X = torch.as_tensor(rng.random((3000, 3)))
    y = torch.sin(9.0 * X[:, 0]) + 0.0 * X[:, 1] + 2.0 * torch.as_tensor(rng.standard_normal(3000))
    observations = Observations(3)
    observations.add(X, (y - y.mean()) / y.std())
    data = FitData.of(observations)
    fits = [fit_hyperparameters(d, matern52(3), 0.5, with_mean=True) for d in (data, data.merged(400, rng))]
    evidence = [log_evidence(data, kernel, noise) for kernel, noise in fits]
    assert evidence[1] > evidence[0]
