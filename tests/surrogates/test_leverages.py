"""Leverages at any lam of the sampling."""

import pytest
import torch

from bkbopt.kernels import matern52
from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.features.table import FeatureTable
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.surrogates.leverages import Leverages


@pytest.mark.parametrize("scale", [1.0, 1.5, 100.0])
def test_leverages_at_another_lam_are_those_of_a_posterior_with_that_lam(scale: float) -> None:
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(30, 2, generator=generator, dtype=torch.float64)
    n, lam = torch.arange(1.0, 31.0, dtype=torch.float64), 0.01
    table = FeatureTable.of(Nystrom.from_points(matern52(2), X[:4]), X)
    assert float(table.residual.max()) > 0.1
    leverages = Leverages(table, GaussianState.from_data(table.Z, n, n, lam))
    other = GaussianState.from_data(table.Z, n, n, scale * lam)
    torch.testing.assert_close(
        leverages(scale), table.residual / other.lam + other.leverage(table.Z), rtol=1e-9, atol=0
    )
