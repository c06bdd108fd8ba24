"""The likelihood in closed form: the same value and gradient as by automatic differentiation."""

import numpy as np
import pytest
import torch

from bkbopt.errors import KernelError
from bkbopt.kernels import ARDKernel, matern52
from bkbopt.kernels.ard import FORMS
from bkbopt.surrogates.fit import log_marginal_likelihood
from bkbopt.surrogates.fit_data import FitData
from bkbopt.surrogates.gradients import likelihood_and_gradient


def kernel_of(form: str, categorical: tuple[int, ...], dim: int = 4) -> ARDKernel:
    k = matern52(dim, 0.6, 1.7, categorical)
    k = ARDKernel(k.log_lengthscale, k.log_outputscale, k.log_hamming, categorical, form, k.prior_loc)
    return k.with_theta(k.theta + torch.linspace(-0.4, 0.4, len(k.theta), dtype=torch.float64))


@pytest.mark.parametrize(
    ("form", "categorical", "precision"),
    [
        *((form, (0, 3), 1.0) for form in FORMS),
        ("matern52", (), None),
        ("matern52", (1,), 1.0),
        ("rbf", (0, 1, 2, 3), None),
    ],
)
def test_value_and_gradient_are_those_of_automatic_differentiation(
    form: str, categorical: tuple[int, ...], precision: float | None
) -> None:
    generator = torch.Generator().manual_seed(len(categorical))
    U = torch.rand(40, 4, generator=generator, dtype=torch.float64)
    for j in categorical:
        U[:, j] = (3.0 * U[:, j]).floor()
    n = torch.randint(1, 5, (40,), generator=generator).double()
    ybar = torch.randn(40, generator=generator, dtype=torch.float64)
    data = FitData(U, n, ybar, 3.0, n - 1.0)
    kernel = kernel_of(form, categorical)
    t = torch.cat([kernel.theta, torch.tensor([-1.5], dtype=torch.float64)]).requires_grad_()
    expected = log_marginal_likelihood(data, kernel.with_theta(t[:-1]), t[-1].exp(), precision)
    (gradient,) = torch.autograd.grad(expected, t)
    lam = float(t[-1].detach().exp())
    value, slope = likelihood_and_gradient(data, kernel.by_theta(U), kernel.theta.numpy(), lam, precision)
    # Both go through one Cholesky factor of a matrix whose condition number is about 100.
    assert value == pytest.approx(float(expected.detach()), rel=1e-11)
    torch.testing.assert_close(torch.from_numpy(slope), gradient, rtol=1e-9, atol=1e-9)


def test_hopeless_kernel_is_refused() -> None:
    U = torch.rand(5, 4, dtype=torch.float64)
    data = FitData(U, torch.ones(5).double(), torch.ones(5).double(), 0.0, torch.zeros(5))
    with pytest.raises(KernelError):
        likelihood_and_gradient(data, matern52(4).by_theta(U), np.full(5, np.nan), 0.1, None)
