"""Normal priors of hyper-parameters, against SciPy's densities."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from bkbopt.kernels import ColumnsKernel
from bkbopt.kernels.base import NormalPrior

LOC = torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64)
THETA = torch.tensor([0.3, 0.1, -0.7], dtype=torch.float64)


def test_independent_densities_are_relative_to_their_maxima() -> None:
    scale = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    density = norm(LOC.numpy(), scale.numpy())
    expected = float((density.logpdf(THETA.numpy()) - density.logpdf(LOC.numpy())).sum())
    assert float(NormalPrior.independent(LOC, scale).log_density(THETA)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("p", [1, 3])
def test_alike_densities_have_a_common_deviation_and_own_ones(p: int) -> None:
    density = multivariate_normal(LOC[:p].numpy(), 0.5**2 * np.eye(p) + 2.0**2 * np.ones((p, p)))
    expected = float(density.logpdf(THETA[:p].numpy()) - density.logpdf(LOC[:p].numpy()))
    found = NormalPrior.alike(LOC[:p], scale=2.0, spread=0.5).log_density(THETA[:p])
    assert float(found) == pytest.approx(expected, rel=1e-12)


def test_a_joined_density_is_the_product_and_may_have_parts_without_variables() -> None:
    parts = [
        NormalPrior.alike(LOC, 2.0, 0.5),
        NormalPrior.alike(LOC[:0], 2.0, 0.5),
        NormalPrior.independent(LOC[:0], LOC[:0]),
        NormalPrior.independent(LOC[:1], torch.ones(1, dtype=torch.float64)),
    ]
    joined = NormalPrior.join(parts)
    theta = torch.cat([THETA, THETA[:1]])
    assert joined.precision.shape == (4, 4)
    expected = float(parts[0].log_density(THETA) + parts[3].log_density(THETA[:1]))
    assert float(joined.log_density(theta)) == pytest.approx(expected, rel=1e-12)


def test_a_power_multiplies_the_logarithm() -> None:
    prior = NormalPrior.alike(LOC, 2.0, 0.5)
    expected = 0.25 * float(prior.log_density(THETA))
    assert float(prior.to_the_power(0.25).log_density(THETA)) == pytest.approx(expected, rel=1e-12)


def test_short_lengthscales_of_all_columns_are_likelier_than_one_short_lengthscale_among_long_ones() -> None:
    start = ColumnsKernel.start(10)
    mode = start.prior.loc
    short, one = mode.clone(), mode.clone()
    short[:10] -= 1.5
    one[0] -= 1.5
    every, single = (float(start.with_theta(theta).log_prior()) for theta in (short, one))
    assert single < every < 0.0
