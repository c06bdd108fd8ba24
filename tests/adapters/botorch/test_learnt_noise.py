"""Noise that a likelihood learns besides known variances, against a dense Gaussian process in NumPy.

`SingleTaskGP` takes a given variance for the known and for the learnt noise, and adds it twice to covariances; its
conditioned means have the sum of both, and are compared too.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

pytest.importorskip("botorch", reason="the BoTorch adapter needs botorch")

from botorch.sampling import IIDNormalSampler
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood

from tests.sweeps import sweep

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")

D = 3
F64 = torch.float64
Data = Callable[..., tuple[Tensor, Tensor, Tensor]]
Pair = Callable[..., tuple[Any, Any]]
Array = NDArray[np.float64]

every_shape = pytest.mark.parametrize(
    ("batch", "m", "shared"), sweep([(), (2,)], [1, 2], [False, True], together=2), ids=str
)


def by_output(T: Tensor, m: int) -> Tensor:
    """Values (..., n, m) in the model's own order: (..., m, n), or (..., n) for one output."""
    return T.mT if m > 1 else T[..., 0]


def models(data: Data, pair: Pair, batch: tuple[int, ...], m: int, shared: bool) -> tuple[Any, Any]:
    """`BKBModel` and `SingleTaskGP` with known noise, and learnt noise of each model or `shared` by all of them."""
    X, Y, Yvar = data(20, D, m, batch)
    own = torch.Size() if shared else torch.Size((*batch, m) if m > 1 else batch)
    likelihood = FixedNoiseGaussianLikelihood(by_output(Yvar, m), learn_additional_noise=True, batch_shape=own).double()
    likelihood.second_noise = 0.1 + 0.2 * torch.rand(*own, 1, dtype=F64)
    return pair(X, Y, likelihood=likelihood, outcome_transform=None)


def known_and_learnt(model: Any, given: Tensor) -> Array:
    """Noise variances of the training points, and of points with the known variances `given (..., q, m)`."""
    known = torch.cat([model.likelihood.noise_covar.noise, by_output(given, model.num_outputs)], -1)
    return (known + model.likelihood.second_noise).detach().numpy()


def dense(model: Any, X: Tensor, Y: Tensor, noise: Array, points: Tensor) -> tuple[Array, Array]:
    """Mean and variance of the exact Gaussian process with the prior of `model`, given `Y` with noise at `X`."""
    m, n = model.num_outputs, X.shape[-2]
    A = torch.cat([X, points], -2)
    A = A.unsqueeze(-3).expand(*A.shape[:-2], m, *A.shape[-2:]) if m > 1 else A
    with torch.no_grad():
        K, mean = model.covar_module(A).to_dense().numpy(), model.mean_module(A).numpy()
    R = by_output(Y, m).numpy() - mean[..., :n]
    C = K[..., :n, :n] + noise[..., None] * np.eye(n)
    gain = np.linalg.solve(C, K[..., :n, n:]).swapaxes(-1, -2)
    variance = K[..., n:, n:] - gain @ K[..., :n, n:]
    return mean[..., n:] + (gain @ R[..., None])[..., 0], variance.diagonal(axis1=-2, axis2=-1).copy()


def assert_is(posterior: Any, mean: Array, variance: Array) -> None:
    for T, expected in ((posterior.mean, mean), (posterior.variance, variance)):
        own = by_output(T, T.shape[-1]).detach()
        # Two ways to solve with matrices whose condition numbers are below 1e3. Fantasies have a dimension of one more.
        torch.testing.assert_close(own.reshape(expected.shape), torch.as_tensor(expected), rtol=1e-10, atol=1e-10)


@every_shape
def test_learnt_noise_is_added_to_that_of_points_conditioned_on(
    batch: tuple[int, ...], m: int, shared: bool, data: Data, pair: Pair
) -> None:
    ours, theirs = start = models(data, pair, batch, m, shared)
    points = torch.rand(*batch, 4, D, dtype=F64)
    X, Y, _ = data(20, D, m, batch)
    given = torch.empty(*batch, 0, m, dtype=F64)
    for q in (2, 1):  # twice, the second time on top of the first
        X_new, Y_new, noise = data(q, D, m, batch, seed=q)
        ours, theirs = (model.condition_on_observations(X_new, Y_new, noise=noise) for model in (ours, theirs))
        X, Y, given = torch.cat([X, X_new], -2), torch.cat([Y, Y_new], -2), torch.cat([given, noise], -2)
        expected = dense(start[1], X, Y, known_and_learnt(start[1], given), points)
        assert_is(ours.posterior(points), *expected)
        assert_is(ours.absorbed().posterior(points), *expected)
        torch.testing.assert_close(ours.posterior(points).mean, theirs.posterior(points).mean, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(ours.likelihood.noise, theirs.likelihood.noise, rtol=1e-12, atol=1e-12)


@every_shape
def test_predicted_observations_have_the_learnt_noise_once(
    batch: tuple[int, ...], m: int, shared: bool, data: Data, pair: Pair
) -> None:
    model, theirs = models(data, pair, batch, m, shared)
    X, Y, _ = data(20, D, m, batch)
    given, points = data(4, D, m, batch, seed=3)[2], torch.rand(*batch, 4, D, dtype=F64)
    noise = known_and_learnt(theirs, given)
    mean, variance = dense(theirs, X, Y, noise[..., :20], points)
    assert_is(model.posterior(points, observation_noise=given), mean, variance + noise[..., 20:])
    # BoTorch predicts observations whose known noise is not given with the mean of those of the training points.
    average = noise[..., :20].mean(-1, keepdims=True)
    assert_is(model.posterior(points, observation_noise=True), mean, variance + average)


@pytest.mark.parametrize("given", [None, 0.05], ids=["average", "given"])
@every_shape
def test_fantasies_are_drawn_and_learnt_from_with_the_same_noise(
    batch: tuple[int, ...], m: int, shared: bool, given: float | None, data: Data, pair: Pair
) -> None:
    model, theirs = models(data, pair, batch, m, shared)
    X, Y, Yvar = data(20, D, m, batch)
    points = torch.rand(*batch, 4, D, dtype=F64)
    known = Yvar.mean(-2, keepdim=True) if given is None else torch.full_like(Yvar[..., :1, :], given)
    for k in range(2):  # a fantasy, and a fantasy of this fantasy
        X_new, sampler = data(1, D, m, batch, seed=5 + k)[0], IIDNormalSampler(torch.Size([1]), seed=k)
        X_all = X_new.expand(*model.batch_shape, 1, D)
        model = model.fantasize(X_all, sampler, observation_noise=None if given is None else known)
        noise = known_and_learnt(theirs, known.expand(*batch, k + 1, m))
        mean, variance = dense(theirs, X, Y, noise[..., :-1], X_new)
        z = by_output(sampler.base_samples.reshape(1, m).expand(*batch, 1, m), m).numpy()
        drawn = torch.as_tensor(mean + np.sqrt(variance + noise[..., -1:]) * z)
        own = model.train_targets[..., -1:].detach().reshape(drawn.shape)
        torch.testing.assert_close(own, drawn, rtol=1e-10, atol=1e-10)
        X, Y = torch.cat([X, X_new], -2), torch.cat([Y, drawn.mT if m > 1 else drawn[..., None]], -2)
        expected = dense(theirs, X, Y, noise, points)
        assert_is(model.posterior(points), *expected)
        assert_is(model.absorbed().posterior(points), *expected)


def test_gradients_of_fantasies_with_learnt_noise(data: Data, pair: Pair) -> None:
    model = models(data, pair, (), 2, False)[0].requires_grad_(False)
    points = torch.rand(2, D, dtype=F64)

    def function(X_new: Tensor) -> tuple[Tensor, Tensor]:
        posterior = model.fantasize(X_new, IIDNormalSampler(torch.Size([3]), seed=0)).posterior(points)
        return posterior.mean, posterior.variance

    assert torch.autograd.gradcheck(function, (torch.rand(2, D, dtype=F64, requires_grad=True),))
