"""Posteriors in the units of `train_Y` are BoTorch's, also where their covariance is not evaluated."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("botorch", reason="the BoTorch adapter needs botorch")

from botorch.models.transforms.outcome import Standardize, StratifiedStandardize
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.utils.context_managers import delattr_ctx

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")

D = 3
F64 = torch.float64
Data = Callable[..., tuple[Tensor, Tensor, Tensor]]
Pair = Callable[..., tuple[Any, Any]]


@pytest.mark.parametrize("noisy", [False, True], ids=["values", "observations"])
@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("batch", [(), (2,)], ids=["single", "batch"])
def test_standardised_outputs_are_taken_back_as_botorch_does(
    batch: tuple[int, ...], m: int, noisy: bool, data: Data, pair: Pair
) -> None:
    X, Y, _ = data(30, D, m, batch)
    transform = Standardize(m, batch_shape=torch.Size(batch))
    model, _ = pair(X, 10.0 * Y, max_inducing=12, outcome_transform=transform)
    points = torch.rand(3, *[1] * len(batch), 5, D, dtype=F64)
    ours = model.posterior(points, observation_noise=noisy)
    with delattr_ctx(model, "outcome_transform"):
        raw = model.posterior(points, observation_noise=noisy)
    theirs = model.outcome_transform.untransform_posterior(raw)
    assert isinstance(ours, GPyTorchPosterior)
    for name in ("mean", "variance"):
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name), rtol=1e-13, atol=1e-13)
    one, other = ours.distribution.covariance_matrix, theirs.distribution.covariance_matrix
    torch.testing.assert_close(one, other, rtol=1e-13, atol=1e-13)
    samples = torch.randn(4, *ours.base_sample_shape, dtype=F64)
    one, other = (p.rsample_from_base_samples(torch.Size([4]), samples) for p in (ours, theirs))
    # A root of a covariance whose condition number is at most 1e4.
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("m", [1, 2])
def test_a_posterior_at_no_points_is_empty_as_botorchs(m: int, data: Data, pair: Pair) -> None:
    X, Y, _ = data(10, D, m)
    for model in pair(X, Y, outcome_transform=Standardize(m)):
        posterior = model.posterior(X[:0])
        assert posterior.mean.shape == posterior.variance.shape == (0, m)


def test_a_transform_that_scales_every_point_in_its_own_way_is_botorchs(data: Data, pair: Pair) -> None:
    X, Y, _ = data(30, D)
    X[:, 0] = (X[:, 0] > 0.5).double()
    Y = torch.where(X[:, :1] > 0.5, 5.0 * Y, Y)
    levels = torch.tensor([0.0, 1.0], dtype=F64)
    transform = StratifiedStandardize(stratification_idx=0, all_task_values=levels)
    ours, theirs = pair(X, Y, outcome_transform=transform)
    points = torch.rand(4, D, dtype=F64, generator=torch.Generator().manual_seed(0))
    points[:, 0] = torch.tensor([0.0, 1.0, 1.0, 0.0])
    one, other = ours.posterior(points), theirs.posterior(points)
    torch.testing.assert_close(one.mean, other.mean, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(one.variance, other.variance, rtol=1e-10, atol=1e-10)
    assert float(one.variance.max() / one.variance.min()) > 10.0
