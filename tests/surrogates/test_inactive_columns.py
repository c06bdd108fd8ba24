"""Columns without effect change neither the structure of a fit nor the subset that it uses."""

import numpy as np
import pytest
import torch

from bkbopt.kernels import matern52
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.fit_data import MANY, FitData
from bkbopt.surrogates.structure import fit_structure


@pytest.mark.parametrize("dim", [4, 30])
def test_inactive_columns_of_the_start_change_no_fit(dim: int) -> None:
    U = torch.rand(60, dim, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    y = torch.sin(9.0 * (U[:, 0] + U[:, 1])) + 0.3 * torch.sin(25.0 * U[:, 2])
    fits = []
    for place in ((), (0,)):
        X = torch.cat([torch.full((60, len(place)), 0.5, dtype=torch.float64), U], 1)
        observations = Observations(X.shape[1])
        observations.add(X, y)
        start = matern52(X.shape[1], inactive=place)
        kernel, noise = fit_structure(observations, start, 0.01, fit_noise=True, rng=np.random.default_rng(0))
        fits.append((kernel(X, X[:5]), noise))
    assert fits[0][1] == pytest.approx(fits[1][1], rel=1e-9)
    torch.testing.assert_close(fits[0][0], fits[1][0], rtol=1e-9, atol=1e-12)


def test_the_far_half_of_a_subset_depends_on_columns_that_vary() -> None:
    U = torch.rand(100, MANY, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    rows = []
    for X in (U, torch.cat([U, torch.ones(100, 1, dtype=torch.float64)], 1)):
        observations = Observations(X.shape[1])
        observations.add(X, X[:, 0])
        rows.append(FitData.of(observations).subset(20, np.random.default_rng(0)).ybar)
    assert torch.equal(*rows)
