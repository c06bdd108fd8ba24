"""Kernels of others: GPyTorch's and callables through our wrappers."""

import math
from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from torch import Tensor

from bkbopt import BKB, ExactGP, LearnerSurrogate
from bkbopt.errors import ArgumentTypeError, KernelError
from bkbopt.kernels import (
    CallableKernel,
    FittableKernel,
    GPyTorchKernel,
    ScaledKernel,
    as_kernel,
    matern52,
    rbf,
)
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.fit import fit_hyperparameters
from tests.conformance.kernel_subjects import Sine
from tests.kernels.twins import FORMS, ours, random_points, theirs


def with_priors() -> gpytorch.kernels.Kernel:
    """An ARD Matern kernel that carries priors of its own."""
    base = gpytorch.kernels.MaternKernel(
        nu=2.5, ard_num_dims=3, lengthscale_prior=gpytorch.priors.LogNormalPrior(0.2, 1.1)
    )
    return gpytorch.kernels.ScaleKernel(base, outputscale_prior=gpytorch.priors.GammaPrior(2.0, 0.5))


def parameters_of(kernel: gpytorch.kernels.Kernel) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in kernel.named_parameters()}


# -- GPyTorch's ------------------------------------------------------------------------------------------------------


def test_wrapped_gpytorch_kernel_has_its_values() -> None:
    for form in FORMS:
        wrapped = GPyTorchKernel.wrap(theirs(form))
        A, B = random_points(7), random_points(5, seed=1)
        torch.testing.assert_close(wrapped(A, B), theirs(form)(A, B).to_dense().detach(), rtol=1e-15, atol=1e-15)
        torch.testing.assert_close(wrapped.diag(A), torch.full((7,), 2.5, dtype=torch.float64))


def test_wrapped_gpytorch_kernel_respects_its_priors() -> None:
    kernel = with_priors()
    kernel.base_kernel.lengthscale = torch.tensor([0.2, 0.5, 3.0])
    expected = torch.distributions.LogNormal(0.2, 1.1).log_prob(torch.tensor([0.2, 0.5, 3.0]).double()).sum()
    expected = expected + torch.distributions.Gamma(2.0, 0.5).log_prob(kernel.outputscale.detach().double())
    # The user's kernel is in float32, and its raw values go through a softplus there.
    torch.testing.assert_close(GPyTorchKernel.wrap(kernel).log_prior(), expected, rtol=1e-6, atol=0.0)


def test_gpytorch_kernel_gives_the_posterior_of_our_own() -> None:
    X, Xs = random_points(30), random_points(10, seed=1)
    y = torch.sin(5.0 * X[:, 0])
    for make in (ExactGP, BKB):
        a, b = make(theirs("matern52"), 1e-2), make(ours("matern52"), 1e-2)
        for gp in (a, b):
            gp.observe(X, y)
        # Dictionaries are drawn from equal scores with the same seed, so the two are the same to rounding.
        torch.testing.assert_close(a.posterior(Xs).mean, b.posterior(Xs).mean, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(a.posterior(Xs).variance, b.posterior(Xs).variance, rtol=1e-9, atol=1e-10)


def test_fit_moves_a_gpytorch_kernel_and_leaves_the_users_object_alone() -> None:
    user = with_priors()
    before = parameters_of(user)
    obs = Observations(3)
    X = random_points(60)
    obs.add(X, torch.sin(6.0 * X[:, 0]))
    start = as_kernel(user)
    assert isinstance(start, GPyTorchKernel)
    fitted, noise = fit_hyperparameters(obs, start, 1e-2)
    assert isinstance(fitted, GPyTorchKernel)
    assert not torch.allclose(fitted.theta, start.theta, atol=1e-2)
    assert 0.0 < noise < 1e-2
    # Column 0 alone matters: its lengthscale must come out shortest.
    at = dict(zip((n for n, _ in user.named_parameters()), fitted._parameters().values(), strict=True))
    assert int(at["base_kernel.raw_lengthscale"].argmin()) == 0
    after = parameters_of(user)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(p.dtype == torch.float32 and p.requires_grad and p.grad is None for p in user.parameters())


def test_a_users_later_change_of_a_gpytorch_kernel_does_not_reach_the_surrogate() -> None:
    user = theirs("rbf")
    gp = ExactGP(user, 0.1)
    gp.observe(random_points(5), np.arange(5.0))
    before = gp.posterior(random_points(3, seed=1)).mean
    user.outputscale = 100.0
    assert torch.equal(gp.posterior(random_points(3, seed=1)).mean, before)


def test_kernel_without_hyperparameters_has_an_empty_theta() -> None:
    class Cosine(gpytorch.kernels.Kernel):
        def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
            K = torch.cos(x1[:, :1] - x2[:, :1].T)
            return K.diagonal() if diag else K

    kernel = as_kernel(Cosine())
    assert isinstance(kernel, GPyTorchKernel)
    assert len(kernel.theta) == 0
    X = random_points(4)
    torch.testing.assert_close(kernel(X, X), torch.cos(X[:, :1] - X[:, :1].T))


# -- callables -------------------------------------------------------------------------------------------------------


def numpy_rbf(A: Tensor, B: Tensor) -> np.ndarray:
    r2 = ((A.numpy()[:, None] - B.numpy()[None]) ** 2).sum(-1)
    return np.exp(-0.5 * r2 / 0.49)


def test_callable_on_numpy_arrays_gives_the_posterior_of_our_own() -> None:
    X, Xs = random_points(25), random_points(10, seed=1)
    a, b = ExactGP(numpy_rbf, 0.1), ExactGP(rbf(3, 0.7), 0.1)
    for gp in (a, b):
        gp.observe(X, X[:, 0])
    torch.testing.assert_close(a.posterior(Xs).mean, b.posterior(Xs).mean, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(a.posterior(Xs).variance, b.posterior(Xs).variance, rtol=1e-12, atol=1e-12)


def test_callable_may_return_float32_or_nested_lists() -> None:
    X = random_points(70)
    expected = torch.as_tensor(numpy_rbf(X, X))
    for change in (lambda K: K.astype(np.float32), lambda K: K.tolist(), torch.as_tensor):
        kernel = CallableKernel(lambda A, B, f=change: f(numpy_rbf(A, B)))
        torch.testing.assert_close(kernel(X, X), expected, rtol=0.0, atol=1e-7)
        assert kernel(X, X).dtype == torch.float64
        torch.testing.assert_close(kernel.diag(X), torch.ones(70, dtype=torch.float64), rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("learner", ["krr", "kernel-awv"])
def test_callable_that_makes_lists_is_not_asked_for_a_matrix_of_no_points(learner: str) -> None:
    def rows(A: Tensor, B: Tensor) -> np.ndarray:
        return np.array([[float(numpy_rbf(a[None], b[None])[0, 0]) for b in B] for a in A])

    kernel, X = CallableKernel(rows), random_points(5)
    assert (kernel(X[:0], X).shape, kernel(X, X[:0]).shape) == ((0, 5), (5, 0))
    a, b = (LearnerSurrogate(f, 0.1, learner=learner) for f in (rows, numpy_rbf))
    for model in (a, b):
        model.observe(X, X[:, 0])
    torch.testing.assert_close(a.posterior(X).mean, b.posterior(X).mean, rtol=1e-12, atol=1e-12)


def test_callables_own_diag_is_used() -> None:
    class WithDiag:
        def __call__(self, A: Tensor, B: Tensor) -> np.ndarray:
            return numpy_rbf(A, B)

        def diag(self, A: Tensor) -> np.ndarray:
            return np.full(len(A), 1.5)

    assert CallableKernel(WithDiag()).diag(random_points(3)).tolist() == [1.5, 1.5, 1.5]


def test_callable_sees_objects_where_points_are_row_numbers() -> None:
    words = ["abc", "abd", "xyz", "abc"]

    def common(A: list[str], B: list[str]) -> list[list[float]]:
        return [[float(sum(p == q for p, q in zip(a, b, strict=True))) for b in B] for a in A]

    kernel = as_kernel(common, words)
    rows = torch.arange(4.0, dtype=torch.float64)[:, None]
    assert kernel(rows[:2], rows).tolist() == [[3.0, 2.0, 0.0, 3.0], [2.0, 3.0, 0.0, 2.0]]
    gp = ExactGP(common, 0.1)
    gp.bind_objects(words)
    gp.observe(rows[:3], [1.0, 0.0, -1.0])
    mean = gp.posterior(rows).mean
    assert float(mean[3]) == pytest.approx(float(mean[0]), rel=1e-12)  # equal words, equal beliefs


def test_hyper_parameters_of_a_users_own_kernel_are_fitted() -> None:
    own = Sine(torch.zeros(2).double())
    gp = ExactGP(own, 1e-2)
    X = 3.0 * random_points(30)
    gp.observe(X, 5.0 * torch.sin(1.05 * X).sum(1))
    fitted, _ = fit_hyperparameters(gp.observations, gp.kernel, 1e-2)
    assert isinstance(fitted, FittableKernel)
    assert float(fitted.theta[0].exp()) == pytest.approx(1.05, rel=1e-3)
    assert float(fitted.theta[1]) > 0.5  # the data's variance is far above 1
    assert own.theta.tolist() == [0.0, 0.0]


def test_values_of_a_users_fittable_kernel_are_checked() -> None:
    class Bad(Sine):
        def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
            return math.nan * X1 @ X2.T

    with pytest.raises(KernelError, match="kernel: expected finite values, got NaN"):
        ExactGP(Bad(torch.zeros(2).double()), 1e-2).observe(random_points(3), np.ones(3))


def test_a_users_fittable_kernel_of_objects_stays_fittable() -> None:
    class OfLists(Sine):
        def _features(self, X: Any) -> Tensor:
            return super()._features(torch.tensor(X, dtype=torch.float64))

        def with_theta(self, theta: Tensor) -> "OfLists":
            return OfLists(theta)

    gp = ExactGP(OfLists(torch.zeros(2).double()), 1e-2)
    gp.bind_objects([[0.5], [2.0]])
    kernel = gp.kernel
    assert isinstance(kernel, FittableKernel)
    rows = torch.arange(2.0, dtype=torch.float64)[:, None]
    again = kernel.with_theta(torch.tensor([0.5, 0.0]).double())
    assert float(again(rows, rows)[0, 1]) == pytest.approx(
        1.0 + math.sin(0.5 * math.exp(0.5)) * math.sin(2.0 * math.exp(0.5))
    )


def test_as_kernel_refuses_what_cannot_be_called() -> None:
    with pytest.raises(
        ArgumentTypeError, match=r"kernel: expected a kernel of bkbopt or GPyTorch, or a callable .* int"
    ):
        as_kernel(3)


def test_as_kernel_returns_our_kernels_as_they_are() -> None:
    for kernel in (matern52(2), CallableKernel(numpy_rbf), ScaledKernel(matern52(2), torch.zeros(()).double())):
        assert as_kernel(kernel) is kernel


def test_scaled_kernel_multiplies_and_is_fittable() -> None:
    kernel = ScaledKernel(CallableKernel(numpy_rbf), torch.tensor(math.log(3.0), dtype=torch.float64))
    assert isinstance(kernel, FittableKernel)
    assert not isinstance(kernel.base, FittableKernel)
    X = random_points(5)
    torch.testing.assert_close(kernel(X, X), 3.0 * torch.as_tensor(numpy_rbf(X, X)), rtol=1e-14, atol=0.0)
    torch.testing.assert_close(kernel.diag(X), torch.full((5,), 3.0).double(), rtol=1e-14, atol=0.0)
    obs = Observations(3)
    big = torch.sin(3.0 * random_points(40)[:, 0])
    obs.add(random_points(40), 4.0 * big)
    fitted, _ = fit_hyperparameters(obs, kernel.with_theta(torch.zeros(1).double()), 1e-2)
    assert isinstance(fitted, ScaledKernel)
    assert float(fitted.theta) > 0.5  # the data's variance is far above 1
