"""A kernel that is defined outside of the package, in the suite of all kernels."""

import math

import pytest
import torch
from sklearn.gaussian_process.kernels import ExpSineSquared

import bkbopt as bo
from bkbopt.kernels import FittableKernel, Kernel
from bkbopt.surrogates.fit import fit_hyperparameters
from tests.conformance import test_kernels
from tests.conformance.suites import suite
from tests.joining.newcomers.kernel import Periodic

globals().update(suite(test_kernels, "kernel") | suite(test_kernels, "fittable"))


@pytest.fixture
def kernel() -> Kernel:
    return Periodic(torch.tensor([0.3, 0.7]).double(), period=2.5)


@pytest.fixture
def fittable() -> FittableKernel:
    return Periodic(torch.tensor([-0.2, 0.4]).double(), period=2.5)


X = torch.linspace(0.0, 1.0, 30, dtype=torch.float64)[:, None]


def test_it_is_scikit_learns_in_one_column() -> None:
    ours, theirs = Periodic(torch.tensor([0.3, 0.0], dtype=torch.float64), 0.4), ExpSineSquared(math.exp(0.3), 0.4)
    torch.testing.assert_close(ours(X, X), torch.as_tensor(theirs(X.numpy())), rtol=0.0, atol=1e-14)


def test_a_fit_finds_its_scales() -> None:
    gp = bo.ExactGP(Periodic(torch.zeros(2).double(), 0.5), 1e-3)
    gp.observe(X, 5.0 * torch.sin(4.0 * torch.pi * X[:, 0]))
    fitted, _ = fit_hyperparameters(gp.observations, gp.kernel, 1e-3)
    assert isinstance(fitted, FittableKernel)
    assert bool((fitted.theta > 0.5).all())  # one smooth wave, much higher than 1


def test_an_optimizer_takes_it() -> None:
    kernel = Periodic(torch.zeros(2).double(), 0.5)
    opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2, {"x": (0.0, 1.0)}, 15, surrogate=bo.BKB(kernel), seed=0)
    assert len(opt.trials) == 15
