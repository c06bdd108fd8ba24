"""A kernel of ours and one of GPyTorch with the same values."""

import gpytorch
import numpy as np
import torch
from torch import Tensor

from bkbopt.kernels import (
    ARDKernel,
    matern52,
)

__all__ = ["FORMS", "LENGTHSCALES", "ours", "random_points", "theirs"]

LENGTHSCALES = [0.3, 1.0, 4.0]
FORMS = {"rbf": None, "matern12": 0.5, "matern32": 1.5, "matern52": 2.5}


def random_points(n: int, d: int = 3, seed: int = 0) -> Tensor:
    return torch.as_tensor(np.random.default_rng(seed).random((n, d)))


def ours(form: str) -> ARDKernel:
    kernel = matern52(3, LENGTHSCALES, outputscale=2.5)
    return ARDKernel(kernel.log_lengthscale, kernel.log_outputscale, kernel.log_hamming, form=form)


def theirs(form: str) -> gpytorch.kernels.Kernel:
    nu = FORMS[form]
    base = (
        gpytorch.kernels.RBFKernel(ard_num_dims=3)
        if nu is None
        else gpytorch.kernels.MaternKernel(nu=nu, ard_num_dims=3)
    )
    kernel = gpytorch.kernels.ScaleKernel(base).double()
    kernel.base_kernel.lengthscale = torch.tensor(LENGTHSCALES, dtype=torch.float64)
    kernel.outputscale = 2.5
    return kernel
