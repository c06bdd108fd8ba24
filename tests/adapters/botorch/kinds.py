"""Models of every kind, as `BKBModel` or as `SingleTaskGP`, for tests of fits."""

from collections.abc import Callable

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Normalize, Warp
from gpytorch.constraints import Interval
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import GammaPrior, LogNormalPrior
from torch import Tensor

__all__ = ["KINDS", "D", "close", "data", "mll_of"]

D = 2


def data(n: int, m: int = 1, batch: tuple[int, ...] = (), seed: int = 0) -> tuple[Tensor, Tensor]:
    """Points X (batch, n, 2) and noisy values Y (batch, n, m), each output with a lengthscale of its own."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(*batch, n, D, generator=generator, dtype=torch.float64)
    values = [torch.sin((3.0 + 2.0 * j) * X[..., 0]) + X[..., 1] for j in range(m)]
    noise = torch.randn(*batch, n, m, generator=generator, dtype=torch.float64)
    return X, torch.stack(values, -1) + 0.2 * noise


def mll_of(model: SingleTaskGP) -> ExactMarginalLogLikelihood:
    return ExactMarginalLogLikelihood(model.likelihood, model)


Make = Callable[[type[SingleTaskGP]], SingleTaskGP]


def warped(cls: type[SingleTaskGP]) -> SingleTaskGP:
    X, Y = data(40)
    prior = LogNormalPrior(0.0, 0.75**0.5)
    return cls(X, Y, input_transform=Warp(D, [0, 1], concentration0_prior=prior, concentration1_prior=prior))


def with_kernel(cls: type[SingleTaskGP]) -> SingleTaskGP:
    """Priors, a constraint, and columns of the inputs chosen by the kernels."""
    X, Y = data(40)
    first = MaternKernel(nu=2.5, active_dims=(1,), lengthscale_prior=GammaPrior(3.0, 6.0))
    second = RBFKernel(active_dims=(0,), lengthscale_constraint=Interval(0.05, 0.4))
    return cls(X, Y, covar_module=ScaleKernel(first + second, outputscale_prior=GammaPrior(2.0, 0.15)))


def in_units(cls: type[SingleTaskGP]) -> SingleTaskGP:
    X, Y = data(40)
    return cls(100.0 * X + 7.0, 1e4 * Y, input_transform=Normalize(D))


#: Each is fitted as BoTorch fits the same SingleTaskGP.
KINDS: dict[str, Make] = {
    "one output": lambda cls: cls(*data(40)),
    "in units": in_units,
    "no outcome transform": lambda cls: cls(*data(40), outcome_transform=None),
    "two outputs": lambda cls: cls(*data(30, m=2)),
    "a batch": lambda cls: cls(*data(30, batch=(2,)), outcome_transform=None),
    "fixed noise": lambda cls: cls(*data(40), torch.full((40, 1), 0.04, dtype=torch.float64)),
    "fixed noise, two outputs": lambda cls: cls(*data(30, m=2), torch.full((30, 2), 0.04, dtype=torch.float64)),
    "kernel with priors": with_kernel,
    "warped inputs": warped,
}


def close(a: torch.nn.Module, b: torch.nn.Module, atol: float) -> None:
    """Equal hyper-parameters, on the scales that the optimiser moves on."""
    theirs = dict(b.named_parameters())
    assert set(theirs) == {name for name, _ in a.named_parameters()}
    for name, own in a.named_parameters():
        torch.testing.assert_close(own, theirs[name], rtol=0, atol=atol, msg=lambda text, name=name: f"{name}: {text}")
