"""The spherical kernel is a linear kernel on a sphere, with the finite features of its docstring."""

import pytest
import torch
from sklearn.gaussian_process.kernels import DotProduct
from torch import Tensor

import bkbopt as bo
from bkbopt.errors import KernelError
from bkbopt.kernels import SphericalKernel
from bkbopt.posterior.features import FeatureMap, Spherical
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.model import Model


def points(n: int, dim: int, seed: int = 0) -> Tensor:
    return torch.rand(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def kernel_of(dim: int) -> SphericalKernel:
    kernel = SphericalKernel.start(dim)
    return kernel.with_theta(kernel.theta + torch.linspace(-0.5, 0.5, dim + 2, dtype=torch.float64))


def projected(X: Tensor, lengthscale: Tensor) -> Tensor:
    """The point of the unit sphere on the line from its pole (0, ..., 0, 1) through (z, 0)."""
    z = (X - 0.5) / lengthscale
    h = 1.0 + z.square().sum(1, keepdim=True)
    pole = torch.zeros(X.shape[1] + 1, dtype=torch.float64)
    pole[-1] = 1.0
    return pole + (torch.cat([z, torch.zeros(len(z), 1)], 1) - pole) * 2.0 / h


def test_kernel_is_scikit_learns_dot_product_of_projected_points() -> None:
    kernel, X = kernel_of(4), points(7, 4)
    u = projected(X, kernel.log_lengthscale.exp())
    torch.testing.assert_close(u.square().sum(1), torch.ones(7, dtype=torch.float64), rtol=1e-12, atol=0.0)
    constant, linear = kernel.log_variance.exp().tolist()
    expected = constant + linear * torch.as_tensor(DotProduct(sigma_0=0.0)(u.numpy()))
    torch.testing.assert_close(kernel(X, X), expected, rtol=1e-12, atol=1e-14)


def test_budgeted_posterior_is_linear_regression_on_its_features() -> None:
    kernel, X, lam = kernel_of(5), points(200, 5), 0.05
    y, features = torch.sin(3.0 * X).sum(1), Spherical(kernel)
    assert isinstance(features, FeatureMap)
    assert features.size == 7
    state = GaussianState.from_data(features(X), torch.ones(200, dtype=torch.float64), y, lam)
    regression = Model(features, state.w, state.root, lam)
    surrogate = bo.BKB(kernel, lam)
    surrogate.observe(X, y)
    fresh = points(20, 5, seed=1)
    found, expected = surrogate.posterior(fresh), regression.posterior(fresh)
    # Residuals of the last features are rounding error of k(x, x).
    torch.testing.assert_close(found.mean, expected.mean, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(found.variance, expected.variance, rtol=1e-6, atol=1e-8)


def test_plane_and_bowl_over_their_growth_are_learnt_from_as_many_points_as_features() -> None:
    kernel = SphericalKernel.start(6)
    X, fresh = points(8, 6), points(50, 6, seed=1)

    def function(x: Tensor) -> Tensor:
        z = (x - 0.5) / kernel.log_lengthscale.exp()
        square = z.square().sum(1)
        return (2.0 + z @ torch.arange(6.0, dtype=torch.float64) - 3.0 * square) / (1.0 + square)

    surrogate = bo.ExactGP(kernel, 1e-10)
    surrogate.observe(X, function(X))
    torch.testing.assert_close(surrogate.posterior(fresh).mean, function(fresh), rtol=0.0, atol=1e-5)


def test_inactive_columns_have_no_effect() -> None:
    kernel, X = SphericalKernel.start(3, inactive=[1]), points(6, 3)
    torch.testing.assert_close(kernel(X, X), SphericalKernel.start(2)(X[:, [0, 2]], X[:, [0, 2]]))


def test_other_number_of_columns_is_refused() -> None:
    with pytest.raises(KernelError, match="expected points with 3 columns"):
        SphericalKernel.start(3)(points(2, 4), points(2, 4))


def test_optimizer_takes_it() -> None:
    optimizer = bo.Optimizer(
        {f"x{j}": bo.Float(0.0, 1.0) for j in range(6)}, surrogate=bo.BKB(SphericalKernel.start(6))
    )
    for _ in range(40):
        trial = optimizer.ask()
        optimizer.tell(trial, sum((x - 0.3) ** 2 for x in trial.params.values()))
    assert optimizer.best_trial.value < 0.02
