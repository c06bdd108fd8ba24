"""Points far from the origin, as times in seconds and numbers of years: only their distances count."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from bkbopt import BKB, ExactGP
from bkbopt.kernels import ARDKernel, matern52
from bkbopt.kernels.ard import FORMS


def random_points(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.as_tensor(np.random.default_rng(seed).random((n, d)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("away", [0.0, 2.0**9, 2.0**14, 2.0**20, 2.0**30])
def test_a_kernel_far_from_the_origin_is_the_same(form: str, away: float) -> None:
    near = (random_points(20, 3) * 2**20).round() / 2**20  # so that the sums are exact
    kernel = ARDKernel(torch.full((3,), math.log(0.25)).double(), torch.zeros(()).double(), torch.zeros(0), form=form)
    far = near + away
    # A coordinate over its lengthscale is rounded in units of itself, and below `FAR` a squared distance by 1e-8.
    close = max(1e-14, 4.0 * away * 1e-15, 1e-8 if 0.0 < away < 2.0**10 else 0.0)
    torch.testing.assert_close(kernel(far, far[:7]), kernel(near, near[:7]), rtol=0.0, atol=close)
    slopes = []
    for points in (near, far):
        X = points.clone().requires_grad_()
        (slope,) = torch.autograd.grad(kernel(X, X[:7].detach())[7:].sum(), X)
        slopes.append(slope)
    torch.testing.assert_close(slopes[1], slopes[0], rtol=0.0, atol=1e3 * close)


@pytest.mark.parametrize("surrogate", [ExactGP, BKB])
@pytest.mark.parametrize("away", [1e5, 1e6, 1e8])
def test_posteriors_far_from_the_origin_are_the_same(surrogate: type[ExactGP | BKB], away: float) -> None:
    X, fresh = random_points(40, 2), random_points(20, 2, seed=1)
    y = torch.sin(5.0 * X.sum(1))
    near, far = (surrogate(matern52(2, 0.2), noise=1e-4) for _ in range(2))
    near.observe(X, y)
    far.observe(X + away, y)
    expected, found = near.posterior(fresh), far.posterior(fresh + away)
    # Coordinates are rounded by eps times their distance from the origin, lengthscales away.
    assert float(((found.mean - expected.mean) / expected.stddev).abs().max()) < 1e-12 * away
    torch.testing.assert_close(found.variance, expected.variance, rtol=1e-12 * away, atol=0.0)
