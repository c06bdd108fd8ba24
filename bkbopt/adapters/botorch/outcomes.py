"""Conversion of the distribution of a model's outputs to a posterior in the units of `train_Y`, without evaluation.

BoTorch's own code multiplies the covariance by diagonal matrices from both sides, and joins several outputs one by one.
Computing a few rows of its result requires the whole matrix.
"""

from collections.abc import Sequence
from typing import cast

from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.transformed import TransformedPosterior
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from linear_operator.operators import BlockDiagLinearOperator, ConstantMulLinearOperator
from torch import Tensor

__all__ = ["posterior_of"]


def posterior_of(
    distribution: MultivariateNormal,
    X: Tensor,
    m: int,
    outputs: Sequence[int] | None,
    transform: OutcomeTransform | None,
) -> GPyTorchPosterior | TransformedPosterior:
    """The posterior of some outputs at `X`.

    Args:
        distribution: distribution at q points; (..., m, q) if m > 1.
        X: the points, passed to the outcome transform.
        m: number of outputs.
        outputs: indices of the outputs to return, for m > 1; None for all.
        transform: the outcome transform of all outputs.
    """
    linear = type(transform) is Standardize  # subclasses may scale each point differently
    if linear:
        distribution = _unstandardized(distribution, m, cast(Standardize, transform))
    if m > 1:
        distribution = _all_of(distribution) if outputs is None else _some_of(distribution, outputs)
    posterior = GPyTorchPosterior(distribution)
    if linear or transform is None:
        return posterior
    if outputs is not None:
        transform = transform.subset_output(list(outputs))
    return cast(GPyTorchPosterior | TransformedPosterior, transform.untransform_posterior(posterior, X=X))


def _unstandardized(distribution: MultivariateNormal, m: int, transform: Standardize) -> MultivariateNormal:
    mean = distribution.mean.mT if m > 1 else distribution.mean[..., None]
    one = mean.new_ones(*mean.shape[:-2], 1, mean.shape[-1])  # also where there are no points
    mean, variance = transform.untransform(mean, one)
    scale = cast(Tensor, variance)[..., 0, :] if m > 1 else cast(Tensor, variance)[..., 0, 0]
    # Not `mul`: it moves a batch of constants into the terms of sums, with wrong shapes.
    covariance = ConstantMulLinearOperator(distribution.lazy_covariance_matrix, scale)
    return MultivariateNormal(mean.mT if m > 1 else mean[..., 0], covariance)


def _all_of(distribution: MultivariateNormal) -> MultitaskMultivariateNormal:
    """The joint distribution of independent outputs, which are the last batch dimension of `distribution`."""
    covariance = BlockDiagLinearOperator(distribution.lazy_covariance_matrix)
    return MultitaskMultivariateNormal(distribution.mean.mT, covariance, interleaved=False)


def _some_of(distribution: MultivariateNormal, outputs: Sequence[int]) -> MultivariateNormal:
    mean, covariance = distribution.mean, distribution.lazy_covariance_matrix
    parts = [MultivariateNormal(mean[..., i, :], covariance[..., i, :, :]) for i in outputs]
    return parts[0] if len(parts) == 1 else MultitaskMultivariateNormal.from_independent_mvns(parts)
